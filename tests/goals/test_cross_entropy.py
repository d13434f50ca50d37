"""The cross-entropy of outputs, against scikit-learn's log loss and finite differences."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import softmax
from sklearn.metrics import log_loss

from slimsvm.goals import OneVsRest
from slimsvm.goals.margin_targets import SHARPNESS, CrossEntropy


def case(classes, rows=30):
    rng = np.random.default_rng(classes)
    labels, goal = rng.integers(0, classes, rows), OneVsRest(classes)
    return labels, rng.normal(size=(rows, goal.outputs)), CrossEntropy(goal.encode(labels))


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_mean_is_scikit_learns_log_loss(classes):
    labels, outputs, loss = case(classes)
    scores = np.hstack([np.zeros_like(outputs), outputs]) if classes == 2 else outputs
    shares = softmax(SHARPNESS * scores, axis=1)
    assert loss.measured(outputs)[0].mean() == pytest.approx(log_loss(labels, shares, labels=range(classes)))


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_slopes_and_curvature_are_those_of_finite_differences(classes):
    _, outputs, loss = case(classes)

    def total(flat):
        return loss.measured(flat.reshape(outputs.shape))[0].sum()

    slow = approx_fprime(outputs.ravel(), total, 1e-7).reshape(outputs.shape)
    np.testing.assert_allclose(loss.measured(outputs)[1], slow, atol=1e-5)
    second = [
        (loss.measured(outputs + step)[1] - loss.measured(outputs - step)[1])[:, k] / 2e-5
        for k, step in enumerate(1e-5 * np.eye(outputs.shape[1]))
    ]
    assert loss.curvature(outputs) == pytest.approx(np.mean(second), rel=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
def test_outputs_of_any_size_have_a_finite_loss(classes):
    _, outputs, loss = case(classes)
    losses, slopes = loss.measured(1e6 * outputs)
    assert np.isfinite(losses).all()
    assert np.isfinite(slopes).all()


def test_some_rows():
    _, outputs, loss = case(4)
    some = np.array([3, 0, 8])
    np.testing.assert_array_equal(loss[some].measured(outputs[some])[0], loss.measured(outputs)[0][some])
    assert loss[:5].shape == (5, 4)
