"""Files of rows and labels: what each format may look like, and one line for whatever is wrong with it."""

import bz2
import gzip
import io
import lzma
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics.pairwise import manhattan_distances

from slimsvm.files.columns import Wanted
from slimsvm.files.datasets import read_data, read_table

ROWS = [[1.5, -2.0], [0.0, 3.25], [1e-3, 4.0]]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def archive(folder, **arrays):
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def sparse_pieces(X, name):
    return {f"{name}_{piece}": np.array(getattr(X, piece)) for piece in ("data", "indices", "indptr", "shape")}


def refuse(path, *words, **options):
    """Reading must raise ValueError, in one line that names the file and has the words."""
    with pytest.raises(ValueError, match="cannot read") as caught:
        read_data(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in (path.name, *words) if word not in message] == []


# CSV


CSV = {
    "commas": "1.5,-2,a\n0,3.25,b\n1e-3,4,a\n",
    "semicolons": "1.5;-2;a\n0;3.25;b\n1e-3;4;a\n",
    "tabs": "1.5\t-2\ta\n0\t3.25\tb\n1e-3\t4\ta\n",
    "header": "x,z,class\n1.5,-2,a\n0,3.25,b\n1e-3,4,a\n",
    "blank lines": "\n1.5,-2,a\n\n0,3.25,b\n  \n1e-3,4,a\n\n",
    "no last newline": "1.5,-2,a\n0,3.25,b\n1e-3,4,a",
    "Windows": "1.5,-2,a\r\n0,3.25,b\r\n1e-3,4,a\r\n",
    "byte order mark": "\ufeffx,z,class\n1.5,-2,a\n0,3.25,b\n1e-3,4,a\n",
    "byte order mark alone": "\ufeff1.5,-2,a\n0,3.25,b\n1e-3,4,a\n",
    "spaces": " 1.5, -2, a\n 0, 3.25, b\n 1e-3, 4, a\n",
    "quotes": '"x","z, too","class"\n"1.5","-2","a"\n"0","3.25","b"\n"1e-3","4","a"\n',
}


@pytest.mark.parametrize("name", CSV)
def test_csv_in_all_its_forms(name, tmp_path):
    X, y = read_data(write(tmp_path, "data.csv", CSV[name]))
    np.testing.assert_array_equal(X, ROWS)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(y, ["a", "b", "a"])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "-1", "+1"], np.array([1, -1, 1])),
        (["1.0", "2e0", "3"], np.array([1, 2, 3])),
        (["0.5", "1", "2"], np.array([0.5, 1.0, 2.0])),
        (["1", "2", "b"], np.array(["1", "2", "b"])),
        (["01", "1", "2"], np.array(["01", "1", "2"])),
        (["01", "02", "1.0"], np.array([1, 2, 1])),
        (["1_1", "11", "12"], np.array(["1_1", "11", "12"])),
        (["1_1", "1_2", "1_1"], np.array(["1_1", "1_2", "1_1"])),
        (["١", "1", "2"], np.array(["١", "1", "2"])),
        (["nan", "b", "b"], np.array(["nan", "b", "b"])),
        (
            ["12345678901234567890", "12345678901234567891", "1"],
            np.array(["12345678901234567890", "12345678901234567891", "1"]),
        ),
    ],
    ids=lambda value: ascii(",".join(value)) if isinstance(value, list) else "",
)
def test_labels_are_whole_numbers_else_numbers_else_strings(labels, expected, tmp_path):
    lines = [f"{a},{b},{label}" for (a, b), label in zip(ROWS, labels, strict=True)]
    X, y = read_data(write(tmp_path, "data.csv", "\n".join(lines)))
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(y, expected)
    assert y.dtype == expected.dtype


@pytest.mark.parametrize("target", ["class", "0", 0, -3, "-3"])
def test_the_target_has_a_name_or_a_number(target, tmp_path):
    path = write(tmp_path, "data.csv", "class,x,z\na,1.5,-2\nb,0,3.25\na,1e-3,4\n")
    for labels in (True, False):
        X, y = read_data(path, target=target, labels=labels)
        np.testing.assert_array_equal(X, ROWS)
        np.testing.assert_array_equal(y, ["a", "b", "a"])


def test_a_number_for_a_target_is_a_place_and_not_a_value(tmp_path):
    _, y = read_data(write(tmp_path, "data.csv", "1,7,8\n2,9,10\n"), target="1")
    np.testing.assert_array_equal(y, [7, 9])


def test_a_header_of_numbers_is_known_by_its_label(tmp_path):
    X, y = read_data(write(tmp_path, "data.csv", "0,1,label\n1.5,-2,1\n0,3.25,2\n1e-3,4,1\n"))
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(y, [1, 2, 1])
    X, y = read_data(write(tmp_path, "data.csv", "x,z,label\n1.5,-2,A\n0,3.25,2\n1e-3,4,1\n"))
    np.testing.assert_array_equal(y, ["A", "2", "1"])


@pytest.mark.parametrize("header", ["", "x,z\n"])
def test_csv_without_labels(header, tmp_path):
    X, y = read_data(write(tmp_path, "data.csv", header + "1.5,-2\n0,3.25\n1e-3,4\n"), labels=False)
    np.testing.assert_array_equal(X, ROWS)
    assert y is None
    X, y = read_data(write(tmp_path, "one.csv", "1\n2\n"), labels=False)
    np.testing.assert_array_equal(X, [[1], [2]])


@pytest.mark.parametrize(
    ("text", "words", "options"),
    [
        ("", ["empty"], {}),
        ("\n\n", ["empty"], {}),
        ("x,y\n", ["no rows"], {}),
        ("1\n2\n", ["one column only"], {}),
        ("1,2,a\n3,oops,b\n", ["line 2, column 1", "'oops'"], {}),
        ("1,2,a\n3,1_1,b\n", ["line 2, column 1", "'1_1'"], {}),
        ("1,2,a\n3,١,b\n", ["line 2, column 1", "'١'"], {}),
        ("oops,2,a\n3,4,b\n", ["line 1, column 0", "'oops'"], {}),
        ("a,1,oops\nb,2,3\n", ["line 1, column 2", "'oops'"], {"target": 0}),
        ("1,2,a\n3,,b\n", ["line 2, column 1", "no value"], {}),
        ("1,2,a\n\n3,nan,b\n", ["line 3, column 1", "'nan'"], {}),
        ("1,2,a\n1e999,4,b\n", ["line 2, column 0", "finite"], {}),
        ("1,2,a\n3,b\n", ["line 2 has 2 columns", "3"], {}),
        ("1,2,a\n3,4,5,b\n", ["line 2 has 4 columns", "3"], {}),
        ("1,2,a\n3,4,\n", ["line 2 has no label"], {}),
        ("1,2,\n3,4,5\n", ["line 1 has no label"], {}),
        ("1,2,1\n3,4,inf\n", ["line 2", "'inf'"], {}),
        ("x,z,c\n1,2,a\n", ["'colour'", "'x'"], {"target": "colour"}),
        ("x,z,c\n1,2,a\n", ["no column 3", "0 to 2"], {"target": 3}),
        ("x,z,c\n1,2,a\n", ["2 features", "5 are wanted"], {"n_features": 5}),
        ("1,2,3,4\n", ["4 features", "2 are wanted"], {"n_features": 2, "labels": False}),
        (b"\xff\xfe1,2\n", ["utf-8"], {}),
        ("1," + "2" * 200_000 + ",a\n", ["field limit"], {}),
    ],
)
def test_what_is_wrong_with_a_csv_file(text, words, options, tmp_path):
    refuse(write(tmp_path, "data.csv", text), *words, **options)


def test_numbers_whose_sum_is_not_finite_are_read(tmp_path):
    X, _ = read_data(write(tmp_path, "data.csv", "1e308,1e308,a\n1,2,b\n"))
    assert X[0].tolist() == [1e308, 1e308]


# NumPy's archives


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("f8", "f8"),
        ("f4", "f4"),
        ("f2", "f4"),
        ("u1", "f4"),
        ("i2", "f4"),
        ("?", "f4"),
        ("i4", "f8"),
        ("i8", "f8"),
        (">f8", "f8"),
    ],
)
def test_npz_keeps_the_digits_it_has(given, read, tmp_path):
    X = np.array([[1, 0], [0, 1], [1, 1]], dtype=given)
    sparse = sparse_pieces(csr_array(X.astype(float)), "X")
    for pieces in ({"X": X}, sparse | {"X_data": sparse["X_data"].astype(given)}):
        rows, y = read_data(archive(tmp_path, **pieces, y=np.array([1, 2, 1], dtype=np.int8)))
        assert issparse(rows) == ("X" not in pieces)
        assert rows.dtype == np.dtype(read)
        np.testing.assert_array_equal(rows.toarray() if issparse(rows) else rows, X)
        assert y.tolist() == [1, 2, 1]


@pytest.mark.parametrize("sparse", [False, True])
def test_npz_splits(sparse, tmp_path):
    arrays: dict[str, np.ndarray] = {}
    for name, factor in (("train", 1.0), ("test", 2.0)):
        X = factor * np.array(ROWS)
        arrays |= sparse_pieces(csr_array(X), f"X_{name}") if sparse else {f"X_{name}": X}
        arrays[f"y_{name}"] = np.array([name, "b", "c"])
    path = archive(tmp_path, **arrays)
    for name, factor in (("train", 1.0), ("test", 2.0)):
        X, y = read_data(path, split=name)
        np.testing.assert_array_equal(X.toarray() if sparse else X, factor * np.array(ROWS))
        assert y.tolist() == [name, "b", "c"]
    np.testing.assert_array_equal(read_data(path)[1], read_data(path, split="train")[1])


def test_npz_of_small_indices(tmp_path):
    pieces = sparse_pieces(csr_array(np.array(ROWS)), "X")
    pieces["X_indices"] = pieces["X_indices"].astype(np.int16)
    X, _ = read_data(archive(tmp_path, **pieces, y=np.arange(3)))
    np.testing.assert_array_equal(X.toarray(), ROWS)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array([1.0, 2.0, 1.0]), np.array([1, 2, 1])),
        (np.array([[1], [2], [1]]), np.array([1, 2, 1])),
        (np.array([0.5, 2.0, 1.0]), np.array([0.5, 2.0, 1.0])),
        (np.array([True, False, True]), np.array([True, False, True])),
        (np.array([b"a", b"b", b"a"]), np.array(["a", "b", "a"])),
    ],
)
def test_npz_labels(y, expected, tmp_path):
    _, labels = read_data(archive(tmp_path, X=ROWS, y=y))
    np.testing.assert_array_equal(labels, expected)
    assert labels.dtype == expected.dtype


def test_npz_without_labels(tmp_path):
    X, y = read_data(archive(tmp_path, X=ROWS), labels=False)
    np.testing.assert_array_equal(X, ROWS)
    assert y is None


PIECES = sparse_pieces(csr_array(np.array(ROWS)), "X")
Y = np.arange(3)


@pytest.mark.parametrize(
    ("arrays", "words", "options"),
    [
        ({"y": Y}, ["no rows", "'y'"], {}),
        ({"X_train": ROWS, "y_train": Y}, ["X_test", "'X_train'"], {"split": "test"}),
        ({"X": ROWS}, ["no labels", "'X'"], {}),
        ({"X": ROWS, "y": Y}, ["unknown split", "'train'"], {"split": "all"}),
        ({"X": ROWS, "y": Y}, ["target=2", "CSV"], {"target": 2}),
        ({"X": ROWS, "y": Y[:2]}, ["(2,)", "3 rows"], {}),
        ({"X": ROWS, "y": np.eye(3)}, ["(3, 3)", "one label"], {}),
        ({"X": ROWS, "y": np.array([0, np.nan, 1])}, ["y has nan at [1]"], {}),
        ({"X": ROWS, "y": np.ones(3, dtype=complex)}, ["complex128"], {}),
        ({"X": [[1, 2], [3, np.inf], [0, 0]], "y": Y}, ["X has inf at [1, 1]"], {}),
        ({"X": [1, 2, 3], "y": Y}, ["shape (3,)"], {}),
        ({"X": np.zeros((0, 4)), "y": Y[:0]}, ["shape (0, 4)"], {}),
        ({"X": np.zeros((3, 0)), "y": Y}, ["shape (3, 0)"], {}),
        ({"X": [["a", "b"]], "y": Y}, ["<U1"], {}),
        ({"X": ROWS, "y": Y}, ["2 features", "3 are wanted"], {"n_features": 3}),
        ({"X": ROWS, "y": np.array([None, "a", "b"], dtype=object)}, ["Object arrays"], {}),
        ({"X_data": [1.0], "y": Y}, ["indices, indptr, shape"], {}),
        (PIECES | {"X_data": [np.nan, *PIECES["X_data"][1:]], "y": Y}, ["X has nan at [0, 0]"], {}),
        (PIECES | {"X_indices": PIECES["X_indices"] + 9, "y": Y}, ["indices"], {}),
        (PIECES | {"X_indices": PIECES["X_indices"] * 1.0, "y": Y}, ["whole numbers"], {}),
        (PIECES | {"X_indptr": PIECES["X_indptr"][:-1], "y": Y}, ["indptr"], {}),
        (PIECES | {"X_shape": np.array([3, 2, 1]), "y": Y}, ["shape"], {}),
        (
            {
                "X_data": np.empty(0),
                "X_indices": np.empty(0, int),
                "X_indptr": [0, 10**8, 0],
                "X_shape": [2, 5],
                "y": Y[:2],
            },
            ["indptr", "ascend"],
            {},
        ),
        (PIECES | {"X_shape": np.array([-3, 2]), "y": Y}, [], {}),
    ],
)
def test_what_is_wrong_with_an_npz_file(arrays, words, options, tmp_path):
    refuse(archive(tmp_path, **arrays), *words, **options)


def test_other_files_called_npz_are_refused(tmp_path):
    single, empty_zip, pickled = io.BytesIO(), io.BytesIO(), b"\x80\x04K\x01."
    np.save(single, np.arange(3))
    zipfile.ZipFile(empty_zip, "w").close()
    for content in (b"", b"PK", b"1,2,3\n", single.getvalue(), empty_zip.getvalue(), pickled):
        refuse(write(tmp_path, "data.npz", content))


def test_sizes_that_overflow_are_refused_without_a_warning(tmp_path):
    header = str({"descr": "<f8", "fortran_order": False, "shape": (2**62, 10**30)}).encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as file:
        file.writestr("X.npy", np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little") + header)
    refuse(tmp_path / "data.npz", "damaged")


def test_labels_of_half_precision_are_read(tmp_path):
    _, y = read_data(archive(tmp_path, X=ROWS, y=np.array([0, 1, 2], dtype=np.float16)))
    assert y.dtype == np.int64


# LIBSVM


@pytest.mark.parametrize("name", ["data.libsvm", "data.svm", "data.txt", "data", "data.t"])
def test_any_other_ending_is_libsvm(name, tmp_path):
    X = np.array([[0, 1.5, 0], [-2, 0, 1e-17], [0, 0, 0]])
    dump_svmlight_file(X, [1, -1, 1], str(tmp_path / name), zero_based=False)
    rows, y = read_data(tmp_path / name)
    assert isinstance(rows, csr_array)
    np.testing.assert_array_equal(rows.toarray(), X)
    np.testing.assert_array_equal(y, [1, -1, 1])
    assert y.dtype == np.int64


def test_libsvm_comments_queries_and_blank_lines(tmp_path):
    X, y = read_data(write(tmp_path, "data.txt", "# rows\n\n+1 qid:3 1:1 # first\n  0.5 2:2\r\n"))
    np.testing.assert_array_equal(X.toarray(), [[1, 0], [0, 2]])
    np.testing.assert_array_equal(y, [1, 0.5])


def test_an_underscore_in_a_comment_is_no_problem(tmp_path):
    _, y = read_data(write(tmp_path, "data.txt", "# my_rows\n+1 1:1 # a_b\n2 2:2\n"))
    np.testing.assert_array_equal(y, [1, 2])


def test_memory_goes_by_the_entries_and_not_by_the_number_of_features(tmp_path):
    path = write(tmp_path, "wide.txt", "1 1:1\n2 300000000:1\n")
    read_data(path)  # imports and caches are made
    tracemalloc.start()
    X, _ = read_data(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.shape == (2, 300_000_000)
    assert X.nnz == 2
    assert peak < 1 << 20


@pytest.mark.parametrize("form", ["libsvm", "npz"])
def test_sparse_rows_have_the_indices_that_scikit_learn_takes(form, tmp_path):
    pieces = sparse_pieces(csr_array(np.array(ROWS)), "X")
    pieces["X_indices"] = pieces["X_indices"].astype(np.int64)
    path = write(tmp_path, "a.txt", "1 1:1\n2 2:2\n") if form == "libsvm" else archive(tmp_path, **pieces, y=np.arange(3))
    X, _ = read_data(path)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert manhattan_distances(X, X).shape == (X.shape[0],) * 2


def test_libsvm_rows_are_as_wide_as_the_model(tmp_path):
    path = write(tmp_path, "data.txt", "1 1:1\n2 2:2\n")
    assert read_data(path)[0].shape == (2, 2)
    assert read_data(path, n_features=7)[0].shape == (2, 7)
    assert read_data(write(tmp_path, "zeros.txt", "1\n2\n"), n_features=7, labels=False)[0].shape == (2, 7)


@pytest.mark.parametrize(
    ("text", "words", "options"),
    [
        ("", ["no rows"], {}),
        ("# nothing\n", ["no rows"], {}),
        ("1\n2\n", ["no line has a feature"], {}),
        ("1 1:2\n1 0:2 1:3\n", ["line 2", "index 0", "count from 1"], {}),
        ("1 1:2\n1 2:2 1:3\n", ["line 2", "index 1 after 2"], {}),
        ("1 1:2\n1 2:2 2:3\n", ["line 2", "ascend"], {}),
        ("1,2 1:2\n", ["line 1", "several labels", "'1,2'"], {}),
        ("cat 1:2\n", ["line 1", "'cat'"], {}),
        ("1:2 2:3\n", ["line 1", "'1:2' is not a label"], {}),
        ("nan 1:2\n", ["line 1", "'nan'"], {}),
        ("1 1:2\n\n1 1:nan\n", ["line 3", "'1:nan'"], {}),
        ("1 1:2\n1 1:1e999\n", ["line 2", "'1:1e999'"], {}),
        ("1 1:2\n1 3:\n", ["line 2", "'3:'"], {}),
        ("1 1:2\n1 3\n", ["line 2", "'3'"], {}),
        ("1 1:2\n1 -3:1\n", ["line 2", "'-3:1'"], {}),
        ("1 1:2\n1 a:1\n", ["line 2", "'a:1'"], {}),
        ("1 99999999999:1\n", ["line 1", "99999999999"], {}),
        (f"1 {2**31}:1\n", ["line 1", "2147483648", "2147483647"], {}),
        (f"1 {2**32 + 1}:1\n", ["line 1", "4294967297"], {}),
        (f"1 {10**30}:1\n", ["line 1", "1000", "2147483647"], {}),
        (f"1 {10**30}:1\n", ["line 1", "1000", "5 features"], {"n_features": 5}),
        ("1 1:1 " + "9" * 5000 + ":1\n", ["line 1", "999...", "2147483647"], {}),
        ("9" * 5000 + " 1:1\n", ["line 1", "999..."], {}),
        ("1_1 1:2\n11 1:3\n", ["line 1", "'1_1'"], {}),
        ("1 1:2\n1 1:2 1_1:3\n", ["line 2", "'1_1:3'"], {}),
        ("1 1:2\n1 1:1_1\n", ["line 2", "'1:1_1'"], {}),
        ("1 99999999999999999999999:1\n", ["line 1", "2147483647"], {}),
        ("1 1:2\n1 7:1\n", ["line 2", "index 7", "5 features"], {"n_features": 5}),
        ("1,2,a\n3,4,b\n", ["line 1"], {}),
        (b"\x93SLIMSVM\x01\x00", ["line 1"], {}),
        ("1 1:2\n", ["target='y'", "CSV"], {"target": "y"}),
    ],
)
def test_what_is_wrong_with_a_libsvm_file(text, words, options, tmp_path):
    refuse(write(tmp_path, "data.libsvm", text), *words, **options)


# Any file


@pytest.mark.parametrize("name", ["data.csv", "data.npz", "data.libsvm"])
def test_a_missing_file_is_an_os_error(name, tmp_path):
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / name)
    os.mkdir(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_data(str(tmp_path / name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("any")


def read_or_refuse(path):
    """Finite rows with a label each, or ValueError."""
    try:
        X, y = read_data(path)
    except ValueError as error:
        assert path.name in str(error)  # noqa: PT017
    else:
        assert X.shape[0] == y.size > 0
        assert np.isfinite(X.data if issparse(X) else X).all()


TEXT = st.text(alphabet="0123456789.,;:\t\n\r -+eEnaif#\"'qdx\x00é", max_size=60).map(str.encode)


@settings(deadline=None, max_examples=300)
@given(name=st.sampled_from(["data.csv", "data.libsvm", "data.npz"]), content=TEXT | st.binary(max_size=60))
def test_any_text_is_read_or_refused(folder, name, content):
    read_or_refuse(write(folder, name, content))


@settings(deadline=None, max_examples=300)
@given(data=st.data(), compressed=st.booleans())
def test_a_damaged_archive_is_read_or_refused(folder, data, compressed):
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, y=Y, **PIECES)
    damaged = bytearray(content.getvalue())
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    read_or_refuse(write(folder, "data.npz", bytes(damaged[: data.draw(st.integers(1, len(damaged)))])))


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=2, max_size=8),
    separator=st.sampled_from([",", ";", "\t"]),
    header=st.booleans(),
)
def test_csv_numbers_come_back_exactly(folder, rows, separator, header):
    lines = [["a", "b", "c", "label"]] * header + [[*map(repr, row), str(number)] for number, row in enumerate(rows)]
    X, y = read_data(write(folder, "exact.csv", "\n".join(map(separator.join, lines))))
    np.testing.assert_array_equal(X, rows)
    np.testing.assert_array_equal(y, np.arange(len(rows)))


def test_a_column_called_y_beside_one_called_label_is_a_feature(tmp_path):
    X, y = read_data(write(tmp_path, "data.csv", "x,y,label\n1,2,a\n3,4,b\n"))
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == ["a", "b"]


@pytest.mark.parametrize("name", ["label", "Target", "class", "Y"])
def test_the_header_names_the_column_of_the_labels(tmp_path, name):
    (tmp_path / "rows.csv").write_text(f"{name},a,b\nyes,1,2\nno,3,4\n")
    X, y = read_data(tmp_path / "rows.csv")
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [("1,2\n3,4\n", None), ("1,2,yes\n3,4,no\n", ["yes", "no"]), ("y,a,b\nyes,1,2\nno,3,4\n", ["yes", "no"])],
    ids=["none", "last", "named"],
)
def test_one_column_more_than_features_has_the_labels(tmp_path, text, labels):
    (tmp_path / "rows.csv").write_text(text)
    X, y = read_data(tmp_path / "rows.csv", labels=False, n_features=2)
    assert X.tolist() == [[1, 2], [3, 4]]
    assert (y if y is None else y.tolist()) == labels


def test_labels_with_letters_beyond_unicode_are_refused(tmp_path):
    y = np.array(["a", "b"])
    y.view(np.uint32)[1] = 0x110000
    np.savez(tmp_path / "rows.npz", X=np.eye(2), y=y)
    with pytest.raises(ValueError, match=r"rows\.npz.*its y has letters beyond Unicode"):
        read_data(tmp_path / "rows.npz")


# Columns by name


NAMES = ("ax", "ay", "steps")


def table_of(text, tmp_path, name="t.csv", **wanted):
    (tmp_path / name).write_text(text)
    return read_table(tmp_path / name, Wanted(**wanted))


def test_a_header_names_the_features(tmp_path):
    X, y, names = table_of("ax,kind,ay\n1,a,2\n3,b,4\n", tmp_path, target="kind")
    assert names == ("ax", "ay")
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["a", "b"]
    assert table_of("1,2,a\n3,4,b\n", tmp_path).names is None


@pytest.mark.parametrize(
    "text",
    [
        "steps,kind,ay,ax\n3,a,2,1\n6,b,5,4\n",
        "kind;ay;ax;steps\na;2;1;3\nb;5;4;6\n",
        ",ay,ax,steps,kind\n0,2,1,3,a\n1,5,4,6,b\n",  # with the index of a data frame
        "1,2,3,a\n4,5,6,b\n",  # without a header
    ],
    ids=["reversed", "labels first", "an index", "no header"],
)
@pytest.mark.parametrize("labels", [True, False])
def test_columns_are_found_by_the_names_of_a_model(text, labels, tmp_path):
    X, y, names = table_of(text, tmp_path, names=NAMES, n_features=3, labels=labels)
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y.tolist() == ["a", "b"]
    assert names in (NAMES, None)


def test_columns_of_parquet_files_are_found_by_name_too(tmp_path):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"steps": [3, 6], "label": [0, 1], "ay": [2, 5], "ax": [1, 4]}).to_parquet(tmp_path / "t.parquet")
    X, y, names = read_table(tmp_path / "t.parquet", Wanted(names=NAMES, n_features=3))
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y.tolist() == [0, 1]
    assert names == NAMES


def test_columns_that_no_model_needs_are_left_out_with_a_word(tmp_path):
    with pytest.warns(UserWarning, match=r"does not use are left out: \['id', 'time'\]"):
        X, y, _ = table_of("id,ax,time,ay,steps,target\n7,1,9,2,3,a\n8,4,9,5,6,b\n", tmp_path, names=NAMES)
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ax,ay,kind\n1,2,a\n", r"lacks 1 of the model's features, \['steps'\]; its columns are \['ax', 'ay', 'kind'\]"),
        ("ax,ay,ax,steps,label\n1,2,3,4,5\n", "two columns 'ax'"),
        ("ax,ay,steps,b,c\n1,2,3,4,5\n", r"the column of the labels may be one of \['b', 'c'\]; name it"),
        ("ax,ay,steps\n1,2,3\n", "none: all columns are features"),
    ],
    ids=["missing", "twice", "several", "no labels"],
)
def test_columns_that_cannot_be_found_are_named(text, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        table_of(text, tmp_path, names=NAMES)


@pytest.mark.parametrize("first", ["", "Unnamed: 0"])
@pytest.mark.parametrize("start", [0, 1])
def test_an_unnamed_first_column_that_counts_is_an_index(first, start, tmp_path):
    text = f"{first},ax,label\n" + "".join(f"{start + row},{row * 0.5},{row % 2}\n" for row in range(5))
    with pytest.warns(UserWarning, match="the first column has no name and counts the rows; it is left out"):
        X, _, names = table_of(text, tmp_path)
    assert names == ("ax",)
    assert X.ravel().tolist() == [0, 0.5, 1, 1.5, 2]


def test_an_unnamed_first_column_of_other_numbers_is_a_feature(tmp_path):
    X, _, names = table_of(",ax,label\n5,1,0\n3,2,1\n", tmp_path)
    assert names == ("", "ax")
    assert X.tolist() == [[5, 1], [3, 2]]


def test_text_that_is_not_utf_8_says_what_to_do(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,label\n1,a\n".encode("latin-1"))
    with pytest.raises(ValueError, match="byte 0xf6 is no UTF-8 text; save the file as UTF-8"):
        read_table(tmp_path / "t.csv", Wanted())


# Packed text, and files of other kinds


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
@pytest.mark.parametrize(("name", "text"), [("t.csv", "ax,label\n1,a\n2,b\n"), ("t.libsvm", "0 1:1\n1 1:2\n")])
def test_packed_text_is_read(module, name, text, tmp_path):
    ending = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[module]
    with module.open(tmp_path / (name + ending), "wt") as file:
        file.write(text)
    X, y = read_data(tmp_path / (name + ending))
    assert X.shape == (2, 1)
    assert len(set(y.tolist())) == 2


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_what_is_not_packed_as_its_ending_says_is_refused(ending, tmp_path):
    (tmp_path / f"t.csv{ending}").write_bytes(b"ax,label\n1,a\n" * 9)
    with pytest.raises(ValueError, match="damaged, or not packed as its ending says"):
        read_data(tmp_path / f"t.csv{ending}")


def test_a_packed_archive_is_refused(tmp_path):
    (tmp_path / "t.npz.gz").write_bytes(gzip.compress(b"PK"))
    with pytest.raises(ValueError, match=r"a packed \.npz file; unpack it first"):
        read_data(tmp_path / "t.npz.gz")


@pytest.mark.parametrize(
    ("name", "begin"), [("t.sheet", b"PK\3\4"), ("t", b'{"a": 1}'), ("t.xml", b"<?xml"), ("t.bin", b"\0\1\2\3")]
)
def test_files_of_other_kinds_are_named(name, begin, tmp_path):
    (tmp_path / name).write_bytes(begin + b"\n" * 40)
    with pytest.raises(ValueError, match=r"it is no LIBSVM text.*the formats are \.csv.*as CSV"):
        read_data(tmp_path / name)
