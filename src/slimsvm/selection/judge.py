"""How models are compared: by the goal's loss or by a scorer, on validation rows, and with which full models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels import Array, Matrix
from ..model import Expansion, Fit, Holdout, Judgement, Task
from .folds import judge_folds
from .problem import Problem
from .scoring import Scoring
from .units import NO_UNITS, Units

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
