"""Models judged by scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from ..goals import Goal
from ..kernels import Array, Matrix
from ..model import Expansion, Judgement
from ..rows.memory import gathered
from ..text import nearest

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
                    f"scoring={self.name!r} gave {score} on {labels.shape[0]} validation rows; use another scorer"
                )
            drawn = [self._score(estimator, goal, model, outputs[some], gathered(rows, some), y[some]) for some in samples]
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
    groups = [np.arange(strata.size)] if alike else [np.flatnonzero(strata == each) for each in np.unique(strata)]
    return [np.concatenate([rng.choice(group, group.size) for group in groups]) for _ in range(RESAMPLES)]
