"""Error against size: a line for each method, and a dashed line for the full model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...estimators.shrink import ending_in
from ...kernels import Matrix
from ..tradeoff.measure import machine_of, microseconds_per_row, table_cost
from ..tradeoff.methods import FULL
from ..tradeoff.summary import Point, summarise
from ..tradeoff.tasks import TaskKind, task_named, task_of, task_of_row
from .axes import ACROSS, RowsLike, check_axis, new_axes, plain_numbers, table_of


class TradeoffDisplay:
    """Test error against support vectors, bytes or microseconds, with standard errors.

    Parameters
    ----------
    points : sequence of Point
        Figures of each method at each budget; those of the method "full" are the full model.
    x : {"size", "bytes", "us"}, default="size"
        The measure of size on the x axis.
    task : {"classify", "regress", "novelty"}, default="classify"
        What the models do, which says what their error is.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    lines_ : dict of str to ErrorbarContainer
        The line of each method.
    full_line_ : Line2D or None
        The full model.

    Examples
    --------
    >>> import slimsvm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = slimsvm.tradeoff(X, y, methods=["nystroem"], budgets=[2, 4, 8])
    >>> display = slimsvm.displays.TradeoffDisplay.from_rows(found)  # doctest: +SKIP
    """

    def __init__(self, *, points: Sequence[Point], x: str = "size", task: str = "classify") -> None:
        check_axis(x, ACROSS)
        task_named(task)
        self.points, self.x, self.task = points, x, task

    @classmethod
    def from_rows(
        cls,
        rows: RowsLike,
        *,
        x: str = "size",
        methods: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> TradeoffDisplay:
        """Draw the rows of a trade-off, its CSV file, or rows as dicts; `methods` are those to draw."""
        table = table_of(rows)
        points = summarise(table)
        known = list(dict.fromkeys(point.method for point in points))
        strange = [name for name in methods or () if name not in known]
        if strange:
            raise ValueError(f"the rows have no method {', '.join(strange)}; they have {', '.join(known)}")
        if not points:
            raise ValueError("no run in these rows has figures; the column `reason` says why")
        shown = [point for point in points if methods is None or point.method in (*methods, FULL)]
        return cls(points=shown, x=x, task=task_of_row(table[-1]).name).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Matrix, y: Any = None, *, full: Any = None, x: str = "size", ax: Any = None, **kwargs: Any
    ) -> TradeoffDisplay:
        """Draw the errors on X and y of all models on the path of a fitted estimator or of a Pipeline that ends in one.

        A full model is drawn if it is given.
        Novelty detectors need the full model: their error is the share of rows on which the two disagree.
        """
        machine = machine_of(estimator)
        if getattr(machine, "path_", None) is None:
            raise ValueError("the estimator has no path of models; fit a SlimSVC with a budget or a tolerance")
        task = task_of(estimator)
        if full is None and not task.has_labels:
            raise ValueError("a novelty detector is compared with the full model: give full=, fitted without a budget")
        name = machine.reducer if isinstance(machine.reducer, str) else type(machine.reducer).__name__
        small = (machine._with_model(step.model, machine.goal_) for step in machine.path_)
        models = (ending_in(estimator, model) if machine is not estimator else model for model in small)
        points = [_measured(task, model, X, y, name, full) for model in models]
        points += [] if full is None else [_measured(task, full, X, y, FULL, full)]
        return cls(points=points, x=x, task=task.name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, log: bool = True, **kwargs: Any) -> TradeoffDisplay:
        """Draw; `log` is for the error's axis, and further arguments are those of `Axes.errorbar`."""
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        methods = dict.fromkeys(point.method for point in self.points if point.method != FULL)
        self.lines_ = {name: self._line(name, {"fmt": "o-", "ms": 4, "capsize": 2, **kwargs}) for name in methods}
        full = next((point for point in self.points if point.method == FULL), None)
        self.full_line_ = None
        if full is not None:
            words = f"full model: {full.size:,.0f} vectors"
            self.full_line_ = self.ax_.axhline(100 * full.error, ls="--", color="0.5", label=words)
        self.ax_.set(xlabel=ACROSS[self.x], ylabel=f"{task_named(self.task).error}, %", xscale="log")
        if log and all(point.error > 0 for point in self.points):
            self.ax_.set_yscale("log")
            plain_numbers(self.ax_.yaxis)
        self._ticks()
        self.ax_.grid(alpha=0.3)
        self.ax_.legend()
        return self

    def _line(self, method: str, settings: dict[str, Any]) -> Any:
        mine = sorted((p for p in self.points if p.method == method), key=lambda point: getattr(point, self.x))
        across, errors, ses = (np.array([getattr(point, name) for point in mine]) for name in (self.x, "error", "se"))
        return self.ax_.errorbar(across, 100 * errors, yerr=100 * ses, label=method, **settings)

    def _ticks(self) -> None:
        """Put the sizes themselves on the axis if they are few, else plain numbers."""
        from matplotlib.ticker import NullLocator

        plain_numbers(self.ax_.xaxis)
        sizes = sorted({round(point.size) for point in self.points if point.method != FULL})
        if self.x == "size" and 0 < len(sizes) <= 10:
            self.ax_.set_xticks(sizes, [f"{size:,}" for size in sizes])
            self.ax_.xaxis.set_minor_locator(NullLocator())


def _measured(task: TaskKind, model: Any, X: Matrix, y: Any, name: str, full: Any) -> Point:
    """Return the figures of a fitted model that a trade-off draws."""
    error, se = task.error_of(model, X, np.asarray(y), full)
    size, nbytes = machine_of(model).model_.size, float(table_cost(model)["bytes"] or 0)
    nan = float("nan")
    return Point(name, None, size, nbytes, microseconds_per_row(model, X), error, se, nan, nan, None, 1)
