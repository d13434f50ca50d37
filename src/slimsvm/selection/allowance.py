"""Small enough: the rule by which sizes are chosen, everywhere.

Under a limit on the error, the smallest model within it is chosen. The limit is given (`tune(max_error=)`), or it is the
error of a reference plus what is allowed: the full model's (`tolerance`), the lowest one (`smallest_within`), or the lowest
one plus its standard error (the answer of a trade-off). Under a limit on the size (`budget`), the largest model is chosen
that is not clearly worse than the best: fewer points than the budget allows need a reason that is not chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..budget import Budget
from ..checks import check_at_least_zero
from ..kernels import Array
from ..model import Judgement

#: under a tolerance, recall of each class may fall by this share or by one row; less: larger models for rare classes
MOST_RECALL_LOST = 0.05
#: rounding of sums of errors
ROUNDING = 1e-12


def smallest(sizes: Sequence[float] | Array, errors: Sequence[float] | Array, limit: float) -> int | None:
    """Return the place of the smallest model with at most that error, of equal sizes the best; None without one."""
    good = [place for place, error in enumerate(errors) if error <= limit + ROUNDING]
    return min(good, key=lambda place: (sizes[place], errors[place]), default=None)


def largest_as_good(judgements: Sequence[Judgement], standard_errors: float) -> int:
    """Return the last place, of models by size, that is not worse than the best by so many standard errors."""
    best = min(judgements, key=lambda judgement: np.nan_to_num(judgement.error))
    return max(place for place, judgement in enumerate(judgements) if not judgement.worse_than(best, standard_errors))


@dataclass(frozen=True)
class Allowance:
    """The validation error that a small model may have.

    A validation error is an estimate. So a model is allowed if its error is higher than the full model's by at most the
    tolerance less one standard error of the difference. Where that is above half of the tolerance, the margin is only what
    it leaves of the tolerance, and none where it is above it: on so few rows nothing can be shown, and models that are
    equal to the full one would be refused.

    Parameters
    ----------
    full : Judgement
        The full model's validation error and its standard error.
    tolerance : float
        How much more error is allowed.
    judged : str
        The rows or models by which the full model was judged, in words.
    class_rows : ndarray of shape (n_classes,), default=None
        The validation rows of each class; None where classes are not looked at one by one.
    """

    full: Judgement
    tolerance: float
    judged: str
    class_rows: Array | None = field(default=None, repr=False, compare=False)

    @property
    def limit(self) -> float:
        """The full model's error plus the tolerance."""
        return self.full.error + self.tolerance

    def smallest(self, judgements: Sequence[Judgement]) -> int | None:
        """Return the first place, of models by size, that is allowed by itself and on average with the next two, or None.

        Larger models are rarely worse. If the next two have a higher error, the small one met it by chance.
        """
        for place, judgement in enumerate(judgements):
            near = judgements[place : place + 3]
            # the same rows judged all of them, so their mean is as uncertain as one
            mean = replace(Judgement.mean(near, np.full(len(near), 1 / len(near))), deviations=judgement.deviations)
            if self.allows(judgement) and self.allows(mean):
                return place
        return None

    def allows(self, judgement: Judgement) -> bool:
        """Return whether a model with this judgement is good enough."""
        noise = judgement.noise_against(self.full)
        margin = max(min(noise, self.tolerance - noise), 0.0)
        return judgement.error + margin <= self.limit + ROUNDING and self._keeps_classes(judgement)

    def _keeps_classes(self, judgement: Judgement) -> bool:
        """Return whether recall of each class falls by at most `MOST_RECALL_LOST` or one row."""
        if self.class_rows is None or self.full.class_errors is None or judgement.class_errors is None:
            return True
        lost = self.class_rows * np.nan_to_num(judgement.class_errors - self.full.class_errors)
        return bool((lost <= np.maximum(MOST_RECALL_LOST * self.class_rows, 1.0) + 1e-9).all())

    def __str__(self) -> str:
        return (
            f"full model {self.full.error:.4g}, judged by {self.judged}; allowed: {self.limit:.4g} less a standard error "
            "of the difference"
        )


#: the parameter that limits the size of a model
LIMIT = "budget"


@dataclass(frozen=True)
class smallest_within:  # noqa: N801  (used like a function)
    """Choose the smallest budget whose mean score is within a tolerance of the best: a `refit=` for `GridSearchCV`.

    Parameters
    ----------
    tolerance : float
        The largest loss of score allowed, in units of the score.
    parameter : str, default=None
        The parameter that limits the size, as the grid names it, such as "svc__budget". By default the one in the grid that
        is called budget.
    metric : str, default="score"
        The name of the score, where `GridSearchCV` computes several.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from slimsvm import SlimSVC, smallest_within
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"budget": [3, 6, 12]}
    >>> search = GridSearchCV(SlimSVC(reducer="spsvm", random_state=0), grid, refit=smallest_within(0.02), cv=3)
    >>> search.fit(X, y).best_params_["budget"] in grid["budget"]
    True
    """

    tolerance: float
    parameter: str | None = None
    metric: str = "score"

    def __post_init__(self) -> None:
        check_at_least_zero("tolerance", self.tolerance)

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the index of the smallest candidate that is good enough; of equal sizes, the best."""
        scores = np.asarray(cv_results[self._column(cv_results)], dtype=np.float64)
        sizes = amounts(cv_results[self._size_column(cv_results)])
        return smallest(sizes.tolist(), (-scores).tolist(), self.tolerance - np.nanmax(scores)) or 0

    def _column(self, cv_results: Mapping[str, Any]) -> str:
        name = f"mean_test_{self.metric}"
        if name not in cv_results:
            known = sorted(each.removeprefix("mean_test_") for each in cv_results if each.startswith("mean_test_"))
            raise ValueError(f"the search has no score {self.metric!r}; it has {known}. Give one of them as metric")
        return name

    def _size_column(self, cv_results: Mapping[str, Any]) -> str:
        names = [name.removeprefix("param_") for name in cv_results if name.startswith("param_")]
        limits = [name for name in names if name.rpartition("__")[2] == LIMIT]
        chosen = [self.parameter] if self.parameter is not None else limits
        if len(chosen) != 1 or chosen[0] not in names:
            raise ValueError(
                f"smallest_within needs the parameter of the grid that limits the size; the grid has {sorted(names)}. Give "
                "one of them as parameter"
            )
        return f"param_{chosen[0]}"


def amounts(budgets: Iterable[Any]) -> Array:
    """Return budgets as numbers to compare; None is no limit. Raise ValueError for budgets of different kinds."""
    numbers = [None if budget is None else Budget.of(budget).amount for budget in budgets]
    kinds = {limit[0] for limit in numbers if limit is not None}
    if len(kinds) > 1:
        raise ValueError(f"budgets of the kinds {', '.join(sorted(kinds))} have no common order; give a grid of one kind")
    return np.array([np.inf if limit is None else limit[1] for limit in numbers])
