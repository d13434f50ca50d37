"""Rows and labels from files that may be larger than memory."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.datasets import dump_svmlight_file

from slimsvm.files import datasets
from slimsvm.files.datasets import open_svmlight, read_data
from slimsvm.files.mapped import BATCH
from slimsvm.rows.memory import is_mapped
from slimsvm.studio.cli import commands as cli

rng = np.random.default_rng(0)
TABLE = np.column_stack([rng.normal(size=(50, 3)), rng.integers(2, size=50)])
#: more rows than are read at a time
LONG = np.tile(TABLE, (BATCH // 50 + 1, 1))


@pytest.mark.parametrize("target", [None, 0, 1, "-2"], ids=str)
def test_npy(target, tmp_path):
    np.save(tmp_path / "d.npy", LONG)
    X, y = read_data(tmp_path / "d.npy", target=target)
    column = int(-1 if target is None else target)
    assert is_mapped(X)
    np.testing.assert_array_equal(X, np.delete(LONG, column, axis=1))
    np.testing.assert_array_equal(y, LONG[:, column])
    assert y.dtype == (np.int64 if target is None else np.float64)
    for width, labels in ((None, 0), (4, 0), (3, len(LONG))):  # one column more than the features has the labels
        rows, found = read_data(tmp_path / "d.npy", labels=False, n_features=width)
        assert rows.shape == (len(LONG), 4 if labels == 0 else 3)
        assert (0 if found is None else found.size) == labels


def test_npy_that_cannot_be_used(tmp_path):
    path = tmp_path / "d.npy"
    np.save(path, TABLE)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(ValueError, match=r"shorter than its header says \(1,720 bytes"):
        read_data(path)
    path.write_bytes(b"no header")
    with pytest.raises(ValueError, match=r"it is not an .npy file"):
        read_data(path)
    with open(path, "wb") as file:
        np.savez(file, X=TABLE)
    with pytest.raises(ValueError, match=r"it is an .npz file with another ending"):
        read_data(path)
    for wrong in (TABLE[:, 0], np.array([["a", "b"]]), TABLE[:0]):
        np.save(path, wrong)
        with pytest.raises(ValueError, match="give numbers, one row each"):
            read_data(path)
    np.save(path, np.where(np.arange(LONG.size).reshape(-1, 4) == 4 * BATCH + 2, np.inf, LONG))
    with pytest.raises(ValueError, match=rf"it has inf at \[{BATCH}, 2\]; fill or drop such rows"):
        read_data(path)
    np.save(path, TABLE)
    for target in ("label", 4, -5):
        with pytest.raises(ValueError, match="it has no column"):
            read_data(path, target=target)


@pytest.fixture
def parquet(tmp_path):
    """Write columns by name to a file, and return its path."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

    def write(**columns):
        pq.write_table(pyarrow.table(columns), tmp_path / "d.parquet", row_group_size=20_000)
        return tmp_path / "d.parquet"

    return write


@pytest.mark.parametrize("target", [None, "y", 2], ids=str)
def test_parquet(target, parquet):
    numbers = (np.arange(len(LONG)) % 30_000).astype(np.int16)  # float32 holds every int16, not every int32
    path = parquet(a=LONG[:, 0].astype(np.float32), b=numbers, y=np.where(LONG[:, 3], "yes", "no"))
    X, y = read_data(path, target=target)
    assert is_mapped(X)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, np.column_stack([LONG[:, 0].astype(np.float32), numbers]))
    assert y.tolist() == np.where(LONG[:, 3], "yes", "no").tolist()


def test_rows_to_predict_may_have_labels(parquet):
    path = parquet(a=TABLE[:, 0], y=["yes", "no"] * 25)
    X, y = read_data(path, labels=False, n_features=1)
    assert (X.shape, set(y)) == ((50, 1), {"yes", "no"})


@pytest.mark.parametrize("name", [None, "number"])
def test_the_index_of_a_data_frame_is_no_feature(name, tmp_path):
    """pandas writes the index of a shuffled frame after its columns, where labels are if no name marks them."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    shuffled = pandas.DataFrame({"a": TABLE[:, 0], "kind": TABLE[:, 3]}).rename_axis(index=name).iloc[::-1]
    shuffled.to_parquet(tmp_path / "d.parquet")
    X, y = read_data(tmp_path / "d.parquet")
    np.testing.assert_array_equal(X[:, 0], TABLE[::-1, 0])
    np.testing.assert_array_equal(y, TABLE[::-1, 3])


@pytest.mark.parametrize("words", [b"no JSON", b"[]", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}]}'])
def test_what_pandas_has_not_written_is_read_or_refused(words, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = pyarrow.table({"a": TABLE[:, 0], "y": TABLE[:, 3]}).replace_schema_metadata({b"pandas": words})
    pq.write_table(table, tmp_path / "d.parquet")
    if words == b"no JSON":
        with pytest.raises(ValueError, match="cannot read"):
            read_data(tmp_path / "d.parquet")
    else:
        assert read_data(tmp_path / "d.parquet")[0].shape == (50, 1)


def test_parquet_that_cannot_be_used(parquet, tmp_path):
    numbers = np.arange(50.0)
    with pytest.raises(ValueError, match="its column 'a' is of type string; features must be numbers"):
        read_data(parquet(a=["x"] * 50, y=numbers))
    late = BATCH + 31
    with pytest.raises(ValueError, match=f"its column 'a' has a null in row {late}; fill or drop such rows"):
        read_data(parquet(a=[None if k == late else 1.0 for k in range(late + 5)], y=np.ones(late + 5)))
    with pytest.raises(ValueError, match="its column 'y' has a null in row 8"):
        read_data(parquet(a=numbers, y=[None if k == 8 else k for k in range(50)]))
    with pytest.raises(ValueError, match=r"it has nan at \[3, 0\]"):
        read_data(parquet(a=np.where(numbers == 3, np.nan, numbers), y=numbers))
    with pytest.raises(ValueError, match=r"its column 'y' is of type list<.*; labels must be numbers or words"):
        read_data(parquet(a=numbers, y=[[k] for k in range(50)]))
    with pytest.raises(ValueError, match=r"its column 'y' is of type struct<.*; labels must be numbers or words"):
        read_data(parquet(a=numbers, y=[{"b": k} for k in range(50)]))
    with pytest.raises(ValueError, match="it has no column 'z'; it has"):
        read_data(parquet(a=numbers, y=numbers), target="z")
    with pytest.raises(ValueError, match="it has no rows"):
        read_data(parquet(a=numbers[:0], y=numbers[:0]))
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="it is not a Parquet file, or damaged"):
        read_data(tmp_path / "d.parquet")
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / "absent.parquet")


def test_damaged_parquet_is_read_or_refused(parquet, tmp_path):
    whole = parquet(a=TABLE[:, 0], b=np.arange(50, dtype=np.int8), y=np.where(TABLE[:, 3], "yes", "no")).read_bytes()
    chance, refused = np.random.default_rng(0), 0
    for _ in range(60):
        damaged = bytearray(whole)
        for place in chance.integers(len(whole), size=3):
            damaged[place] = chance.integers(256)
        (tmp_path / "d.parquet").write_bytes(damaged)
        try:
            read_data(tmp_path / "d.parquet")
        except ValueError as error:
            refused += "d.parquet" in str(error)
    assert refused > 20


def test_parquet_without_pyarrow_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"slimsvm\[parquet\]"):
        read_data(tmp_path / "d.parquet")


@pytest.mark.parametrize("share", [0.05, 0.9], ids=["sparse", "dense"])
def test_large_libsvm_text_is_read_in_parts(share, tmp_path):
    X = np.where(rng.random((60, 9)) < share, rng.normal(size=(60, 9)), 0.0)
    X[59, 8] = 1.0  # the last feature is first seen in the last line
    dump_svmlight_file(X, TABLE[np.arange(60) % 50, 3], str(tmp_path / "d"), zero_based=False)
    found, y = open_svmlight(tmp_path / "d", None, batch=100)
    assert issparse(found) == (share < 0.2)
    assert is_mapped(found.data if issparse(found) else found)
    np.testing.assert_allclose(csr_array(found).toarray(), X)
    np.testing.assert_array_equal(y, TABLE[np.arange(60) % 50, 3])


def test_a_wrong_line_of_large_text_is_named(tmp_path):
    lines = [f"1 1:{k} 2:3" for k in range(40)]
    lines[33] = "1 2:1 1:1"
    (tmp_path / "d").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="line 34: feature index 1 after 2; indices must ascend"):
        open_svmlight(tmp_path / "d", None, batch=100)


def test_text_is_large_by_its_bytes(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(datasets, "open_svmlight", lambda path, _: read.append(path) or (csr_array(TABLE), TABLE[:, 3]))
    (tmp_path / "d").touch()
    os.truncate(tmp_path / "d", datasets.LARGE_TEXT)
    assert read_data(tmp_path / "d")[0].shape == TABLE.shape
    assert read == [tmp_path / "d"]


def test_the_command_line_reads_npy(tmp_path, capsys):
    np.save(tmp_path / "d.npy", TABLE)
    assert cli.run(["train", str(tmp_path / "d.npy"), "-o", str(tmp_path / "m.slim")]) == 0
    assert "support vectors" in capsys.readouterr().out
