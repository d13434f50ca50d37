"""Reduced sets: approximate the full model's vector in feature space by a few new points.

Burges (1996), Burges & Schölkopf (1997) and Schölkopf et al. (1999) replace w = sum_i a_i Phi(x_i) by the nearest
w~ = sum_j b_j Phi(z_j) with points z_j that need not be rows:

    minimise  |w - w~|^2 = a' K_xx a - 2 b' K_zx a + b' K_zz b        over points and coefficients

summed over the outputs, which share the points. For given points the best coefficients are b = K_zz^-1 K_zx a. Each new
point is a pre-image of the residual r = w - w~: a point z such that one multiple of Phi(z) leaves the smallest residual. It
has the largest gain

    sum_c <r_c, Phi(z)>^2 / k(z, z)

With the Gaussian kernel the gain is stationary where z is a weighted mean of all points of r, with the weights
w_i = k(x_i, z) sum_c A_ic <r_c, Phi(z)>, and repeating this equation is the fixed-point iteration (Schölkopf et al. 1999).
Other kernels take quasi-Newton steps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..kernels import RBF, Array, Kernel, Poly, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.basis import Refit
from ..solvers.descent import DescentSettings, descend

#: the diagonal of K(points, points) is raised by this share, so that the matrix of equal points has an inverse
RIDGE = 1e-8
#: `polished` ends when a step gains less than this share of |r|^2
POLISH_GAIN = 1e-10


class FeatureVector:
    """r with coefficients A (n, q) over rows, minus points (k, d) with coefficients B (k, q), none by default."""

    def __init__(self, rows: Rows, A: Array, points: Array | None = None, B: Array | None = None) -> None:
        self.rows, self.A = rows, A
        self.points = np.empty((0, rows.d)) if points is None else points
        self.B = np.empty((0, A.shape[1])) if B is None else B
        self._against = rows.moving(np.empty((0, rows.d)), exact=True)

    def minus(self, points: Array, B: Array) -> FeatureVector:
        """Return this vector minus some points with coefficients, for a vector over rows alone."""
        rest = copy.copy(self)  # shares the handle, which may hold rows in a form for gradients
        rest.points, rest.B = points, B
        return rest

    def products(self, Z: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return <r_c, Phi(z_j)>, (m, q), and a function from V to the gradient of sum_jc V_jc <r_c, Phi(z_j)>, (m, d).

        The function is valid until the next call.
        """
        against = self._against
        against.move(self.rows.to_coordinates(Z), np.empty((Z.shape[0], 0)))
        if not self.points.shape[0]:
            return against.back(self.A), lambda V: against.pullback(self.A, V)
        own = self.rows.among(self.points, Z)

        def pullback(V: Array) -> Array:
            return against.pullback(self.A, V) - self.rows.pullback_among(self.points, Z, own, self.B @ V.T)

        return against.back(self.A) - own.T @ self.B, pullback

    def gains(self, Z: Array) -> Array:
        """Return sum_c <r_c, Phi(z)>^2 / k(z, z) for each point; 0 where an indefinite kernel has k(z, z) <= 0."""
        if self.rows.kernel.translation_invariant:
            return np.square(self.products(Z)[0]).sum(axis=1)
        return _ratio(np.square(self.products(Z)[0]).sum(axis=1), self.rows.of(Z).diagonal())

    def gains_and_slopes(self, Z: Array) -> tuple[Array, Array]:
        """Return the gain of each point and its gradient, (m, d)."""
        products, pullback = self.products(Z)
        squares, slopes = np.square(products).sum(axis=1), 2 * pullback(products)
        if self.rows.kernel.translation_invariant:  # k(z, z) = 1
            return squares, slopes
        K = self.rows.among(Z)
        lengths = np.diagonal(K)
        both = 2 * self.rows.pullback_among(Z, Z, K, np.eye(Z.shape[0]))  # both arguments of k(z, z) contribute equally
        gains = _ratio(squares, lengths)
        return gains, _ratio(slopes - gains[:, None] * both, lengths[:, None])

    def squared_norm(self) -> float:
        """Return sum_c |r_c|^2 of a vector over rows alone."""
        assert not self.points.shape[0]
        return float((self.A * self.rows.product_of(np.arange(self.rows.n), self.A, keep=False)).sum())

    def nearest(self, Z: Array) -> tuple[Array, Array, Array]:
        """Return the coefficients of its projection on the span of points, (m, q), K(Z, Z) and <r, Phi(Z)>."""
        products, K = self.products(Z)[0], self.rows.among(Z)
        return _solve(K, products), K, products

    def distance(self, Z: Array) -> tuple[float, Array]:
        """Return |r - its projection on the points|^2 - |r|^2, with the ridge, and its gradient, (m, d).

        The coefficients minimise the distance, so the gradient is that for fixed coefficients.
        """
        (products, pullback), K = self.products(Z), self.rows.among(Z)
        coef = _solve(K, products)
        slopes = self.rows.pullback_among(Z, Z, K, _ridged(coef @ coef.T)) - pullback(coef)
        return -float((coef * products).sum()), 2 * slopes


@one_blas_thread()
def fixed_points(
    r: FeatureVector, starts: Array, max_steps: int, settled: float, *, backtrack: bool
) -> tuple[Array, Array]:
    """Iterate the equation of the Gaussian kernel's pre-images from all initial points; return the best points and gains.

    A step is one of gradient ascent on the logarithm of the gain, of length 1 / (4 gamma). It may go too far if
    coefficients have both signs. With `backtrack` a step that gains nothing is tried again at a quarter of its length.
    Without it, such steps are taken, as the equation says. A point has converged when a step changes its best gain by at
    most the share `settled`.
    """
    assert isinstance(r.rows.kernel, RBF)
    at, (gains, slopes) = starts.copy(), r.gains_and_slopes(starts)
    best, best_gains = at.copy(), gains.copy()
    lengths = np.full(gains.size, 1 / (4 * r.rows.kernel.gamma))
    going = np.arange(gains.size)
    for _ in range(max_steps):
        going = going[gains[going] > 0]  # far from all rows the gradient is 0
        if not going.size:
            break
        moved = at[going] + lengths[going, None] * slopes[going] / gains[going, None]
        there, ahead = r.gains_and_slopes(moved)
        change = there - best_gains[going]
        better = change > 0
        best[going[better]], best_gains[going[better]] = moved[better], there[better]
        taken = better | (not backtrack)
        on = going[taken]
        at[on], gains[on], slopes[on] = moved[taken], there[taken], ahead[taken]
        lengths[going[~taken]] /= 4
        going = going[np.abs(change) > settled * there]
    return best, best_gains


def ascended(r: FeatureVector, start: Array, gain: float, max_steps: int) -> Array:
    """Return the point (1, d) that quasi-Newton steps reach from an initial point (1, d) with that gain."""
    if not gain > 0:
        return start

    def loss(Z: Array) -> tuple[float, Array]:
        gains, slopes = r.gains_and_slopes(Z)
        return -gains[0] / gain, -slopes / gain

    return r.rows.kernel.inside(descend(loss, start, DescentSettings(max_steps), Deadline()).x)


def polished(r: FeatureVector, Z: Array, max_steps: int, deadline: Deadline, scale: float) -> Array:
    """Return the points after quasi-Newton steps on their distance to r over `scale`, each with its best coefficients."""

    def loss(Z: Array) -> tuple[float, Array]:
        value, slopes = r.distance(Z)
        return value / scale, slopes / scale

    return r.rows.kernel.inside(descend(loss, Z, DescentSettings(max_steps, ftol=POLISH_GAIN), deadline).x)


def _ratio(values: Array, lengths: Array) -> Array:
    """Return values / lengths, and 0 where a length is not above 0."""
    positive = lengths > 0
    return np.where(positive, values / np.where(positive, lengths, 1.0), 0.0)


def _solve(K: Array, products: Array) -> Array:
    """Return K^-1 products, with the ridge; the shortest least-squares solution if points have length 0."""
    try:
        return cho_solve(cho_factor(_ridged(K), overwrite_a=True), products)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(_ridged(K), products, rcond=None)[0]


def _ridged(A: Array) -> Array:
    """Return A with its diagonal multiplied by (1 + ridge), which suits points of any length."""
    A = A.copy()
    A.flat[:: A.shape[0] + 1] *= 1 + RIDGE
    return A


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

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield a model for each size from one run; at the size of the full model, yield the full model."""
        assert model is not None
        fitted = Refit.of(task, model, sizes[-1]) if self.refit else None
        for small, distance in self.approximations(task, sizes, model):
            settings = f"|w - w~| = {distance:.3g} |w|"
            if fitted:
                yield fitted(small), f"{settings}, refit"
            else:
                yield small, settings

    def approximations(self, task: Task, sizes: Sequence[int], model: Expansion) -> Iterator[tuple[Expansion, float]]:
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
            Z, beta, left = self.grown(w, Z, beta, size, task.rng, task.run.deadline)
            yield Expansion(model.kernel, Z, beta, model.bias), np.sqrt(left)
            if left <= NOTHING or task.run.over:
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
