"""Fits that end in time, and fits that start from the last one."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm.clock import Deadline
from slimsvm.model import Status, Task
from slimsvm.rows.host import HostRows
from slimsvm.trainers import TRAINERS
from slimsvm.trainers.frames.online import OnlineTrainer
from slimsvm.trainers.smo import SMO

X, y = make_classification(400, 5, n_informative=4, n_redundant=0, flip_y=0.2, random_state=0)
WARM = sorted(name for name, kind in TRAINERS.items() if getattr(kind, "starts_warm", False))


def made(name, **more):
    """A trainer with a budget where it needs one."""
    fields = {field.name for field in dataclasses.fields(TRAINERS[name])}
    return TRAINERS[name](**({"budget": 20} if "budget" in fields else {}), **more)


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_has_a_time_limit(name):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        made(name, time_limit=0.0)
    settings = {"working_set": 20} if "working_set" in TRAINERS[name].__dataclass_fields__ else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc = SlimSVC(trainer=made(name, time_limit=1e-9, **settings), C=100.0, random_state=0).fit(X, y)
    assert svc.status_ is Status.TIME_LIMIT
    assert np.isfinite(svc.decision_function(X)).all()


@pytest.mark.parametrize("kind", [SlimSVC, SlimSVR, SlimOneClassSVM])
def test_every_estimator_has_a_time_limit(kind):
    settings = {} if kind is SlimOneClassSVM else {"C": 100.0}
    with pytest.warns(ConvergenceWarning, match="SMO stopped at the time limit; raise time_limit or tol"):
        model = kind(time_limit=1e-9, trainer=SMO(working_set=20), **settings).fit(X, y)
    assert (model.status_, model.fit_status_) == (Status.TIME_LIMIT, 1)
    with pytest.raises(ValueError, match="time_limit must be a number of seconds"):
        kind(time_limit="soon").fit(X, y)


def test_outputs_share_the_time():
    """No output is left without a step, however short the time."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(900, 4)), rng.integers(3, size=900)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        svc = SlimSVC(time_limit=1e-9, trainer=SMO(working_set=20)).fit(rows, labels)
    assert (np.abs(np.asarray(svc.model_.coef)).sum(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [({}, 100.0), ({"budget": 3}, 50.0), ({"calibration": "sigmoid"}, 20.0), ({"tolerance": 0.9}, 12.5)],
    ids=["training alone", "half for shrinking", "a fifth, four for folds", "three folds before training"],
)
def test_training_has_its_share_of_the_time(settings, seconds, monkeypatch):
    heard, fit = [], SMO.fit

    def hearing(self, task, *more):
        heard.append(task.deadline.left)
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


@pytest.mark.parametrize("name", WARM)
def test_warm_starts_take_fewer_steps_to_the_same_optimum(name):
    settings = {"working_set": 100} if "working_set" in TRAINERS[name].__dataclass_fields__ else {}
    svc = SlimSVC(trainer=made(name, **settings), warm_start=True, tol=1e-4, random_state=0).fit(X, y)
    first, outputs = svc.n_iter_, svc.decision_function(X)
    again = svc.fit(X, y)
    assert again.n_iter_ < (1.0 if name == "ramp" else 0.5) * first  # ramp's first step is the SVM, whatever the start
    np.testing.assert_allclose(again.decision_function(X), outputs, atol=0.02)


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


def test_impossible_warm_starts():
    with pytest.raises(ValueError, match=r"Pegasos cannot; the trainers that can are \['any-norm'.*'smo'\]"):
        SlimSVC(trainer="pegasos", warm_start=True).fit(X, y)
    svc = SlimSVC(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="400 rows and 1 outputs, but this one has 399 rows and 1 outputs"):
        svc.fit(X[1:], y[1:])
    assert not hasattr(SlimSVC().fit(X, y), "_start")
