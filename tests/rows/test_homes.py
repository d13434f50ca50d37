"""Every trainer and every reducer runs in every home of rows, with the host's results."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from hidden import hidden_rows
from sklearn.datasets import make_moons

from slimsvm import SlimSVC
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF
from slimsvm.model import Holdout, Task
from slimsvm.reducers import REDUCERS
from slimsvm.rows import homes
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows
from slimsvm.rows.protocol import Meter
from slimsvm.trainers import SMO, TRAINERS

KERNEL = RBF(0.5)
SIZES = [2, 5]
#: settings of methods that would take seconds or whose descent magnifies rounding the longer it is, and of those whose
#: tolerance decides how many support vectors there are
SETTINGS = {"slim": {"steps": 5}, "slmc": {"max_steps": 5}, "osuna-girosi": {"tol": 1e-9}, "zhan-shen": {"tol": 1e-9}}
#: a metric that is learned in little time
DEVICES = ["array_api_strict", *(["torch:cpu", "cuda"] if find_spec("torch") else [])]


@pytest.fixture(params=["hidden", *DEVICES])
def home(request):
    """A home that there is here, by its name."""
    if request.param == "cuda" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is no CUDA GPU")
    return request.param


@pytest.fixture(params=["two classes", "three classes"])
def problem(request):
    return request.param


def rows_in(home, X):
    if home == "hidden":
        return hidden_rows(KERNEL, X)
    return open_rows(KERNEL, X, device=home)


@cache
def data(problem):
    """120 rows and their class numbers."""
    if problem == "two classes":
        return make_moons(120, noise=0.2, random_state=0)
    labels = np.arange(120) % 3
    return np.random.default_rng(0).normal(size=(120, 2)) + 2.5 * np.array([[0, 0], [1, 0], [0, 1]])[labels], labels


def make_task(home, problem):
    """A task on the first 90 rows; the others are for validation."""
    X, labels = data(problem)
    coding = OneVsRest(labels.max() + 1)
    holdout = Holdout(rows_in(home, X[90:]), labels[90:], np.ones(30), coding)
    return Task(rows_in(home, X[:90]), coding.encode(labels[:90]), np.ones(90), np.random.default_rng(0), holdout)


@dataclass(frozen=True)
class Result:
    """What a method found: the outputs of its models, how it ended, and the kernel evaluations counted."""

    outputs: list
    status: object
    evaluations: int


def trained(name, home, problem):
    kind = TRAINERS[name]
    task = make_task(home, problem)
    budget = {"budget": 20} if "budget" in kind.__dataclass_fields__ else {}
    fit = kind(**budget, **SETTINGS.get(name, {})).fit(task)
    return Result([fit.model(data(problem)[0])], fit.status, task.rows.meter.evaluations)


def reduced(name, home, problem):
    task = make_task(home, problem)
    path = REDUCERS[name](**SETTINGS.get(name, {})).path(task, SIZES, full_model(problem))
    return Result([step.model(data(problem)[0]) for step in path.steps], path.status, task.rows.meter.evaluations)


@cache
def full_model(problem):
    return SMO(1.0).fit(make_task("cpu", problem)).model


@cache
def on_the_host(run, name, problem):
    return run(name, "cpu", problem)


def tolerance(name):
    """Rounding moves where a search among moving points stops; the other methods end at the same model."""
    return 2e-2 if name in REDUCERS and REDUCERS[name].needs_gradients else 1e-5


def check(run, name, home, problem):
    expected, found = on_the_host(run, name, problem), run(name, home, problem)
    assert found.status == expected.status
    for there, here in zip(found.outputs, expected.outputs, strict=True):
        if home == "hidden":
            np.testing.assert_array_equal(there, here)
        else:
            np.testing.assert_allclose(there, here, rtol=0, atol=tolerance(name) * (1 + np.abs(here).max()))
    if home == "hidden":
        assert found.evaluations == expected.evaluations


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_runs_in_every_home(name, home, problem):
    check(trained, name, home, problem)


@pytest.mark.parametrize("name", REDUCERS)
def test_every_reducer_runs_in_every_home(name, home, problem):
    check(reduced, name, home, problem)


def test_hidden_rows_have_the_protocol_and_nothing_else():
    X = data("two classes")[0]
    rows, plain = hidden_rows(KERNEL, X), HostRows(KERNEL, X)
    assert isinstance(rows.meter, Meter)
    index = np.arange(3)
    for handle in (rows.against(X[:3]), rows.moving(rows.to_coordinates(X[:3])), rows.against(X[:5]).first(3)):
        np.testing.assert_array_equal(handle.times(np.ones((3, 1))), plain.product(X[:3], np.ones((3, 1))))
        with pytest.raises(AttributeError, match="'K' is not in the protocol KernelMatrix"):
            _ = handle.K
    others = rows.subset(index), rows.of(X[:3]), rows.fetch(index), rows.against(X[:3]).features(np.ones((3, 3)))
    for some in (rows, *others):
        assert some.block(index).shape == (3, 3)
        for name in ("prepared", "given", "pool", "cache", "X", "matrix", "held"):
            with pytest.raises(AttributeError, match=f"{name!r} is not in the protocol Rows"):
                getattr(some, name)
        with pytest.raises(AttributeError, match="not for others to set"):
            some.meter = Meter()


def wide_task(rows):
    """Two classes of rows with 140 features, of which two matter: few enough directions for a principal span."""
    X, labels = data("two classes")
    rng = np.random.default_rng(0)
    wide = X @ rng.normal(size=(2, 140)) + 1e-3 * rng.normal(size=(120, 140))
    coding = OneVsRest(2)
    task = Task(rows(KERNEL, wide / np.sqrt(140)), coding.encode(labels), np.ones(120), np.random.default_rng(0))
    assert task.rows.spanned(1000, 128, 0.9).d < 140
    return task


@pytest.mark.parametrize(
    ("settings", "make"),
    [({"metric": "both"}, lambda rows: make_task(rows, "two classes")), ({}, wide_task)],
    ids=["a learned metric", "points in a span"],
)
def test_every_form_of_slim_runs_with_hidden_rows(settings, make):
    slim = REDUCERS["slim"](steps=3, **settings)
    homes = ("cpu", "hidden") if settings else (HostRows, hidden_rows)
    here, there = (slim.path(make(home), SIZES).models for home in homes)
    for model, hidden in zip(here, there, strict=True):
        np.testing.assert_array_equal(hidden.points, model.points)
        np.testing.assert_array_equal(hidden.coef, model.coef)


@pytest.fixture
def one_gpu(monkeypatch):
    """A machine of two threads where torch says that it has a GPU, which is the strict array library."""
    monkeypatch.setattr(homes, "has_torch_device", lambda kind: kind == "cuda")
    monkeypatch.setitem(homes.HOMES, "cuda", lambda _: homes.HOMES["array_api_strict"]("array_api_strict"))
    monkeypatch.setitem(homes.BACKENDS, "cuda", lambda _: homes.BACKENDS["array_api_strict"]("array_api_strict"))
    monkeypatch.setattr(homes, "thread_count", lambda: 2)


@pytest.mark.usefixtures("one_gpu")
def test_auto_takes_a_gpu_for_large_problems_only():
    assert homes.faster_device("auto", 22_696, 123) == homes.faster_device("auto", 60_000, 784) == "cuda"
    assert homes.faster_device("auto", 1_200, 16) == "cpu"  # a pair of letter's classes
    assert homes.faster_device("cuda", 2, 2) == "cuda"
    assert homes.faster_device("cpu", 60_000, 784) == "cpu"


@pytest.mark.usefixtures("one_gpu")
def test_an_estimator_says_where_it_was_fitted():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    model = SlimSVC(device="auto").fit(X, y)
    assert model.device_ == "cpu"
    assert SlimSVC().fit(X, y).device_ == "cpu"
    model.device_ = "cuda"  # as if it had been large
    np.testing.assert_allclose(model.decision_function(X), SlimSVC().fit(X, y).decision_function(X), rtol=1e-6)
    assert model._placed.points.on is not None
    model.device_ = "mps"  # of another machine
    assert model._used_device == "cuda"


def test_auto_is_the_host_without_a_gpu(monkeypatch):
    monkeypatch.setattr(homes, "has_torch_device", lambda _: False)
    assert homes.faster_device("auto", 10**6, 10**3) == "cpu"
