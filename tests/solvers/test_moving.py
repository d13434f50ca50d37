"""Moving points: value and gradient against plain formulas, finite differences and each other."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from slimsvm.kernels import KERNELS, RBF, Linear
from slimsvm.rows.host import HostRows
from slimsvm.rows.threads import Crew
from slimsvm.solvers import moving
from slimsvm.solvers.moving import MovingLoss

DIFFERENTIABLE = [name for name, kind in KERNELS.items() if kind.differentiable]


def squares(goals):
    """The loss sum_ic (f_c(x_i) - goal_ic)^2."""

    def loss(rows, outputs):
        off = outputs - goals[rows]
        return float((off**2).sum()), 2 * off

    return loss


def one_sided(goals):
    """The same for outputs below their goal: most derivatives are 0 where goals are low."""

    def loss(rows, outputs):
        off = np.minimum(outputs - goals[rows], 0.0)
        return float((off**2).sum()), 2 * off

    return loss


def problem(kernel, form=np.asarray, n=40, d=4, m=5, q=2, seed=0):
    """A HostRows, goals, and points with coefficients and biases."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < (1.0 if form is np.asarray else 0.15)) + (form is np.asarray)
    Z, coef, bias = rng.normal(size=(m, d)), rng.normal(size=(m, q)), rng.normal(size=q)
    return HostRows(kernel, form(X)), rng.normal(size=(n, q)), Z, coef, bias


def plain_value(gram, goals, points, coef, bias, kind=squares):
    X = gram.X.toarray() if hasattr(gram.X, "toarray") else gram.X
    return kind(goals)(slice(None), gram.kernel(X, points) @ coef + bias)[0]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("kind", [squares, one_sided])
def test_the_gradient_is_that_of_finite_differences(name, q, kind, form, make_case):
    kernel = make_case(name).kernel
    gram, goals, Z, coef, bias = problem(kernel, form, q=q)
    loss = MovingLoss(gram, kind(goals))
    Z = loss.inward(Z)
    slope = loss(Z, coef, bias)

    def value(flat):
        points, c, b = np.split(flat, [Z.size, Z.size + coef.size])
        return plain_value(gram, goals, loss.outward(points.reshape(Z.shape)), c.reshape(coef.shape), b, kind)

    flat = np.concatenate([Z.ravel(), coef.ravel(), bias])
    assert slope.value == pytest.approx(value(flat), rel=1e-9)
    found = np.concatenate([slope.points.ravel(), slope.coef.ravel(), slope.bias])
    expected = approx_fprime(flat, value, 1e-7)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("kind", [squares, one_sided])
def test_sparse_rows_give_what_dense_rows_give(name, kind, make_case):
    kernel = make_case(name).kernel
    gram, goals, Z, coef, bias = problem(kernel, csr_array, n=300, d=30, m=40)
    dense = HostRows(kernel, gram.X.toarray())
    results = []
    for rows in (gram, dense):
        loss = MovingLoss(rows, kind(goals))
        results.append(loss(loss.inward(csr_array(Z)), coef, bias))
    for part in ("value", "points", "coef", "bias"):
        np.testing.assert_allclose(getattr(results[0], part), getattr(results[1], part), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("strip", [1, 700, 1 << 18])
def test_neither_threads_nor_the_length_of_strips_change_the_result(name, strip, form, make_case, monkeypatch):
    kernel = make_case(name).kernel
    gram, goals, Z, coef, bias = problem(kernel, form, n=333)
    expected = plain_value(gram, goals, Z, coef, bias)
    monkeypatch.setattr(moving, "STRIP_VALUES", strip)
    monkeypatch.setattr(moving, "SMALLEST_STRIP", 7)
    results = []
    for threads in (1, 3):
        gram.crew = Crew(threads)
        loss = MovingLoss(gram, squares(goals))
        results.append(loss(loss.inward(Z), coef, bias))
    assert results[0].value == pytest.approx(expected, rel=1e-9)
    for part in ("value", "points", "coef", "bias"):
        np.testing.assert_allclose(getattr(results[0], part), getattr(results[1], part), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [squares, one_sided])
def test_float32_tiles_are_near_float64(kind, form, float32_always):  # noqa: ARG001
    gram, goals, Z, coef, bias = problem(RBF(0.1), form, n=500, d=20, m=30)
    assert gram.dtype == np.float32
    loss = MovingLoss(gram, kind(goals))
    slope = loss(loss.inward(Z), coef, bias)
    assert slope.value == pytest.approx(plain_value(gram, goals, Z, coef, bias, kind), rel=1e-4)
    exact = MovingLoss(gram, kind(goals))
    exact.rows = moving.Rows(gram.rows.values.astype(np.float64), gram.rows.norms, gram.rows.centre)
    expected = exact(exact.inward(Z), coef, bias)
    for part in ("points", "coef", "bias"):
        scale = np.abs(getattr(expected, part)).max()
        np.testing.assert_allclose(getattr(slope, part), getattr(expected, part), atol=1e-4 * scale)


def test_points_far_out_are_computed_in_float64(monkeypatch):
    monkeypatch.setattr("slimsvm.rows.precision.SMALL_WORK", 0)
    gram, goals, Z, coef, bias = problem(RBF(0.1), n=300)
    assert gram.dtype == np.float32
    loss = MovingLoss(gram, squares(goals))
    near = loss(loss.inward(Z), coef, bias)
    far = Z + 1e4
    shifted = HostRows(RBF(0.1), gram.X + 1e4)  # with its own rows far out as well, a float64 HostRows from the start
    assert loss(loss.inward(far), coef, bias).value == pytest.approx(plain_value(gram, goals, far, coef, bias), rel=1e-9)
    assert loss.rows.values.dtype == np.float64
    assert near.value == pytest.approx(plain_value(shifted, goals, far, coef, bias), rel=1e-4)


def test_inward_and_outward_are_inverse(form):
    gram, goals, Z, _, _ = problem(RBF(0.5), form)
    loss = MovingLoss(gram, squares(goals))
    np.testing.assert_allclose(loss.outward(loss.inward(form(Z))), Z, atol=1e-12)


def test_evaluations_are_counted():
    gram, goals, Z, coef, bias = problem(Linear())
    loss = MovingLoss(gram, squares(goals))
    before = gram.meter.evaluations
    loss(loss.inward(Z), coef, bias)
    assert gram.meter.evaluations - before == gram.n * Z.shape[0]


def test_an_error_in_the_loss_comes_out():
    gram, _, Z, coef, bias = problem(RBF(0.5), n=2000)

    def broken(rows, outputs):
        raise ZeroDivisionError(rows, outputs)

    with pytest.raises(ZeroDivisionError):
        MovingLoss(gram, broken)(Z, coef, bias)


def test_no_derivative_no_gradient():
    gram, goals, Z, coef, bias = problem(RBF(0.5))
    slope = MovingLoss(gram, one_sided(goals - 1e3))(Z, coef, bias)
    assert slope.value == 0
    assert not slope.points.any()
    assert not slope.coef.any()
