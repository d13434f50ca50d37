"""A tolerance of compress: the full model is judged by rows that it has not seen, or by models like it that have not."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

import slimsvm
from slimsvm import SlimSVC, SlimSVR, compress
from slimsvm.estimators.shrink import was_trained_on

pytestmark = pytest.mark.usefixtures("quick_slim")

REFITTED = "full models fitted without the validation rows"
FRESH = "rows that it was not trained on"
GIVEN = "the validation rows given"


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    return StandardScaler().fit_transform(X), y


def judged_by(model):
    return model.path_.allowance.judged


@pytest.mark.parametrize("full", [SVC(C=10.0), SVC(C=10.0, gamma=0.02), NuSVC(nu=0.1), SlimSVC(C=10.0)], ids=str)
def test_the_rows_of_the_training_give_a_small_model(full, cancer):
    small = compress(full.fit(*cancer), *cancer, tolerance=0.02, random_state=0)
    assert small.model_.size <= 16
    assert judged_by(small) == REFITTED
    assert 0.005 < small.path_.allowance.full.error < 0.05  # no error of training rows


def test_three_classes_and_more_are_judged_by_models_of_pairs():
    X, y = load_digits(return_X_y=True)
    small = compress(SVC(C=10.0, gamma=0.001).fit(X[:600], y[:600]), X[:600], y[:600], tolerance=0.05, random_state=0)
    assert small.model_.size < 60
    assert judged_by(small) == REFITTED


@pytest.mark.parametrize(
    ("load", "full"), [(load_breast_cancer, SlimSVC(C=10.0)), (load_wine, SVC(C=10.0))], ids=["cancer", "wine"]
)
def test_compress_of_a_full_model_finds_what_fit_with_a_tolerance_finds(load, full):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    small = compress(full.fit(X, y), X, y, tolerance=0.02, random_state=3)
    fitted = SlimSVC(C=10.0, tolerance=0.02, random_state=3).fit(X, y)
    assert small.path_.n_validation >= 0.95 * y.size  # every row is judged once
    assert small.path_.sizes == fitted.path_.sizes
    assert small.model_.size == fitted.model_.size
    assert small.path_.allowance.full.error == fitted.path_.allowance.full.error


@pytest.mark.parametrize(
    "full",
    [
        SVR(C=10.0),
        NuSVR(C=10.0),
        SlimSVR(C=10.0),
        KernelRidge(alpha=0.1, kernel="rbf"),
        GaussianProcessRegressor(ConstantKernel(10.0) * RBF(3.0) + WhiteKernel(0.1), normalize_y=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regressors_are_fitted_again_with_the_same_kernel(full, friedman):
    X, y = friedman
    small = compress(full.fit(X, y), X, y, tolerance=0.1, random_state=0)
    assert judged_by(small) == REFITTED
    assert small.model_.size < 100
    assert small.path_.allowance.full.error > 0.01


def test_validation_rows_may_be_given_before_the_steps_of_a_pipeline():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(X[:300], y[:300])
    small = compress(model, X[:300], y[:300], tolerance=0.02, X_val=X[300:], y_val=y[300:], random_state=0)
    allowance = small[-1].path_.allowance
    assert allowance.judged == GIVEN
    assert allowance.full.error == pytest.approx(np.mean(model.predict(X[300:]) != y[300:]))
    assert np.mean(small.predict(X[300:]) != y[300:]) <= allowance.limit + 0.01  # refined on all rows afterwards


def test_validation_targets_are_transformed_like_the_others(friedman):
    X, y = friedman
    model = TransformedTargetRegressor(SVR(C=10.0), transformer=StandardScaler()).fit(X[:200], y[:200])
    small = compress(model, X[:200], y[:200], tolerance=0.1, X_val=X[200:], y_val=y[200:], random_state=0)
    allowance = small.regressor_.path_.allowance
    error = np.mean((model.predict(X[200:]) - y[200:]) ** 2)
    assert allowance.judged == GIVEN
    assert allowance.full.error == pytest.approx(error / np.var(y[:200]), rel=0.2)


def test_rows_that_the_model_has_not_seen_judge_it_as_it_is(cancer):
    X, y = cancer
    model = SVC(C=10.0).fit(X[:200], y[:200])
    small = compress(model, X[200:], y[200:], tolerance=0.05, random_state=0)
    assert judged_by(small) == FRESH


def test_a_libsvm_file_does_not_say_how_it_was_trained(cancer, tmp_path):
    X, y = cancer
    slimsvm.export(SlimSVC(C=10.0).fit(X[:300], y[:300]), tmp_path / "m.libsvm")
    model = slimsvm.load(tmp_path / "m.libsvm")
    with pytest.raises(ValueError, match=r"those that trained the model.*X_val and y_val.*or a budget"):
        compress(model, X[:300], y[:300], tolerance=0.02)
    small = compress(model, X[:300], y[:300], tolerance=0.05, X_val=X[300:], y_val=y[300:], random_state=0)
    assert judged_by(small) == GIVEN


def test_without_labels_models_of_the_training_rows_judge_too(cancer):
    X, y = cancer
    small = compress(SVC(C=10.0).fit(X, y), X, tolerance=0.05, random_state=0)
    assert judged_by(small) == REFITTED


def test_weights_count_in_the_models_that_judge(cancer):
    X, y = cancer
    weights = np.where(np.arange(y.size) % 3, 1.0, 0.0)
    model = SVC(C=10.0).fit(X, y, sample_weight=weights)
    small = compress(model, X, y, tolerance=0.05, sample_weight=weights, random_state=0)
    assert judged_by(small) == REFITTED
    assert small.path_.n_validation < y.size * 0.67


def test_the_path_tells_the_full_models_error_and_the_limit(cancer):
    X, y = cancer
    text = repr(SlimSVC(tolerance=0.02, random_state=0).fit(X, y).path_)
    assert "full model 0.0" in text
    assert REFITTED in text
    assert "less a standard error" in text


@pytest.mark.parametrize("given", [{"X_val": np.zeros((2, 30))}, {"y_val": [0, 1]}], ids=str)
def test_validation_rows_need_their_labels(given, cancer):
    with pytest.raises(ValueError, match="X_val and y_val belong together"):
        compress(SVC().fit(*cancer), *cancer, tolerance=0.1, **given)


def test_validation_labels_are_those_of_the_model(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match=r"labels .* that the model does not know"):
        compress(SVC().fit(X, y), X, y, tolerance=0.1, X_val=X[:9], y_val=np.full(9, 7))


def test_a_model_has_seen_rows_that_hold_its_support_vectors(cancer):
    X, y = cancer
    model = SVC().fit(X[:300], y[:300])
    expansion = slimsvm.estimators.imported(clone(model).fit(X[:300], y[:300])).model
    assert was_trained_on(expansion, X)
    assert not was_trained_on(expansion, X[300:])
