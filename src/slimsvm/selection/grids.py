"""A `refit=` for GridSearchCV: the smallest budget that is good enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..budget import Budget
from ..checks import check_at_least_zero
from ..kernels import Array
from .allowance import smallest

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
    found = [None if budget is None else Budget.of(budget).amount for budget in budgets]
    kinds = {limit[0] for limit in found if limit is not None}
    if len(kinds) > 1:
        raise ValueError(f"budgets of the kinds {', '.join(sorted(kinds))} have no common order; give a grid of one kind")
    return np.array([np.inf if limit is None else limit[1] for limit in found])
