"""The function in a .slim file, read without scikit-learn: that of the estimator, or None where an estimator is needed."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from shipped import LAYOUTS, SCALERS, model_of
from sklearn.datasets import load_iris

from slimsvm import SlimSVC, load, runtime, save
from slimsvm.files import container
from slimsvm.kernels.spec import SPECS
from slimsvm.ship.runtime import Runtime
from slimsvm.ship.slim import read_slim
from slimsvm.ship.source import artefact_of

FILES = sorted((Path(__file__).parents[1] / "compat" / "models").glob("*/*.slim"))


def assert_same(found, model):
    expected = artefact_of(model)
    for name in ("points", "coef", "bias", "classes", "widths"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.kernel, found.parameters, found.goal) == (expected.kernel, expected.parameters, expected.goal)
    width = expected.features if expected.preparation is None else expected.preparation.given
    X = np.random.default_rng(0).random((20, width))
    np.testing.assert_array_equal(Runtime(found)(X), Runtime(expected)(X))
    np.testing.assert_array_equal(Runtime(found).scores(X), Runtime(expected).scores(X))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaler", SCALERS)
def test_the_function_is_that_of_the_estimator(layout, scaler, tmp_path):
    model = model_of(layout=layout, scaler=scaler)
    save(model, tmp_path / "m.slim")
    assert_same(read_slim(tmp_path / "m.slim"), model)


@pytest.mark.parametrize("kernel", SPECS)
def test_every_kernel_is_read(kernel, tmp_path):
    model = model_of(kernel)
    save(model, tmp_path / "m.slim")
    assert_same(read_slim(tmp_path / "m.slim"), model)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_files_of_earlier_versions_are_read(path):
    found = read_slim(path)
    if found is not None:
        assert_same(found, load(path))


def test_what_needs_an_estimator_is_left_to_it(tmp_path):
    X, y = load_iris(return_X_y=True)
    sparse = SlimSVC().fit(csr_array(X), y)
    save(sparse, tmp_path / "sparse.slim")
    assert read_slim(tmp_path / "sparse.slim") is None
    np.testing.assert_array_equal(runtime(tmp_path / "sparse.slim")(X), sparse.predict(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [("model_.points", np.ones((3, 9))), ("model_.bias", np.array([np.nan])), ("model_.coef", np.ones((2, 2), dtype=int))],
)
def test_a_file_whose_parts_do_not_fit_is_refused_by_the_estimators_reader(name, value, tmp_path):
    path = tmp_path / "m.slim"
    save(model_of(), path)
    header, arrays = container.unpack_file(path.read_bytes())
    del header["arrays"]
    path.write_bytes(b"".join(container.pack_file(header, arrays | {name: value})))
    assert read_slim(path) is None
    with pytest.raises(ValueError, match="cannot load"):
        runtime(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        runtime(path)
