"""Fits that end in time, and fits that start from the last one."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress
from slimsvm.clock import Deadline
from slimsvm.model import Status, Task
from slimsvm.papers.batch_perceptron import SBP
from slimsvm.papers.one_row_at_a_time import Pegasos
from slimsvm.rows.host import HostRows
from slimsvm.trainers import TRAINERS
from slimsvm.trainers.frames.online import OnlineTrainer
from slimsvm.trainers.frames.per_output import BinaryTrainer, Solution
from slimsvm.trainers.smo import SMO, START_PART

X, y = make_classification(400, 5, n_informative=4, n_redundant=0, flip_y=0.2, random_state=0)


def made(name, **more):
    """A trainer with a budget where it needs one."""
    fields = {field.name for field in dataclasses.fields(TRAINERS[name])}
    return TRAINERS[name](**({"budget": 20} if "budget" in fields else {}), **more)


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_has_a_time_limit(name):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        made(name, time_limit=0.0)
    settings = {"working_set": 20} if "working_set" in TRAINERS[name].__dataclass_fields__ else {}
    with pytest.warns(ConvergenceWarning, match="stopped at the time limit; raise time_limit") as told:
        svc = SlimSVC(trainer=made(name, time_limit=1e-9, **settings), C=100.0, random_state=0).fit(X, y)
    assert not any(word in str(told[0].message) for word in ("gap nan", "gap inf"))
    assert svc.status_ is Status.TIME_LIMIT
    assert np.isfinite(svc.decision_function(X)).all()


@pytest.mark.parametrize("kind", [SlimSVC, SlimSVR, SlimOneClassSVM])
def test_every_estimator_has_a_time_limit(kind):
    settings = {} if kind is SlimOneClassSVM else {"C": 100.0}
    with pytest.warns(ConvergenceWarning, match="SMO stopped at the time limit; raise time_limit"):
        model = kind(time_limit=1e-9, trainer=SMO(working_set=20), **settings).fit(X, y)
    assert (model.status_, model.fit_status_) == (Status.TIME_LIMIT, 1)
    with pytest.raises(ValueError, match="time_limit must be a number of seconds"):
        kind(time_limit="soon").fit(X, y)


def test_the_start_of_novelty_detection_ends_in_time():
    """A share nu of the rows are support vectors before the first step, and each has a kernel value with every row."""
    rows = np.random.default_rng(0).normal(size=(3 * START_PART, 2)) * [1.0, 3.0]
    weights = 1.0 + np.arange(len(rows)) % 3
    settings = {"nu": 0.8, "gamma": 0.2}
    whole = SlimOneClassSVM(**settings).fit(rows, sample_weight=weights)
    with pytest.warns(ConvergenceWarning, match="SMO stopped at the time limit"):
        early = SlimOneClassSVM(time_limit=1e-9, **settings).fit(rows, sample_weight=weights)
    assert (early.model_.size, early.n_iter_, early.status_) == (START_PART, 0, Status.TIME_LIMIT)
    assert np.asarray(early.model_.coef).sum() == pytest.approx(0.8 * weights.sum())
    assert np.average(early.predict(rows) < 0, weights=weights) == pytest.approx(0.8, abs=0.01)
    assert np.corrcoef(early.decision_function(rows), whole.decision_function(rows))[0, 1] > 0.9


def test_compress_has_a_time_limit():
    svc = SlimSVC(C=10.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Slim stopped at the time limit"):
        small = compress(svc, X, y, budget=40, time_limit=1e-9, random_state=0)
    assert (small.status_, small.time_limit) == (Status.TIME_LIMIT, 1e-9)
    assert 0 < small.model_.size < 40
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        compress(svc, X, y, budget=4, time_limit=0)


def test_outputs_share_the_time():
    """No output is left without a step, however short the time."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(900, 4)), rng.integers(3, size=900)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        svc = SlimSVC(time_limit=1e-9, trainer=SMO(working_set=20)).fit(rows, labels)
    assert (np.abs(np.asarray(svc.model_.coef)).sum(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [({}, 100.0), ({"budget": 3}, 50.0), ({"calibration": "sigmoid"}, 20.0), ({"tolerance": 0.9}, 50.0 / 6)],
    ids=["training alone", "half for shrinking", "a fifth, four for folds", "five folds before training"],
)
def test_training_has_its_share_of_the_time(settings, seconds, monkeypatch):
    heard, fit = [], SMO.fit

    def hearing(self, task, *more):
        heard.append(task.run.deadline.left)
        return fit(self, task, *more)

    monkeypatch.setattr(SMO, "fit", hearing)
    SlimSVC(time_limit=100.0, reducer="prune", random_state=0, **settings).fit(X[:60], X[:60, 0] > 0)
    assert 0.9 * seconds < heard[0] <= seconds


def test_a_deadline_of_a_part():
    assert Deadline().share(0.5).left is None
    assert Deadline().within(None).left is None
    assert 0 < Deadline(100.0).share(0.25).left <= 25.0
    assert 0 < Deadline(100.0).within(7.0).left <= 7.0
    assert 0 < Deadline(5.0).within(7.0).left <= 5.0
    assert Deadline().used == 0.0
    assert 0 <= Deadline(1e-12).used <= 1.0


def test_an_online_trainer_that_is_cut_short_has_seen_some_rows():
    trainer = made("bsgd", time_limit=1e-9, passes=3)
    assert isinstance(trainer, OnlineTrainer)
    task = Task(
        HostRows(SlimSVC(gamma=0.2).fit(X, y).model_.kernel, X), np.where(y > 0, 1.0, -1.0)[:, None], np.ones(y.size)
    )
    assert 0 < trainer.fit(task).state.seen < y.size


def test_a_warm_start_goes_on_with_another_cost():
    svc = SlimSVC(C=10.0, warm_start=True, trainer=SMO(working_set=100)).fit(X, y)
    warm = svc.set_params(C=11.0).fit(X, y)
    cold = clone(svc).set_params(C=11.0).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=0.02)


@pytest.mark.parametrize("kind", [SlimSVC, SlimSVR, SlimOneClassSVM])
def test_every_estimator_starts_warm(kind):
    model = kind(warm_start=True, trainer=SMO(working_set=60)).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < 0.5 * first


def test_pairs_of_classes_start_warm():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(900, 4)), rng.integers(3, size=900)
    svc = SlimSVC(warm_start=True, trainer=SMO(working_set=100)).fit(rows, labels)
    first, outputs = svc.n_iter_, svc.decision_function(rows)
    assert svc.fit(rows, labels).n_iter_ < 0.2 * first
    np.testing.assert_allclose(svc.decision_function(rows), outputs, atol=0.02)


@dataclasses.dataclass(frozen=True)
class Parzen(BinaryTrainer):
    """A trainer that has nothing to start from."""

    status: Status = Status.CONVERGED

    def solve(self, problem):
        return Solution(problem.y, 0.0, 1, 0.5, self.status)


def test_a_stalled_fit_ends_with_a_status_and_advice():
    with pytest.warns(ConvergenceWarning, match=r"rounding hides further progress; scale the features, .* \(gap 0.5\)"):
        svc = SlimSVC(trainer=Parzen(Status.STALLED)).fit(X, y)
    assert (svc.status_, svc.fit_status_) == (Status.STALLED, 1)


def test_impossible_warm_starts():
    with pytest.raises(ValueError, match=r"Parzen cannot; the trainers that can are \['any-norm'.*'smo'\]"):
        SlimSVC(trainer=Parzen(), warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="trainer=None trains no full model"):
        SlimSVC(4, trainer=None, warm_start=True).fit(X, y)
    svc = SlimSVC(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="400 rows and 1 outputs, but this one has 399 rows and 1 outputs"):
        svc.fit(X[1:], y[1:])
    assert not hasattr(SlimSVC().fit(X, y), "_start")


def test_streams_start_warm_with_the_same_settings_alone():
    svc = SlimSVC(10, trainer="rbp", gamma=0.2, warm_start=True, random_state=0).fit(X, y)
    for settings in ({"budget": 9}, {"gamma": 0.3}):
        with pytest.raises(ValueError, match="changed since the stream began"):
            clone(svc).fit(X, y).set_params(**settings).fit(X, y)
    with pytest.raises(ValueError, match="features, sparseness or number of classes differ"):
        svc.fit(X, np.arange(y.size) % 3)
    with pytest.raises(ValueError, match="features, sparseness or number of classes differ"):
        svc.fit(csr_array(X), y)
    assert svc.fit(X[:90], y[:90]).stream_.state.seen == 490  # other rows are no trouble


@pytest.mark.parametrize("name", ["sbp", "pegasos", "perceptron", "lp", "sdca"])
def test_a_warm_start_from_another_method(name):
    """Rows drawn by another method are unknown, and so is whether it has found this one's optimum."""
    svc = SlimSVC(warm_start=True, random_state=0).fit(X, y)
    exact = svc.score(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.set_params(trainer=made(name)).fit(X, y)
    assert svc.score(X, y) > exact - 0.02


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_warm_start_with_another_cost_finds_its_optimum(C):
    warm = SlimSVC(warm_start=True, trainer="sbp", random_state=0).fit(X, y).set_params(C=C).fit(X, y)
    cold = SlimSVC(trainer="sbp", C=C, random_state=0).fit(X, y)
    outputs = cold.decision_function(X)
    np.testing.assert_allclose(warm.decision_function(X), outputs, atol=0.2 * np.abs(outputs).max())
    trainer = Pegasos(passes=1000, gap=0.05)  # its goal is a certificate
    svc = SlimSVC(warm_start=True, trainer=trainer, random_state=0).fit(X, y).set_params(C=C).fit(X, y)
    assert svc.status_ is Status.CONVERGED


@pytest.mark.parametrize("changed", ["gamma", "labels", "rows"])
def test_a_warm_start_for_another_problem_finds_its_optimum(changed):
    svc = SlimSVC(warm_start=True, trainer="sbp", gamma=0.5, random_state=0).fit(X, y)
    rows, labels = (X[::-1].copy(), y) if changed == "rows" else (X, y)
    labels = 1 - y if changed == "labels" else y[::-1].copy() if changed == "rows" else y
    warm = svc.set_params(gamma=5.0 if changed == "gamma" else 0.5).fit(rows, labels)
    cold = SlimSVC(gamma=warm.gamma, tol=1e-5).fit(rows, labels)
    assert warm.score(rows, labels) >= cold.score(rows, labels) - 0.02


@pytest.mark.parametrize("name", ["pegasos", "perceptron"])
def test_a_step_after_a_warm_start_is_small(name):
    """The steps of these methods get shorter with the rows drawn, also with those of runs before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc = SlimSVC(trainer=made(name), warm_start=True, random_state=0).fit(X, y)
        before = svc.decision_function(X)
        svc.set_params(max_iter=4).fit(X, y)
    assert svc.n_iter_ == 4
    np.testing.assert_allclose(svc.decision_function(X), before, atol=0.05 * np.abs(before).max())


def test_many_classes_start_warm_with_steps_of_their_own():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(300, 4)), rng.integers(3, size=300)
    svc = SlimSVC(warm_start=True, trainer=SBP(), random_state=0, multiclass="ovr").fit(rows, labels)
    first, outputs = svc.n_iter_, svc.decision_function(rows)
    assert svc.fit(rows, labels).n_iter_ < 0.5 * first
    np.testing.assert_allclose(svc.decision_function(rows), outputs, atol=0.1 * np.abs(outputs).max())


def test_a_model_is_shrunk_anew_after_a_warm_start():
    """The second fit trains from the first one's coefficients, and its path is that of a fit of its own."""
    settings = {"reducer": "slant-aggressive", "random_state": 0}
    first = SlimSVC(5, warm_start=True, **settings).fit(X, y)
    path, steps = first.path_.to_dict(), first.n_iter_
    again = first.fit(X, y)
    assert again.n_iter_ < 0.2 * steps
    assert again.path_.sizes == path["size"].tolist() if hasattr(path["size"], "tolist") else path["size"]
    np.testing.assert_allclose(again.path_.to_dict()["error"], path["error"], atol=0.05)
