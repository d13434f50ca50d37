"""What small models should reach, against a plain loop, with a full model and without."""

from dataclasses import replace

import numpy as np
import pytest

from slimsvm.goals import Regression
from slimsvm.kernels import RBF
from slimsvm.model import Expansion, Task
from slimsvm.rows.host import HostRows
from slimsvm.solvers.basis import wanted


@pytest.fixture
def task():
    """Two outputs; every third row has no part in the second."""
    rng = np.random.default_rng(0)
    targets = np.where(rng.random((30, 2)) < 0.5, 1.0, -1.0)
    targets[::3, 1] = 0.0
    return Task(HostRows(RBF(0.5), rng.normal(size=(30, 3))), targets, np.ones(30))


def margins(task, margin_targets):
    """The h of margin targets y f >= h."""
    assert (np.isfinite(margin_targets.low) <= (task.targets > 0)).all()
    assert (np.isfinite(margin_targets.high) <= (task.targets < 0)).all()
    return np.where(task.targets > 0, margin_targets.low, -margin_targets.high)


def test_classes_demand_the_margins_of_the_full_model_up_to_one(task):
    rng = np.random.default_rng(1)
    model = Expansion(RBF(0.5), rng.normal(size=(8, 3)), 2 * rng.normal(size=(8, 2)), np.array([0.1, -0.2]))
    outputs = model(task.rows.given.rows())
    found = margins(task, wanted(task, model))
    for row, column in np.ndindex(task.targets.shape):
        margin = task.targets[row, column] * outputs[row, column]
        assert found[row, column] == pytest.approx(min(margin, 1.0) if margin > 0 else -np.inf)
    assert (found == 1.0).any()
    assert ((found < 1.0) & (found > 0)).any()


def test_without_a_full_model_each_row_demands_a_margin_of_one_where_it_has_a_part(task):
    np.testing.assert_array_equal(margins(task, wanted(task, None)), np.where(task.targets == 0, -np.inf, 1.0))


def test_a_full_model_that_is_right_nowhere_is_refused(task):
    wrong = Expansion(RBF(0.5), task.rows.given.rows()[:1], np.zeros((1, 2)), np.array([5.0, 0.0]))
    one_sided = Task(task.rows, -np.ones((30, 2)), np.ones(30))
    with pytest.raises(ValueError, match="a small model cannot follow it"):
        wanted(one_sided, wrong)
    np.testing.assert_array_equal(wanted(one_sided, wrong, or_labels=True).high, -1.0)


def test_values_demand_their_tubes_or_the_outputs_of_the_full_model(task):
    targets = np.arange(30.0)[:, None]
    values = replace(task, targets=targets, goal=Regression(epsilon=0.5))
    margin_targets = wanted(values, None)
    np.testing.assert_array_equal(margin_targets.high - 0.5, targets)
    np.testing.assert_array_equal(margin_targets.low + 0.5, targets)
    model = Expansion(RBF(0.5), task.rows.given.rows()[:2], np.ones((2, 1)), np.zeros(1))
    followed = wanted(values, model)
    np.testing.assert_allclose(followed.low, model(task.rows.given.rows()))
    np.testing.assert_array_equal(followed.high, followed.low)
