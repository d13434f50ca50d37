"""SlimSVR: the optimum of SVR and NuSVR, budgets, and what it refuses."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.svm import SVR, NuSVR

from slimsvm import SlimSVR
from slimsvm.reducers import REDUCERS

pytestmark = pytest.mark.usefixtures("quick_slim")

EXACT = 1e-6
#: how far predictions of two solutions to that tolerance may be apart, as a share of the spread of y
CLOSE = 1e-3
REAL_VALUED = [name for name, kind in REDUCERS.items() if kind.real_valued]


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(250, n_features=6, noise=0.5, random_state=0)


def assert_same_values(ours, theirs, y):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE * np.std(y))


@pytest.mark.parametrize(("kernel", "params"), [("rbf", {}), ("linear", {}), ("poly", {"degree": 2, "coef0": 1.0})])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_the_optimum_is_that_of_svr(kernel, params, form, weighted, friedman):
    X, y = friedman
    weights = np.random.default_rng(1).uniform(0, 3, y.size) if weighted else None
    settings = {"kernel": kernel, "C": 2.0, "epsilon": 0.2, "tol": EXACT, "gamma": 0.5} | params
    ours = SlimSVR(**settings).fit(form(X), y, weights)
    theirs = SVR(**settings).fit(X, y, weights)
    assert_same_values(ours.predict(form(X)), theirs.predict(X), y)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)


def test_kernels_that_are_given_make_the_same_model(friedman):
    X, y = friedman
    settings = {"C": 2.0, "epsilon": 0.2, "tol": EXACT}
    expected = SVR(kernel="rbf", gamma=0.5, **settings).fit(X, y).predict(X)

    def gram(A, B):
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    assert_same_values(SlimSVR(kernel=gram, **settings).fit(X, y).predict(X), expected, y)
    K = gram(X, X)
    assert_same_values(SlimSVR(kernel="precomputed", **settings).fit(K, y).predict(K), expected, y)


@pytest.mark.parametrize("nu", [0.2, 0.6])
def test_with_the_epsilon_that_nu_svr_finds_the_optimum_is_that_of_nu_svr(nu, friedman):
    """Rows on the border of its tube tell the epsilon."""
    X, y = friedman
    theirs = NuSVR(nu=nu, C=2.0, gamma=0.5, tol=1e-9).fit(X, y)
    size = np.abs(theirs.dual_coef_.ravel())
    border = theirs.support_[(size > 1e-3) & (size < 2.0 - 1e-3)]
    epsilon = np.abs(y - theirs.predict(X))[border].mean()
    ours = SlimSVR(C=2.0, gamma=0.5, epsilon=epsilon, tol=EXACT).fit(X, y)
    assert_same_values(ours.predict(X), theirs.predict(X), y)


def test_whole_weights_are_repeated_rows(friedman):
    X, y = friedman
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    settings = {"gamma": 0.5, "tol": EXACT}
    weighted = SlimSVR(**settings).fit(X, y, weights)
    repeated = SlimSVR(**settings).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_same_values(weighted.predict(X), repeated.predict(X), y)


def test_errors_inside_the_tube_cost_nothing(friedman):
    """The optimality conditions: rows inside the tube have no coefficient, rows outside have C, all to `tol`."""
    X, y = friedman
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    svr = SlimSVR(C=2.0, epsilon=0.3, kernel="precomputed", tol=EXACT).fit(K, y)
    dual = np.zeros(y.size)
    dual[svr.model_.points.ravel()] = svr.dual_coef_.ravel()
    residual = y - svr.predict(K)
    assert abs(dual.sum()) < 1e-8
    assert np.abs(dual).max() <= 2.0 + 1e-9
    assert (dual * residual >= -1e-9).all()
    np.testing.assert_allclose(dual[np.abs(residual) < 0.3 - 1e-3], 0, atol=1e-9)
    np.testing.assert_allclose(np.abs(dual[np.abs(residual) > 0.3 + 1e-3]), 2.0, atol=1e-9)


@pytest.mark.parametrize("reducer", REAL_VALUED)
def test_every_reducer_of_values_keeps_to_a_budget(reducer, friedman):
    X, y = friedman
    svr = SlimSVR(12, C=5.0, gamma=0.1, reducer=reducer, random_state=0).fit(X, y)
    assert len(svr.support_vectors_) <= 12
    assert np.isfinite(svr.predict(X)).all()
    assert all(np.isfinite(step.error) for step in svr.path_)
    if reducer in ("slim", "spsvm", "osuna-girosi"):
        assert svr.score(X, y) > 0.6


def test_small_models_that_are_worse_than_the_mean_are_still_a_path():
    """Their errors are above 1, which no share of wrong labels is."""
    X, y = make_friedman1(400, random_state=0)
    svr = SlimSVR(16, C=10, reducer="prune", random_state=0).fit(X, y)
    assert max(step.error for step in svr.path_) > 1
    assert 0 < len(svr.support_vectors_) <= 16


def test_a_tolerance_keeps_r_squared(friedman):
    X, y = friedman
    full = SlimSVR(C=5.0, gamma=0.1).fit(X, y)
    small = SlimSVR(tolerance=0.05, C=5.0, gamma=0.1, random_state=0).fit(X, y)
    assert len(small.support_vectors_) < len(full.support_vectors_)
    assert r2_score(y, small.predict(X)) > r2_score(y, full.predict(X)) - 0.1


@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e6), (0.0, 1e-6), (-300.0, 1e-6)])
@pytest.mark.parametrize("settings", [{}, {"budget": 12}, {"budget": 12, "reducer": "spsvm"}], ids=str)
def test_the_unit_of_the_targets_does_not_matter(settings, shift, scale, friedman):
    """C is one over that unit, epsilon is in it."""
    X, y = friedman
    own = SlimSVR(**settings, C=5.0, epsilon=0.2, gamma=0.1, random_state=0).fit(X, y)
    other = SlimSVR(**settings, C=5.0 * scale, epsilon=0.2 * scale, gamma=0.1, random_state=0).fit(X, scale * (y + shift))
    # L-BFGS makes more of rounding errors than the others do
    within = 0.1 if settings == {"budget": 12} else CLOSE
    np.testing.assert_allclose(other.predict(X) / scale - shift, own.predict(X), rtol=0, atol=within * np.std(y))
    if own.path_ is not None:
        np.testing.assert_allclose(other.path_.errors, own.path_.errors, atol=0.02)


def test_a_scorer_sees_targets_as_they_are_given(friedman):
    X, y = friedman
    settings = {"reducer": "spsvm", "scoring": "neg_mean_absolute_error", "random_state": 0}
    small = SlimSVR(12, C=500.0, gamma=0.1, **settings).fit(X, 100 * y)
    found = np.abs(small.predict(X) - 100 * y).mean()
    assert small.path_[-1].error == pytest.approx(found, rel=0.5)


def test_targets_that_are_all_alike(friedman):
    X, y = friedman
    flat = SlimSVR().fit(X, np.full(y.size, 3.0))
    np.testing.assert_allclose(flat.predict(X), 3.0, atol=0.1 + 1e-9)
    assert flat.goal_.variance == 1.0


@pytest.mark.parametrize(
    ("settings", "target", "words"),
    [
        ({}, "words", "regression needs numbers"),
        ({}, "infinite", "infinity"),
        ({}, "missing", "NaN"),
        ({"epsilon": -0.1}, "values", "epsilon"),
        ({"epsilon": np.nan}, "values", "epsilon"),
        ({"epsilon": "wide"}, "values", "epsilon"),
        ({"C": 0.0}, "values", "C"),
        ({"trainer": "pegasos"}, "values", "for classes; for regression there are"),
        ({"reducer": "slant", "budget": 5}, "values", "for classes; for regression there are"),
        ({"trainer": None}, "values", "number of support vectors"),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_refused(settings, target, words, friedman):
    X, y = friedman
    targets = {
        "values": y,
        "words": np.array(["low", "high"])[(y > y.mean()).astype(int)],
        "infinite": np.where(np.arange(y.size) == 3, np.inf, y),
        "missing": np.where(np.arange(y.size) == 3, np.nan, y),
    }
    svr = SlimSVR(**settings)
    with pytest.raises(ValueError, match=words):
        svr.fit(X, targets[target])
    assert not hasattr(svr, "model_")
