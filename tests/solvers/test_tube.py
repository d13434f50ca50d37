"""Support vector regression against scikit-learn's."""

import numpy as np
import pytest
from sklearn.svm import SVR

from slimsvm.kernels import RBF
from slimsvm.model import Status
from slimsvm.rows.host import HostRows
from slimsvm.solvers.tube import PairedRows, Tube
from slimsvm.trainers import SMO


def waves(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)


def dual_value(coef, X, t, eps):
    return t @ coef - eps * np.abs(coef).sum() - 0.5 * coef @ RBF(0.3)(X, X) @ coef


@pytest.mark.parametrize("n", [2, 60, 700])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("working_set", [64, 2048])
def test_the_regression_is_that_of_scikit_learn(n, C, eps, working_set):
    X, t = waves(n)
    tube = Tube(HostRows(RBF(0.3), X), t, C, SMO(tol=1e-5, working_set=working_set))
    assert tube.solve(eps) is Status.CONVERGED
    theirs = SVR(C=C, epsilon=eps, gamma=0.3, tol=1e-5).fit(X, t)
    coef = np.zeros(n)
    coef[theirs.support_] = theirs.dual_coef_[0]
    assert tube.objective() == pytest.approx(dual_value(tube.coef, X, t, eps), rel=1e-4, abs=1e-7)
    assert tube.objective() == pytest.approx(dual_value(coef, X, t, eps), rel=1e-5, abs=1e-7)
    free = (np.abs(coef) > 1e-9) & (np.abs(coef) < C * (1 - 1e-9))
    atol = 1e-3 if free.any() else 2 * eps + 1e-3  # without a free row, an interval of biases is optimal
    np.testing.assert_allclose(RBF(0.3)(X, X) @ tube.coef + tube.bias, theirs.predict(X), atol=atol)


def test_a_run_from_another_radius_ends_where_a_fresh_one_does():
    X, t = waves(300)
    moved = Tube(HostRows(RBF(0.3), X), t, 10.0, SMO(tol=1e-6))
    for eps in (0.5, 0.02, 0.3, 0.1):
        moved.solve(eps)
        fresh = Tube(HostRows(RBF(0.3), X), t, 10.0, SMO(tol=1e-6))
        fresh.solve(eps)
        assert moved.objective() == pytest.approx(fresh.objective(), rel=1e-8)
        np.testing.assert_allclose(moved.coef, fresh.coef, atol=1e-3)


def test_a_limit_of_steps_is_kept_and_the_next_run_goes_on():
    X, t = waves(300)
    tube = Tube(HostRows(RBF(0.3), X), t, 10.0, SMO())
    assert tube.solve(0.05, limit=20) is Status.MAX_ITER
    assert tube.state.steps == 20
    assert tube.solve(0.05) is Status.CONVERGED


def test_no_row_has_both_of_its_variables():
    X, t = waves(200)
    tube = Tube(HostRows(RBF(0.3), X), t, 1.0, SMO())
    for eps in (0.01, 0.3, 0.05):
        tube.solve(eps)
        above, below = tube.state.alpha.reshape(2, -1)
        assert not (above * below).any()


def test_two_variables_a_row_share_its_kernel_values():
    X, _ = waves(40)
    once = HostRows(RBF(0.3), X)
    twice, index = PairedRows(once), np.array([3, 43, 70, 5])
    K = np.tile(RBF(0.3)(X, X), (2, 2))
    before = once.meter.evaluations
    np.testing.assert_allclose(twice.block(index), K[np.ix_(index, index)], atol=1e-12)
    np.testing.assert_allclose(twice.block(index, index[:2]), K[np.ix_(index, index[:2])], atol=1e-12)
    V = np.arange(4.0)[:, None]
    np.testing.assert_allclose(twice.product_of(index, V), K[:, index] @ V, atol=1e-12)
    assert once.meter.evaluations == before + 16 + 8 + 3 * 40
    part = twice.subset(index)
    np.testing.assert_allclose(part.block(np.arange(4)), K[np.ix_(index, index)], atol=1e-12)
