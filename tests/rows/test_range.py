"""Features far from 1: float32 holds their squares only within its range, so rows beyond it are float64."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm import SlimSVC
from slimsvm.kernels import RBF, Poly, Sigmoid
from slimsvm.reducers import Slim
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Precision, fits_float32, rounding_error

#: float32 for any amount of work
SINGLE = Precision(small_work=0.0)
UNITS = [1e-60, 1e-25, 1e-20, 1e-12, 1.0, 1e12, 1e20, 1e60]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kernel", [RBF, Poly, Sigmoid])
def test_kernel_values_do_not_depend_on_the_unit_of_features(kernel, unit, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < (0.1 if form is csr_array else 1.0))
    V = rng.normal(size=(60, 2))
    exact = kernel(gamma=0.2)(X, X) @ V
    rows = HostRows(kernel(gamma=0.2 / unit**2), form(unit * X), precision=SINGLE)
    np.testing.assert_allclose(rows.product(rows.take(np.arange(60)), V), exact, atol=1e-3)
    assert (rows.prepared.values.dtype == np.float32) == (1e-12 <= unit <= 1e11)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kernel", [RBF, Poly])
def test_devices_have_the_same_range(kernel, unit):
    pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(60, 5)), rng.normal(size=(60, 2))
    rows = open_rows(kernel(gamma=0.2 / unit**2), unit * X, device="array_api_strict", precision=SINGLE)
    np.testing.assert_allclose(rows.product(rows.take(np.arange(60)), V), kernel(gamma=0.2)(X, X) @ V, atol=1e-3)


def test_norms_beyond_float32_are_told():
    assert fits_float32(1.0)
    assert not any(fits_float32(radius) for radius in (0.0, 1e-40, 1e40, np.inf, np.nan))
    assert rounding_error(RBF(1e-40), 5, 1e39) == np.inf  # its exponent is moderate, but products are not
    assert rounding_error(RBF(1.0), 5, 0.0) < 1e-5  # a point at the centre of the rows


@pytest.mark.parametrize("unit", [1e-25, 1e20])
@pytest.mark.parametrize("settings", [{}, {"budget": 8}, {"budget": 8, "metric": "both"}], ids=str)
def test_models_do_not_depend_on_the_unit_of_features(settings, unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    reducer = Slim(steps=5, metric=settings.get("metric", "fixed"))
    settings = {"budget": settings.get("budget"), "reducer": reducer, "random_state": 0}
    plain, scaled = (SlimSVC(**settings).fit(each * X, y) for each in (1.0, unit))
    assert scaled.score(unit * X, y) == pytest.approx(plain.score(X, y), abs=0.02)
