"""Rows that are torch tensors or other device arrays: taken as they are, with the model of the same rows on the host."""

import numpy as np
import pytest

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm.rows import array as array_module
from slimsvm.rows.backends import has_torch_device

LIBRARIES = {"torch:cpu": "torch", "cuda": "torch", "array_api_strict": "array_api_strict"}


@pytest.fixture(params=LIBRARIES)
def device(request):
    """A device whose library is installed."""
    pytest.importorskip("array_api_compat")
    pytest.importorskip(LIBRARIES[request.param])
    if request.param == "cuda" and not has_torch_device("cuda"):
        pytest.skip("there is no CUDA GPU")
    return request.param


def there(X, device):
    """X as an array of the device's library."""
    if device == "array_api_strict":
        import array_api_strict as xp

        return xp.asarray(X, device=xp.Device("device1"))
    import torch

    return torch.tensor(X, device=device.removeprefix("torch:"))


def made(n=80, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 3.0
    return X, np.where(X[:, 0] * X[:, 1] > 9, "a", "b"), X[:, 0] ** 2


@pytest.mark.parametrize(
    ("dtype", "settings"), [(np.float32, {}), (np.float64, {"budget": 3, "random_state": 0})], ids=["exact", "small"]
)
def test_a_classifier_takes_device_arrays(device, dtype, settings):
    X, y, _ = made()
    X = X.astype(dtype)
    host = SlimSVC(device=device, **settings).fit(X, y)
    model = SlimSVC(device=device, **settings).fit(there(X, device), y)
    np.testing.assert_allclose(model.decision_function(there(X, device)), host.decision_function(X), atol=2e-3)
    np.testing.assert_array_equal(model.predict(there(X, device)), host.predict(X))
    assert model.n_features_in_ == 4


def test_regression_and_novelty_take_device_arrays(device):
    X, _, t = made()
    for kind, labels in ((SlimSVR, (t,)), (SlimOneClassSVM, ())):
        host, model = kind(device=device).fit(X, *labels), kind(device=device).fit(there(X, device), *labels)
        np.testing.assert_allclose(model.predict(there(X, device)), host.predict(X), atol=1e-6)


def test_labels_may_be_tensors():
    pytest.importorskip("array_api_compat")
    torch = pytest.importorskip("torch")
    X, _, t = made()
    model = SlimSVR(device="torch:cpu").fit(torch.tensor(X), torch.tensor(t))
    np.testing.assert_allclose(model.predict(X), SlimSVR().fit(X, t).predict(X), atol=1e-4)


def test_whole_rows_never_come_to_the_host(device, monkeypatch):
    X, y, _ = made(200)

    def refuse(*_, **__):
        raise AssertionError("all rows came to the host")

    monkeypatch.setattr(array_module.OnDevice, "__array__", refuse)
    model = SlimSVC(device=device).fit(there(X, device), y)
    assert model.predict(there(X, device)).shape == (200,)


BAD = {
    "one axis": (lambda X: X[:, 0], r"two axes, but X has 1"),
    "no rows": (lambda X: X[:0], r"0 rows of 4 features"),
    "other width": (lambda X: X[:, :3], r"3 features.*expecting 4"),
    "not a number": (lambda X: np.where(X > 4, np.nan, X), r"must be finite"),
    "infinite": (lambda X: np.where(X > 4, np.inf, X), r"must be finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_device_arrays_are_refused(device, name):
    X, y, _ = made()
    change, words = BAD[name]
    model = SlimSVC(device=device).fit(X, y)
    with pytest.raises(ValueError, match=words):
        model.predict(there(change(X), device))


def test_one_row_is_not_enough_to_fit(device):
    X, y, _ = made()
    with pytest.raises(ValueError, match="1 rows, but at least 2"):
        SlimSVC(device=device).fit(there(X[:1], device), y[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SlimSVC(device=device).fit(there(X, device), y[:-1])
