"""compress: a fitted classifier as a small model, and the full one unchanged. Others are in test_compress_others.py."""

import copy
import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from slimsvm import SlimSVC, compress
from slimsvm.kernels import Chi2, Laplacian
from slimsvm.model import Status
from slimsvm.reducers import REDUCERS
from slimsvm.selection.problem import Problem

pytestmark = pytest.mark.usefixtures("quick_slim")


def own_kernel(A, B):
    return rbf_kernel(A, B, gamma=0.3) + 0.1


SETTINGS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": "scale"},
    "rbf auto": {"kernel": "rbf", "gamma": "auto"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1},
    "laplacian": {"kernel": laplacian_kernel},
    "chi2": {"kernel": chi2_kernel},
    "callable": {"kernel": own_kernel},
    "precomputed": {"kernel": "precomputed"},
}


def kernels(*without):
    return [name for name in SETTINGS if name not in without]


def scaled(load, **settings):
    X, y = load(return_X_y=True, **settings)
    return MinMaxScaler().fit_transform(X)[:360], y[:360]


@pytest.fixture(scope="module")
def data():
    """Rows without negative entries: of two classes, of three, and of five."""
    return {2: scaled(load_breast_cancer), 3: scaled(load_wine), 5: scaled(load_digits, n_class=5)}


def reducer_for(name):
    """One that works with the kernel: slim moves points, which needs gradients."""
    return "slant-aggressive" if name in ("callable", "precomputed") else "slim"


def fitted(kind, name, X, y, **more):
    """The model and the rows as it takes them."""
    rows = own_kernel(X, X) if name == "precomputed" else X
    if kind is NuSVC:
        more = {"nu": 0.1, **more}
    return kind(**SETTINGS[name], **more).fit(rows, y), rows


def assert_same_outputs(small, model, X):
    """The columns are SVC's "ovo", the scores its "ovr", and so are the predictions."""
    shape = model.decision_function_shape
    columns = model.set_params(decision_function_shape="ovo").decision_function(X)
    scores = model.set_params(decision_function_shape="ovr").decision_function(X)
    model.set_params(decision_function_shape=shape)
    np.testing.assert_allclose(small.model_(X), columns.reshape(X.shape[0], -1), rtol=0, atol=1e-8)
    np.testing.assert_allclose(small.decision_function(X), scores, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(small.predict(X), model.predict(X))


# Without a budget: the same model in another form


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_without_a_budget_the_outputs_are_the_models(kind, name, classes, data):
    X, y = data[classes]
    model, rows = fitted(kind, name, X, y)
    small = compress(model, rows, y)
    assert isinstance(small, SlimSVC)
    assert_same_outputs(small, model, rows)
    np.testing.assert_array_equal(small.classes_, model.classes_)
    assert small.support_vectors_.shape[0] == model.support_.size
    assert small.path_ is None


# scikit-learn's chi2_kernel takes dense rows only, its SVC dense precomputed matrices only
@pytest.mark.parametrize("name", kernels("chi2", "precomputed"))
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
def test_models_of_sparse_rows_are_the_same(name, classes, sparse, data):
    X, y = data[classes]
    model = SVC(**SETTINGS[name]).fit(sparse(X), y)
    small = compress(model, sparse(X), y)
    assert_same_outputs(small, model, sparse(X))
    np.testing.assert_allclose(small.decision_function(X), model.decision_function(sparse(X)), atol=1e-8)


def test_models_of_labels_with_names_keep_them(data):
    X, y = data[3]
    names = np.array(["low", "high", "mid"])[y]
    model = SVC().fit(X, names)
    for budget in (None, 20):
        small = compress(model, X, names, budget=budget, random_state=0)
        np.testing.assert_array_equal(small.classes_, model.classes_)
        assert (small.predict(X) == names).mean() > 0.9


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("callable", "precomputed")])
def test_a_slimsvc_is_the_same_model_again(name, data):
    X, y = data[3]
    settings = SETTINGS[name] if not callable(SETTINGS[name]["kernel"]) else {"kernel": name}
    model = SlimSVC(**settings).fit(X, y)
    small = compress(model, X, y)
    np.testing.assert_array_equal(small.decision_function(X), model.decision_function(X))
    small = compress(model, X, y, budget=20, reducer=reducer_for(name), random_state=0)
    size = small.support_vectors_.shape[0]
    assert 1 <= size <= 30
    if size > 1:
        assert (
            compress(small, X, y, budget=size - 1, reducer=reducer_for(name), random_state=0).support_vectors_.shape[0]
            < size
        )


def test_ties_are_broken_as_in_the_model():
    rng = np.random.default_rng(0)
    X, y, elsewhere = rng.normal(size=(200, 2)), rng.integers(0, 5, 200), rng.normal(size=(3000, 2))
    model = SVC(break_ties=True, gamma=1.0).fit(X, y)
    small = compress(model, X, y)
    np.testing.assert_array_equal(small.predict(elsewhere), model.predict(elsewhere))


# With a budget


@pytest.mark.parametrize(
    ("kind", "classes", "reducer"),
    [*product([SVC, NuSVC, SlimSVC], [2, 3, 5], [SlimSVC().reducer]), *product([SVC], [3], REDUCERS)],
)
def test_a_budget_is_kept_and_the_small_model_is_nearly_as_good(kind, classes, reducer, data):
    X, y = data[classes]
    model, _ = fitted(kind, "rbf", X, y)
    full = model.support_vectors_.shape[0]
    budget = min(30, full - 1)
    small = compress(model, X, y, budget=budget, reducer=reducer, random_state=0)
    assert 0 < small.support_vectors_.shape[0] <= budget
    assert max(small.path_.sizes) <= budget
    if reducer != "prune":  # a yardstick, which promises nothing
        assert small.score(X, y) >= model.score(X, y) - 0.25
    assert small.n_kernel_evals_ > 0


@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_every_kernel_can_be_shrunk(name, classes, data):
    X, y = data[classes]
    model, rows = fitted(SVC, name, X, y)
    small = compress(model, rows, y, budget=15, reducer=reducer_for(name), random_state=0)
    assert 0 < small.support_vectors_.shape[0] <= 15
    assert small.score(rows, y) >= model.score(rows, y) - 0.15


@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
def test_sparse_and_dense_rows_are_shrunk_to_the_same_model(sparse, data):
    X, y = data[5]
    # slim's many steps would carry the last digits of a product far
    shrink = partial(compress, budget=20, reducer="slant-aggressive", random_state=0)
    dense = shrink(SVC().fit(X, y), X, y)
    small = shrink(SVC().fit(sparse(X), y), sparse(X), y)
    np.testing.assert_allclose(small.decision_function(sparse(X)), dense.decision_function(X), atol=1e-4)


def test_a_fraction_is_of_the_models_support_vectors(data):
    X, y = data[2]
    model = SVC().fit(X, y)
    small = compress(model, X, y, budget=0.25, random_state=0)
    assert small.support_vectors_.shape[0] <= round(0.25 * model.support_.size)


def test_a_tolerance_keeps_a_model_within_it(data):
    X, y = data[2]
    learn, fresh = np.arange(0, y.size, 2), np.arange(1, y.size, 2)
    model = SVC(C=10.0).fit(X[learn], y[learn])
    sizes = []
    for tolerance in (0.03, 0.05, 0.2):
        small = compress(model, X[fresh], y[fresh], tolerance=tolerance, reducer="spsvm", random_state=0)
        sizes.append(small.support_vectors_.shape[0])
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < model.support_.size


def test_a_budget_that_the_model_fits_warns_and_keeps_it(data):
    X, y = data[2]
    model = SVC().fit(X, y)
    with pytest.warns(UserWarning, match="is not below"):
        small = compress(model, X, y, budget=model.support_.size)
    assert_same_outputs(small, model, X)


def test_a_random_state_makes_results_repeatable(data):
    X, y = data[3]
    model = SVC().fit(X, y)
    first, again = (compress(model, X, y, budget=10, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(first.decision_function(X), again.decision_function(X))


@pytest.mark.parametrize("absent", [4, 0])
def test_a_class_without_rows_keeps_its_outputs_and_does_not_hinder_holding_out(absent, data, monkeypatch):
    X, y = data[5]
    some = y != absent
    splits, split = [], Problem.split
    monkeypatch.setattr(Problem, "split", lambda self: splits.append(split(self)) or splits[-1])
    small = compress(SVC().fit(X, y), X[some], y[some], budget=20, random_state=0)
    np.testing.assert_array_equal(small.classes_, np.arange(5))
    assert small.score(X[some], y[some]) > 0.8
    assert all(np.intersect1d(learn, judge).size == 0 for learn, judge in splits)


# What comes back


def test_what_a_nusvc_becomes_can_be_fitted_again(data):
    X, y = data[2]
    small = compress(NuSVC(nu=0.2).fit(X, y), X, y, budget=12, random_state=0)
    assert clone(small).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("name", kernels("callable", "precomputed"))
def test_the_small_model_is_an_estimator_with_the_parameters_of_the_large_one(name, data):
    X, y = data[2]
    model, _ = fitted(SVC, name, X, y, C=2.0, class_weight="balanced", tol=1e-2)
    small = compress(model, X, y, budget=4, reducer=reducer_for(name), random_state=1)
    assert (small.budget, small.C, small.tol, small.class_weight) == (4, 2.0, 1e-2, "balanced")
    again = clone(small).fit(X, y)
    assert again.support_vectors_.shape[0] <= 4
    refitted = clone(small).set_params(budget=None).fit(X, y)
    np.testing.assert_allclose(refitted.decision_function(X), model.decision_function(X), atol=0.05)


def test_functions_of_scikit_learn_become_kernels_of_ours(data):
    X, y = data[2]
    laplacian, chi2 = (compress(fitted(SVC, name, X, y)[0], X, y) for name in ("laplacian", "chi2"))
    assert laplacian.model_.kernel == Laplacian(1 / X.shape[1])
    assert chi2.model_.kernel == Chi2(1.0)
    assert laplacian.get_params()["kernel"] == "laplacian"
    assert chi2.get_params()["kernel"] == "chi2"


def test_the_small_model_can_be_pickled(data):
    X, y = data[3]
    small = compress(SVC().fit(X, y), X, y, budget=10, random_state=0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(small)).predict(X), small.predict(X))


@pytest.mark.parametrize("kind", [SVC, NuSVC, SlimSVC])
@pytest.mark.parametrize("settings", [{}, {"budget": 8}, {"tolerance": 0.1}], ids=str)
@pytest.mark.filterwarnings("ignore:no model of at most")  # after a few steps none may be good enough
def test_the_model_given_is_left_unchanged(kind, settings, data):
    X, y = data[3]
    model, _ = fitted(kind, "rbf", X, y)
    before, outputs, rows = pickle.dumps(model), model.decision_function(X), X.copy()
    compress(model, X, y, random_state=0, **settings)
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(model.decision_function(X), outputs)
    np.testing.assert_array_equal(X, rows)


@pytest.mark.parametrize("budget", [None, 8])
def test_status_and_steps_are_there(budget, data):
    X, y = data[3]
    small = compress(SVC().fit(X, y), X, y, budget=budget, random_state=0)
    assert small.n_iter_ == 0
    assert small.status_ is (Status.CONVERGED if budget is None else small.path_.status)


def test_a_whole_model_has_the_status_of_its_training(data):
    X, y = data[3]
    with pytest.warns(ConvergenceWarning):
        svc = SVC(max_iter=1).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        slim = SlimSVC(max_iter=1).fit(X, y)
    for model in (svc, slim):
        assert compress(model, X, y).status_ is Status.MAX_ITER


# Weights


@pytest.fixture(scope="module")
def rare():
    """Ten rows of a hundred are of class 1, and overlap with the others; one half is to train on."""
    X, y = make_classification(3000, weights=[0.95], flip_y=0.1, class_sep=0.7, random_state=0)
    return X[::2], y[::2], X[1::2], y[1::2]


def recall(model, X, y):
    return (model.predict(X[y == 1]) == 1).mean()


@pytest.mark.parametrize("kind", [SVC, partial(NuSVC, nu=0.15), SlimSVC], ids=["SVC", "NuSVC", "SlimSVC"])
def test_the_recall_of_a_balanced_model_survives(kind, rare):
    X, y, X_test, y_test = rare
    model = kind(class_weight="balanced").fit(X, y)
    small = compress(model, X, y, budget=20, random_state=0)
    assert recall(model, X_test, y_test) > 0.2
    assert recall(small, X_test, y_test) > 0.9 * recall(model, X_test, y_test)


def test_class_weights_are_row_weights(rare):
    X, y, *_ = rare
    shrink = partial(compress, X=X, y=y, budget=6, reducer="slant-aggressive", random_state=0)
    weighted = SVC(class_weight={0: 1.0, 1: 12.0}).fit(X, y)
    plain = copy.copy(weighted).set_params(class_weight=None)
    by_class, by_row = shrink(weighted), shrink(plain, sample_weight=np.where(y, 12.0, 1.0))
    np.testing.assert_allclose(by_row.decision_function(X), by_class.decision_function(X), atol=1e-9)
    assert by_row.path_.errors == by_class.path_.errors
    assert by_row.path_.errors != shrink(plain).path_.errors


def test_balanced_weights_are_those_of_the_rows_given(data):
    """A class without rows, which "balanced" has no weight for, is no hindrance."""
    X, y = data[5]
    some = y != 2
    small = compress(SVC(class_weight="balanced").fit(X, y), X[some], y[some], budget=20, random_state=0)
    assert small.score(X[some], y[some]) > 0.8


def test_rows_of_weight_zero_are_absent(data):
    X, y = data[2]
    model, here = SVC().fit(X, y), np.arange(y.size) % 3 > 0
    shrink = partial(compress, model, budget=6, reducer="slant-aggressive", random_state=0)
    weighted, some = shrink(X=X, y=y, sample_weight=here.astype(float)), shrink(X=X[here], y=y[here])
    np.testing.assert_allclose(weighted.decision_function(X), some.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "words"),
    [(np.full(360, -1.0), "0 or more"), (np.ones(3), "sample_weight"), (np.zeros(360), "zero|classes|weight 0")],
    ids=["negative", "too few", "all zero"],
)
def test_weights_without_a_meaning_are_refused(weights, words, data):
    X, y = data[2]
    with pytest.raises(ValueError, match=words):
        compress(SVC().fit(X, y), X, y, budget=5, sample_weight=weights)


# Names of features


@pytest.fixture(scope="module")
def frame():
    pytest.importorskip("pandas")
    return load_iris(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("kind", [SVC, NuSVC, SlimSVC])
def test_reordered_columns_are_refused(kind, frame):
    X, y = frame
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        compress(model, X[X.columns[::-1]], y, budget=5)
    small = compress(model, X, y, budget=5, reducer="slant-aggressive", random_state=0)
    np.testing.assert_array_equal(small.feature_names_in_, X.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        small.predict(X[X.columns[::-1]])


@pytest.mark.parametrize("scaled", [False, True], ids=["svc", "pipeline"])
def test_missing_names_are_warned_of_once_a_call_and_kept(scaled, frame):
    X, y = frame
    model = (make_pipeline(StandardScaler(), SVC()) if scaled else SVC()).fit(X, y)
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        small = compress(model, X.to_numpy(), y, budget=5, reducer="slant-aggressive", random_state=0)
    assert len(caught) == 1
    np.testing.assert_array_equal(small.feature_names_in_, X.columns)
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        small.predict(X.to_numpy())
    assert len(caught) == 1
    small.predict(X)  # a warning would be an error


# Pipelines


@pytest.mark.parametrize("budget", [None, 15])
@pytest.mark.parametrize("kind", [SVC, NuSVC, SlimSVC])
@pytest.mark.parametrize(
    "before",
    [[StandardScaler()], [StandardScaler(), PCA(5)], ["passthrough"], ["passthrough", StandardScaler()], []],
    ids=lambda before: "-".join(str(step) for step in before) or "nothing",
)
def test_pipelines_keep_their_fitted_transformers(before, kind, budget):
    X, y = load_iris(return_X_y=True)
    X = np.hstack([X, X[:, ::-1] ** 2])
    steps = [(f"step{number}", step) for number, step in enumerate(before)]
    pipeline = Pipeline([*steps, ("svm", NuSVC(nu=0.2) if kind is NuSVC else kind())]).fit(X, y)
    outputs = pipeline.decision_function(X)
    small = compress(pipeline, X, y, budget=budget, random_state=0)
    assert isinstance(small, Pipeline)
    assert [name for name, _ in small.steps] == [name for name, _ in pipeline.steps]
    assert isinstance(small[-1], SlimSVC)
    assert type(pipeline[-1]) is kind
    for ours, theirs in zip(small.steps[:-1], pipeline.steps[:-1], strict=True):
        assert ours[1] is theirs[1]
    if budget is None:
        np.testing.assert_allclose(small.decision_function(X), outputs, atol=1e-8)
    else:
        assert small[-1].support_vectors_.shape[0] <= budget
        assert small.score(X, y) > 0.85
    np.testing.assert_array_equal(pipeline.decision_function(X), outputs)


def test_pipelines_in_pipelines_and_sparse_rows_work(data):
    X, y = data[5]
    pipeline = make_pipeline(MaxAbsScaler(), make_pipeline(MaxAbsScaler(), SVC())).fit(csr_array(X), y)
    small = compress(pipeline, csr_array(X), y)
    np.testing.assert_allclose(small.decision_function(csr_array(X)), pipeline.decision_function(csr_array(X)), atol=1e-8)


# Bad input


@pytest.mark.parametrize("model", [SVC(), NuSVC(), SlimSVC(), make_pipeline(StandardScaler(), SVC())], ids=str)
def test_a_model_that_is_not_fitted_is_refused(model, data):
    with pytest.raises(NotFittedError):
        compress(model, *data[2])


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LinearSVC(), make_pipeline(StandardScaler(), LogisticRegression())], ids=str
)
def test_other_estimators_are_refused_with_what_can_be_given(model, data):
    X, y = data[2]
    with pytest.raises(ValueError, match=r"cannot shrink a (LogisticRegression|LinearSVC); .*SlimSVC.*KernelRidge"):
        compress(model.fit(X, y), X, y)


@pytest.mark.parametrize("model", [None, "svc", SVC], ids=str)
def test_things_that_are_no_estimators_are_refused(model, data):
    with pytest.raises(ValueError, match="cannot shrink"):
        compress(model, *data[2])


@pytest.mark.parametrize("kind", [SVC, SlimSVC])
def test_rows_of_another_width_are_refused(kind, data):
    X, y = data[2]
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="X has 7 features, but SlimSVC is expecting 30 features"):
        compress(model, X[:, :7], y, budget=5)


@pytest.mark.parametrize("strange", [7, -1, "left"])
def test_labels_that_the_model_does_not_know_are_refused(strange, data):
    X, y = data[3]
    model = SVC().fit(X, y)
    labels = y.astype(object) if isinstance(strange, str) else y.copy()
    labels[3] = strange
    with pytest.raises(ValueError, match=rf"labels .*{strange}.* that the model does not know"):
        compress(model, X, labels.tolist(), budget=5)


def test_rows_of_one_class_are_refused(data):
    X, y = data[3]
    with pytest.raises(ValueError, match="number of classes"):
        compress(SVC().fit(X, y), X[y == 1], y[y == 1], budget=5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": 0}, "budget must be"),
        ({"budget": 1.5}, "budget must be"),
        ({"budget": True}, "budget must be"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"reducer": "shears"}, "unknown reducer 'shears'"),
    ],
    ids=str,
)
def test_a_setting_without_a_meaning_is_refused(settings, words, data):
    X, y = data[2]
    with pytest.raises(ValueError, match=words):
        compress(SVC().fit(X, y), X, y, **settings)


def test_rows_and_labels_that_cannot_be_used_are_refused(data):
    X, y = data[2]
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        compress(model, np.full_like(X, np.nan), y, budget=5)
    with pytest.raises(ValueError, match="inconsistent"):
        compress(model, X, y[:-1], budget=5)


def test_a_precomputed_matrix_of_other_rows_is_refused(data):
    """A point is the number of a column, so the rows to choose from must be the columns."""
    X, y = data[2]
    learn, other = np.arange(0, y.size, 2), np.arange(1, y.size, 2)[:100]
    model = SVC(kernel="precomputed").fit(own_kernel(X[learn], X[learn]), y[learn])
    with pytest.raises(ValueError, match="must be square"):
        compress(model, own_kernel(X[other], X[learn]), y[other], budget=5)


def test_the_memory_for_kernel_rows_is_that_of_the_model(data, monkeypatch):
    given, rows_of = [], Problem.rows
    monkeypatch.setattr(Problem, "rows", lambda self, *rows: given.append(self.home.cache_mb) or rows_of(self, *rows))
    X, y = data[2]
    compress(SlimSVC(cache_mb=7).fit(X, y), X, y, budget=5, random_state=0)
    assert 7 in given
    assert given[-1] == 7
