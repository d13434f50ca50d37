"""The running sum of curvature and the line search of Newton's method, each against its plain definition."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from slimsvm.kernels import RBF
from slimsvm.rows.host import HostRows
from slimsvm.solvers import curvature as curvature_module
from slimsvm.solvers.curvature import RunningCurvature
from slimsvm.solvers.newton import Line


@pytest.mark.parametrize("few", [0, 512])
def test_a_running_sum_is_the_sum_over_the_active_rows(few, monkeypatch):
    monkeypatch.setattr(curvature_module, "FEW_ROWS", few)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60)
    against, curvature = HostRows(RBF(0.5), X).against(X[:9]), RunningCurvature()
    active = rng.random(60) < 0.7
    for size in (4, 4, 6, 9, 9):
        part = against.first(size)
        D = np.hstack([np.ones((60, 1)), RBF(0.5)(X, X[:size])])[active]
        found = curvature.at(part, active.copy(), np.flatnonzero(active), weights)
        np.testing.assert_allclose(found, D.T @ (weights[active, None] * D), rtol=1e-10)
        active[rng.integers(60, size=4)] ^= True


@pytest.mark.parametrize("seed", range(8))
def test_a_line_search_ends_at_the_least_value(seed):
    rng = np.random.default_rng(seed)
    low, change = rng.normal(size=(2, 30))
    high = low + np.where(rng.random(30) < 0.5, np.inf, rng.random(30))
    line = Line(low, high, np.zeros(30), change, np.ones(30), rng.normal(), rng.uniform(0.1, 2.0))

    def value(t):
        distance = np.clip(t * change, low, high) - t * change
        return line.quadratic * t**2 + 2 * line.linear * t + distance @ distance

    best = minimize_scalar(value, tol=1e-12)
    for start in (0.0, 1.0, -50.0):
        t = line.minimum(start)
        assert t == pytest.approx(best.x, abs=1e-6)
        assert value(t) <= best.fun + 1e-12 * abs(best.fun)
        assert line.gain(t) == pytest.approx(value(0.0) - value(t))
