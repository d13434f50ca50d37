"""A fit that fails leaves the estimator as it was; Ctrl-C leaves it as it was or with the best model so far."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import Interrupted, SlimOneClassSVM, SlimSVC, SlimSVR, compress
from slimsvm.estimators import compress_within, fit_reporting
from slimsvm.model import Expansion, Status
from slimsvm.run import Run
from slimsvm.trainers import SMO

pytestmark = pytest.mark.usefixtures("quick_slim")


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


def stop_shrinking(count):
    """Return a report that raises KeyboardInterrupt when so many small models are there."""
    seen = []

    def report(phase, _):
        if phase == "shrink":
            seen.append(phase)
            if len(seen) == count:
                raise KeyboardInterrupt

    return report


def stop_training(count):
    """Return a report that raises KeyboardInterrupt after so many rounds of training."""
    seen = []

    def report(phase, _):
        if phase == "train":
            seen.append(phase)
            if len(seen) > count:
                raise KeyboardInterrupt

    return report


IN_ROUNDS = SMO(working_set=20)
EXACT = {
    "classes": SlimSVC(C=100.0, trainer=IN_ROUNDS),
    "values": SlimSVR(C=100.0, trainer=IN_ROUNDS),
    "novelty": SlimOneClassSVM(trainer=IN_ROUNDS),
}


@pytest.mark.parametrize("name", EXACT)
def test_ctrl_c_while_training_keeps_the_full_model_so_far(name, moons, tmp_path):
    X, y = moons
    model = clone(EXACT[name]).set_params(checkpoint=tmp_path / "state", tol=1e-6)
    with pytest.raises(Interrupted) as caught:
        fit_reporting(model, X, y, report=stop_training(2))
    assert caught.value.best is model
    assert model.status_ is Status.INTERRUPTED
    assert model.model_.size > 0
    assert model.predict(X).shape == y.shape
    whole = clone(EXACT[name]).set_params(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).model_(X), whole.model_(X))  # from the checkpoint


def test_the_bias_of_a_model_so_far_is_that_of_its_coefficients(moons):
    """Also where Ctrl-C comes in the rounds of active rows."""
    X, y = moons
    for rounds in range(1, 12):
        model = SlimSVC(C=100.0, gamma=1.0, trainer=SMO(working_set=8))
        with pytest.raises(Interrupted):
            fit_reporting(model, X, y, report=stop_training(rounds))
        free = (np.abs(model.dual_coef_) < 100.0).ravel()
        outputs = model.decision_function(model.support_vectors_[free]) - model.intercept_
        targets = np.sign(model.dual_coef_.ravel()[free])
        assert model.intercept_ == pytest.approx((targets - outputs).mean())


@pytest.mark.parametrize("settings", [{"budget": 5}, {"calibration": "sigmoid"}], ids=str)
def test_ctrl_c_while_training_leaves_the_estimator_as_it_was_where_more_was_to_follow(settings, moons):
    model = SlimSVC(trainer=IN_ROUNDS, random_state=0, **settings)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        fit_reporting(model, *moons, report=stop_training(2))
    assert vars(model) == before


def test_ctrl_c_while_one_of_several_outputs_is_trained_leaves_the_estimator_as_it_was(moons):
    X, y = moons
    model = SlimSVC(trainer=IN_ROUNDS, multiclass="ovr")
    with pytest.raises(KeyboardInterrupt):
        fit_reporting(model, X, y + (X[:, 0] > 1), report=stop_training(2))
    assert not hasattr(model, "model_")


SELECTING = {
    "budget": {"budget": 12},
    "tolerance": {"tolerance": 0.0},
    "both": {"budget": 12, "tolerance": 0.0},
    "no full model": {"budget": 12, "trainer": None},
}


@pytest.mark.parametrize("chosen", SELECTING)
def test_ctrl_c_while_shrinking_keeps_the_best_so_far_and_ends_the_call(chosen, moons):
    X, y = moons
    model = SlimSVC(reducer="spsvm", random_state=0, **SELECTING[chosen])
    with pytest.raises(KeyboardInterrupt) as caught:
        fit_reporting(model, X, y, report=stop_shrinking(4))
    assert isinstance(caught.value, Interrupted)
    assert caught.value.best is model
    assert model.status_ is model.path_.status is Status.INTERRUPTED
    assert model.predict(X).shape == y.shape


def test_ctrl_c_while_shrinking_leaves_the_full_model_where_none_is_within_the_tolerance(moons):
    X, y = moons
    full = SlimSVC(gamma=50.0, random_state=0).fit(X, y)
    model = SlimSVC(gamma=50.0, tolerance=0.0, reducer="spsvm", random_state=0)
    with pytest.raises(Interrupted):
        fit_reporting(model, X, y, report=stop_shrinking(1))
    assert model.model_.size == full.model_.size
    assert model.status_ is Status.INTERRUPTED


def test_compress_hands_the_best_so_far_over_with_the_exception(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    with pytest.raises(KeyboardInterrupt) as caught:
        compress_within(Run(stop_shrinking(4)), pipeline, X, y, 12, None, "spsvm", 0)
    small = caught.value.best
    assert [name for name, _ in small.steps] == ["standardscaler", "svc"]
    assert 0 < small[-1].model_.size < 12
    assert small[-1].status_ is Status.INTERRUPTED
    assert small.predict(X).shape == y.shape


def test_a_model_that_was_interrupted_once_is_compressed_like_any_other(moons):
    X, y = moons
    model = SlimSVC(12, reducer="spsvm", random_state=0)
    with pytest.raises(Interrupted):
        fit_reporting(model, X, y, report=stop_shrinking(6))
    assert compress(model, X, y, budget=2, reducer="spsvm", random_state=0).model_.size <= 2


def test_loops_around_an_interrupted_fit_end(moons):
    class Impatient(SlimSVC):
        def fit(self, X, y):
            return fit_reporting(self, X, y, report=stop_shrinking(2))

    with pytest.raises(KeyboardInterrupt):
        cross_val_score(Impatient(8, reducer="spsvm"), *moons)


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
        with pytest.raises(ValueError, match=f"rows have {wide.shape[1]} features, but the model's points have 100"):
            model(wide)
