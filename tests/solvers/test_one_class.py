"""The one-class SVM: a start within the constraints, and the optimum of scikit-learn's."""

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from slimsvm.kernels import RBF
from slimsvm.rows.host import HostRows
from slimsvm.trainers.smo import WORKING_SET, OneClassRounds, OneClassState


def state(X, nu, weights=None, tol=1e-6):
    weights = np.ones(len(X)) if weights is None else weights
    return OneClassState(HostRows(RBF(0.3), X, error=0.0), weights, nu, OneClassRounds(tol, 2048))


@pytest.mark.parametrize("nu", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("n", [40, 3 * WORKING_SET])
def test_it_finds_the_optimum_of_scikit_learn(n, nu):
    X = np.random.default_rng(n).normal(size=(n, 3))
    run = state(X, nu)
    run.begin_from(np.zeros(n))
    run.solve(np.inf)
    theirs = OneClassSVM(gamma=0.3, nu=nu, tol=1e-6).fit(X)
    ours = HostRows(RBF(0.3), X, error=0.0).product(X, run.signed[:, None])[:, 0] + run.bias()
    np.testing.assert_allclose(ours, theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("given", ["nothing", "too little", "too much"])
def test_a_start_is_within_the_box_and_has_the_sum(given):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(300, 2)), rng.integers(1, 4, 300).astype(float)
    run = state(X, 0.2, weights)
    run.begin_from({"nothing": 0.0, "too little": 0.1, "too much": 9.0}[given] * rng.random(300))
    assert run.alpha.sum() == pytest.approx(0.2 * weights.sum())
    assert (run.alpha >= 0).all()
    assert (run.alpha <= weights).all()


def test_outlying_rows_hold_the_sum_at_the_start():
    X = np.random.default_rng(1).normal(size=(500, 2))
    run = state(X, 0.1)
    run.begin_from(np.zeros(500))
    distance = np.square(X).sum(axis=1)
    assert distance[run.alpha > 0].mean() > 2 * distance.mean()
