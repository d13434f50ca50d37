"""The Pareto front of a study: models that no other beats in both size and error."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import Array
from .axes import ACROSS, RowsLike, new_axes, plain_numbers, rows_with


class ParetoDisplay:
    """Error against size of many models: the front, the dominated, and those that break a limit.

    Parameters
    ----------
    x_values, errors : ndarray of shape (n_models,)
        Size and error of each model.
    feasible : ndarray of shape (n_models,) of bool, default=None
        Which models keep to the limits; all, by default. Others are not in the front.
    x : {"size", "bytes", "us"}, default="size"
        The measure of size.

    Attributes
    ----------
    front : ndarray of int
        The models that no feasible one beats in both, by size.
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    front_, dominated_, infeasible_ : artists
        The line of the front and the other models.
    """

    def __init__(self, *, x_values: Any, errors: Any, feasible: Any = None, x: str = "size") -> None:
        self.x_values, self.errors, self.x = np.asarray(x_values, dtype=float), np.asarray(errors, dtype=float), x
        self.feasible = np.full(self.errors.shape, True) if feasible is None else np.asarray(feasible, dtype=bool)
        if not self.x_values.shape == self.errors.shape == self.feasible.shape or self.errors.ndim != 1:
            raise ValueError(
                f"x_values, errors and feasible must be of one length, not {self.x_values.shape}, {self.errors.shape} and "
                f"{self.feasible.shape}"
            )
        self.front = pareto_front(self.x_values, self.errors, self.feasible)

    @classmethod
    def from_rows(cls, rows: RowsLike, *, x: str = "size", ax: Any = None, **kwargs: Any) -> ParetoDisplay:
        """Draw a result of `tune` or `tradeoff`, or rows with the columns `x`, "error" and, if there is one, "feasible".

        Rows without an error are left out.
        """
        shown = rows_with(x, ACROSS, rows)
        feasible = [bool(row.get("feasible", True)) for row in shown]
        display = cls(x_values=[row[x] for row in shown], errors=[row["error"] for row in shown], feasible=feasible, x=x)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> ParetoDisplay:
        """Draw; further arguments are those of the line of the front."""
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        dominated = np.setdiff1d(np.flatnonzero(self.feasible), self.front)
        self.infeasible_ = self._scatter(np.flatnonzero(~self.feasible), marker="x", color="0.6", label="infeasible")
        self.dominated_ = self._scatter(dominated, color="tab:blue", alpha=0.35, label="dominated")
        settings = {"color": "tab:red", "marker": "o", "drawstyle": "steps-post", "label": "best", **kwargs}
        (self.front_,) = self.ax_.plot(self.x_values[self.front], 100 * self.errors[self.front], **settings)
        self.ax_.set(xlabel=ACROSS.get(self.x, self.x), ylabel="error, %", xscale="log")
        plain_numbers(self.ax_.xaxis)
        self.ax_.grid(alpha=0.3)
        self.ax_.legend()
        return self

    def _scatter(self, index: Array, **settings: Any) -> Any:
        return self.ax_.scatter(self.x_values[index], 100 * self.errors[index], **settings) if index.size else None


def pareto_front(x: Array, errors: Array, feasible: Array) -> Array:
    """Return the numbers of the feasible models that no feasible one beats, by size: every next one has a lower error."""
    order = [int(i) for i in np.lexsort((errors, x)) if feasible[i]]
    front: list[int] = []
    for i in order:
        if not front or errors[i] < errors[front[-1]]:
            front.append(i)
    return np.array(front, dtype=int)
