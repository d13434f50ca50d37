"""How fast trainers converge: error against kernel evaluations or seconds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ...kernels import Array, Matrix
from ..tradeoff.measure import machine_of
from .axes import RowsLike, check_axis, new_axes, rows_with

ACROSS = {"kernel_evals": "kernel evaluations", "seconds": "seconds"}


class ConvergenceDisplay:
    """Error against work, with a line for each method.

    Parameters
    ----------
    curves : mapping of str to (x values, errors)
        The work and the error after it, for each method.
    x : {"kernel_evals", "seconds"}, default="kernel_evals"
        The measure of work.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    lines_ : dict of str to Line2D
        The line of each method.
    """

    def __init__(self, *, curves: Mapping[str, tuple[Any, Any]], x: str = "kernel_evals") -> None:
        check_axis(x, ACROSS)
        self.curves: dict[str, tuple[Array, Array]] = {
            name: (np.asarray(values, dtype=float), np.asarray(errors, dtype=float))
            for name, (values, errors) in curves.items()
        }
        self.x = x

    @classmethod
    def from_rows(cls, rows: RowsLike, *, x: str = "kernel_evals", ax: Any = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw rows with the columns "method", `x` and "error", in the order of x; rows without an error are left out."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for row in rows_with(x, ACROSS, rows):
            pairs.setdefault(str(row.get("method", "model")), []).append((row[x], row["error"]))
        curves = {name: tuple(zip(*sorted(points), strict=True)) for name, points in pairs.items()}
        return cls(curves=curves, x=x).plot(ax=ax, **kwargs)  # type: ignore[arg-type]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Matrix,
        y: Any,
        X_test: Matrix,
        y_test: Any,
        *,
        max_iter: Sequence[int] = (1, 10, 100, 1000, 10_000),
        x: str = "kernel_evals",
        ax: Any = None,
        **kwargs: Any,
    ) -> ConvergenceDisplay:
        """Fit clones of an estimator or Pipeline with these limits on the trainer's steps, and draw their test errors."""
        clones = [clone(estimator) for _ in max_iter]
        for copied, limit in zip(clones, max_iter, strict=True):
            machine_of(copied).set_params(max_iter=limit)
        fitted = [_fitted(copied, X, y) for copied in clones]
        errors = [float(np.mean(svc.predict(X_test) != np.asarray(y_test))) for svc, _ in fitted]
        work = [machine_of(svc).n_kernel_evals_ if x == "kernel_evals" else seconds for svc, seconds in fitted]
        chosen = machine_of(estimator).trainer
        trainer = chosen if isinstance(chosen, str) else type(chosen).__name__
        return cls(curves={trainer: (work, errors)}, x=x).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw; further arguments are those of `Axes.plot`."""
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = {
            name: self.ax_.plot(work, 100 * errors, **{"marker": "o", "ms": 4, "label": name, **kwargs})[0]
            for name, (work, errors) in self.curves.items()
        }
        self.ax_.set(xlabel=ACROSS[self.x], ylabel="test error, %", xscale="log")
        self.ax_.grid(alpha=0.3)
        self.ax_.legend()
        return self


def _fitted(svc: Any, X: Matrix, y: Any) -> tuple[Any, float]:
    """Return the fitted estimator and the seconds of its fit; warnings of an early stop are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = perf_counter()
        svc.fit(X, y)
        return svc, perf_counter() - start
