"""Reduced sets: the full model's vector in feature space, from a few points built for it.

Burges (1996), Burges & Schölkopf (1997) and Schölkopf et al. (1999) replace w = sum_i a_i Phi(x_i) by the nearest
w~ = sum_j b_j Phi(z_j) with points z_j that need not be rows:

    minimise  |w - w~|^2 = a' K_xx a - 2 b' K_zx a + b' K_zz b        over points and coefficients

summed over the outputs, which share the points. For given points the best coefficients are b = K_zz^-1 K_zx a. What a new
point z gains next to none is the projection of the residual r = w - w~ on it, |<r, Phi(z)>|^2 / k(z, z). With the Gaussian
kernel that is stationary where

    z = sum_i r_i k(x_i, z) x_i / sum_i r_i k(x_i, z)

over the expansion of the residual, and iterating this equation is how points are found (Schölkopf et al., section V). For
q outputs r_i is the sum over outputs of the residual's coefficients, each times its output at z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from ..kernels import RBF, Array, Kernel, Poly, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.host import HostRows
from ..rows.protocol import Meter
from ..rows.threads import one_blas_thread
from ..solvers.refit import Refit
from .base import Models, Reducer

#: the part of itself that is added to the diagonal of the points' kernel matrix, so that it has an inverse
RIDGE = 1e-8
#: the share of |w|^2 below which nothing is left to approximate, and that gradient steps stop at
NOTHING, LITTLE = 1e-8, 1e-10
#: the relative gain of an iteration below which the fixed point is as good as found
SAME = 1e-4
#: the steps that bring the best of the restarts to its maximum
LAST_STEPS = 20


@dataclass(frozen=True)
class ReducedSet(Reducer):
    """Points that bring w~ nearest to the full model's w in feature space, one by one, then all together.

    Each new point is the best of `restarts` fixed-point iterations of up to `max_steps` steps that begin at support
    vectors drawn by chance, followed by gradient steps to the maximum; kernels other than rbf have the gradient steps
    alone. All coefficients are then computed anew. With `polish` each wanted size is improved by up to `polish_steps`
    gradient steps (L-BFGS) on all points together, and the next points are added to these: so |w - w~| falls along the
    path. The papers move points and coefficients together in that phase; here the coefficients are the best ones for the
    points in every step, which has the same minima and fewer unknowns.

    |w - w~| says nothing about the bias and asks the same of all directions, whether rows lie there or not. `refit`
    fits coefficients and bias to what the full model asks of the training rows (`Refit`); the points stay. refit=False
    is the papers' method: the coefficients of the nearest w~ and the bias of the full model.

    The distance needs a feature space, which the sigmoid kernel and poly with coef0 < 0 do not have.
    """

    polish: bool = True
    refit: bool = True
    restarts: int = 16
    max_steps: int = 30
    polish_steps: int = 100
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("restarts", 1), ("max_steps", 0), ("polish_steps", 1)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be {least} or more, not {getattr(self, name)!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Kernels with gradients and a feature space."""
        indefinite = not kernel.definite or (isinstance(kernel, Poly) and kernel.coef0 < 0)
        return super().takes(kernel) and not indefinite

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """One run through all sizes; as many points as the full model has are the full model's own."""
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
        """The nearest w~ that are found, each with the full model's bias and |w - w~| / |w|."""
        if model.size <= sizes[0]:
            yield model, 0.0
            return
        w = Vector(model, task.rows.meter)
        Z, beta = np.empty((0, model.points.shape[1])), np.empty((0, model.bias.size))
        for size in sizes:
            if size >= model.size:
                yield model, 0.0
                return
            with one_blas_thread():  # the products are small
                Z, beta, left = self.grown(w, Z, beta, size, task.rng, deadline)
            yield Expansion(model.kernel, Z, beta, model.bias), np.sqrt(left)
            if left <= NOTHING or deadline.over:
                return

    def grown(
        self, w: Vector, Z: Array, beta: Array, size: int, rng: np.random.Generator, deadline: Deadline
    ) -> tuple[Array, Array, float]:
        """As many points as wanted or needed, their coefficients and |w - w~|^2 / |w|^2; one more at least."""
        left = 1.0
        while Z.shape[0] < size:
            Z = np.vstack([Z, self.new_point(w, Z, beta, rng)])
            beta, left = w.nearest(Z)
            if left <= NOTHING or deadline.over:
                break
        if self.polish and not deadline.over:
            Z = polished(w, Z, self.polish_steps, deadline)
            beta, left = w.nearest(Z)
        return Z, beta, left

    def new_point(self, w: Vector, Z: Array, beta: Array, rng: np.random.Generator) -> Array:
        """The point on which the residual w - sum_j beta_j Phi(z_j) has the longest projection, (1, d)."""
        starts = w.gram.X[rng.choice(w.gram.n, min(self.restarts, w.gram.n), replace=False)]
        starts = dense(starts).astype(np.float64)
        if isinstance(w.kernel, RBF):
            found, values = fixed_points(w, Z, beta, starts, w.kernel.gamma, self.max_steps)
        else:
            found, values = starts, projections(w, Z, beta, starts)[0]
        best = int(values.argmax())
        return ascended(w, Z, beta, found[best], float(values[best]))


class Vector:
    """w = sum_i a_i Phi(x_i), one for each output, and its inner products with points."""

    def __init__(self, model: Expansion, meter: Meter) -> None:
        self.kernel, self.coef = model.kernel, model.coef
        self.gram = HostRows(model.kernel, model.points, meter, cache_mb=0.0)
        self.norm = float((model.coef * self.gram.product(model.points, model.coef)).sum())  # squared

    def products(self, Z: Array) -> tuple[Array, Array]:
        """K_xz, and <w, Phi(z)> for each point and output."""
        K = self.gram.matrix(Z)
        return K, K.T @ self.coef.astype(K.dtype)

    def pullback(self, Z: Array, K: Array, weights: Array) -> Array:
        """The gradient of sum_jc weights_jc <w_c, Phi(z_j)> with respect to the points."""
        rows = self.gram.rows  # centred where the kernel allows it, in the precision of K
        W = self.coef.astype(K.dtype) @ weights.T.astype(K.dtype)
        return self.kernel.pullback(rows.values, Z if rows.centre is None else Z - rows.centre, K, W)

    def among(self, Z: Array, others: Array | None = None) -> Array:
        """The kernel among points, in float64."""
        others = Z if others is None else others
        self.gram.meter.add(Z.shape[0] * others.shape[0])
        return self.kernel(Z, others)

    def own(self, Z: Array) -> tuple[Array, Array]:
        """k(z, z) of each point and its gradient, to which both arguments add the same."""
        if self.kernel.translation_invariant:
            return np.ones(Z.shape[0]), np.zeros_like(Z)
        pairs = [(z, self.among(z)) for z in Z[:, None]]
        slopes = [2 * self.kernel.pullback(z, z, k, np.ones((1, 1))) for z, k in pairs]
        return np.maximum([k[0, 0] for _, k in pairs], np.finfo(float).tiny), np.vstack(slopes)

    def nearest(self, Z: Array) -> tuple[Array, float]:
        """The coefficients of the nearest w~ on the points, and |w - w~|^2 / |w|^2."""
        K, products = self.among(Z), self.products(Z)[1]
        beta = solve(K, products)
        left = self.norm - 2 * (beta * products).sum() + (beta * (K @ beta)).sum()
        return beta, max(float(left), 0.0) / self.norm if self.norm > 0 else 0.0


def solve(K: Array, products: Array) -> Array:
    """K^-1 products, with a little more on the diagonal of K."""
    return cho_solve(cho_factor(ridged(K), overwrite_a=True), products.astype(np.float64))


def ridged(A: Array) -> Array:
    """A with (1 + ridge) times its diagonal: the same for points of any length."""
    A = A.copy()
    A.flat[:: A.shape[0] + 1] *= 1 + RIDGE
    return A


def projections(w: Vector, Z: Array, beta: Array, new: Array) -> tuple[Array, Array]:
    """|<w - w~, Phi(z)>|^2 / k(z, z) and its gradient, for each new point z; w~ has the points Z."""
    K, outputs = w.products(new)
    K_zz = w.among(Z, new)
    outputs = outputs - K_zz.T @ beta
    half = w.pullback(new, K, outputs) - w.kernel.pullback(Z, new, K_zz, beta @ outputs.T)  # of |outputs|^2 / 2
    own, slopes = w.own(new)
    values = np.square(outputs).sum(axis=1) / own
    return values, (2 * half - values[:, None] * slopes) / own[:, None]


def fixed_points(w: Vector, Z: Array, beta: Array, starts: Array, gamma: float, max_steps: int) -> tuple[Array, Array]:
    """z <- sum_i r_i k(x_i, z) x_i / sum_i r_i k(x_i, z) from all starts at once; the points reached, their projections.

    The sum below is the squared projection itself, so that a step is one of gradient ascent on its logarithm, of length
    1 / (4 gamma). It may go too far where the residual has coefficients of both signs: a step that gains nothing is tried
    again at a quarter of its length.
    """
    found, (values, slopes) = starts.copy(), projections(w, Z, beta, starts)
    lengths = np.full(values.size, 1 / (4 * gamma))
    going = np.flatnonzero(values > 0)
    for _ in range(max_steps):
        if not going.size:
            break
        moved = found[going] + lengths[going, None] * slopes[going] / values[going, None]
        there, ahead = projections(w, Z, beta, moved)
        better, same = there > values[going], np.abs(there - values[going]) <= SAME * values[going]
        up = going[better]
        found[up], values[up], slopes[up] = moved[better], there[better], ahead[better]
        lengths[going[~better]] /= 4
        going = going[~same]
    return found, values


def ascended(w: Vector, Z: Array, beta: Array, start: Array, value: float) -> Array:
    """The maximum of the projection that gradient steps reach from a start of that projection, (1, d)."""
    if not value > 0:
        return start[None]

    def loss(z: Array) -> tuple[float, Array]:
        values, slopes = projections(w, Z, beta, z[None])
        return -values[0] / value, -slopes[0] / value

    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": LAST_STEPS}).x[None]


def polished(w: Vector, Z: Array, steps: int, deadline: Deadline) -> Array:
    """The points after gradient steps on |w - w~|^2, each with the best coefficients for where the points are."""

    def loss(flat: Array) -> tuple[float, Array]:
        value, slope = distance(w, flat.reshape(Z.shape))
        return value / w.norm, slope.ravel() / w.norm

    def stop(_: Array) -> None:
        if deadline.over:
            raise StopIteration

    if not w.norm > 0:
        return Z
    options = {"maxiter": steps, "ftol": LITTLE}
    return minimize(loss, Z.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options).x.reshape(Z.shape)


def distance(w: Vector, Z: Array) -> tuple[float, Array]:
    """|w - w~|^2 - |w|^2, with the ridge, for the best coefficients b, and its gradient with respect to the points.

    b is best, so the gradient is that for a fixed b.
    """
    (K, products), K_zz = w.products(Z), w.among(Z)
    beta = solve(K_zz, products)
    slope = w.kernel.pullback(Z, Z, K_zz, ridged(beta @ beta.T)) - w.pullback(Z, K, beta)
    return -float((beta * products).sum()), 2 * slope
