"""Reduced sets: approximate the full model's vector in feature space by a few new points.

Burges (1996), Burges & Schölkopf (1997) and Schölkopf et al. (1999) replace w = sum_i a_i Phi(x_i) by the nearest
w~ = sum_j b_j Phi(z_j) with points z_j that need not be rows:

    minimise  |w - w~|^2 = a' K_xx a - 2 b' K_zx a + b' K_zz b        over points and coefficients

summed over the outputs, which share the points. For given points the best coefficients are b = K_zz^-1 K_zx a. Each new
point is a pre-image of the residual w - w~ (`solvers.preimage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import RBF, Array, Kernel, Poly, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..solvers.refit import Refit
from .preimage import FeatureVector, ascended, fixed_points, polished

#: the approximation ends when |w - w~|^2 is below this share of |w|^2
NOTHING = 1e-8
#: a point has converged when a fixed-point step gains less than this share
SETTLED = 1e-4
#: quasi-Newton steps from the best of the restarts to the maximum of its gain
LAST_STEPS = 20


@dataclass(frozen=True)
class ReducedSet(Reducer):
    """Points whose w~ is nearest to the full model's w in feature space, found one by one, then improved together.

    Each new point is the best of `restarts` fixed-point iterations of up to `max_steps` steps that begin at random support
    vectors, followed by quasi-Newton steps to the maximum. Kernels other than rbf have the quasi-Newton steps only. All
    coefficients are then computed again. With `polish` each size is improved by up to `polish_steps` L-BFGS steps
    on all points together, and the next points are added to these, so |w - w~| falls along the path. The papers move points
    and coefficients together in that phase. Here each step has the best coefficients for its points, which has the same
    minima and fewer unknowns.

    |w - w~| does not depend on the bias, and counts all directions equally, also where there are no rows. `refit` fits
    coefficients and bias to the margins of the full model on the training rows (`Refit`); the points stay. refit=False is
    the papers' method: the coefficients of the nearest w~ and the bias of the full model.

    The distance needs a feature space, which the sigmoid kernel and poly with coef0 < 0 do not have.
    """

    polish: bool = True
    refit: bool = True
    restarts: int = 16
    max_steps: int = 30
    polish_steps: int = 100
    real_valued: ClassVar[bool] = True
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("restarts", 1), ("max_steps", 0), ("polish_steps", 1)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be {least} or more, not {getattr(self, name)!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether the kernel has gradients and a feature space."""
        indefinite = not kernel.definite or (isinstance(kernel, Poly) and kernel.coef0 < 0)
        return super().takes(kernel) and not indefinite

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Yield a model for each size from one run; at the size of the full model, yield the full model."""
        assert model is not None
        fitted = Refit.of(task, model, sizes[-1]) if self.refit else None
        for small, distance in self.approximations(task, sizes, model, deadline):
            settings = f"|w - w~| = {distance:.3g} |w|"
            if fitted:
                yield fitted(small), f"{settings}, refit"
            else:
                yield small, settings

    def approximations(
        self, task: Task, sizes: Sequence[int], model: Expansion, deadline: Deadline
    ) -> Iterator[tuple[Expansion, float]]:
        """Yield the nearest w~ found for each size, with the full model's bias, and |w - w~| / |w|."""
        if model.size <= sizes[0]:
            yield model, 0.0
            return
        w = TargetVector(task, model)
        Z, beta = np.empty((0, task.rows.d)), np.empty((0, model.bias.size))
        for size in sizes:
            if size >= model.size:
                yield model, 0.0
                return
            Z, beta, left = self.grown(w, Z, beta, size, task.rng, deadline)
            yield Expansion(model.kernel, Z, beta, model.bias), np.sqrt(left)
            if left <= NOTHING or deadline.over:
                return

    def grown(
        self, w: TargetVector, Z: Array, beta: Array, size: int, rng: np.random.Generator, deadline: Deadline
    ) -> tuple[Array, Array, float]:
        """Return up to `size` points, at least one more than before, their coefficients and |w - w~|^2 / |w|^2."""
        left = 1.0
        while Z.shape[0] < size:
            Z = np.vstack([Z, self.new_point(w.vector.minus(Z, beta), rng)])
            beta, left = w.nearest(Z)
            if left <= NOTHING or deadline.over:
                break
        if self.polish and w.norm > 0 and not deadline.over:
            Z = polished(w.vector, Z, self.polish_steps, deadline, w.norm)
            beta, left = w.nearest(Z)
        return Z, beta, left

    def new_point(self, residual: FeatureVector, rng: np.random.Generator) -> Array:
        """Return the point (1, d) with the largest gain that the search finds."""
        rows = residual.rows
        starts = dense(rows.take(rng.choice(rows.n, min(self.restarts, rows.n), replace=False))).astype(np.float64)
        if isinstance(rows.kernel, RBF):
            found, gains = fixed_points(residual, starts, self.max_steps, SETTLED, backtrack=True)
        else:
            found, gains = starts, residual.gains(starts)
        best = int(gains.argmax())
        return ascended(residual, found[[best]], float(gains[best]), LAST_STEPS)


class TargetVector:
    """w = sum_i a_i Phi(x_i) of a full model, one for each output, and its squared length."""

    def __init__(self, task: Task, model: Expansion) -> None:
        support, places = task.support(model)
        self.vector = FeatureVector(support, model.coef[places])
        self.norm = self.vector.squared_norm()

    def nearest(self, Z: Array) -> tuple[Array, float]:
        """Return the coefficients of the nearest w~ on the points, and |w - w~|^2 / |w|^2."""
        beta, K, products = self.vector.nearest(Z)
        left = self.norm - 2 * (beta * products).sum() + (beta * (K @ beta)).sum()
        return beta, max(float(left), 0.0) / self.norm if self.norm > 0 else 0.0
