"""Rows that may be larger than memory, as mapped files: NumPy's .npy directly, Parquet and LIBSVM text after conversion.

Training reads rows in any order, which Parquet and text do not allow. So they are converted, a batch at a time, to a
temporary file that is mapped as an array (`rows.memory`). That takes one pass over the file and disk space for the numbers.
Rows in .npy files need no conversion.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..kernels import Array, Matrix
from ..rows.memory import mapped_empty
from ..rows.precision import SPARSE_DENSITY
from ..rows.threads import blocks
from .columns import Wanted, choose_columns
from .csv_rows import parquet_cells
from .decompression import check_unpacked_size

#: rows of a Parquet file that are read at a time, and rows that are checked at a time; more: more memory
BATCH = 1 << 16
#: advice for a file that unpacks to many times its bytes
PLAIN_PARQUET = "write it with compression=None and use_dictionary=False, and short words as labels"


def open_npy(path: Path, wanted: Wanted) -> tuple[Matrix, Any, None]:
    """Return the rows of an .npy file as a mapped array, and one of its columns as labels; columns have no names."""
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except (EOFError, TypeError, ValueError) as error:
        have = os.path.getsize(path)
        raise ValueError(
            f"it is not an .npy file of numbers, or shorter than its header says ({have:,} bytes; {error}). Write it again "
            "with numpy.save"
        ) from error
    if not isinstance(table, np.ndarray):
        table.close()
        raise ValueError("it is an .npz file with another ending; give it the ending .npz")
    if table.ndim != 2 or table.dtype.kind not in "biuf" or 0 in table.shape:
        raise ValueError(f"it is an array of {table.dtype} of shape {table.shape}; give numbers, one row each")
    width = table.shape[1]
    column = choose_columns(None, width, wanted).label
    check_finite(table)
    if column is None:
        return table, None, None
    return without_column(table, column), np.array(table[:, column]), None


def without_column(table: Array, column: int) -> Array:
    """Return all other columns: a view if the column is the first or last, else a copy in a file."""
    if column in (0, table.shape[1] - 1):
        return table[:, 1:] if column == 0 else table[:, :-1]
    X = mapped_empty((table.shape[0], table.shape[1] - 1), table.dtype)
    for batch_rows in blocks(table.shape[0], BATCH):
        X[batch_rows] = np.delete(table[batch_rows], column, axis=1)
    return X


def check_finite(table: Array) -> None:
    """Raise ValueError with the place of the first NaN or infinity; reads a batch at a time."""
    for batch_rows in blocks(table.shape[0], BATCH):
        bad = np.argwhere(~np.isfinite(table[batch_rows])) if table.dtype.kind == "f" else np.empty((0, 2), dtype=np.intp)
        if bad.size:
            row, column = int(bad[0, 0]) + batch_rows.start, int(bad[0, 1])
            raise ValueError(f"it has {table[row, column]} at {[row, column]}; fill or drop such rows")


def open_parquet(path: Path, wanted: Wanted) -> tuple[Matrix, Any, tuple[str, ...]]:
    """Return columns of a Parquet file as a mapped array, one of them as labels, and their names (extra `parquet`)."""
    pyarrow, parquet = _pyarrow()
    with open(path, "rb"):  # whose errors name the file
        pass
    try:
        return _read_parquet(parquet, path, wanted)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"it is not a Parquet file, or damaged ({reason})") from error


def _read_parquet(parquet: Any, path: Path, wanted: Wanted) -> tuple[Matrix, Any, tuple[str, ...]]:
    file = parquet.ParquetFile(path)
    names, count = file.schema_arrow.names, file.metadata.num_rows
    if not count:
        raise ValueError("it has no rows")
    table = _without_index(file.schema_arrow)
    chosen = choose_columns([names[number] for number in table], len(table), wanted)
    column = None if chosen.label is None else table[chosen.label]
    features = [table[number] for number in chosen.features]
    dtype, size = _dtype_of(file.schema_arrow, features), path.stat().st_size
    check_unpacked_size(size, count * len(features) * dtype.itemsize, PLAIN_PARQUET)
    kind = None if column is None else file.schema_arrow.field(column).type
    if kind is not None and kind.num_fields:
        raise ValueError(f"its column {names[column]!r} is of type {kind}; labels must be numbers or words")
    if column is not None:  # as places in a list of distinct words, so that a long word in every row takes no memory
        file = parquet.ParquetFile(path, read_dictionary=[names[column]])
    X, y, row = mapped_empty((count, len(features)), dtype), [], 0
    for batch in file.iter_batches(BATCH):
        if row + batch.num_rows > count:
            raise ValueError(f"it has more rows than the {count} that it says it has")
        for place, number in enumerate(features):
            X[row : row + batch.num_rows, place] = _numbers(batch.column(number), names[number], row)
        if column is not None:
            y.append(_labels(batch.column(column), names[column], row, count, size))
        row += batch.num_rows
    if row < count:
        raise ValueError(f"it has {row} rows, and it says that it has {count}")
    check_finite(X)
    return X, None if column is None else np.concatenate(y), tuple(names[number] for number in features)


def has_cells(path: Path, wanted: Wanted) -> bool:
    """Return whether features of a Parquet file are words, dates or have holes, or cells are wanted anyway."""
    pyarrow, parquet = _pyarrow()
    file = parquet.ParquetFile(path)
    schema, table = file.schema_arrow, _without_index(file.schema_arrow)
    chosen = choose_columns([schema.names[number] for number in table], len(table), wanted)
    kinds = [schema.types[table[number]] for number in chosen.features if number >= 0]
    numbers = all(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) for kind in kinds)
    assert wanted.cells is not None
    if wanted.cells.always or not numbers or len(kinds) < len(chosen.features):
        return True
    columns = parquet.read_table(path, columns=[schema.names[table[number]] for number in chosen.features]).columns
    return any(column.null_count for column in columns)


def read_parquet_cells(path: Path, wanted: Wanted) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the cells of a Parquet file, the labels, and the names of the features."""
    table = _pyarrow()[1].read_table(path)
    X, y, names = parquet_cells(table.select(_without_index(table.schema)), wanted)
    if y is None:
        return X, None, names
    if any(label is None for label in y):
        raise ValueError(f"row {y.index(None)} has no label")
    return X, np.array(y), names


def _without_index(schema: Any) -> list[int]:
    """Return the numbers of the columns that are not the index of a pandas data frame.

    pandas writes an index that is not 0, 1, 2 ... as a column of its own, after the others.
    """
    written = schema.pandas_metadata
    index = written.get("index_columns") if isinstance(written, dict) else None
    left_out = index if isinstance(index, list) else []
    return [number for number, name in enumerate(schema.names) if name not in left_out]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow; install it by pip install "slimsvm[parquet]"') from error
    return pyarrow, parquet


def _dtype_of(schema: Any, columns: list[int]) -> np.dtype:
    """Return float32 if that holds all columns exactly, else float64; raise ValueError for columns that are not numbers."""
    kinds = []
    for number in columns:
        field = schema.field(number)
        try:
            kinds.append(np.dtype(field.type.to_pandas_dtype()))
        except (NotImplementedError, TypeError):
            kinds.append(np.dtype(object))
        if kinds[-1].kind not in "biuf":
            raise ValueError(
                f"its column {field.name!r} is of type {field.type}; features must be numbers. Encode it, e.g. with "
                "OrdinalEncoder or OneHotEncoder, or name it as target where it has the labels"
            )
    return np.dtype(np.float32 if all(np.can_cast(kind, np.float32) for kind in kinds) else np.float64)


def _numbers(values: Any, name: str, row: int) -> Array:
    """Return one column of a batch; raise ValueError if it has nulls."""
    if values.null_count:
        first = row + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"its column {name!r} has a null in row {first}; fill or drop such rows")
    return values.to_numpy(zero_copy_only=False)


def _labels(values: Any, name: str, row: int, count: int, size: int) -> Array:
    """Return the labels of a batch of a file of that many rows and bytes."""
    if hasattr(values, "dictionary"):
        words = values.dictionary.to_pylist()
        check_unpacked_size(size, 4 * count * max(map(len, words), default=0), PLAIN_PARQUET)
    labels = _numbers(values, name, row)
    return labels.astype(str) if labels.dtype == object else labels


class CsrFile:
    """Sparse rows that are added batch by batch, in temporary files that are open during a `with` block."""

    def __init__(self) -> None:
        self.files = tempfile.TemporaryFile(prefix="slimsvm-"), tempfile.TemporaryFile(prefix="slimsvm-")  # noqa: SIM115
        self.counts: list[Array] = []
        self.width = 0

    def __enter__(self) -> CsrFile:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()

    def add(self, rows: csr_array) -> None:
        """Add rows after the others."""
        self.files[0].write(rows.data.astype(np.float64).tobytes())
        self.files[1].write(rows.indices.astype(np.int32).tobytes())
        self.counts.append(np.diff(rows.indptr))
        self.width = max(self.width, rows.shape[1])

    def rows(self, n_features: int | None) -> Matrix:
        """Return all rows: a mapped CSR array, or a mapped dense array if few entries are zero."""
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self.counts), dtype=np.int64)])
        shape, nonzeros = (starts.size - 1, n_features or self.width), int(starts[-1])
        parts: list[Any] = []
        for file, dtype in zip(self.files, (np.float64, np.int32), strict=True):
            file.flush()  # the mapping outlives the open file
            parts.append(np.asarray(np.memmap(file, dtype=dtype, mode="r", shape=(nonzeros,))) if nonzeros else [])
        rows = csr_array((*parts, starts.astype(np.int32 if nonzeros < 2**31 else np.int64)), shape=shape)
        if nonzeros < SPARSE_DENSITY * shape[0] * shape[1]:
            return rows
        dense = mapped_empty(shape, np.float64)
        for batch_rows in blocks(shape[0], BATCH):
            dense[batch_rows] = rows[batch_rows].toarray()
        return dense
