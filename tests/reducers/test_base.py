"""The frame that reducers stand in: what it makes of the models that a method yields, and of how the method ends."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from slimsvm import SlimSVC
from slimsvm import clock as deadline_module
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Custom, Linear, Precomputed
from slimsvm.limits import Deadline
from slimsvm.model import Holdout, Status, Task
from slimsvm.reducers.base import Reducer
from slimsvm.rows.host import HostRows
from slimsvm.run import Run


@dataclass(frozen=True)
class Scripted(Reducer):
    """Yields models of the sizes given, whose bias is their turn; ends as told."""

    script: tuple[int, ...] = ()
    ending: Status | None = None
    raises: BaseException | None = None
    needs_model: ClassVar[bool] = False

    def models(self, task, sizes, model):  # noqa: ARG002
        for turn, size in enumerate(self.script):
            yield task.expansion(np.arange(size), np.zeros((size, 1)), np.array([float(turn)])), f"turn {turn}"
        if self.raises:
            raise self.raises
        return self.ending


@pytest.fixture
def task():
    """Held-out rows that only outputs above 0 get right."""
    X = np.arange(20.0)[:, None]
    holdout = Holdout(HostRows(RBF(1.0), X), np.ones(20, dtype=int), np.ones(20), OneVsRest(2))
    return Task(HostRows(RBF(1.0), X), np.ones((20, 1)), np.ones(20), holdout=holdout)


def test_models_come_in_order_of_size_and_the_better_of_two_counts(task):
    path = Scripted((4, 2, 2, 1)).path(task, [1, 2, 4])
    assert path.sizes == [1, 2, 4]
    assert path.errors == [0.0, 0.0, 1.0]
    assert [step.settings for step in path] == ["turn 3", "turn 1", "turn 0"]
    assert path.n_validation == 20


@pytest.mark.parametrize(
    ("reducer", "status"),
    [
        (Scripted((1, 2, 4)), Status.BUDGET),
        (Scripted((1, 2)), Status.EXHAUSTED),
        (Scripted((1, 2), Status.CONVERGED), Status.CONVERGED),
        (Scripted((1, 2), raises=KeyboardInterrupt()), Status.INTERRUPTED),
    ],
    ids=["largest size found", "no more models", "says so itself", "Ctrl-C"],
)
def test_a_path_says_how_it_ended(reducer, status, task):
    assert reducer.path(task, [1, 2, 4]).status is status


def test_time_that_ran_out_before_the_largest_size_is_told(task, monkeypatch):
    clock = iter([0.0, 99.0, 99.0])
    monkeypatch.setattr(deadline_module, "perf_counter", lambda: next(clock))
    assert Scripted((1, 2), time_limit=5.0).path(task, [1, 2, 4]).status is Status.TIME_LIMIT


def test_no_model_in_time_is_an_error_that_says_what_to_do(task, monkeypatch):
    clock = iter([0.0, 99.0])
    monkeypatch.setattr(deadline_module, "perf_counter", lambda: next(clock))
    with pytest.raises(TimeoutError, match="Scripted found no model in 5 seconds; raise time_limit"):
        Scripted((), time_limit=5.0).path(task, [1, 2])


def test_ctrl_c_before_the_first_model_and_errors_are_passed_on(task):
    for error in (KeyboardInterrupt(), MemoryError()):
        with pytest.raises(type(error)):
            Scripted(raises=error).path(task, [1, 2])
    with pytest.raises(MemoryError):
        Scripted((1,), raises=MemoryError()).path(task, [1, 2])


def test_sizes_are_handed_over_in_order_and_once(task):
    given = []

    class Listening(Scripted):
        def models(self, task, sizes, model):
            given.append(sizes)
            yield from super().models(task, sizes, model)

    Listening((1,)).path(task, iter([8, 2, 2, 4]))
    assert given == [[2, 4, 8]]


def test_progress_is_told_in_shares_of_the_largest_size(task):
    heard = []
    told = Task(task.rows, task.targets, task.weights, run=Run(lambda phase, done: heard.append((phase, done))))
    Scripted((1, 2, 4)).path(told, [1, 2, 4])
    assert heard == [("shrink", 0.25), ("shrink", 0.5), ("shrink", 1.0)]


def test_a_reducer_that_follows_a_full_model_needs_one(task):
    class Following(Scripted):
        needs_model = True

    with pytest.raises(ValueError, match="Following shrinks a full model, but there is none"):
        Following((1,)).path(task, [1])


@pytest.mark.parametrize(
    ("attributes", "taken"),
    [
        ({}, {"linear", "callable", "precomputed"}),
        ({"selects": False}, {"linear", "callable"}),
        ({"selects": False, "needs_gradients": True}, {"linear"}),
    ],
    ids=["selects", "makes points", "moves points"],
)
def test_what_a_method_needs_says_which_kernels_it_takes(attributes, taken):
    kind = type("Kind", (Scripted,), attributes)
    kernels = [Linear(), Custom(lambda A, B: A @ B.T), Precomputed()]
    assert {kernel.name for kernel in kernels if kind.takes(kernel)} == taken


def test_a_deadline_counts_down(monkeypatch):
    now = 10.0
    monkeypatch.setattr(deadline_module, "perf_counter", lambda: now)
    soon, never = Deadline(5.0), Deadline()
    assert (soon.left, soon.over, never.left, never.over) == (5.0, False, None, False)
    now = 20.0
    assert soon.over
    assert 0 < soon.left < 1e-6
    assert never.left is None
    assert not never.over


@pytest.mark.parametrize("reducer", ["nystroem", "spsvm"])
def test_the_estimator_fills_in_its_cost(reducer, make_blobs):
    svm = SlimSVC(5, C=3.0, reducer=reducer, random_state=0).fit(*make_blobs())
    assert svm.model_.size <= 5
    assert all("C=3," in step.settings for step in svm.path_)
