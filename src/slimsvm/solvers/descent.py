"""Quasi-Newton descent with a time limit: scipy's L-BFGS or conjugate gradients with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..kernels import Array
from ..limits import Deadline
from ..rows.threads import one_blas_thread

#: scipy's names of the methods
METHODS = {"lbfgs": "L-BFGS-B", "cg": "CG"}
#: a start whose largest number is outside these bounds is scaled to 1. The first step of both methods has a length of about
#: 1, which is far too long or too short for numbers such as 1e-30 or 1e30
ORDINARY = 1e-6, 1e6
#: a gradient whose largest entry is at most this counts as 0: its square would underflow, and steps along it would be NaN
FLAT = 1e-140


@dataclass(frozen=True)
class DescentSettings:
    """The method of a descent and when it ends.

    It ends after `steps` steps, at a gain below `ftol` times the value (or times 1, if the value is less), at a gradient
    below `gtol`, and, with a `window`, when that many steps together gain less than `least_gain` times the value.
    `memory` is the number of past steps that L-BFGS learns curvature from.
    """

    steps: int
    method: str = "lbfgs"
    memory: int = 10
    ftol: float = 2.2e-9
    gtol: float = 1e-5
    window: int | None = None
    least_gain: float = 1e-3

    def options(self) -> dict[str, Any]:
        """Return scipy's options."""
        if self.method == "cg":
            return {"maxiter": self.steps, "gtol": self.gtol}
        return {"maxiter": self.steps, "maxcor": self.memory, "ftol": self.ftol, "gtol": self.gtol}


@dataclass(frozen=True)
class Descent:
    """Where a descent ended: the place, its value, and the steps taken."""

    x: Array
    value: float
    steps: int


def descend(
    value_and_gradient: Callable[[Array], tuple[float, Array]], start: Array, settings: DescentSettings, deadline: Deadline
) -> Descent:
    """Return the end of a descent from `start`, an array of any shape; the gradient has that shape too."""
    unit, held = _unit(start), [value_and_gradient]

    def flat(x: Array) -> tuple[float, Array]:
        value, gradient = held[0](unit * x.reshape(start.shape))
        gradient = unit * gradient.ravel()
        return value, gradient if np.abs(gradient).max(initial=0.0) > FLAT else np.zeros_like(gradient)

    values: list[float] = []

    def watch(intermediate_result: OptimizeResult) -> None:
        values.append(intermediate_result.fun)
        if deadline.over or _is_slow(values, settings):
            raise StopIteration

    method, options = METHODS[settings.method], settings.options()
    try:
        with one_blas_thread():  # the products are small
            optimum = minimize(flat, np.ravel(start) / unit, jac=True, method=method, callback=watch, options=options)
    finally:
        held.clear()  # older SciPy holds `flat` in a cycle of references, which would keep rows in memory
    return Descent(unit * optimum.x.reshape(start.shape), float(optimum.fun), int(optimum.nit))


def _unit(start: Array) -> float:
    """Return the largest number if it is outside the bounds of `ORDINARY`, else 1."""
    size = float(np.abs(start).max(initial=0.0))
    return size if size and not ORDINARY[0] <= size <= ORDINARY[1] else 1.0


def _is_slow(values: list[float], settings: DescentSettings) -> bool:
    window = settings.window
    return (
        window is not None and len(values) > window and values[-1 - window] - values[-1] < settings.least_gain * values[-1]
    )
