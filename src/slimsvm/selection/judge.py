"""How models are compared: by the goal's loss or by a scorer, on validation rows, and with which full models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from ..goals import Goal
from ..kernels import Array, Matrix
from ..model import Expansion, Fit, Holdout, Judgement, Task
from ..rounding import rounded
from ..rows.memory import gathered
from ..text import nearest
from .folds import judge_folds
from .path import Path
from .problem import Problem


@dataclass(frozen=True)
class Units:
    """A mean and a scale: value = centre + scale * standardised value; of several targets an array of each."""

    centre: Any = 0.0
    scale: Any = 1.0

    @classmethod
    def of(cls, values: Array, weights: Array) -> Units:
        """Return the weighted mean and standard deviation of each target; a scale of 1 if all values are equal."""
        centre = np.average(values, axis=0, weights=weights)
        spread = np.sqrt(np.average(np.square(values - centre), axis=0, weights=weights))
        # differences that are only rounding are no spread
        scale = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
        return cls(centre, scale) if np.ndim(scale) else cls(float(centre), float(scale))

    def inside(self, values: Array) -> Array:
        """Return values standardised."""
        return (values - self.centre) / self.scale

    def outside(self, values: Array) -> Array:
        """Return standardised values in the user's unit."""
        return self.centre + self.scale * values

    def model_inside(self, model: Expansion) -> Expansion:
        """Return a model with standardised outputs."""
        return replace(model, coef=model.coef / self.scale, bias=self.inside(model.bias))

    def model_outside(self, model: Expansion) -> Expansion:
        """Return a model with outputs in the user's unit; tables of 4 bits hold the coefficients in that unit."""
        coef = self.scale * model.coef
        coef = rounded(np.asarray(coef), 4) if model.precision == "int4" and np.any(self.scale != 1) else coef
        return replace(model, coef=coef, bias=self.outside(model.bias))

    def path_outside(self, path: Path) -> Path:
        """Return a path of models with outputs in the user's unit."""
        return path.with_models(self.model_outside)


#: for labels that are classes
NO_UNITS = Units()


#: bootstrap samples of the validation rows for the standard error of a score; more: less noise, more time
RESAMPLES = 20


@dataclass(frozen=True)
class Scoring:
    """A scorer for the models of one estimator.

    The error of a model is `perfect` minus its score. The standard error comes from a bootstrap: scores on rows drawn with
    replacement from the validation rows, within each class. Every model is scored on the same samples.
    """

    name: str
    scorer: Callable[[Any, Any, Array], float]
    perfect: float  # the best possible score
    sees_rows: bool  # whether the scorer may read the rows; otherwise their numbers are enough

    @classmethod
    def of(cls, given: Any) -> Scoring | None:
        """Return the scoring for a name, a callable or None."""
        if given is None:
            return None
        if isinstance(given, str):
            check_scorer_name(given)
            return cls(given, get_scorer(given), 0.0 if given.startswith("neg_") else 1.0, sees_rows=False)
        if callable(given):
            return cls(getattr(given, "__name__", repr(given)), given, 0.0, sees_rows=True)
        raise ValueError(f"scoring must be the name of a scorer, a callable(estimator, X, y) or None, not {given!r}")

    def rows_of(self, X: Matrix, index: Array) -> Matrix:
        """Return what the scorer gets as some of the rows: the rows, or their numbers if it does not read them."""
        return gathered(X, index) if self.sees_rows else index[:, None]

    def judge(self, estimator: Any, goal: Goal, rows: Matrix, labels: Array, seed: int) -> Callable[..., Judgement]:
        """Return a function that scores the estimator with a model, given the model's outputs on the rows."""
        numbers = np.arange(labels.shape[0])
        y = estimator.classes_[labels] if goal.n_classes else goal.decode(goal.encode(labels))
        strata = goal.strata(labels)
        samples = list(resamples(numbers if strata is None else strata, strata is None, np.random.default_rng(seed)))

        def judged(model: Expansion, outputs: Array) -> Judgement:
            score = self._score(estimator, goal, model, outputs, rows, y)
            if not np.isfinite(score):
                raise ValueError(
                    f"scoring={self.name!r} gave {score} on {numbers.size} validation rows; use another scorer"
                )
            drawn = [
                self._score(estimator, goal, model, outputs[sample], gathered(rows, sample), y[sample])
                for sample in samples
            ]
            deviations = np.nan_to_num(np.array(drawn) - np.nanmean(drawn)) / np.sqrt(len(samples) - 1)
            return Judgement(self.perfect - score, float(np.linalg.norm(deviations)), -deviations.astype(np.float32))

        return judged

    def _score(self, estimator: Any, goal: Goal, model: Expansion, outputs: Array, rows: Any, y: Array) -> float:
        """Return the score of the estimator with a model, given the model's outputs on the rows."""
        fitted = estimator._with_model(model, goal)
        fitted._read = lambda X, read: read(outputs) if X is rows else type(estimator)._read(fitted, X, read)
        try:
            return float(self.scorer(fitted, rows, y))
        finally:
            del fitted._read  # it refers to `fitted`, and such a cycle would keep the rows until Python looks for cycles


def check_scorer_name(name: str) -> None:
    """Raise ValueError for a name that scikit-learn does not know."""
    names = get_scorer_names()
    if name not in names:
        near = nearest(name, names)
        hint = "there" if near is None else f"did you mean {near!r}? There"
        raise ValueError(f"unknown scoring {name!r}; {hint} are {', '.join(names)}")


def resamples(strata: Array, alike: bool, rng: np.random.Generator) -> list[Array]:
    """Return row numbers drawn with replacement: from each stratum as many as it has, or from all rows if `alike`."""
    groups = [np.arange(strata.size)] if alike else [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    return [np.concatenate([rng.choice(group, group.size) for group in groups]) for _ in range(RESAMPLES)]


#: how a full model is judged where it has no labels but its own
AGREEMENT = "its own predictions, with which small models should agree"
#: the judgement of a full model that other models are compared with
NO_ERROR = Judgement(0.0, 0.0)


@dataclass(frozen=True)
class Baseline:
    """The full models that small models are compared with: their validation error, how it was found, and each fold's."""

    judgement: Judgement
    judged: str
    models: tuple[Expansion, ...] = ()


@dataclass(frozen=True)
class Judge:
    """The loss of models: that of the goal, or that of a scorer, which sees the estimator and values in the user's unit."""

    scoring: Scoring | None = None
    estimator: Any = None
    units: Units = NO_UNITS

    def error_in_words(self, problem: Problem) -> str:
        """Return what a validation error is."""
        scoring = self.scoring
        return problem.goal.loss if scoring is None else f"{scoring.perfect:g} - {scoring.name}"

    def folds(self, problem: Problem) -> list[Task]:
        """Return the tasks of the split and, with few rows, of further folds."""
        rows = problem.fold_rows()
        runs = [problem.run.within(f"fold {number}").of(number, len(rows)) for number in range(len(rows))]
        return [
            replace(problem, run=run).task(train, self.holdout(problem, validation))
            for run, (train, validation) in zip(runs, rows, strict=True)
        ]

    def holdout(self, problem: Problem, validation: Array) -> Holdout:
        """Return the validation rows with their labels and weights."""
        labels, scorer = problem.labels[validation], None
        if self.scoring is not None:
            scorer = self._scorer(problem, self.scoring.rows_of(problem.X, validation), labels, self.scoring)
        return Holdout(problem.rows(validation), labels, problem.weights[validation], problem.goal, scorer)

    def _scorer(
        self, problem: Problem, rows: Matrix, labels: Array, scoring: Scoring
    ) -> Callable[[Expansion, Array], Judgement]:
        """Return a function that judges models by a scorer, with values in the user's unit."""
        units, goal = self.units, problem.goal
        if not goal.real:
            return scoring.judge(self.estimator, goal, rows, labels, problem.seed)
        judged = scoring.judge(self.estimator, goal, rows, units.outside(labels), problem.seed)
        return lambda model, outputs: judged(units.model_outside(model), units.outside(outputs))

    def judged(self, problem: Problem, full: Expansion) -> Judgement:
        """Return the validation error of a full model, on the validation rows of all folds."""
        if problem.goal.labelled:
            return judge_folds(self.folds(problem), lambda _: full)
        if self.scoring is None:
            return NO_ERROR  # its own scores are the labels
        return judge_folds(self.folds(problem.following(full)), lambda _: full)

    def refitted(self, problem: Problem, models: Sequence[Expansion]) -> Baseline:
        """Return the baseline of full models that were fitted without the validation rows of their folds."""
        judged = judge_folds(self.folds(problem), lambda number: models[number])
        return Baseline(judged, "full models fitted without the validation rows", tuple(models))

    def baseline(self, problem: Problem, trainer: Any, error: float) -> tuple[Baseline | None, Array | None]:
        """Return the full models of the folds, and coefficients from which training on all rows can start.

        There are none where a second run would make the model another one, since its steps depend on the rows drawn before.
        Return (None, None) if small models are compared with the full model of all rows.
        """
        if not problem.goal.labelled:
            return None, None
        index = problem.fold_rows()
        fits = list[Fit]()
        for number, (train, _) in enumerate(index):
            share = problem.run.share(1 / (len(index) + 1 - number))  # the last share is for training on all rows
            fits.append(trainer.fit(replace(problem, run=share.within(f"baseline {number}")).task(train, error=error)))
        start = None
        if fits[0].dual is not None and not (fits[0].draws is not None and fits[0].draws.any()):
            start = np.zeros((problem.n, problem.goal.outputs))
            start[index[0][0]] = fits[0].dual
        return self.refitted(problem, tuple(fit.model.written_out() for fit in fits)), start
