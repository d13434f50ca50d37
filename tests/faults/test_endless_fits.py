"""Fits that never ended elsewhere end here, in seconds or with a status that says what to do.

The data of scikit-learn's issues #4648 and #13557 are those of the issues. #30353 attaches a file that is not public text;
LIBSVM's issue #225, by the same author, describes it: one scaled feature, about 2,000 rows, the poly kernel with a high
degree and a large C. Such rows are made here. #13075, and a feature of 10^7 beside ones of 1 (alteryx/evalml #2615), are
others of the kind.
"""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score, train_test_split

from slimsvm import SlimSVC
from slimsvm.model import Status
from slimsvm.solvers import smo

pytestmark = pytest.mark.usefixtures("ends")

ENDINGS = (Status.CONVERGED, Status.STALLED, Status.MAX_ITER)


def told(svc, X, y):
    """Fit, and return the warnings; an end short of the tolerance must be told of with advice."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svc.fit(X, y)
    assert svc.status_ in ENDINGS
    assert [str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)] == []
    assert (svc.status_ is Status.CONVERGED) == (not caught)
    assert all("scale the features" in str(one.message) for one in caught)
    assert np.isfinite(svc.decision_function(X)).all()
    return svc


@pytest.mark.parametrize("gamma", ["auto", "scale"])
def test_a_small_and_a_large_value_in_a_poly_kernel(gamma):
    """scikit-learn #4648."""
    X, y = np.array([[1.0, 99999.0], [2.0, 99999.0]]), [0, 1]
    assert told(SlimSVC(kernel="poly", degree=2, gamma=gamma), X, y).score(X, y) == 1.0


@pytest.mark.parametrize(
    ("C", "degree", "gamma"),
    [
        (0.6652997139930452, 7, 4178.386000737241),
        (1.2346990434544882, 7, 4317.581190465473),
        (0.8156943235551155, 8, 864.1583649816441),
    ],
)
def test_cross_validation_of_a_poly_kernel_with_a_large_gamma(C, degree, gamma):
    """scikit-learn #13557; there it hung by chance of the split."""
    X, y = load_iris(return_X_y=True)
    svc = SlimSVC(C=C, kernel="poly", degree=degree, gamma=gamma)
    for seed in range(2):
        rows, _, labels, _ = train_test_split(X, y, test_size=0.3, random_state=seed)
        assert cross_val_score(svc, rows, labels, cv=5).mean() > 0.85


@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_one_feature_a_high_degree_and_a_large_cost(coef0):
    """scikit-learn #30353, LIBSVM #225; fewer steps than the limit of a user's fit, which takes tens of seconds."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2100)
    y = ((x > 0.3) ^ (rng.random(2100) < 0.15)).astype(int)
    svc = told(SlimSVC(kernel="poly", degree=8, C=1e6, coef0=coef0, max_iter=200_000), x[:, None], y)
    assert svc.n_iter_ <= 200_000


def test_a_nearly_equal_pair_of_rows_with_a_large_coef0():
    """scikit-learn #13075."""
    X = np.zeros((6, 13))
    X[:, 9] = [0.31865753, 0.59230137, 0.31778082, 0.36430137, 0.33638356, 0.31843836]
    X[[0, 5], 2], X[[0, 5], 5], X[[0, 5], 6] = 0.3, 1.0, 0.625
    X[[1, 2, 4], 10], X[1, [5, 6, 12]] = 1.0, [0.33333333, 0.61538462, 1.0]
    X[3, [0, 3, 4, 5, 7, 8]] = [0.66666667, 0.5, 1.0, 0.8, 1.0, 0.5625]
    y = [0, 1, 1, 0, 1, 0]
    assert told(SlimSVC(kernel="poly", coef0=10.0, gamma="auto"), X, y).score(X, y) == 1.0


def test_unscaled_features_in_a_linear_kernel():
    """One feature of 10^7 beside ones of 1: the pair steps reach the limit that a fit without max_iter has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    X[:, 3] = 1e7 * (1 + X[:, 3])
    svc = told(SlimSVC(kernel="linear"), X, y)
    assert svc.n_iter_ <= smo.MOST_STEPS
