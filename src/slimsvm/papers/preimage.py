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

from ..kernels import RBF, Array
from ..limits import Deadline
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
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

    return descend(loss, start, DescentSettings(max_steps), Deadline()).x


def polished(r: FeatureVector, Z: Array, max_steps: int, deadline: Deadline, scale: float) -> Array:
    """Return the points after quasi-Newton steps on their distance to r over `scale`, each with its best coefficients."""

    def loss(Z: Array) -> tuple[float, Array]:
        value, slopes = r.distance(Z)
        return value / scale, slopes / scale

    return descend(loss, Z, DescentSettings(max_steps, ftol=POLISH_GAIN), deadline).x


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
