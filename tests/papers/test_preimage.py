"""Pre-images of vectors in feature space: gains and gradients by the formula, and searches that end at a maximum."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from slimsvm.kernels import RBF, Laplacian, Linear, Poly, Sigmoid
from slimsvm.limits import Deadline
from slimsvm.papers.preimage import FeatureVector, ascended, fixed_points, polished
from slimsvm.rows.host import HostRows

KERNELS = [RBF(0.4), Linear(), Poly(0.3, 1.0, 3), Sigmoid(0.1, 0.2), Laplacian(0.3)]
SMOOTH = [RBF(0.7), Poly(0.5, 1.0, 3), Linear()]


def name(kernel):
    return kernel.name


class Plain:
    """The same vector by its formula, with all kernel values at once."""

    def __init__(self, kernel, q=2, seed=0, points=3):
        rng = np.random.default_rng(seed)
        self.kernel, self.X = kernel, rng.normal(size=(50, 4)) + 1.0
        self.A, self.B = rng.normal(size=(50, q)), rng.normal(size=(points, q))
        self.points = rng.normal(size=(points, 4)) + 1.0

    def vector(self, form=np.asarray):
        return FeatureVector(HostRows(self.kernel, form(self.X)), self.A, self.points, self.B)

    def over_rows(self):
        return FeatureVector(HostRows(self.kernel, self.X), self.A)

    def gain(self, z):
        inner = self.A.T @ self.kernel(self.X, z[None]) - self.B.T @ self.kernel(self.points, z[None])
        return float(np.square(inner).sum() / self.kernel(z[None], z[None])[0, 0])

    def squared_distance(self, Z, coef):
        """|sum_i A_i Phi(x_i) - sum_j coef_j Phi(z_j)|^2, summed over outputs."""
        points, coef = np.vstack([self.X, Z]), np.vstack([self.A, -coef])
        return float((coef * (self.kernel(points, points) @ coef)).sum())


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_gains_and_gradients_are_those_of_the_formula(kernel, form):
    plain = Plain(kernel)
    Z = np.random.default_rng(1).normal(size=(3, 4)) + 1.0
    r = plain.vector(form)
    gains, slopes = r.gains_and_slopes(Z)
    np.testing.assert_allclose(gains, [plain.gain(z) for z in Z], rtol=1e-9)
    np.testing.assert_allclose(r.gains(Z), gains, rtol=1e-12)
    for z, slope in zip(Z, slopes, strict=True):
        expected = approx_fprime(z, plain.gain, 1e-7)
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", SMOOTH, ids=name)
def test_a_vector_minus_points_is_one_with_these_points(kernel):
    plain = Plain(kernel)
    Z = np.random.default_rng(1).normal(size=(3, 4))
    w = plain.over_rows()
    rest = w.minus(plain.points, plain.B)
    np.testing.assert_allclose(rest.gains(Z), plain.vector().gains(Z), rtol=1e-12)
    assert w.points.shape == (0, 4)


@pytest.mark.parametrize("kernel", SMOOTH, ids=name)
@pytest.mark.parametrize("q", [1, 2])
def test_the_nearest_vector_and_the_gradient_of_its_distance(kernel, q):
    plain = Plain(kernel, q)
    Z = np.random.default_rng(3).normal(size=(2, 4))
    w = plain.over_rows()
    coef, K, products = w.nearest(Z)
    np.testing.assert_allclose(K, kernel(Z, Z), rtol=1e-12)
    np.testing.assert_allclose(products, kernel(Z, plain.X) @ plain.A, rtol=1e-9)
    np.testing.assert_allclose(coef, np.linalg.solve(K, products), rtol=1e-6)
    whole = plain.squared_distance(Z, 0 * coef)
    assert w.squared_norm() == pytest.approx(whole, rel=1e-12)
    value, slopes = w.distance(Z)
    assert value + whole == pytest.approx(plain.squared_distance(Z, coef), rel=1e-6)
    expected = approx_fprime(Z.ravel(), lambda flat: w.distance(flat.reshape(Z.shape))[0], 1e-6)
    np.testing.assert_allclose(slopes.ravel(), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", SMOOTH, ids=name)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_polish_lowers_the_distance(kernel, size):
    w = Plain(kernel).over_rows()
    Z = np.random.default_rng(1).normal(size=(size, 4))
    assert w.distance(polished(w, Z, 50, Deadline(), w.squared_norm()))[0] < w.distance(Z)[0]


def test_a_deadline_ends_the_polish():
    w = Plain(RBF(0.4)).over_rows()
    Z = np.random.default_rng(1).normal(size=(6, 4))
    late, early = (w.distance(polished(w, Z, 50, deadline, 1.0))[0] for deadline in (Deadline(), Deadline(1e-9)))
    assert late < early < w.distance(Z)[0]


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_quasi_newton_steps_end_at_a_larger_gain(kernel):
    r = Plain(kernel).vector()
    start = np.random.default_rng(2).normal(size=(1, 4)) + 1.0
    gain = r.gains(start)[0]
    end = ascended(r, start, gain, 30)
    assert end.shape == (1, 4)
    assert r.gains(end)[0] > gain


def test_the_best_point_for_the_linear_kernel_is_the_vector_itself():
    plain = Plain(Linear(), q=1)
    r = plain.vector()
    vector = (plain.A.T @ plain.X - plain.B.T @ plain.points).ravel()
    z = ascended(r, plain.X[:1], r.gains(plain.X[:1])[0], 200).ravel()
    assert abs(z @ vector) == pytest.approx(np.linalg.norm(z) * np.linalg.norm(vector), rel=1e-4)


def test_a_first_step_is_that_of_the_paper():
    plain = Plain(RBF(0.2), q=1)
    r = FeatureVector(HostRows(plain.kernel, plain.X), np.abs(plain.A))
    found, _ = fixed_points(r, plain.X[:1], 1, 1e-4, backtrack=True)
    weights = np.abs(plain.A) * plain.kernel(plain.X, plain.X[:1])
    np.testing.assert_allclose(found[0], (weights * plain.X).sum(axis=0) / weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("q", [1, 3])
def test_a_long_search_ends_at_a_fixed_point(q):
    """z = sum_i w_i x_i / sum_i w_i over rows and points."""
    plain = Plain(RBF(0.4), q)
    r = plain.vector()
    found, gains = fixed_points(r, plain.X[5:20], 200, 1e-6, backtrack=True)
    best = int(gains.argmax())
    z = ascended(r, found[[best]], gains[best], 50)
    points, coef = np.vstack([plain.X, plain.points]), np.vstack([plain.A, -plain.B])
    k = plain.kernel(points, z)
    weights = coef @ (coef.T @ k) * k
    np.testing.assert_allclose((weights * points).sum(axis=0) / weights.sum(), z.ravel(), atol=1e-3)


@pytest.mark.parametrize("backtrack", [True, False], ids=["backtrack", "overshoot"])
def test_fixed_points_return_the_best_point_on_the_way(backtrack):
    plain = Plain(RBF(2.0))
    r = plain.vector()
    before = r.gains(plain.X)
    for steps in (1, 5, 20):
        found, gains = fixed_points(r, plain.X, steps, 1e-6, backtrack=backtrack)
        np.testing.assert_allclose(r.gains(found), gains, rtol=1e-9)
        assert (gains >= before * (1 - 1e-12)).all()
        before = gains
    assert (gains > r.gains(plain.X)).any()


def test_backtracking_gains_where_a_full_step_goes_too_far():
    """Of these initial points the equation takes some to a lower gain; a quarter of the step, or less, gains."""
    plain = Plain(RBF(2.0))
    r = plain.vector()
    once = fixed_points(r, plain.X, 1, 0.0, backtrack=False)[1]
    too_far = np.flatnonzero(once == r.gains(plain.X))
    assert too_far.size
    assert (fixed_points(r, plain.X, 8, 0.0, backtrack=True)[1] > once)[too_far].all()


@pytest.mark.parametrize("backtrack", [True, False], ids=["backtrack", "overshoot"])
def test_points_far_from_all_rows_stay_where_they_are(backtrack):
    far = np.full((1, 4), 1e3)
    found, gains = fixed_points(Plain(RBF(0.4)).vector(), far, 5, 1e-3, backtrack=backtrack)
    np.testing.assert_array_equal(found, far)
    assert gains[0] == 0


def test_where_an_indefinite_kernel_has_no_length_there_is_no_gain():
    plain = Plain(Sigmoid(0.1, -5.0))
    r = plain.vector()
    gains, slopes = r.gains_and_slopes(plain.X)
    assert (gains == 0).all()
    assert (slopes == 0).all()
    assert (r.gains(plain.X) == 0).all()
    np.testing.assert_array_equal(ascended(r, plain.X[:1], 0.0, 5), plain.X[:1])


def test_sparse_rows_and_float32_lead_to_the_same_point(float32_always):
    rng = np.random.default_rng(5)
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.15)
    A, points, B = rng.normal(size=(60, 1)), X[:2], rng.normal(size=(2, 1))
    homes = [HostRows(RBF(0.4), form(X), precision=float32_always) for form in (np.asarray, csr_array)]
    vectors = [FeatureVector(rows, A, points, B) for rows in homes]
    tops = [fixed_points(r, X[5:7], 5, 1e-3, backtrack=False)[0] for r in vectors]
    np.testing.assert_allclose(tops[0], tops[1], atol=1e-4)


def test_every_kernel_value_and_gradient_is_counted():
    """50 rows and 3 points against 2 new points, values and gradients; k(z, z) of all pairs where it varies."""
    for kernel, own in ((RBF(0.4), 0), (Poly(0.3, 1.0, 3), 4)):
        r = Plain(kernel).vector()
        r.gains_and_slopes(np.ones((2, 4)))
        assert r.rows.meter.evaluations == 2 * (53 * 2 + own)
