"""Units of targets: inside values have mean 0 and variance 1, and models map back to what they were."""

import numpy as np
import pytest

from slimsvm.kernels import make_kernel
from slimsvm.model import Expansion
from slimsvm.selection.judge import Units


@pytest.fixture
def values():
    return 5e3 + 200 * np.random.default_rng(0).normal(size=50)


def test_inside_values_have_mean_0_and_variance_1(values):
    weights = np.random.default_rng(1).uniform(0.5, 2, values.size)
    units = Units.of(values, weights)
    inside = units.inside(values)
    assert np.average(inside, weights=weights) == pytest.approx(0, abs=1e-12)
    assert np.average(inside**2, weights=weights) == pytest.approx(1)
    np.testing.assert_allclose(units.outside(inside), values)


def test_a_model_computes_the_same_values_in_other_units(values):
    rng, units = np.random.default_rng(0), Units.of(values, np.ones(values.size))
    X = rng.normal(size=(20, 3))
    kernel = make_kernel("rbf", gamma=0.5, degree=1, coef0=0.0)
    model = Expansion(kernel, X[:4], rng.normal(size=(4, 1)), np.array([7e3]))
    inside = units.model_inside(model)
    np.testing.assert_allclose(units.outside(inside(X)), model(X))
    np.testing.assert_allclose(units.model_outside(inside)(X), model(X))


@pytest.mark.parametrize("alike", [0.0, 3.0, 1e17])
def test_targets_that_are_all_alike_have_a_scale_of_1(alike):
    assert Units.of(np.full(7, alike) * (1 + 1e-16), np.full(7, 0.1)).scale == 1.0
