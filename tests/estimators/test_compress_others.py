"""compress: regressors, novelty detectors, models in wrappers, rows without labels, no rows, and many classes."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVR, OneClassSVM

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress
from slimsvm.estimators.svc import LAZY_CLASSES
from slimsvm.goals import Novelty, OneVsOne, OneVsRest, Regression
from slimsvm.reducers import REDUCERS, Slim

pytestmark = pytest.mark.usefixtures("quick_slim")

SHRINK = partial(compress, budget=12, random_state=0)
#: the default reducer with all its steps
THOROUGH = Slim()


@pytest.fixture(scope="module")
def friedman():
    """Rows and targets to train on, and others."""
    X, y = make_friedman1(600, n_features=5, noise=0.3, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X / 16, y


REGRESSORS = {
    "SVR": SVR(C=30.0, gamma=1.0),
    "NuSVR": NuSVR(C=30.0, gamma=1.0),
    "KernelRidge": KernelRidge(alpha=0.05, kernel="rbf", gamma=1.0),
    "GaussianProcess": GaussianProcessRegressor(10.0 * RBF(0.7), alpha=0.5, normalize_y=True, optimizer=None),
    "SlimSVR": SlimSVR(C=30.0, gamma=1.0),
}


# Regressors and novelty detectors


@pytest.mark.parametrize(
    ("name", "given"), [*((name, "rows") for name in REGRESSORS), ("SVR", "targets"), ("NuSVR", "nothing")]
)
def test_regressors_are_shrunk_with_targets_without_them_and_without_rows(name, given, friedman):
    X, y, X_test, y_test = friedman
    model = clone(REGRESSORS[name]).fit(X, y)
    small = SHRINK(model, *{"targets": (X, y), "rows": (X,), "nothing": ()}[given], reducer=THOROUGH)
    assert type(small) is SlimSVR
    assert small.support_vectors_.shape[0] <= 12
    assert isinstance(small.goal_, Regression)
    assert small.goal_.labelled
    assert (
        small.score(X_test, y_test) > model.score(X_test, y_test) - {"targets": 0.02, "rows": 0.02, "nothing": 0.04}[given]
    )
    assert pickle.loads(pickle.dumps(small)).predict(X_test[:3]).shape == (3,)
    if given != "targets":  # the errors are differences to the full model
        assert small.path_.errors[-1] < 0.03


@pytest.mark.parametrize("name", REGRESSORS)
def test_without_a_budget_a_regressor_is_the_same_function(name, friedman):
    X, y, X_test, _ = friedman
    model = clone(REGRESSORS[name]).fit(X, y)
    for same in (compress(model, X, y), compress(model)):
        np.testing.assert_allclose(same.predict(X_test), model.predict(X_test), atol=1e-4)
        assert same.path_ is None


def test_a_tolerance_without_targets_is_of_the_distance_to_the_full_model(friedman):
    X, y, X_test, _ = friedman
    model = clone(REGRESSORS["SVR"]).fit(X, y)
    small = compress(model, X, tolerance=0.01, random_state=0)
    full = model.predict(X_test)
    assert small.support_vectors_.shape[0] < 40
    assert np.mean((small.predict(X_test) - full) ** 2) < 0.03 * full.var()


def test_a_regressor_that_is_followed_needs_no_regularisation(friedman):
    """With a C that stands for much regularisation, as a model of unknown C may have."""
    X, y, X_test, _ = friedman
    model = clone(REGRESSORS["SVR"]).fit(X, y)
    strict = compress(model, X, budget=20, reducer=Slim(C=1e-3), random_state=0)
    held = compress(model, X, budget=20, reducer=Slim(C=1e-3, decay=0.1), random_state=0)
    off = [np.mean((small.predict(X_test) - model.predict(X_test)) ** 2) for small in (strict, held)]
    assert off[0] < 0.1 * off[1]


@pytest.mark.parametrize("reducer", [name for name, kind in REDUCERS.items() if kind.real_valued])
def test_reducers_for_values_shrink_regressors(reducer, friedman):
    X, y, X_test, y_test = friedman
    model = clone(REGRESSORS["SVR"]).fit(X, y)
    small = compress(model, X, y, budget=40, reducer=reducer, random_state=0)
    assert small.support_vectors_.shape[0] <= 40
    assert small.score(X_test, y_test) > (0.5 if reducer != "prune" else -np.inf)


def test_reducers_for_classes_are_refused(friedman):
    X, y, *_ = friedman
    with pytest.raises(ValueError, match="is a method for classes; for regression there are"):
        compress(SVR().fit(X, y), X, y, budget=5, reducer="slant-aggressive")


@pytest.mark.parametrize("bad", ["text", np.inf], ids=["strings", "infinite"])
def test_targets_that_are_no_numbers_are_refused(bad, friedman):
    X, y, *_ = friedman
    targets = y.astype(object)
    targets[3] = bad
    with pytest.raises(ValueError, match=r"needs numbers|infinity"):
        compress(SVR().fit(X, y), X, targets.tolist(), budget=5)


@pytest.mark.parametrize("given", ["rows", "nothing"])
def test_novelty_detectors_are_shrunk(given, digits):
    X, y = digits
    known = y == 3
    model = OneClassSVM(nu=0.2).fit(X[known])
    small = compress(model, *([X[known]] if given == "rows" else []), budget=16, random_state=0)
    assert type(small) is SlimOneClassSVM
    assert isinstance(small.goal_, Novelty)
    assert (small.nu, small.goal_.nu) == (0.2, 0.2)
    full, ours = (roc_auc_score(known, each.decision_function(X)) for each in (model, small))
    assert ours > full - 0.03
    np.testing.assert_allclose(compress(model).score_samples(X), model.score_samples(X), atol=1e-6)


# Rows without labels, and no rows


def test_classifiers_follow_their_own_predictions(iris):
    X, y = iris
    model = SVC().fit(X, y)
    by_rows, by_nothing = SHRINK(model, X), SHRINK(model)
    labelled = SHRINK(model, X, model.predict(X))
    np.testing.assert_array_equal(by_rows.decision_function(X), labelled.decision_function(X))
    for small in (by_rows, by_nothing):
        assert (small.predict(X) == model.predict(X)).mean() > 0.95


def test_sparse_support_vectors_stand_for_rows(digits):
    X, y = digits
    model = SVC().fit(csr_array(X), y)
    small = compress(model, budget=20, random_state=0)
    assert small.score(csr_array(X), y) > 0.9


def test_labels_or_weights_without_rows_are_refused(iris):
    X, y = iris
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="belong to rows, but X is None"):
        compress(model, None, y)
    with pytest.raises(ValueError, match="belong to rows, but X is None"):
        compress(model, sample_weight=np.ones(150))


def test_kernels_without_rows_between_rows_need_rows(iris):
    X, y = iris
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match=r"precomputed kernel cannot be shrunk without rows.*give X"):
        compress(model, budget=5)


# Wrappers


def test_a_pipeline_with_a_column_transformer(friedman):
    X, y, X_test, y_test = friedman
    columns = ColumnTransformer([("scaled", StandardScaler(), [0, 1, 2]), ("same", "passthrough", [3, 4])])
    model = Pipeline([("columns", columns), ("nothing", None), ("svr", SVR(C=10.0))]).fit(X, y)
    small = SHRINK(model, X, y)
    assert [name for name, _ in small.steps] == ["columns", "nothing", "svr"]
    assert small.steps[0][1] is model.steps[0][1]
    assert type(small[-1]) is SlimSVR
    assert small.score(X_test, y_test) > model.score(X_test, y_test) - 0.05
    assert SHRINK(model).score(X_test, y_test) > 0.8


def test_names_of_features_are_checked_by_wrappers_too(friedman):
    pandas = pytest.importorskip("pandas")
    X, y, *_ = friedman
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), SVR()).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        SHRINK(model, frame[list("edcba")], y)
    assert SHRINK(model, frame, y).feature_names_in_.tolist() == list("abcde")


@pytest.mark.parametrize("search", [partial(GridSearchCV), partial(RandomizedSearchCV, n_iter=2, random_state=0)])
def test_of_a_search_the_best_estimator_is_shrunk(search, iris):
    X, y = iris
    model = search(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 10.0]}, cv=3).fit(X, y)
    small = SHRINK(model, X, y)
    assert type(small) is Pipeline
    assert model.best_params_["svc__C"] == small[-1].C
    assert small.score(X, y) > 0.9


def test_a_search_without_a_best_estimator_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="refit=False and no best_estimator_"):
        compress(GridSearchCV(SVC(), {"C": [1.0]}, cv=3, refit=False).fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        compress(GridSearchCV(SVC(), {"C": [1.0]}), X, y)


@pytest.mark.parametrize("given", ["targets", "rows", "nothing"])
def test_the_transformer_of_targets_is_kept(given, friedman):
    X, y, X_test, y_test = friedman
    inner = make_pipeline(MinMaxScaler(), SVR(C=10.0, epsilon=0.01))
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, 1e4 * y)
    small = SHRINK(model, *{"targets": (X, 1e4 * y), "rows": (X,), "nothing": ()}[given])
    assert type(small) is TransformedTargetRegressor
    assert small.transformer_ is model.transformer_
    assert small.regressor_[-1].support_vectors_.shape[0] <= 12
    assert small.score(X_test, 1e4 * y_test) > model.score(X_test, 1e4 * y_test) - 0.05
    assert isinstance(model.regressor_[-1], SVR)
    assert clone(small).fit(X, 1e4 * y).regressor_[-1].support_vectors_.shape[0] <= 12


def test_functions_of_targets_are_kept(friedman):
    X, y, X_test, y_test = friedman
    model = TransformedTargetRegressor(SVR(C=10.0), func=np.log1p, inverse_func=np.expm1).fit(X, y)
    assert SHRINK(model, X, y).score(X_test, y_test) > model.score(X_test, y_test) - 0.06
    with pytest.raises(NotFittedError):
        compress(TransformedTargetRegressor(SVR()), X, y)


# What cannot be kept


def test_what_cannot_be_kept_is_said_once_with_what_to_do(iris):
    X, y = iris
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = make_pipeline(StandardScaler(), SVC(probability=True, decision_function_shape="ovo")).fit(X, y)
    with pytest.warns(UserWarning, match="is not kept") as caught:
        small = compress(model, X, y, budget=5, reducer="spsvm", random_state=0)
    assert len(caught) == 1
    assert "probability=True is not kept" in str(caught[0].message)
    assert "give compress calibration='sigmoid'" in str(caught[0].message)
    assert small.decision_function(X).shape == (150, 3)  # of pairs, as many as classes here
    assert small[-1].decision_function_shape == "ovo"


def test_probabilities_of_a_slimsvc_are_lost_with_a_word(iris):
    X, y = iris
    with pytest.warns(UserWarning, match="calibration='sigmoid' is not kept"):
        small = SHRINK(SlimSVC(calibration="sigmoid").fit(X, y), X, y)
    assert not hasattr(small, "predict_proba")


# Many classes


@pytest.mark.parametrize(("multiclass", "outputs"), [(None, 5), ("ovr", 5), ("ovo", 10), ("dag", 10)])
def test_outputs_of_many_classes(multiclass, outputs, digits):
    X, y = digits
    model = SVC(C=10.0).fit(X[::2], y[::2])
    small = compress(model, X[::2], y[::2], budget=20, multiclass=multiclass, random_state=0)
    assert small.model_.bias.size == outputs
    assert small.goal_.name == (multiclass or "ovr")
    assert small.score(X[1::2], y[1::2]) > 0.94
    assert small.decision_function(X[:3]).shape == (3, 5)
    np.testing.assert_array_equal(small.decision_function(X).argmax(axis=1) == small.predict(X), True)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "dag"])
def test_the_outputs_of_a_slimsvc_can_be_chosen(multiclass, digits):
    X, y = digits
    goal = {"ovr": OneVsRest, "ovo": OneVsOne}.get(multiclass)
    for more in ({}, {"budget": 12, "reducer": "spsvm"}, {"budget": 20, "trainer": None}):
        model = SlimSVC(C=10.0, multiclass=multiclass, random_state=0, **more).fit(X[::2], y[::2])
        assert model.goal_.name == multiclass
        assert goal is None or type(model.goal_) is goal
        assert model.score(X[1::2], y[1::2]) > 0.94


@pytest.mark.parametrize(
    "kernel", ["rbf", "chi2", "precomputed", rbf_kernel], ids=["rbf", "chi2", "precomputed", "function"]
)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_dag_computes_the_outputs_that_it_comes_to(kernel, sparse, iris):
    X, y = iris
    rows = X @ X.T if kernel == "precomputed" else csr_array(X) if sparse else X
    model = SlimSVC(9, kernel=kernel, multiclass="dag", reducer="spsvm", random_state=0).fit(rows, y)
    np.testing.assert_array_equal(model._walked(rows), model.goal_.decode(model.model_(rows)))
    assert model._walked(rows[:1]).shape == (1,)


@pytest.mark.parametrize("device", ["cpu", "array_api_strict"])
def test_a_dag_of_many_classes_predicts_by_these_outputs_on_the_host(device, monkeypatch):
    """A device has all outputs of a row in one product."""
    y = np.repeat(np.arange(LAZY_CLASSES), 2)
    X = np.random.default_rng(0).normal(size=(LAZY_CLASSES, 4))[y]
    settings = {"multiclass": "dag", "trainer": None, "reducer": "rsvm", "random_state": 0}
    model = SlimSVC(LAZY_CLASSES, kernel="linear", device=device, **settings).fit(X, y)
    expected = model.classes_[model.goal_.decode(model.model_(X))]
    monkeypatch.setattr(model, "_read" if device == "cpu" else "_walked", None)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_a_full_model_that_is_kept_has_its_own_outputs(iris):
    X, y = iris
    model = SVC(break_ties=True).fit(X, y)
    with pytest.warns(UserWarning, match="is not below"):
        small = compress(model, X, y, budget=1000, multiclass="ovr")
    assert small.goal_ == OneVsOne(3, break_ties=True)
    np.testing.assert_allclose(small.decision_function(X), model.decision_function(X), atol=1e-6)


def test_reducers_of_full_models_keep_pairs(iris):
    X, y = iris
    model = SVC().fit(X, y)
    for reducer in ("slant-aggressive", Slim(target="slant")):
        assert compress(model, X, y, budget=6, reducer=reducer, random_state=0).goal_ == OneVsOne(3)
        with pytest.raises(ValueError, match=r"for multiclass='ovr' give one of.*spsvm"):
            compress(model, X, y, budget=6, reducer=reducer, multiclass="ovr")


def test_outputs_that_cannot_be_are_refused(iris):
    X, y = iris
    model = SlimSVC(multiclass="ovr").fit(X, y)
    with pytest.raises(ValueError, match="one output for each class, but multiclass='dag' needs one for each pair"):
        compress(model, X, y, budget=6, multiclass="dag")
    with pytest.raises(ValueError, match=r"unknown multiclass 'all'; there are \['dag', 'ovo', 'ovr'\]"):
        compress(model, X, y, multiclass="all")
    with pytest.raises(ValueError, match=r"unknown multiclass 'all'; there are \['dag', 'ovo', 'ovr'\]"):
        SlimSVC(multiclass="all").fit(X, y)
    with pytest.raises(ValueError, match=r"needs? a full|without the full model"):
        SlimSVC(6, trainer=None, reducer=Slim(target="slant")).fit(X, y)


def test_two_classes_have_one_output_whatever_is_asked(iris):
    X, y = iris
    X, y = X[y > 0], y[y > 0]
    model = SVC().fit(X, y)
    same = [SHRINK(model, X, y, multiclass=name).decision_function(X) for name in (None, "ovr", "ovo", "dag")]
    for scores in same:
        np.testing.assert_array_equal(scores, same[0])


def test_a_tolerance_is_of_the_full_models_own_error(digits):
    X, y = digits
    model = SVC(C=10.0).fit(X[::2], y[::2])
    small = compress(model, X[1::2], y[1::2], tolerance=0.02, random_state=0)
    assert small.goal_.name == "ovr"
    assert small.support_vectors_.shape[0] < 0.5 * model.support_.size


def test_diabetes_by_a_file_of_libsvm(tmp_path):
    from slimsvm import load

    X, y = load_diabetes(return_X_y=True)
    model = SVR(C=100.0).fit(X, y)
    lines = ["svm_type epsilon_svr", "kernel_type rbf", f"gamma {float(model._gamma)!r}", f"total_sv {model.support_.size}"]
    lines += [f"rho {-float(model.intercept_[0])!r}", "SV"]
    for coef, row in zip(model.dual_coef_.ravel(), model.support_vectors_, strict=True):
        lines.append(f"{float(coef)!r} " + " ".join(f"{f}:{float(v)!r}" for f, v in enumerate(row, 1)))
    (tmp_path / "m").write_text("\n".join(lines))
    small = SHRINK(load(tmp_path / "m"), reducer=THOROUGH)
    assert np.corrcoef(small.predict(X), model.predict(X))[0, 1] > 0.98
