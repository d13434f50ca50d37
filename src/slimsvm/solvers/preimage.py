"""Approximate a vector of feature space by a few points.

The vector is a sum over rows minus a sum over points, one for each output c:

    r_c = sum_i A_ic Phi(x_i) - sum_j B_jc Phi(b_j)

A pre-image of r is a point z such that one multiple of Phi(z) leaves the smallest residual. It has the largest gain

    sum_c <r_c, Phi(z)>^2 / k(z, z)

With the Gaussian kernel the gain is stationary where z is a weighted mean of all x_i and b_j, with the weights
w_i = k(x_i, z) sum_c A_ic <r_c, Phi(z)>, and repeating this equation is the fixed-point iteration (Schölkopf et al. 1999).
Other kernels take quasi-Newton steps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from ..kernels import RBF, Array
from ..limits import Deadline
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread

#: the share of itself that is added to the diagonal of K(points, points), so that copies of a point have an inverse
RIDGE = 1e-8
#: L-BFGS stops when a step gains a smaller share of the value
LITTLE, LITTLE_POLISH = 2.2e-9, 1e-10


class FeatureVector:
    """r with coefficients A (n, q) over rows, minus points (k, d) with coefficients B (k, q), none by default."""

    def __init__(self, rows: Rows, A: Array, points: Array | None = None, B: Array | None = None) -> None:
        self.rows, self.A = rows, A
        self.points = np.empty((0, rows.d)) if points is None else points
        self.B = np.empty((0, A.shape[1])) if B is None else B
        self._against = rows.moving(np.empty((0, rows.d)), exact=True)

    def minus(self, points: Array, B: Array) -> FeatureVector:
        """Return this vector minus some points with coefficients, for a vector over rows alone."""
        rest = copy.copy(self)  # it shares the handle, with which the home may keep rows in a form for gradients
        rest.points, rest.B = points, B
        return rest

    def products(self, Z: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return <r_c, Phi(z_j)>, (m, q), and a function from V to the gradient of sum_jc V_jc <r_c, Phi(z_j)>, (m, d).

        The function is valid until the next call.
        """
        against = self._against
        against.move(self.rows.inward(Z), np.empty((Z.shape[0], 0)))
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
        both = 2 * self.rows.pullback_among(Z, Z, K, np.eye(Z.shape[0]))  # the two arguments of k(z, z) add the same
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
def fixed_points(r: FeatureVector, starts: Array, max_steps: int, settled: float) -> tuple[Array, Array]:
    """Iterate the equation of the Gaussian kernel's pre-images from all initial points; return the points and their gains.

    A step is one of gradient ascent on the logarithm of the gain, of length 1 / (4 gamma). It may go too far where
    coefficients have both signs: a step that gains nothing is tried again at a quarter of its length. A point is settled
    when a step changes its gain by no more than this share.
    """
    assert isinstance(r.rows.kernel, RBF)
    found, (gains, slopes) = starts.copy(), r.gains_and_slopes(starts)
    lengths = np.full(gains.size, 1 / (4 * r.rows.kernel.gamma))
    going = np.flatnonzero(gains > 0)
    for _ in range(max_steps):
        if not going.size:
            break
        moved = found[going] + lengths[going, None] * slopes[going] / gains[going, None]
        there, ahead = r.gains_and_slopes(moved)
        better, same = there > gains[going], np.abs(there - gains[going]) <= settled * gains[going]
        up = going[better]
        found[up], gains[up], slopes[up] = moved[better], there[better], ahead[better]
        lengths[going[~better]] /= 4
        going = going[~same]
    return found, gains


@one_blas_thread()
def ascended(r: FeatureVector, start: Array, gain: float, max_steps: int) -> Array:
    """Return the point (1, d) that quasi-Newton steps reach from an initial point (1, d) with that gain."""
    if not gain > 0:
        return start

    def loss(z: Array) -> tuple[float, Array]:
        gains, slopes = r.gains_and_slopes(z[None])
        return -gains[0] / gain, -slopes[0] / gain

    return _descend(loss, start.ravel(), max_steps, Deadline(), LITTLE)[None]


@one_blas_thread()
def polished(r: FeatureVector, Z: Array, max_steps: int, deadline: Deadline, scale: float) -> Array:
    """Return the points after quasi-Newton steps on their distance to r, over `scale`, with the best coefficients in each."""

    def loss(flat: Array) -> tuple[float, Array]:
        value, slopes = r.distance(flat.reshape(Z.shape))
        return value / scale, slopes.ravel() / scale

    return _descend(loss, Z.ravel(), max_steps, deadline, LITTLE_POLISH).reshape(Z.shape)


def _descend(
    loss: Callable[[Array], tuple[float, Array]], start: Array, max_steps: int, deadline: Deadline, ftol: float
) -> Array:
    """Return where L-BFGS is after so many steps, or when the time is up."""

    def stop(_: Array) -> None:
        if deadline.over:
            raise StopIteration

    options = {"maxiter": max_steps, "ftol": ftol}
    return minimize(loss, start, jac=True, method="L-BFGS-B", callback=stop, options=options).x


def _ratio(values: Array, lengths: Array) -> Array:
    """Return values / lengths, and 0 where a length is not above 0."""
    positive = lengths > 0
    return np.where(positive, values / np.where(positive, lengths, 1.0), 0.0)


def _solve(K: Array, products: Array) -> Array:
    """Return K^-1 products, with the ridge."""
    return cho_solve(cho_factor(_ridged(K), overwrite_a=True), products)


def _ridged(A: Array) -> Array:
    """Return A with (1 + ridge) times its diagonal, which means the same for points of any length."""
    A = A.copy()
    A.flat[:: A.shape[0] + 1] *= 1 + RIDGE
    return A
