"""A fit that fails or is interrupted leaves the estimator as it was."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_moons

from slimsvm import SlimSVC
from slimsvm.estimators import fit_reporting
from slimsvm.model import Expansion


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.25, random_state=0)


def interrupt(*_):
    raise KeyboardInterrupt


def sparse_rows(features):
    rng = np.random.default_rng(0)
    return csr_array((np.ones(40), (np.arange(40), rng.integers(0, features, 40))), shape=(40, features))


def test_a_refused_fit_on_wider_rows_leaves_the_first_model():
    narrow, wide, y = sparse_rows(100), sparse_rows(10**6), np.arange(40) % 2
    model = SlimSVC(gamma=1.0).fit(narrow, y)
    before, scores = dict(vars(model)), model.decision_function(narrow)
    with pytest.raises(ValueError, match="number of classes"):
        model.fit(wide, np.zeros(40))
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(narrow), scores)
    with pytest.raises(ValueError, match="1000000 features"):
        model.predict(wide)


@pytest.mark.parametrize("settings", [{}, {"budget": 5}, {"tolerance": 0.1}], ids=["full", "budget", "tolerance"])
def test_an_interrupted_fit_leaves_the_first_model(settings, moons):
    X, y = moons
    model = SlimSVC(random_state=0, **settings).fit(X, y)
    before, scores = dict(vars(model)), model.decision_function(X)

    with pytest.raises(KeyboardInterrupt):
        fit_reporting(model, np.hstack([X, X]), y, report=interrupt)
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_an_interrupted_first_fit_leaves_the_estimator_unfitted(moons):
    model = SlimSVC()
    before = dict(vars(model))

    with pytest.raises(KeyboardInterrupt):
        fit_reporting(model, *moons, report=interrupt)
    assert vars(model) == before


def test_a_second_fit_forgets_the_names_of_the_first(moons):
    pandas = pytest.importorskip("pandas")
    X, y = moons
    model = SlimSVC().fit(pandas.DataFrame(X, columns=["a", "b"]), y)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_widths_are_compared_before_products():
    model = SlimSVC(gamma=1.0).fit(sparse_rows(100), np.arange(40) % 2).model_
    assert isinstance(model, Expansion)
    for wide in (sparse_rows(10**6), np.ones((2, 101))):
        with pytest.raises(ValueError, match=f"rows have {wide.shape[1]} features, and the model's points have 100"):
            model(wide)
