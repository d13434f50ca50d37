"""A grid of C, kernel width and kernel: its settings, and a table of their scores with GridSearchCV's keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..kernels import Array

#: the values of C where their number is given, from the first power of ten to the last
FIRST_POWER, LAST_POWER = -2.0, 3.0
#: kernels with a width
WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian", "chi2")

Settings = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Settings that share a kernel matrix: all values of C, in the order given, of a kernel with a width and a tube."""

    settings: Settings
    Cs: tuple[float, ...]

    @property
    def cells(self) -> list[Settings]:
        """The settings of each C."""
        return [{"C": C, **self.settings} for C in self.Cs]


def groups_of(Cs: Any, kernels: Any, gammas: Any, epsilons: Any = None) -> list[Group]:
    """Return the groups of a grid; raise ValueError for a grid that is none."""
    costs = tuple(cost_values(Cs))
    widths = _values("gammas", gammas, _is_gamma, "'scale', 'auto' or numbers above 0")
    named = _values("kernels", kernels, _is_kernel, "names of kernels or functions")
    tubes: list[Settings] = [{}]
    if epsilons is not None:
        tubes = [{"epsilon": each} for each in _values("epsilons", epsilons, _is_tube, "numbers of at least 0")]
    return [
        Group({"kernel": kernel, **width, **tube}, costs)
        for kernel in named
        for width in ([{"gamma": gamma} for gamma in widths] if kernel in WITH_GAMMA else [{}])
        for tube in tubes
    ]


def cost_values(Cs: Any) -> list[float]:
    """Return the values of C: those given, or as many as the number given, from 0.01 to 1,000."""
    if isinstance(Cs, Integral) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ValueError(f"Cs must be a number of values, at least 1, or the values themselves, not {Cs!r}")
        return [float(C) for C in np.logspace(FIRST_POWER, LAST_POWER, int(Cs))]
    return [float(C) for C in _values("Cs", Cs, _is_cost, "finite numbers above 0, or their count")]


def _values(name: str, given: Any, fits: Callable[[Any], bool], words: str) -> list[Any]:
    """Return the distinct values of one side of the grid."""
    if isinstance(given, str) or callable(given) or isinstance(given, Real):
        given = [given]
    values = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    wrong = [value for value in values if not fits(value)]
    if not values or wrong:
        raise ValueError(f"{name} must be a flat list of {words}, not {wrong[0] if wrong else given!r}")
    twice = [value for number, value in enumerate(values) if value in values[:number]]
    if twice:
        raise ValueError(f"{name} has {twice[0]!r} twice; give each value once")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _is_cost(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def _is_gamma(value: Any) -> bool:
    return value in ("scale", "auto") if isinstance(value, str) else _is_cost(value)


def _is_tube(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf


def _is_kernel(value: Any) -> bool:
    return isinstance(value, str) or callable(value)


@dataclass(frozen=True)
class Cell:
    """What is known of one setting: the score of each fold, the support vectors, and the seconds it took."""

    scores: Array  # (folds,)
    sizes: Array  # (folds,)
    seconds: float


def results_table(cells: Sequence[Settings], results: Sequence[Cell | None], folds: int) -> dict[str, Any]:
    """Return the table of all cells with the keys of GridSearchCV's `cv_results_`; cells without a score have NaN."""
    scores = np.array([np.full(folds, np.nan) if cell is None else cell.scores for cell in results])
    sizes = np.array([np.full(folds, np.nan) if cell is None else cell.sizes for cell in results])
    seconds = np.array([np.nan if cell is None else cell.seconds / folds for cell in results])
    mean = scores.mean(axis=1)
    table: dict[str, Any] = {"mean_fit_time": seconds, "std_fit_time": 0 * seconds}
    table |= {"mean_score_time": 0 * seconds, "std_score_time": 0 * seconds}
    for name in dict.fromkeys(name for cell in cells for name in cell):
        table[f"param_{name}"] = _column([cell.get(name) for cell in cells], [name not in cell for cell in cells])
    table["params"] = list(cells)
    table |= {f"split{fold}_test_score": scores[:, fold] for fold in range(folds)}
    table |= {"mean_test_score": mean, "std_test_score": scores.std(axis=1), "mean_n_support": sizes.mean(axis=1)}
    worst = np.nanmin(mean) - 1 if np.isfinite(mean).any() else 0.0
    table["rank_test_score"] = rankdata(-np.where(np.isnan(mean), worst, mean), method="min").astype(np.int32)
    return table


def _column(values: list[Any], absent: list[bool]) -> Any:
    """Return the values of a parameter, masked where a kernel does not have it."""
    numbers = all(isinstance(value, Real) for value, no in zip(values, absent, strict=True) if not no)
    filled = np.empty(len(values), dtype=np.float64 if numbers else object)
    filled[:] = [np.nan if no and numbers else value for value, no in zip(values, absent, strict=True)]
    return np.ma.MaskedArray(filled, mask=absent, fill_value=np.nan if numbers else "?")
