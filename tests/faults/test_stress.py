"""Numbers under stress: extreme widths, scales, costs, duplicates and imbalance give finite scores, or a ValueError.

Each method meets every fourth case; `SLIMSVM_STRESS=all` has it meet them all, which takes minutes.
"""

import os
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SlimSVC
from slimsvm.kernels import make_kernel
from slimsvm.reducers import REDUCERS
from slimsvm.trainers import TRAINERS

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
X = RNG.normal(size=(40, 3)) + 0.8 * Y[:, None]
#: rows and settings
pytestmark = pytest.mark.usefixtures("ends")

CASES = {
    "gamma 1e-12": (X, {"gamma": 1e-12}),
    "gamma 1e12": (X, {"gamma": 1e12}),
    "features 1e-30": (1e-30 * X, {}),
    "features 1e30": (1e30 * X, {}),
    "features 1e-30, poly": (1e-30 * X, {"kernel": "poly"}),
    "features 1e30, linear": (1e30 * X, {"kernel": "linear"}),
    "features 1e30, gamma 1": (1e30 * X, {"gamma": 1.0}),
    "features 1e-30, gamma 1": (1e-30 * X, {"gamma": 1.0}),
    "features of all sizes": (X * [1e-30, 1.0, 1e30], {"kernel": "linear"}),
    "features far from 0": (X + 1e8, {}),
    "C 1e-8": (X, {"C": 1e-8}),
    "C 1e12": (X, {"C": 1e12}),
    "C 1e12, linear": (X, {"C": 1e12, "kernel": "linear"}),
    "duplicates of both classes": (np.repeat(X[:4], 10, axis=0), {"C": 1e12}),
    "equal rows": (np.ones((40, 3)), {}),
    "rows of zeros": (np.zeros((40, 3)), {"kernel": "linear"}),
    "a singular kernel matrix": (X[:, :1] @ np.ones((1, 4)), {"kernel": "linear", "C": 1e6}),
}


EVERY = 1 if os.environ.get("SLIMSVM_STRESS") == "all" else 4


def pairs(methods):
    """Return methods with cases, so that each method and each case has its share."""
    return [
        pytest.param(name, case, id=f"{name}-{case}")
        for shift, name in enumerate(methods)
        for case in list(CASES)[shift % EVERY :: EVERY]
    ]


def fitted(rows, labels, **settings):
    """Fit with warnings as errors, but for those that say how the run ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="budget=|no model of at most", category=UserWarning)
        return SlimSVC(random_state=0, **settings).fit(rows, labels)


#: steps of each trainer at most; a round of sbp takes as long as thousands of steps of others
STEPS = {"sbp": 100}


def assert_finite(svc, rows):
    assert np.isfinite(svc.decision_function(rows)).all()
    assert np.isfinite(svc.dual_coef_).all()
    assert np.isfinite(svc.intercept_).all()


@pytest.mark.parametrize(("name", "case"), pairs(TRAINERS))
def test_trainers_give_finite_scores(name, case):
    rows, settings = CASES[case]
    keeps = "budget" in TRAINERS[name].__dataclass_fields__
    settings = settings | {"budget": 8 if keeps else None, "max_iter": STEPS.get(name, 20_000)}
    assert_finite(fitted(rows, Y, trainer=name, **settings), rows)


@pytest.mark.parametrize(("name", "case"), pairs(REDUCERS))
def test_reducers_give_finite_scores(name, case):
    rows, settings = CASES[case]
    if not REDUCERS[name].takes(make_kernel(settings.get("kernel", "rbf"), gamma=1.0, degree=3, coef0=0.0)):
        pytest.skip("a kernel that this reducer is not defined for")
    if case == "rows of zeros" and name == "spsvm":
        with pytest.raises(ValueError, match=r"needs rows with k\(x, x\) > 0"):
            fitted(rows, Y, reducer=name, budget=4, max_iter=20_000, **settings)
        return
    assert_finite(fitted(rows, Y, reducer=name, budget=4, max_iter=20_000, **settings), rows)


@pytest.mark.parametrize("settings", [{}, {"budget": 8, "reducer": "spsvm"}, {"class_weight": "balanced"}], ids=str)
def test_one_row_in_ten_thousand(settings):
    rows, labels = RNG.normal(size=(10_001, 2)), np.zeros(10_001, int)
    labels[0], rows[0] = 1, 6.0
    svc = fitted(rows, labels, **settings)
    assert_finite(svc, rows)
    assert set(svc.predict(rows)) <= {0, 1}


@pytest.mark.parametrize(("kernel", "scale"), [("rbf", 1e-30), ("rbf", 1e8), ("poly", 1e30)])
def test_slim_learns_the_same_from_rows_of_any_size(kernel, scale):
    rows, labels = make_moons(120, noise=0.25, random_state=0)
    errors = [
        1 - SlimSVC(6, kernel=kernel, C=10.0, random_state=0).fit(unit * rows, labels).score(unit * rows, labels)
        for unit in (1.0, scale)
    ]
    assert abs(errors[0] - errors[1]) < 0.03


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1e155, 1e300])
def test_features_whose_squares_overflow_are_refused(size, sparse):
    form = csr_array if sparse else np.asarray
    svc = fitted(X, Y)
    with pytest.raises(ValueError, match="features must lie between"):
        svc.decision_function(form(size * X))
    with pytest.raises(ValueError, match="StandardScaler"):
        fitted(form(size * X), Y)
    assert_finite(fitted(form(1e149 * X / np.abs(X).max()), Y), X)


def test_poly_kernel_values_beyond_float64_are_refused():
    svc = fitted(X, Y, kernel="poly", gamma=1.0)
    for rows in (1e80 * X, csr_array(1e80 * X)):
        with pytest.raises(ValueError, match="smaller gamma or degree"):
            fitted(rows, Y, kernel="poly", gamma=1.0)
        with pytest.raises(ValueError, match="scale the features"):
            svc.decision_function(rows)
