"""SlimOneClassSVM: the optimum of OneClassSVM, budgets, and what it refuses."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from slimsvm import SlimOneClassSVM
from slimsvm.reducers import REDUCERS

pytestmark = pytest.mark.usefixtures("quick_slim")

EXACT = 1e-7
REAL_VALUED = [name for name, kind in REDUCERS.items() if kind.real_valued]


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(200, 3))


def gram(A, B):
    return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def assert_same_scores(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("nu", [0.053, 0.333, 0.953])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_the_optimum_is_that_of_one_class_svm(nu, form, weighted, cloud):
    weights = np.random.default_rng(1).uniform(0.1, 3, len(cloud)) if weighted else None
    ours = SlimOneClassSVM(nu=nu, gamma=0.3, tol=EXACT).fit(form(cloud), sample_weight=weights)
    theirs = OneClassSVM(nu=nu, gamma=0.3, tol=EXACT).fit(cloud, sample_weight=weights)
    scores, expected = ours.score_samples(form(cloud)), theirs.score_samples(cloud)
    assert_same_scores(scores, expected)
    assert ours.offset_ == pytest.approx(theirs.offset_[0], rel=1e-4)
    clear = np.abs(theirs.decision_function(cloud)) > 1e-3
    np.testing.assert_array_equal(ours.predict(cloud)[clear], theirs.predict(cloud)[clear])


def test_with_a_nu_of_1_every_row_counts_fully(cloud):
    """The sum of kernel values, a Parzen window; scikit-learn's solver fails there."""
    found = SlimOneClassSVM(nu=1.0, gamma=0.3).fit(cloud)
    assert_same_scores(found.score_samples(cloud), gram(cloud, cloud).sum(axis=1))


def test_kernels_that_are_given_make_the_same_model(cloud):
    expected = OneClassSVM(nu=0.2, gamma=0.3, tol=EXACT).fit(cloud).decision_function(cloud)
    called = SlimOneClassSVM(nu=0.2, kernel=gram, tol=EXACT).fit(cloud)
    assert_same_scores(called.decision_function(cloud), expected)
    K = gram(cloud, cloud)
    assert_same_scores(SlimOneClassSVM(nu=0.2, kernel="precomputed", tol=EXACT).fit(K).decision_function(K), expected)


@pytest.mark.parametrize("nu", [0.01, 0.3, 0.9])
def test_the_optimality_conditions_hold(nu, cloud):
    """0 <= a <= w, sum a = nu sum w; a is 0 where the score is above 0 and w where it is below."""
    weights = np.random.default_rng(2).uniform(0.5, 2, len(cloud))
    K = gram(cloud, cloud)
    found = SlimOneClassSVM(nu=nu, kernel="precomputed", tol=EXACT).fit(K, sample_weight=weights)
    dual = np.zeros(len(cloud))
    dual[found.model_.points.ravel()] = found.dual_coef_.ravel()
    scores = found.decision_function(K)
    np.testing.assert_allclose(dual.sum(), nu * weights.sum(), rtol=1e-12)
    assert (dual >= 0).all()
    assert (dual <= weights * (1 + 1e-12)).all()
    np.testing.assert_allclose(dual[scores > 1e-5], 0, atol=1e-12)
    np.testing.assert_allclose(dual[scores < -1e-5], weights[scores < -1e-5], rtol=1e-12)


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_nu_bounds_the_share_of_novel_rows_and_of_support_vectors(nu, cloud):
    found = SlimOneClassSVM(nu=nu, gamma=0.3, tol=EXACT).fit(cloud)
    assert (found.decision_function(cloud) < -1e-6).mean() <= nu
    assert len(found.support_vectors_) >= nu * len(cloud)


def test_whole_weights_are_repeated_rows(cloud):
    weights = np.random.default_rng(0).integers(0, 3, len(cloud))
    settings = {"gamma": 0.3, "nu": 0.2, "tol": EXACT}
    weighted = SlimOneClassSVM(**settings).fit(cloud, sample_weight=weights)
    repeated = SlimOneClassSVM(**settings).fit(np.repeat(cloud, weights, axis=0))
    assert_same_scores(weighted.decision_function(cloud), repeated.decision_function(cloud))


@pytest.mark.parametrize("reducer", REAL_VALUED)
def test_every_reducer_of_values_keeps_to_a_budget(reducer, cloud):
    small = SlimOneClassSVM(12, nu=0.3, gamma=0.3, reducer=reducer, random_state=0).fit(cloud)
    assert len(small.support_vectors_) <= 12
    assert set(small.predict(cloud)) <= {-1, 1}
    assert all(np.isfinite(step.error) for step in small.path_)


def test_a_small_model_finds_what_the_full_one_finds():
    """One digit in, the others out."""
    X, y = load_digits(return_X_y=True)
    rows = X[y == 3][:120]
    full = SlimOneClassSVM(nu=0.1, gamma=0.001).fit(rows)
    small = SlimOneClassSVM(16, nu=0.1, gamma=0.001, random_state=0).fit(rows)
    areas = [roc_auc_score(y == 3, model.decision_function(X)) for model in (full, small)]
    assert areas[0] > 0.95
    assert areas[1] > areas[0] - 0.02


def test_labels_are_ignored(cloud):
    """As scikit-learn's own estimators without labels do."""
    with_labels = SlimOneClassSVM().fit(cloud, np.arange(len(cloud)))
    np.testing.assert_array_equal(
        with_labels.decision_function(cloud), SlimOneClassSVM().fit(cloud).decision_function(cloud)
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nu": 0.0}, "nu must be a share"),
        ({"nu": 1.01}, "nu must be a share"),
        ({"nu": -0.5}, "nu must be a share"),
        ({"nu": np.nan}, "nu must be a share"),
        ({"nu": "half"}, "nu must be a share"),
        ({"trainer": None, "budget": 4}, "novelty detection has none"),
        ({"trainer": "pegasos"}, "for classes; for novelty there are"),
        ({"reducer": "slant", "budget": 4}, "for classes; for novelty there are"),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_refused(settings, words, cloud):
    estimator = SlimOneClassSVM(**settings)
    with pytest.raises(ValueError, match=words):
        estimator.fit(cloud)
    assert not hasattr(estimator, "model_")
