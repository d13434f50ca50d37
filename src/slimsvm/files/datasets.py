"""Rows and labels from files: CSV, .npz, .npy, Parquet, and LIBSVM/svmlight for other endings; "-" is standard input.

CSV and LIBSVM text may be packed (.csv.gz, .bz2, .xz).

scipy and scikit-learn are imported by the readers that need them: dense rows of CSV and .npz files need NumPy only.
"""

from __future__ import annotations

import csv
import io
import math
import os
import struct
import sys
import tokenize
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from ..text import strict_number
from .columns import Wanted, check_width
from .container import check_letters
from .csv_rows import NotNumbersError, as_labels, read_csv
from .decompression import PACKED, check_unpacked_size, unpacked
from .endings import check_rows_ending

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..kernels import Array, Matrix

SPLITS = ("train", "test")
#: the most digits of a feature index
LONGEST_INDEX = 20
#: bytes of LIBSVM text that are read at a time, and file size above which rows become a mapped file; more: more memory
TEXT_BATCH, LARGE_TEXT = 1 << 24, 1 << 28
#: what NumPy and zipfile raise for a file that is truncated, damaged or of another kind
DAMAGED = (
    AttributeError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)

Data = tuple[Any, Any]  # rows, dense or sparse, and their labels as an array or None


class Table(NamedTuple):
    """Rows, dense or sparse, their labels or None, and the names of the features or None."""

    X: Any
    y: Any
    names: tuple[str, ...] | None = None


def read_data(
    path: str | os.PathLike[str],
    *,
    labels: bool = True,
    target: str | int | None = None,
    split: str = "train",
    n_features: int | None = None,
) -> Data:
    """Return the rows X and labels y of a file. Its ending tells the format: .csv, .tsv, .npz, .npy, .parquet, else LIBSVM.

    The rows of .npy and .parquet files and of large LIBSVM files are memory-mapped, so they may be larger than memory.

    Parameters
    ----------
    path : str or path
        "-" is the standard input, whose first bytes tell the format.
    labels : bool
        Whether the file must have labels. Otherwise y may be None: in a CSV, .npy or Parquet file all columns are features
        unless `target` is given, or unless there is one column more than `n_features`.
    target : str or int, default=None
        The column of the labels in a CSV, .npy or Parquet file, by name or by number from 0 (negative from the end). None:
        the column that the header names label, labels, target, class or y, else the last one.
    split : {"train", "test"}
        Which rows to take from an .npz file that has X_train and X_test and no X.
    n_features : int, default=None
        The number of features that the rows must have; LIBSVM rows may name fewer.

    Returns
    -------
    X : ndarray or csr_array
        float32 if that holds all numbers of the file exactly, else float64. LIBSVM rows are a csr_array.
    y : ndarray or None
        Whole numbers if all labels are, else numbers or strings.
    """
    return read_table(path, Wanted(labels, target, n_features), split)[:2]


def read_table(path: str | os.PathLike[str], wanted: Wanted, split: str = "train") -> Table:
    """Return the rows, the labels and the names of the features of a file, as `read_data` does.

    Where a model's features have names, `wanted.names`, columns of a CSV or Parquet file are found by them.
    """
    source = Source(Path(path))
    try:
        X, y, names = _read(source, wanted, split)
        check_width(X.shape[1], wanted.n_features)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"cannot read {source.name}: {error}") from error
    return Table(X, y, names)


def _read(source: Source, wanted: Wanted, split: str) -> tuple[Any, Any, tuple[str, ...] | None]:
    check_rows_ending(source.ending)
    if source.ending in (".csv", ".tsv"):
        if wanted.cells is None or not wanted.cells.always:
            try:
                return read_csv(source.open(), wanted)
            except NotNumbersError:
                if wanted.cells is None:
                    raise
        return read_csv(source.open(), wanted, cells=True)
    if source.ending in (".npy", ".npz", ".parquet") and source.is_packed:
        raise ValueError(f"it is a packed {source.ending} file; unpack it first")
    if source.ending in (".npy", ".parquet"):
        from .mapped import has_cells, open_npy, open_parquet, read_parquet_cells

        opened = open_npy if source.ending == ".npy" else open_parquet
        if source.ending == ".parquet" and wanted.cells is not None and has_cells(source.path, wanted):
            opened = read_parquet_cells
        X, y, names = opened(source.path, wanted)
        return X, None if y is None else as_labels(y), names
    if wanted.target is not None:
        raise ValueError(f"target={wanted.target!r} names a column of a CSV file, and this is not a CSV file; leave it out")
    if source.ending == ".npz":
        return *_read_npz(source, wanted.labels, split), None
    return *_read_svmlight(source, wanted.n_features), None


@dataclass(frozen=True)
class Source:
    """A file, or the standard input if the path is "-"."""

    path: Path

    @property
    def is_stdin(self) -> bool:
        """Whether this is the standard input."""
        return str(self.path) == "-"

    @property
    def name(self) -> str:
        """The name in messages."""
        return "the standard input" if self.is_stdin else repr(str(self.path))

    @property
    def is_packed(self) -> bool:
        """Whether the ending is that of a packed file."""
        return self.path.suffix.lower() in PACKED

    @cached_property
    def _held(self) -> bytes:
        """The standard input, or the contents of a packed file."""
        return sys.stdin.buffer.read() if self.is_stdin else unpacked(self.path)

    def open(self) -> BinaryIO:
        """Return the bytes as an open file."""
        return io.BytesIO(self._held) if self.is_stdin or self.is_packed else open(self.path, "rb")

    @property
    def size(self) -> int:
        """The bytes of a file; 0 where they are in memory."""
        return 0 if self.is_stdin or self.is_packed else self.path.stat().st_size

    @property
    def ending(self) -> str:
        """The ending, which decides the format; for the standard input, from its first bytes."""
        if not self.is_stdin:
            return Path(self.path.stem if self.is_packed else self.path).suffix.lower()
        if self._held.startswith(b"PK"):
            return ".npz"
        words = self._held.lstrip().partition(b"\n")[0].split()
        return ".libsvm" if len(words) > 1 and b":" in words[1] and b"," not in words[0] else ".csv"


# NumPy's archives: X and y, or X_train and so on, or the parts of a CSR array.


def _read_npz(source: Source, labels: bool, split: str) -> Data:
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; there are {list(SPLITS)}")
    arrays, names = _npz_arrays(source, split)
    X: Matrix = arrays["X"] if "X" in arrays else _npz_csr(arrays, names, split)
    if X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise ValueError(f"its X is an array of {X.dtype} of shape {X.shape}; give numbers, one row each")
    X = _as_float(X)
    _check_finite(X, "X")
    if "y" in arrays:
        return X, _npz_labels(arrays["y"], X.shape[0])
    if labels:
        raise ValueError(f"it has no labels, y or y_{split}; it has {names[:20]}")
    return X, None


def _npz_arrays(source: Source, split: str) -> tuple[dict[str, Array], list[str]]:
    """Return the arrays of a split, without its name in theirs, and the names of all arrays."""
    # NumPy warns about headers of Python 2 and about sizes that overflow, and raises in the second case
    with source.open() as file, warnings.catch_warnings(action="ignore"):
        try:
            archive = np.load(file, allow_pickle=False)
            _check_archive(archive.zip)
            names = list(archive.files)
            part = "" if {"X", "X_data"} & set(names) else f"_{split}"
            wanted = {"X": f"X{part}", "y": f"y{part}"}
            wanted |= {piece: f"X{part}_{piece}" for piece in ("data", "indices", "indptr", "shape")}
            return {key: archive[name] for key, name in wanted.items() if name in names}, names
        except DAMAGED as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ValueError(
                f"it is damaged, or no .npz file of numbers and strings as np.savez writes ({reason})"
            ) from error


def _check_archive(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for an archive whose arrays, by its directory, would fill the memory."""
    packed, unpacked = (sum(getattr(each, size) for each in archive.infolist()) for size in ("compress_size", "file_size"))
    check_unpacked_size(packed, unpacked, "save it by np.savez, or the rows as a sparse array")


def _npz_csr(arrays: dict[str, Array], names: list[str], split: str) -> csr_array:
    if "data" not in arrays:
        raise ValueError(f"it has no rows, X or X_{split}; it has {names[:20]}")
    missing = [piece for piece in ("indices", "indptr", "shape") if piece not in arrays]
    if missing:
        raise ValueError(f"it has the data of a sparse X, but not its {', '.join(missing)}; it has {names[:20]}")
    from .arrays import checked_csr

    return checked_csr(*(arrays[piece] for piece in ("data", "indices", "indptr", "shape")))


def _as_float(X: Matrix) -> Matrix:
    """Return numbers as float32 if that holds them exactly, else as float64."""
    return X.astype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64, copy=False)


def _npz_labels(y: Array, rows: int) -> Array:
    if y.shape not in ((rows,), (rows, 1)) or y.dtype.kind not in "biufUS":
        raise ValueError(f"its y is an array of {y.dtype} of shape {y.shape}; give one label for each of the {rows} rows")
    if y.dtype.kind == "f":
        _check_finite(y, "y")
    check_letters(y, "y")
    return as_labels(y.astype(str) if y.dtype.kind == "S" else y).ravel()


def _check_finite(values: Matrix, name: str) -> None:
    data = values if isinstance(values, np.ndarray) else values.data
    bad = np.argwhere(~np.isfinite(data))
    if bad.size:
        dense = isinstance(values, np.ndarray)
        place = bad[0].tolist() if dense else _place_of(values, int(bad[0, 0]))
        raise ValueError(f"its {name} has {data[tuple(bad[0])]} at {place}; fill or drop such rows")


def _place_of(values: csr_array, entry: int) -> list[int]:
    return [int(np.searchsorted(values.indptr, entry, side="right")) - 1, int(values.indices[entry])]


# LIBSVM and svmlight: label index:value index:value ..., with indices from 1 on.


def _read_svmlight(source: Source, n_features: int | None) -> Data:
    if source.size >= LARGE_TEXT:
        return open_svmlight(source.path, n_features)
    with source.open() as file:
        text = file.read()
    _check_text(text)
    X, y = _parsed_svmlight(text, n_features)
    _check_svmlight(X, n_features)
    return X, as_labels(y)


def _check_text(text: bytes) -> None:
    """Raise ValueError for the first bytes of a file of another kind."""
    begin = text[:4]
    if begin.startswith((b"PK", b"{", b"[", b"<", b"%PDF")) or b"\0" in begin:
        raise ValueError(
            f"it is no LIBSVM text, since it begins with {begin!r}; the formats are .csv, .tsv, .npz, .npy, .parquet and "
            "LIBSVM (text also packed as .gz, .bz2 or .xz). Save a spreadsheet or JSON as CSV"
        )


def open_svmlight(path: Path, n_features: int | None, batch: int = TEXT_BATCH) -> Data:
    """Return the rows of a large file, read lines of about `batch` bytes at a time into mapped files."""
    from .mapped import CsrFile

    labels, line = [], 1
    with open(path, "rb") as file, CsrFile() as rows:
        while text := b"".join(file.readlines(batch)):
            X, y = _parsed_svmlight(text, n_features, line)
            rows.add(X)
            labels.append(y)
            line += text.count(b"\n")
        X = rows.rows(n_features)
    _check_svmlight(X, n_features)
    return X, as_labels(np.concatenate(labels))


def _parsed_svmlight(text: bytes, n_features: int | None, line: int = 1) -> tuple[csr_array, Array]:
    """Return the rows and labels in lines of text; `line` is the number of the first line."""
    from sklearn.datasets import load_svmlight_file

    from .arrays import checked_csr

    try:
        X, y = load_svmlight_file(io.BytesIO(text), n_features=n_features, dtype=np.float64, zero_based=False)
    except (OverflowError, ValueError) as error:
        raise ValueError(_svmlight_problem(text, n_features, line) or f"it is not a LIBSVM file: {error}") from error
    # scikit-learn reads "1_1" as 11; underscores are allowed in comments
    suspicious = not np.isfinite(X.data).all() or not np.isfinite(y).all() or b"_" in text
    problem = _svmlight_problem(text, n_features, line) if suspicious else None
    if problem:
        raise ValueError(problem)
    return checked_csr(X.data, X.indices, X.indptr, X.shape), y


def _check_svmlight(X: Matrix, n_features: int | None) -> None:
    if not X.shape[0]:
        raise ValueError("it has no rows")
    if n_features is None and not (X.size if isinstance(X, np.ndarray) else X.nnz):
        raise ValueError("no line has a feature; a line of a LIBSVM file is a label and index:value for each feature")


def _svmlight_problem(text: bytes, n_features: int | None, line_number: int = 1) -> str | None:
    """Return what is wrong with the first line that cannot be read."""
    for number, line in enumerate(text.split(b"\n"), line_number):
        words = line.partition(b"#")[0].decode(errors="replace").split()
        problem = words and (_label_problem(words[0]) or _features_problem(words[1:], n_features))
        if problem:
            return f"line {number}: {problem}"
    return None


def _label_problem(word: str) -> str | None:
    label = strict_number(word)
    if label is not None and math.isfinite(label):
        return None
    if "," in word:
        return f"several labels, {short(word)}; each row of LIBSVM text has one, and the name of a CSV file ends in .csv"
    if ":" in word:
        return f"{short(word)} is not a label; each line must begin with one. For rows without labels, give any number"
    return f"the label {short(word)} is not a finite number; LIBSVM files have numbers for labels, CSV files may have words"


def _features_problem(words: list[str], n_features: int | None) -> str | None:
    last, largest = 0, n_features or 2**31 - 1
    for word in words:
        place, _, text = word.partition(":")
        value = strict_number(text)
        if place == "qid":
            continue
        if not (place.isascii() and place.isdecimal()) or value is None or not math.isfinite(value):
            return f"{short(word)} is not index:value with a finite number"
        if len(place) > LONGEST_INDEX:
            return f"feature index {short(place)}; {largest} features are wanted at most"
        index = int(place)
        if not index:
            return f"feature index 0 in {short(word)}; LIBSVM files count from 1: add 1 to every index of this data"
        if index <= last:
            return f"feature index {index} after {last}; indices must ascend"
        if index > largest:
            return f"feature index {index}; {largest} features are wanted at most"
        last = index
    return None
