"""The comparison of two methods on blocks of neighbouring rows."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from slimsvm import SlimSVC
from slimsvm.kernels import RBF
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Task
from slimsvm.reducers.base import Reducer
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.slim.drift import better_on_neighbours
from slimsvm.slim.method import Slim
from slimsvm.slim.neighbours import PIECES


@dataclass(frozen=True)
class Threshold(Reducer):
    """A made method: the sign of x - at."""

    at: float = 0.0
    needs_model: ClassVar[bool] = False

    def models(self, task, sizes, model):  # noqa: ARG002
        yield Expansion(task.rows.kernel, np.array([[self.at]]), np.zeros((1, 1)), np.array([0.0])), "none"


@dataclass(frozen=True)
class Sloped(Reducer):
    """A made method with the linear function x - at."""

    at: float = 0.0
    needs_model: ClassVar[bool] = False

    def models(self, task, sizes, model):  # noqa: ARG002
        from slimsvm.kernels import Linear

        yield Expansion(Linear(), np.array([[1.0]]), np.array([[1.0]]), np.array([-self.at])), "none"


@pytest.mark.parametrize(
    ("plain", "at", "better"), [(0.9, 0.0, True), (0.0, 0.0, False), (0.0, 0.9, False), (0.6, -0.6, False)]
)
def test_a_method_must_be_better_and_worse_on_no_block(plain, at, better):
    from slimsvm.kernels import Linear

    x = np.concatenate([np.linspace(-1, -0.5, 50), np.linspace(-0.5, 0.5, 100), np.linspace(0.5, 1, 50)])
    rng = np.random.default_rng(0)
    x[50:150] = rng.permutation(x[50:150])
    task = Task(HostRows(Linear(), x[:, None]), np.where(x > 0, 1.0, -1.0)[:, None], np.ones(200), rng)
    assert better_on_neighbours(task, Sloped(at=plain), Sloped(at=at), 1, None) == better


def test_no_time_means_no():
    x = np.linspace(-1, 1, 50)
    task = Task(HostRows(RBF(1.0), x[:, None]), np.where(x > 0, 1.0, -1.0)[:, None], np.ones(50))
    assert not better_on_neighbours(replace(task, run=Run(deadline=Deadline(1e-9))), Threshold(), Threshold(), 1, None)


def test_a_comparison_leaves_the_random_numbers_of_the_task():
    x = np.linspace(-1, 1, 50)
    tasks = [
        Task(HostRows(RBF(1.0), x[:, None]), np.where(x > 0, 1.0, -1.0)[:, None], np.ones(50), np.random.default_rng(0))
        for _ in range(2)
    ]
    better_on_neighbours(tasks[0], Threshold(), Threshold(), 1, None)
    assert tasks[0].rng.random() == tasks[1].rng.random()


def test_rows_of_small_classes_only_mean_no():
    x = np.linspace(-1, 1, 2 * PIECES - 2)
    task = Task(HostRows(RBF(1.0), x[:, None]), np.where(x > 0, 1.0, -1.0)[:, None], np.ones(x.size))
    assert not better_on_neighbours(task, Threshold(), Threshold(), 1, None)


def test_too_few_rows_for_a_block_leave_the_metric_fixed():
    X = np.array([[-0.8], [-1.4], [0.3], [-0.6], [-1.0]])
    svc = SlimSVC(2, C=100.0, random_state=0, reducer=Slim(metric="auto", steps=5)).fit(X, [0, 1, 0, 1, 0])
    assert svc.model_.metric is None
