"""The contract of all reducers, whatever their method. It runs for every entry of REDUCERS, new ones too."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from slimsvm import SlimSVC, compress, load, save
from slimsvm import clock as deadline
from slimsvm.estimators import Interrupted, fit_reporting
from slimsvm.estimators.methods import names_where
from slimsvm.goals import OneVsOne, OneVsRest
from slimsvm.kernels import KERNELS, RBF, Custom, Precomputed
from slimsvm.model import Expansion, Holdout, Status, Task
from slimsvm.reducers import REDUCERS, Slim
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.selection.folds import CUT_SHORT
from slimsvm.studio.cli import commands as cli
from slimsvm.trainers import SMO

pytestmark = pytest.mark.usefixtures("quick_slim")

SIZES = [1, 2, 6]
GAMMA = 0.5
ALONE = [name for name, kind in REDUCERS.items() if not kind.needs_model]
#: full models that are wrong on every row: refused in words, followed, or (by all others) ignored in favour of the labels
REFUSES_WRONG_MODELS = {"slant", "slant-aggressive"}
FOLLOWS_WRONG_MODELS = {"osuna-girosi", "cvm", "prune"}
PROBLEMS = {
    "two classes": (lambda n, seed: make_moons(n, noise=0.2, random_state=seed), OneVsRest(2)),
    "three classes": (lambda n, seed: clouds(n, seed), OneVsRest(3)),
    "pairs of classes": (lambda n, seed: clouds(n, seed), OneVsOne(3)),
}


def clouds(n, seed):
    """Three clouds that overlap a little."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 2.5 * np.array([[0, 0], [1, 0], [0, 1]])[labels], labels


def judged_task(name, kernel=RBF(GAMMA), **settings):  # noqa: B008
    """A problem of 90 training rows and 30 validation rows of unequal weights, on one meter."""
    make, coding = PROBLEMS[name]
    X, labels = make(120, 0)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 30)
    rows = HostRows(kernel, X[:90])
    holdout = Holdout(rows.of(X[90:]), labels[90:], weights, coding)
    task = Task(rows, coding.encode(labels[:90]), np.ones(90), np.random.default_rng(0), holdout=holdout)
    return dataclasses.replace(task, **settings)


@dataclasses.dataclass(frozen=True)
class CountingRBF(RBF):
    """The rbf kernel, which counts its values and gradients where they are computed. The compiled pass does not know it."""

    computed: list[int] = dataclasses.field(default_factory=list, compare=False)

    def tail(self, G, a, b, *more, **settings):
        self.computed.append(G.size)
        return super().tail(G, a, b, *more, **settings)

    def diagonal(self, A, ids):
        self.computed.append(A.shape[0])
        return super().diagonal(A, ids)

    def pullback(self, A, Z, K, W, *more):
        self.computed.append(K.size)
        return super().pullback(A, Z, K, W, *more)


@cache
def full_model(problem):
    return SMO(1.0).fit(judged_task(problem)).model


@cache
def path_of(name, problem):
    return REDUCERS[name]().path(judged_task(problem), SIZES, full_model(problem))


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return request.param


@pytest.fixture(params=REDUCERS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


def fitted(name, X, y, budget=4, **settings):
    return SlimSVC(budget, reducer=name, **{"gamma": GAMMA, "random_state": 0} | settings).fit(X, y)


def assert_sound(path, outputs, limit):
    """Models of growing size, none beyond the limit, whose numbers are numbers."""
    assert path.sizes == sorted(set(path.sizes))
    assert len(path) > 0
    assert path.sizes[-1] <= limit
    for step in path:
        model = step.model
        assert model.points.shape[0] == step.size
        assert model.coef.shape == (step.size, outputs)
        assert model.bias.shape == (outputs,)
        assert np.isfinite(model.coef).all()
        assert np.isfinite(model.bias).all()
        assert step.settings


# The path


def test_models_grow_and_none_is_larger_than_asked(name, problem):
    outputs = PROBLEMS[problem][1].outputs
    assert_sound(path_of(name, problem), outputs, SIZES[-1])
    assert path_of(name, problem).status.as_planned


def test_errors_are_the_weighted_errors_on_the_validation_rows(name, problem):
    holdout = judged_task(problem).holdout
    for step in path_of(name, problem):
        wrong = holdout.goal.decode(step.model(holdout.rows.given.rows())) != holdout.labels
        assert step.error == pytest.approx(np.average(wrong, weights=holdout.weights), abs=1e-12)
    assert path_of(name, problem).n_validation == holdout.labels.size


def test_six_points_are_far_better_than_the_largest_class(name, problem):
    if name == "prune":
        pytest.skip("a yardstick, which promises nothing")
    make, coding = PROBLEMS[problem]
    X, labels = make(600, 1)
    small = path_of(name, problem).best(6).model
    error = np.mean(coding.decode(small(X)) != labels)
    assert error < 0.6 * (1 - np.bincount(labels).max() / labels.size)


def test_a_path_is_the_same_each_time_and_leaves_the_full_model_alone(name):
    problem = "three classes"
    full = full_model(problem)
    before = full.coef.copy(), full.bias.copy()
    again = REDUCERS[name]().path(judged_task(problem), SIZES, full)
    assert again.sizes == path_of(name, problem).sizes
    for one, two in zip(again, path_of(name, problem), strict=True):
        np.testing.assert_array_equal(one.model.coef, two.model.coef)
        np.testing.assert_array_equal(one.model.bias, two.model.bias)
    np.testing.assert_array_equal(full.coef, before[0])
    np.testing.assert_array_equal(full.bias, before[1])


def test_a_path_without_validation_rows_has_no_errors(name):
    path = REDUCERS[name]().path(judged_task("two classes", holdout=None), [3], full_model("two classes"))
    assert np.isnan(path.errors).all()
    assert path.best(3).size <= 3


def test_sizes_beyond_the_rows_end_the_path_in_good_order(name):
    X, y = make_moons(30, noise=0.2, random_state=0)
    task = Task(HostRows(RBF(GAMMA), X), OneVsRest(2).encode(y), np.ones(30), np.random.default_rng(0))
    path = REDUCERS[name]().path(task, [20, 200], SMO(1.0).fit(task).model)
    assert_sound(path, 1, 200)
    assert path.status not in CUT_SHORT


def test_rows_of_one_side_are_no_trouble(name):
    task = judged_task("two classes")
    side = np.flatnonzero(task.targets.ravel() > 0)
    ones = Task(task.rows.subset(side), np.ones((side.size, 1)), np.ones(side.size), np.random.default_rng(0))
    for full in [full_model("two classes"), *([None] if name in ALONE else [])]:
        assert_sound(REDUCERS[name]().path(ones, [1, 3], full), 1, 3)


def test_duplicate_rows_and_a_full_model_of_one_point_are_no_trouble(name):
    X, y = make_moons(20, noise=0.1, random_state=0)
    X, y = np.tile(X, (4, 1)), np.tile(y, 4)
    task = Task(HostRows(RBF(GAMMA), X), OneVsRest(2).encode(y), np.ones(80), np.random.default_rng(0))
    one = Expansion(RBF(GAMMA), X[:1], np.where(y[:1, None] > 0, 1.0, -1.0), np.zeros(1))
    for full in (SMO(1.0).fit(task).model, one):
        assert_sound(REDUCERS[name]().path(task, [1, 2], full), 1, 2)


def wrong_model():
    """A task, and the negative of a model that is right on all of its rows."""
    full, task = full_model("two classes"), judged_task("two classes", holdout=None)
    right = np.flatnonzero((task.targets * full.on(task.rows)).ravel() > 0)
    task = Task(task.rows.subset(right), task.targets[right], np.ones(right.size), np.random.default_rng(0))
    return task, Expansion(full.kernel, full.points, -full.coef, -full.bias)


@pytest.mark.parametrize("name", sorted(REFUSES_WRONG_MODELS))
def test_a_full_model_that_is_wrong_throughout_is_refused_in_words(name):
    with pytest.raises(ValueError, match="cannot follow it; check its kernel parameters, and that X and y are the rows"):
        REDUCERS[name]().path(wrong_model()[0], [1, 3], wrong_model()[1])


@pytest.mark.parametrize("name", [name for name in REDUCERS if name not in REFUSES_WRONG_MODELS])
def test_a_full_model_that_is_wrong_throughout_is_followed_or_replaced_by_the_labels(name):
    task, wrong = wrong_model()
    path = REDUCERS[name]().path(task, [1, wrong.size - 1], wrong)
    assert_sound(path, 1, wrong.size - 1)
    right = (task.targets * path.models[-1].on(task.rows) > 0).mean()
    assert right < 0.2 if name in FOLLOWS_WRONG_MODELS else right > 0.8


# Time and interrupts


def decoding(task, decode):
    """The task with validation rows whose outputs are decoded by a function."""
    goal = type("Goal", (OneVsRest,), {"decode": lambda _, outputs: decode(outputs)})(2)
    return dataclasses.replace(task, holdout=dataclasses.replace(task.holdout, goal=goal))


def test_the_time_limit_ends_a_path_with_what_was_found(name, monkeypatch):
    """A clock that stands still until the first model is judged, and then jumps."""
    now, jumped = 0.0, 1e6
    task = judged_task("two classes")

    def decode(outputs):
        nonlocal now
        now = jumped
        return OneVsRest(2).decode(outputs)

    monkeypatch.setattr(deadline, "perf_counter", lambda: now)
    reducer = REDUCERS[name](time_limit=10.0)
    path = reducer.path(decoding(task, decode), [1, 2, 4, 8, 16], full_model("two classes"))
    assert path.status is Status.TIME_LIMIT
    assert_sound(path, 1, 15)


def test_ctrl_c_returns_the_best_so_far(name):
    judged = 0
    task = judged_task("two classes")

    def decode(outputs):
        nonlocal judged
        judged += 1
        return OneVsRest(2).decode(outputs)

    def report(phase, done):
        assert phase == "shrink"
        assert 0 <= done <= 1
        if judged:
            raise KeyboardInterrupt

    task = dataclasses.replace(decoding(task, decode), run=Run(report))
    path = REDUCERS[name]().path(task, [1, 2, 4, 8, 16], full_model("two classes"))
    assert path.status is Status.INTERRUPTED
    assert_sound(path, 1, 16)


def test_ctrl_c_before_the_first_model_is_ctrl_c(name):
    def decode(_):
        raise KeyboardInterrupt

    task = decoding(judged_task("two classes"), decode)
    with pytest.raises(KeyboardInterrupt):
        REDUCERS[name]().path(task, SIZES, full_model("two classes"))


def test_ctrl_c_keeps_the_path_found_and_ends_the_call(name, moons):
    found = []

    def report(phase, done):
        if phase == "shrink":
            found.append(done)
            raise KeyboardInterrupt

    model = SlimSVC(16, reducer=name, gamma=GAMMA, random_state=0)
    with pytest.raises(Interrupted) as caught:
        fit_reporting(model, *moons, report=report)
    assert caught.value.best is model
    assert found
    assert model.status_ is model.path_.status is Status.INTERRUPTED
    assert model.model_.size <= 16
    assert model.predict(moons[0]).shape == moons[1].shape


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_time_limit_is_a_number_of_seconds(name, seconds):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        REDUCERS[name](time_limit=seconds)


# Rows and kernels in every form


def test_sparse_rows_give_the_model_of_dense_ones(name):
    X, y = load_iris(return_X_y=True)
    dense, sparse = fitted(name, X, y), fitted(name, csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), sparse.decision_function(X), atol=1e-6)


def test_float32_rows_give_the_model_of_float64_ones_and_stay_as_they_are(name, moons):
    """Up to 0.05, since k-means runs in the precision of the rows."""
    X, y = moons[0].astype(np.float32), moons[1].copy()
    single, double = fitted(name, X, y), fitted(name, X.astype(np.float64), y)
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=0.05)
    np.testing.assert_array_equal(X, moons[0].astype(np.float32))
    np.testing.assert_array_equal(y, moons[1])


def refused(name, kernel, X, y):
    """Check that the kernel is refused before training, with the reducers that take it; return the reason."""
    with pytest.raises(
        ValueError, match=f"{REDUCERS[name].__name__} does not work with the {kernel.name} kernel"
    ) as caught:
        fitted(name, X, y, kernel=kernel.name if kernel.name in KERNELS else kernel.function)
    able = names_where(lambda kind: kind.takes(kernel))
    assert able
    assert str(caught.value).endswith(str(able))
    full = SlimSVC(kernel=kernel.name if kernel.name in KERNELS else kernel.function, gamma=GAMMA).fit(X, y)
    with pytest.raises(ValueError, match="does not work with"):
        compress(full, X, y, budget=3, reducer=name)
    if isinstance(kernel, Precomputed):
        return "it makes points that are not rows, and a kernel matrix has values for rows alone"
    if REDUCERS[name].needs_gradients and not kernel.differentiable:
        return f"{kernel.name} kernel: it has no gradient by which points could move"
    return f"{kernel.name} kernel: the method is not defined for it"


#: cpsp and nystroem make points that are not rows, if they can; lars and osuna-girosi use all support vectors of the full
#: model, of which a kernel matrix has those among the training rows only
OTHER_WITH_A_MATRIX = {"cpsp", "lars", "nystroem", "osuna-girosi"}


def test_a_kernel_matrix_is_worked_with_or_refused(name, moons, excused):
    X, y = moons
    K = rbf_kernel(X, gamma=GAMMA)
    if not REDUCERS[name].takes(Precomputed()):
        excused(refused(name, Precomputed(), K, y))
        return
    small = fitted(name, K, y, kernel="precomputed")
    if name in OTHER_WITH_A_MATRIX:
        assert small.score(K, y) > 0.7
    else:
        np.testing.assert_allclose(small.decision_function(K), fitted(name, X, y).decision_function(X), atol=1e-6)
    assert small.support_vectors_.shape[1] == 1


@pytest.mark.only_for("reducers that choose rows")
@pytest.mark.parametrize("name", [name for name, kind in REDUCERS.items() if kind.selects and kind.takes(Precomputed())])
def test_points_that_are_rows_are_the_same_for_a_kernel_matrix(name):
    own = judged_task("two classes", holdout=None)
    X = own.rows.given.rows()
    given = judged_task("two classes", holdout=None, rows=HostRows(Precomputed(), own.rows.kernel(X, X)))
    paths = [REDUCERS[name]().path(task, [2, 4], SMO(1.0).fit(task).model) for task in (own, given)]
    assert paths[0].sizes == paths[1].sizes
    for one, two in zip(*paths, strict=True):
        np.testing.assert_allclose(one.model.on(own.rows), two.model.on(given.rows), atol=1e-9)


@pytest.mark.parametrize("kernel_name", [*(kernel for kernel in KERNELS if kernel != "precomputed"), "callable"])
def test_every_kernel_is_worked_with_or_refused(name, kernel_name, moons, excused):
    X, y = moons[0][:60] - moons[0].min(axis=0), moons[1][:60]
    function = rbf_kernel if kernel_name == "callable" else kernel_name
    kernel = Custom(rbf_kernel) if kernel_name == "callable" else KERNELS[kernel_name]()
    if not REDUCERS[name].takes(kernel):
        excused(refused(name, kernel, X, y))
        return
    small = fitted(name, X, y, 2, kernel=function, degree=2, coef0=0.5)
    assert small.model_.size <= 2
    assert np.isfinite(small.decision_function(X)).all()


@pytest.mark.parametrize(
    ("problem", "from_labels"), [("two classes", True), ("three classes", False), ("pairs of classes", False)]
)
def test_all_kernel_values_and_gradients_are_counted(name, problem, from_labels):
    """The meter's count is the number of values and gradients that the kernel computed, no more and no fewer."""
    if from_labels and name not in ALONE:
        pytest.skip("it needs a full model")
    task = judged_task(problem, CountingRBF(GAMMA))
    meter, computed = task.rows.meter, task.rows.kernel.computed
    full = None if from_labels else SMO(1.0).fit(task).model
    assert meter.evaluations == sum(computed)
    # the kernel of this test does not see what is computed in a learned metric
    reducer = Slim(metric="fixed") if name == "slim" else REDUCERS[name]()
    path = reducer.path(task, SIZES, full)
    assert meter.evaluations == sum(computed)
    if reducer.finishes:
        reducer.finished(dataclasses.replace(task, holdout=None), path.steps[-1], full)
        assert meter.evaluations == sum(computed)


@pytest.mark.parametrize("name", [name for name, kind in REDUCERS.items() if kind.takes(Custom(rbf_kernel))])
def test_a_fit_counts_all_kernel_values(name, moons):
    values = 0

    def counting(A, B):
        nonlocal values
        values += A.shape[0] * B.shape[0]
        return rbf_kernel(A, B, gamma=GAMMA)

    assert fitted(name, *moons, kernel=counting).n_kernel_evals_ == values


# The doors


def test_weights_count(name, moons):
    X, y = moons
    weights = np.where(y == 1, 5.0, 0.2)
    for trainer in ["smo", *([None] if name in ALONE else [])]:
        model = SlimSVC(3, reducer=name, trainer=trainer, gamma=GAMMA, C=0.1, random_state=0)
        plain = model.fit(X, y).predict(X).mean()
        assert model.fit(X, y, sample_weight=weights).predict(X).mean() > plain


def test_a_small_model_needs_no_full_one_or_the_error_says_who_can(name, moons, excused):
    X, y = moons
    if name not in ALONE:
        with pytest.raises(ValueError, match="from the labels only") as caught:
            fitted(name, X, y, trainer=None)
        assert str(sorted(ALONE)) in str(caught.value)
        excused("it shrinks a full model")
        return
    for rows, labels in ((X, y), load_iris(return_X_y=True)):
        small = fitted(name, rows, labels, 4, trainer=None)
        assert small.model_.size <= 4
        assert small.n_iter_ == 0
        assert small.status_ is small.path_.status
        assert small.goal_ == OneVsRest(np.unique(labels).size)
        assert small.score(rows, labels) > 0.7


def test_a_full_model_that_fits_the_budget_is_returned_as_it_is(name, moons):
    X, y = moons
    svc = SVC(gamma=GAMMA).fit(X, y)
    with pytest.warns(UserWarning, match="is not below"):
        small = compress(svc, X, y, budget=500, reducer=name)
    assert small.path_ is None
    np.testing.assert_allclose(small.decision_function(X), svc.decision_function(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*rarest class:UserWarning")
def test_a_tolerance_is_kept_to(name, moons):
    X = np.vstack([moons[0], [4.0, 4.0] + 0.1 * np.random.default_rng(0).normal(size=(4, 2))])
    y = np.append(moons[1], np.full(4, 2))
    small, full = fitted(name, X, y, None, tolerance=0.1), SlimSVC(gamma=GAMMA).fit(X, y)
    assert 1 - small.score(X, y) <= 1 - full.score(X, y) + 0.1
    assert small.model_.size <= full.model_.size


def test_a_model_and_its_reducer_are_saved_and_loaded(name, moons, tmp_path):
    X, y = moons
    small = fitted(name, X, y, 2)
    for reducer in (name, REDUCERS[name](time_limit=500.0)):
        save(small.set_params(reducer=reducer), tmp_path / "m.slim")
        loaded = load(tmp_path / "m.slim")
        assert loaded.get_params() == small.get_params()
        np.testing.assert_array_equal(loaded.decision_function(X), small.decision_function(X))


def test_command_line(name, moons, tmp_path, capsys):
    data, output = tmp_path / "rows.csv", tmp_path / "m.slim"
    np.savetxt(data, np.column_stack(moons), delimiter=",")
    words = ["train", str(data), "-o", str(output), "-b", "2", "--reducer", name, "--time-limit", "500"]
    assert cli.run(words + (["--trainer", "none"] if name in ALONE else [])) == 0
    loaded = load(output)
    assert (loaded.reducer, loaded.time_limit) == (name, 500.0)
    assert loaded.trainer == (None if name in ALONE else "smo")
    assert "support vectors" in capsys.readouterr().out
