"""Checks of arrays from untrusted files, before compiled code reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

#: the most rows and columns of a sparse array; their numbers are int64
LARGEST = 2**62


def checked_csr(data: Any, indices: Any, indptr: Any, shape: Any) -> csr_array:
    """Return the CSR array with these parts; raise ValueError if they do not fit together.

    scipy's own full check trusts the last entry of `indptr` and reads outside the arrays if that entry is wrong. In the
    returned array, column numbers ascend within a row. They are int32 if possible, as scikit-learn needs.
    """
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    n_rows, n_columns = _checked_shape(shape)
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(f"a sparse array has {data.dtype} values of shape {data.shape}; it needs a list of numbers")
    for name, numbers in (("indices", indices), ("indptr", indptr)):
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(f"a sparse array has {numbers.dtype} {name} of shape {numbers.shape}; it needs whole numbers")
    if indices.size != data.size:
        raise ValueError(f"a sparse array has {data.size} values and {indices.size} indices; it needs as many of both")
    if indptr.size != n_rows + 1:
        raise ValueError(f"a sparse array has {n_rows} rows and {indptr.size} entries in indptr; it needs one entry more")
    if indptr[0] != 0 or indptr[-1] != data.size or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"the indptr of a sparse array must ascend from 0 to the number of its values, {data.size}")
    if data.size and not (indices.min() >= 0 and indices.max() < n_columns):
        raise ValueError(f"a sparse array has indices outside its {n_columns} columns")
    kind = np.int32 if max(data.size, n_columns) <= np.iinfo(np.int32).max else np.int64
    array = csr_array((data, indices.astype(kind), indptr.astype(kind)), shape=(n_rows, n_columns))
    array.sum_duplicates()
    return array


def _checked_shape(shape: Any) -> tuple[int, int]:
    sizes = np.asarray(shape)
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or not all(0 <= size <= LARGEST for size in sizes.tolist()):
        raise ValueError("the shape of a sparse array must be two whole numbers, its rows and columns")
    n_rows, n_columns = sizes.tolist()
    return n_rows, n_columns
