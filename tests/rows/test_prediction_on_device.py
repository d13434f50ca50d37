"""Predictions by points that stay on a device are those of the host; the points are sent once, and go with the model."""

import copy
import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm import SlimSVC
from slimsvm.estimators.fitted import outputs_on_device
from slimsvm.kernels import KERNELS, RBF, InnerKernel, make_kernel
from slimsvm.rows import backends
from slimsvm.rows.backends import FLOAT32, FLOAT64, Backend, has_torch_device
from slimsvm.rows.homes import open_backend, rows_on_device
from slimsvm.rows.precision import Precision
from slimsvm.rows.prediction import PlacedPoints, kernel_product
from slimsvm.rows.protocol import Meter

INNER = [name for name in KERNELS if issubclass(KERNELS[name], InnerKernel)]


@pytest.fixture(params=["array_api_strict", "torch:cpu", "cuda"])
def device(request):
    """A device that there is here."""
    pytest.importorskip("array_api_compat")
    pytest.importorskip(request.param if request.param == "array_api_strict" else "torch")
    if request.param == "cuda" and not has_torch_device("cuda"):
        pytest.skip("there is no CUDA GPU")
    return request.param


#: blocks of a few rows
FEW = {"passing": 40}
#: any work is large enough for float32
LARGE = {"precision": Precision(small_work=0)}


def made(n=50, m=7, d=4, q=3):
    rng = np.random.default_rng(0)
    return rng.random((n, d)) * (rng.random((n, d)) < 0.7), rng.random((m, d)), rng.normal(size=(m, q))


def placed(device, kernel, points, V, error=np.inf, **settings):
    return PlacedPoints(open_backend(device), kernel, points, V, error, **settings)


@pytest.mark.parametrize("form", [np.asarray, csr_array, np.asfortranarray, np.float32], ids=lambda form: form.__name__)
@pytest.mark.parametrize("name", INNER)
def test_products_are_those_of_the_host(device, name, form):
    X, points, V = made()
    kernel, X = make_kernel(name, gamma=0.3, degree=3, coef0=0.5), form(X)
    expected = kernel_product(kernel, X, points, V, Meter())
    np.testing.assert_allclose(placed(device, kernel, points, V, **FEW).product(X), expected, atol=1e-6)


def test_rows_on_the_device_stay_there(device):
    X, points, V = made()
    there = open_backend(device).send(X, FLOAT64)
    expected = kernel_product(RBF(0.3), X, points, V, Meter())
    np.testing.assert_allclose(
        placed(device, RBF(0.3), points, V).product(rows_on_device(there, device)), expected, atol=1e-10
    )


def test_float32_is_used_for_large_work_and_rows_nearby_only(device):
    X, points, V = made()
    model = placed(device, RBF(0.3), points, V, **LARGE)
    np.testing.assert_allclose(model.product(X), kernel_product(RBF(0.3), X, points, V, Meter()), atol=1e-5)
    assert set(model._placed) == {(FLOAT32, FLOAT32)}
    far = np.vstack([X, np.full((1, X.shape[1]), 1e4)])
    np.testing.assert_allclose(model.product(far)[:-1], model.product(X), atol=1e-5)
    assert set(model._placed) == {(FLOAT32, FLOAT32), (FLOAT64, FLOAT32)}
    exact = placed(device, RBF(0.3), points, V, error=0.0, **LARGE)
    np.testing.assert_allclose(exact.product(X), RBF(0.3)(X, points) @ V, atol=1e-12)
    assert set(exact._placed) >= {(FLOAT64, FLOAT64)}


def test_rows_and_points_far_from_0_lose_no_digits(device):
    X, points, V = made()
    near = placed(device, RBF(0.3), points, V, **LARGE).product(X)
    np.testing.assert_allclose(placed(device, RBF(0.3), points + 1e5, V, **LARGE).product(X + 1e5), near, atol=1e-4)


def test_a_device_without_float64_says_so_only_where_it_needs_it():
    pytest.importorskip("array_api_compat")
    pytest.importorskip("torch")
    X, points, V = made()
    narrow = replace(open_backend("torch:cpu"), has_float64=False)
    model = PlacedPoints(narrow, RBF(0.3), points, V, np.inf)
    np.testing.assert_allclose(model.product(X), RBF(0.3)(X, points) @ V, atol=1e-5)
    with pytest.raises(ValueError, match="has no float64, and float32 is too coarse"):
        model.product(X + 1e4)
    with pytest.raises(ValueError, match="rows must be finite numbers"):
        model.product(np.where(X > 0.5, np.nan, X))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("work", [0, 1 << 24], ids=["large", "small"])
def test_rows_that_are_not_finite_are_refused(device, value, work):
    X, points, V = made()
    X[3, 1] = value
    with pytest.raises(ValueError, match="rows must be finite numbers"):
        placed(device, RBF(0.3), points, V, precision=Precision(small_work=work)).product(X)


def test_a_block_for_which_there_is_no_memory_is_halved(device, monkeypatch):
    X, points, V = made()
    model = placed(device, RBF(0.3), points, V)
    expected, lift, sizes = model.product(X), Backend.lift, []

    def limited(self, rows, lifted, dtype):
        sizes.append(rows.shape[0])
        if rows.shape[0] > 10:
            raise MemoryError
        return lift(self, rows, lifted, dtype)

    monkeypatch.setattr(Backend, "lift", limited)
    np.testing.assert_allclose(model.product(X), expected, atol=1e-12)
    assert sizes[:4] == [50, 25, 12, 6]


def fitted(device, classes=2, **settings):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] * X[:, 1], np.quantile(X[:, 0] * X[:, 1], np.arange(1, classes) / classes))
    return SlimSVC(device=device, **settings).fit(X, y), SlimSVC(**settings).fit(X, y), X, y


@pytest.mark.parametrize("classes", [2, 4])
def test_points_are_sent_once(device, classes, monkeypatch):
    model, host, X, _ = fitted(device, classes)
    sent, upload = [], Backend.upload

    def watched(self, *arguments):
        sent.append(1)
        return upload(self, *arguments)

    monkeypatch.setattr(backends.Backend, "upload", watched)
    for _ in range(3):
        np.testing.assert_array_equal(model.predict(X), host.predict(X))
    np.testing.assert_allclose(model.decision_function(X), host.decision_function(X), atol=2e-3)
    assert len(sent) == 1


def test_another_model_has_its_own_points(device):
    model, _, X, y = fitted(device)
    model.predict(X)
    model.set_params(gamma=5.0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), SlimSVC(gamma=5.0).fit(X, y).decision_function(X), atol=2e-3)
    host = copy.copy(model).set_params(device="cpu")
    np.testing.assert_allclose(model.decision_function(X), host.decision_function(X), atol=1e-6)


def test_too_many_coefficients_are_not_written_out(device):
    model, host, X, _ = fitted(device, 4)
    np.testing.assert_allclose(outputs_on_device(model, X, most=5), host.model_(X), atol=2e-3)
    assert "_placed" not in vars(model)


def test_the_points_go_with_the_model_and_into_no_copy(device):
    model, _, X, _ = fitted(device)
    labels = model.predict(X)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "_placed" not in vars(other)
        np.testing.assert_array_equal(other.predict(X), labels)
    points = weakref.ref(model._placed.points)
    gc.disable()
    try:
        del model
        assert points() is None
    finally:
        gc.enable()
