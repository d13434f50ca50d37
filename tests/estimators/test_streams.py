"""partial_fit: streams in batches, scikit-learn's contract for them, and what a stream cannot have."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from slimsvm import SlimSVC, compress
from slimsvm.files.native import load, save
from slimsvm.model import Status
from slimsvm.solvers.online import Learner
from slimsvm.trainers import BSGD, RBP, TRAINERS, Forgetron
from slimsvm.trainers.frames.online import OnlineTrainer

ONLINE = [name for name, kind in TRAINERS.items() if issubclass(kind, OnlineTrainer)]
OFFLINE = sorted(TRAINERS.keys() - set(ONLINE))

#: checks that a learner cannot pass, and why
ORDERED = "a row of weight 2 is one step of twice the size, two rows are two steps"
WEIGHTLESS = "the perceptrons have no weights, and say so"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDERED,
    "check_sample_weight_equivalence_on_sparse_data": ORDERED,
}
EXPECTED_OF_PERCEPTRONS = dict.fromkeys(
    [*EXPECTED, "check_sample_weights_not_overwritten", "check_class_weight_classifiers"], WEIGHTLESS
)


@parametrize_with_checks(
    [SlimSVC(50, trainer=name) for name in ONLINE],
    expected_failed_checks=lambda slim: EXPECTED if slim.trainer == "bsgd" else EXPECTED_OF_PERCEPTRONS,
)
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clouds():
    X, y = make_blobs(400, centers=4, cluster_std=2.0, random_state=0)
    return X, np.array(["a", "b", "c", "d"])[y]


def batches(X, y, size):
    for start in range(0, X.shape[0], size):
        yield X[start : start + size], y[start : start + size]


def streamed(slim, X, y, size, classes=None):
    for rows, labels in batches(X, y, size):
        slim.partial_fit(rows, labels, classes=np.unique(y) if classes is None else classes)
    return slim


# Batches of any size teach what one pass teaches


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize(("size", "form"), [(1, np.asarray), (33, csr_array), (33, np.asarray), (400, csr_matrix)])
def test_batches_teach_what_a_pass_of_fit_teaches(name, size, form, clouds):
    X, y = (part[:150] for part in clouds) if size == 1 else clouds
    settings = {"lam": 0.01} if name == "bsgd" else {}
    trainer = TRAINERS[name](shuffle=False, **settings)
    slim = SlimSVC(12, trainer=trainer, gamma=0.1, random_state=3)
    fitted = clone(slim).fit(X, y)
    stream = streamed(clone(slim), form(X), y, size)
    expected = fitted.decision_function(X)
    np.testing.assert_allclose(stream.decision_function(X), expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(stream.predict(X), fitted.predict(X))
    assert stream.n_iter_ == fitted.n_iter_ == len(y)
    assert stream.status_ is Status.PASSED
    assert stream.support_vectors_.shape == (12, 2)
    assert stream.path_ is None


@pytest.mark.parametrize("name", ONLINE)
def test_a_generator_of_rows_is_learned_from(name):
    """Rows that are never in memory together."""

    def rows(count):
        rng = np.random.default_rng(0)
        for _ in range(count):
            X = rng.normal(size=(50, 2))
            yield X, (X[:, 0] * X[:, 1] > 0).astype(int)

    slim = SlimSVC(40, trainer=TRAINERS[name](**({"lam": 1e-3} if name == "bsgd" else {})), gamma=1.0, random_state=0)
    for X, y in rows(60):
        slim.partial_fit(X, y, classes=[0, 1])
        assert slim.support_vectors_.shape[0] <= 40
    X, y = next(rows(1))
    assert slim.score(X, y) >= 0.8
    assert slim.n_iter_ == 3000


@pytest.mark.parametrize("name", ONLINE)
def test_counts_grow_with_the_stream(name, clouds):
    X, y = clouds
    slim = SlimSVC(10, trainer=name, gamma=0.1, random_state=0)
    evaluations = []
    for rows, labels in batches(X, y, 100):
        slim.partial_fit(rows, labels, classes=np.unique(y))
        evaluations.append(slim.n_kernel_evals_)
        assert slim.n_iter_ == 100 * len(evaluations)
    growth = np.diff([0, *evaluations])
    assert (growth[1:] == 100 * 10 + 3 * 32**2 + 4**2).all()  # rows to points, and rows of a block among themselves


def test_the_first_batch_fixes_gamma_and_lam(clouds):
    X, y = clouds
    slim = SlimSVC(10, trainer="bsgd", C=2.0).partial_fit(X[:50], y[:50], classes=np.unique(y))
    assert slim.model_.kernel.gamma == pytest.approx(1 / (2 * X[:50].var()))
    assert slim.stream_.state.lam == pytest.approx(1 / (2.0 * 50))
    kernel = slim.model_.kernel
    slim.partial_fit(100 * X[50:], y[50:])
    assert slim.model_.kernel == kernel
    assert slim.stream_.state.lam == pytest.approx(1 / (2.0 * 50))


@pytest.mark.parametrize("name", ONLINE)
def test_a_batch_of_one_class_is_enough_once_the_classes_are_known(name, clouds):
    X, y = clouds
    order = np.argsort(y, kind="stable")
    slim = streamed(SlimSVC(10, trainer=name, random_state=0), X[order], y[order], 100)
    np.testing.assert_array_equal(slim.classes_, np.unique(y))
    assert slim.decision_function(X).shape == (400, 4)


@pytest.mark.parametrize("name", ONLINE)
def test_two_classes_of_which_one_is_still_to_come(name):
    slim = SlimSVC(5, trainer=name).partial_fit([[0.0, 1.0], [1.0, 0.0]], ["yes", "yes"], classes=["no", "yes"])
    assert slim.predict([[0.5, 0.5]]) == ["yes"]
    assert slim.decision_function([[0.5, 0.5]]).shape == (1,)


@pytest.mark.parametrize("name", ONLINE)
def test_the_form_of_the_first_batch_is_kept(name, clouds):
    X, y = clouds
    forms = [np.asarray, csr_array]
    for first, second in (forms, forms[::-1]):
        slim = SlimSVC(10, trainer=name, gamma=0.1, random_state=0)
        slim.partial_fit(first(X[:200]), y[:200], classes=np.unique(y)).partial_fit(second(X[200:]), y[200:])
        alike = streamed(SlimSVC(10, trainer=name, gamma=0.1, random_state=0), X, y, 200)
        np.testing.assert_allclose(slim.decision_function(X), alike.decision_function(X), atol=1e-8)
        assert type(slim.support_vectors_) is type(first(X))


# Going on and beginning anew


@pytest.mark.parametrize("name", ONLINE)
def test_a_pickled_stream_goes_on_where_it_was(name, clouds):
    X, y = clouds
    slim = streamed(SlimSVC(10, trainer=name, random_state=0), X[:200], y[:200], 50, np.unique(y))
    copy = pickle.loads(pickle.dumps(slim))
    for stream in (slim, copy):
        stream.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(copy.decision_function(X), slim.decision_function(X))


@pytest.mark.parametrize("name", ONLINE)
def test_fit_begins_anew_and_a_stream_goes_on_from_fit(name, clouds):
    X, y = clouds
    slim = streamed(SlimSVC(10, trainer=name, random_state=0), X, y, 100)
    fresh = SlimSVC(10, trainer=name, random_state=0).fit(X, y)
    np.testing.assert_array_equal(slim.fit(X, y).decision_function(X), fresh.decision_function(X))
    assert slim.n_iter_ == 400
    before = slim.decision_function(X)
    slim.partial_fit(X[:100] + 1.0, y[:100])
    assert slim.n_iter_ == 500
    assert (slim.decision_function(X) != before).any()


@pytest.mark.parametrize("name", ONLINE)
def test_a_model_from_a_file_predicts_but_has_no_stream(name, clouds, tmp_path):
    X, y = clouds
    slim = streamed(SlimSVC(10, trainer=name, random_state=0), X, y, 100)
    save(slim, tmp_path / "model.slim")
    loaded = load(tmp_path / "model.slim")
    np.testing.assert_array_equal(loaded.predict(X), slim.predict(X))
    with pytest.raises(ValueError, match=r"no stream to continue.*loaded from a file.*clone"):
        loaded.partial_fit(X, y)
    with pytest.raises(ValueError, match="no stream to continue"):
        compress(slim, X, y, budget=5, reducer="prune").set_params(trainer=name).partial_fit(X, y)


def test_a_model_of_another_trainer_has_no_stream(clouds):
    X, y = clouds
    slim = SlimSVC().fit(X, y).set_params(budget=10, trainer="rbp")
    with pytest.raises(ValueError, match="no stream to continue"):
        slim.partial_fit(X, y)
    assert not hasattr(SlimSVC(10, trainer="rbp").fit(X, y).set_params(budget=None, trainer="smo").fit(X, y), "stream_")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ONLINE)
def test_an_interrupted_call_changes_nothing(name, first, clouds, monkeypatch):
    X, y = clouds
    slim = SlimSVC(10, trainer=name, random_state=0)
    if not first:
        slim.partial_fit(X[:100], y[:100], classes=np.unique(y))
    before = vars(slim).copy()
    scores = None if first else slim.decision_function(X)
    read, blocks = Learner.read_block, []

    def interrupted(self, *arguments):
        blocks.append(1)
        if len(blocks) == 2:
            raise KeyboardInterrupt
        read(self, *arguments)

    monkeypatch.setattr(Learner, "read_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        slim.partial_fit(X, y, classes=np.unique(y))
    assert vars(slim).keys() == before.keys()
    assert all(vars(slim)[key] is before[key] for key in before)
    if not first:
        np.testing.assert_array_equal(slim.decision_function(X), scores)


# What a stream cannot have


@pytest.mark.parametrize("name", OFFLINE)
def test_trainers_of_all_rows_at_once_have_no_partial_fit(name):
    slim = SlimSVC(10, trainer=name)
    assert not hasattr(slim, "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        slim.partial_fit  # noqa: B018
    assert all(online in str(caught.value.__cause__) for online in ONLINE)


@pytest.mark.parametrize("trainer", [Forgetron(), RBP(), BSGD(), *ONLINE])
def test_names_and_instances_have_one(trainer):
    assert hasattr(SlimSVC(10, trainer=trainer), "partial_fit")


@pytest.mark.parametrize("name", ONLINE)
def test_a_new_class_after_the_first_call_is_refused_and_named(name, clouds):
    X, y = clouds
    slim = SlimSVC(10, trainer=name).partial_fit(X, y, classes=np.unique(y))
    before = slim.stream_
    with pytest.raises(ValueError, match=r"labels \['e'\].*\['a', 'b', 'c', 'd'\].*first call"):
        slim.partial_fit(X[:3], ["a", "e", "b"])
    with pytest.raises(ValueError, match=r"now and were \['a', 'b', 'c', 'd'\] in the first call"):
        slim.partial_fit(X[:3], y[:3], classes=["a", "b", "c", "d", "e"])
    assert slim.stream_ is before


def test_labels_beyond_the_classes_given_are_refused_at_once(clouds):
    X, y = clouds
    with pytest.raises(ValueError, match=r"labels \['c', 'd'\]"):
        SlimSVC(10, trainer="rbp").partial_fit(X, y, classes=["a", "b"])


def test_the_first_call_needs_the_classes(clouds):
    X, y = clouds
    slim = SlimSVC(10, trainer="rbp")
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        slim.partial_fit(X, y)
    assert vars(slim) == vars(SlimSVC(10, trainer="rbp"))
    with pytest.raises(ValueError, match="greater than one"):
        slim.partial_fit(X[:2], ["a", "a"], classes=["a"])


def test_rows_of_another_width_are_refused(clouds):
    X, y = clouds
    slim = SlimSVC(10, trainer="rbp").partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="3 features"):
        slim.partial_fit(np.ones((2, 3)), ["a", "b"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "precomputed"}, "matrix of future rows"),
        ({"tolerance": 0.1}, "shrinks no further"),
        ({"budget": 3, "trainer": RBP(10)}, "shrinks no further"),
        ({"class_weight": "balanced"}, "needs all labels at once"),
        ({"class_weight": {0: 2.0}}, "no sample_weight or class_weight"),
        ({"budget": None}, "keeps to a budget during training: budget must be a number of support vectors"),
        ({"budget": 1}, "2 at least, not 1"),
        ({"budget": 0.5}, "keeps to a budget during training: budget must be a number of support vectors"),
        ({"trainer": BSGD(maintenance="merging"), "kernel": "linear"}, "merging needs the rbf kernel"),
        ({"kernel": "chi2", "shift": -5.0}, "MinMaxScaler"),
    ],
    ids=str,
)
def test_settings_that_streams_cannot_have_are_refused(settings, words):
    settings = {"budget": 10, "trainer": "rbp"} | settings
    X = np.eye(6) + settings.pop("shift", 0.0)
    slim = SlimSVC(**settings)
    with pytest.raises(ValueError, match=words):
        slim.partial_fit(X, [0, 1, 0, 1, 0, 1], classes=[0, 1])
    assert not hasattr(slim, "model_")


@pytest.mark.filterwarnings("ignore:no model of at most:UserWarning")
@pytest.mark.parametrize("settings", [{"kernel": "precomputed"}, {"tolerance": 0.5}], ids=str)
def test_they_are_refused_after_fit_too(settings):
    X, y = np.eye(12) + 0.1, np.arange(12) % 2
    slim = SlimSVC(4, trainer="rbp", random_state=0, **settings).fit(X, y)
    with pytest.raises(ValueError, match=r"future rows|shrinks no further"):
        slim.partial_fit(X, y)


def test_settings_that_change_within_a_stream_are_named(clouds):
    X, y = clouds
    slim = SlimSVC(10, trainer="bsgd").partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="budget, C changed since the stream began"):
        slim.set_params(budget=20, C=3.0).partial_fit(X, y)
    slim.set_params(budget=10, C=1.0).partial_fit(X, y)
    assert slim.n_iter_ == 800


def test_weights_of_a_batch(clouds):
    X, y = clouds
    weights = np.where(np.arange(400) % 4, 1.0, 0.0)
    here = weights > 0
    with pytest.raises(ValueError, match="no sample_weight"):
        SlimSVC(10, trainer="rbp").partial_fit(X, y, np.unique(y), sample_weight=np.full(400, 2.0))
    with pytest.raises(ValueError, match=r"have weight 0|at least one non-zero"):
        SlimSVC(10, trainer="rbp").partial_fit(X, y, np.unique(y), sample_weight=np.zeros(400))
    for name in ONLINE:
        slim = SlimSVC(10, trainer=name, gamma=0.1, random_state=0)
        zeros = clone(slim).partial_fit(X, y, np.unique(y), sample_weight=weights)
        some = clone(slim).partial_fit(X[here], y[here], np.unique(y))
        np.testing.assert_allclose(zeros.decision_function(X), some.decision_function(X), atol=1e-9)
        assert zeros.n_iter_ == 300
    heavy = SlimSVC(10, trainer="bsgd", class_weight={"a": 5.0}, random_state=0).partial_fit(X, y, np.unique(y))
    assert (heavy.predict(X) == "a").mean() > 0.25


def test_digits_are_learned_from_a_stream():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order] / 16, y[order]
    slim = SlimSVC(150, trainer=BSGD(lam=1e-4), random_state=0)
    for _ in range(2):
        streamed(slim, X[:1400], y[:1400], 200)
    assert slim.score(X[1400:], y[1400:]) > 0.9
