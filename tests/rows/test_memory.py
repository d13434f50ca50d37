"""Rows that are files: their copies are files too, and nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from slimsvm import SlimSVC
from slimsvm.estimators.base import MAPPED_ROWS
from slimsvm.kernels import RBF, Laplacian, Linear
from slimsvm.rows.host import HostRows
from slimsvm.rows.memory import LARGE, check_mapped, gathered, is_mapped, mapped_empty
from slimsvm.rows.precision import Given, prepare

#: features and rows of a copy in float32 that is a file
WIDE, MANY = 512, LARGE // 4 // 512


def mapped(X, folder, name="rows"):
    """The rows as a file that cannot be written to."""
    np.save(folder / f"{name}.npy", X)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def rows_of(n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3.0


def test_views_of_files_are_files(tmp_path):
    X = mapped(rows_of(), tmp_path)
    assert all(is_mapped(view) for view in (X, X[3:], np.asarray(X), np.asarray(X)[:, 1:], X.T))
    assert not any(is_mapped(other) for other in (X[[1, 2]].copy(), rows_of(), None, [[1.0]]))


def test_temporary_files_have_no_names(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = mapped_empty((100, 3), np.float32)
    made[:] = 7.0
    assert is_mapped(made)
    assert made.sum() == 2100.0
    assert list(tmp_path.iterdir()) == []
    assert mapped_empty((0, 3), np.float32).shape == (0, 3)


def test_a_disk_without_room_is_an_error_not_a_signal():
    if not hasattr(os, "posix_fallocate"):
        pytest.skip("no posix_fallocate here")
    with pytest.raises(OSError, match=r"No space left|File too large|Invalid argument"):
        mapped_empty((1 << 40, 1 << 10), np.float64)


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Laplacian(0.1)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_rows_in_memory(kernel, dtype, tmp_path):
    X = rows_of(MANY + 5, WIDE).astype(dtype)
    V, index = np.arange(4.0).reshape(2, 2), np.arange(MANY + 3)
    there, here = (HostRows(kernel, each, error=np.inf) for each in (mapped(X, tmp_path), X))
    np.testing.assert_array_equal(there.product(X[:2], V), here.product(X[:2], V))
    np.testing.assert_array_equal(there.subset(index).product(X[:2], V), here.subset(index).product(X[:2], V))
    np.testing.assert_array_equal(there.block(index[::99]), here.block(index[::99]))
    assert is_mapped(there.prepared.values)
    assert is_mapped(there.subset(index).prepared.values)
    picked = HostRows(kernel, mapped(X, tmp_path, "b"), index=index)
    assert is_mapped(picked.prepared.values)


def test_rows_that_tiles_take_as_they_are_have_no_copy(tmp_path):
    X = mapped((rows_of(MANY, WIDE) / WIDE).astype(np.float32), tmp_path)  # so near 0 that float32 is precise enough
    prepared = prepare(Linear(), Given(X), 4000, np.inf)
    assert np.shares_memory(prepared.values, X)


def test_points_far_out_widen_a_file_into_a_file(tmp_path):
    prepared = prepare(RBF(0.1), Given(mapped(rows_of(MANY, WIDE) / WIDE, tmp_path)), 4000, np.inf)
    assert prepared.values.dtype == np.float32
    doubled = prepared.doubled()
    assert is_mapped(doubled.values)
    np.testing.assert_array_equal(doubled.values, prepared.values.astype(np.float64))


def test_few_rows_are_gathered_in_memory(tmp_path):
    X = mapped(rows_of(), tmp_path)
    assert not is_mapped(gathered(X, np.arange(3)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.float16], ids=lambda kind: np.dtype(kind).name)
def test_a_fit_to_a_file_is_that_to_the_same_rows_in_memory(dtype, tmp_path):
    X = rows_of(300, LARGE // 8 // 200)  # 200 of the rows are to learn from
    y = X[:, 0] + X[:, 1] > 6.0
    X = (10 * X).astype(dtype)
    settings = {"budget": 4, "reducer": "spsvm", "random_state": 0}
    there, here = SlimSVC(**settings).fit(mapped(X, tmp_path), y), SlimSVC(**settings).fit(X.astype(np.float64), y)
    tolerance = {"atol": 1e-3} if dtype == np.float32 else {"atol": 1e-9}
    np.testing.assert_allclose(there.decision_function(X), here.decision_function(X.astype(np.float64)), **tolerance)
    np.testing.assert_allclose(there.decision_function(mapped(X, tmp_path)), there.decision_function(X), **tolerance)


def test_rows_of_a_file_are_predicted_a_part_at_a_time(tmp_path):
    X = rows_of(MAPPED_ROWS + 7, 2)
    svc = SlimSVC(C=100.0).fit(X[:50], X[:50, 0] > 3)
    np.testing.assert_allclose(svc.decision_function(mapped(X, tmp_path)), svc.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("view", [lambda X: X, lambda X: X[:, :10], lambda X: np.asarray(X)[5:, 1:11]])
def test_a_file_that_was_cut_short_is_refused(tmp_path, view):
    path = tmp_path / "rows.npy"
    X = view(mapped(rows_of(2000, 11), tmp_path))
    check_mapped(X)
    os.truncate(path, 9000)
    few = rows_of(20, X.shape[1])
    for action in (SlimSVC().fit, lambda rows, _: SlimSVC().fit(few, np.arange(20) % 2).predict(rows)):
        with pytest.raises(ValueError, match=r"rows.npy' has 9,000 bytes, but an array of shape .*it was cut short"):
            action(X, np.arange(len(X)) % 2)


def test_numbers_that_are_none_are_found_in_a_file(tmp_path):
    X = rows_of()
    X[250, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SlimSVC().fit(mapped(X, tmp_path), X[:, 0] > 3)


#: fits rows that memory may not hold: what the heap may grow by is less than a copy of them in float32
LIMITED = """
import resource, sys
import numpy as np
from slimsvm import SlimSVC
from slimsvm.estimators.base import MAPPED_ROWS
from slimsvm.reducers import Slim
X = np.load(sys.argv[1], mmap_mode="r")
y = np.concatenate([X[some : some + 4096, 0] > 0 for some in range(0, X.shape[0], 4096)])
reducer = Slim(steps=2, metric="fixed")
svc = SlimSVC(2, trainer=None, reducer=reducer, random_state=0)
svc.fit(X[:500], y[:500])  # what is imported and set up once
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
limit = used + X.size * 4 * 19 // 20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones(X.shape, np.float32)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
print(svc.fit(X, y).score(X, y) > 0.8)
some = np.arange(y.size) % 1000 > 0  # rows of weight 0 are left out
print(svc.set_params(scoring="balanced_accuracy").fit(X, y, some.astype(float)).score(X, y) > 0.8)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is measured by /proc")
def test_rows_larger_than_memory(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype=np.float32, shape=(100_000, 128))
    rng = np.random.default_rng(0)
    for some in range(0, 100_000, 8192):
        X[some : some + 8192, :4] = rng.normal(size=X[some : some + 8192, :4].shape)
        X[some : some + 8192, 4:] = 1.0
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "rows.npy")],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nTrue\n", "")
