"""Variables in which coefficients have the same curvature in every direction."""

import numpy as np
import pytest

from slimsvm.slim.whitening import Whitening


@pytest.mark.parametrize("q", [1, 3])
def test_the_curvature_by_the_new_variables_is_one(q):
    rng = np.random.default_rng(0)
    D = rng.normal(size=(200, 5)) @ np.diag([1.0, 3.0, 0.2, 10.0, 1.0])
    H = D.T @ D
    origin, block = rng.normal(size=4 + 5 * q), slice(2, 2 + 5 * q)
    variables = Whitening.of(origin, block, H)

    def value(x):  # 1/2 c'Hc for each output, and other numbers
        c = x[block].reshape(5, q)
        rest = np.delete(x, np.r_[block])
        gradient = np.zeros(x.size)
        gradient[block] = (H @ c).ravel()
        gradient[np.delete(np.arange(x.size), np.r_[block])] = 2 * rest
        return 0.5 * np.sum(c * (H @ c)) + rest @ rest, gradient

    u, step = rng.normal(size=origin.size), 1e-6
    slopes = [
        (value(variables.at(u + step * e))[0] - value(variables.at(u - step * e))[0]) / (2 * step) for e in np.eye(u.size)
    ]
    np.testing.assert_allclose(variables.carried(value(variables.at(u))[1]), slopes, rtol=1e-4, atol=1e-3)
    carried = [
        variables.carried(value(variables.at(e))[1]) - variables.carried(value(variables.at(0 * e))[1])
        for e in np.eye(u.size)
    ]
    np.testing.assert_allclose(np.array(carried)[block, block], np.eye(5 * q), atol=0.1)  # less the ridge
    np.testing.assert_array_equal(variables.at(np.zeros(u.size)), origin)


def test_equal_columns_leave_variables():
    """Two points at one place: the curvature has no inverse, and its ridge has."""
    variables = Whitening.of(np.zeros(3), slice(0, 3), np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]))
    assert np.isfinite(variables.at(np.ones(3))).all()
    assert np.isfinite(Whitening.of(np.zeros(1), slice(0, 1), np.zeros((1, 1))).at(np.zeros(1))).all()
