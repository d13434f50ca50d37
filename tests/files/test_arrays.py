"""Parts of sparse arrays from files: what fits together is kept, anything else is refused before compiled code reads it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from slimsvm.files.arrays import checked_csr

DENSE = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -3.0]])
PARTS = {"data": [2.0, 1.0, -3.0], "indices": [1, 0, 2], "indptr": [0, 1, 1, 3], "shape": (3, 3)}


def test_parts_that_fit_give_the_array_with_small_indices():
    for kind in (np.int16, np.int64, np.uint64):
        parts = PARTS | {name: np.array(PARTS[name], dtype=kind) for name in ("indices", "indptr", "shape")}
        array = checked_csr(**parts)
        np.testing.assert_array_equal(array.toarray(), DENSE)
        assert array.indices.dtype == array.indptr.dtype == np.int32


def test_column_numbers_out_of_order_or_twice_are_put_in_order():
    array = checked_csr([5.0, 7.0, 1.0, 2.0], [2, 0, 1, 1], [0, 2, 4], (2, 3))
    np.testing.assert_array_equal(array.indices, [0, 2, 1])
    np.testing.assert_array_equal(array.toarray(), [[7, 0, 5], [0, 3, 0]])


def test_more_columns_than_int32_counts_need_int64():
    array = checked_csr([1.0], [2**31], [0, 1], (1, 2**31 + 1))
    assert array.indices.dtype == np.int64
    assert array.indices[0] == 2**31


REFUSED = {
    "pointer beyond the values, then back": ({"indptr": [0, 10**8, 10**8, 3]}, "indptr"),
    "pointer beyond the values, last entry 0": (
        {"data": [], "indices": np.empty(0, int), "indptr": [0, 10**8, 0], "shape": (2, 5)},
        "indptr",
    ),
    "pointer from 1": ({"indptr": [1, 1, 1, 3]}, "indptr"),
    "negative pointer": ({"indptr": [0, -1, 1, 3]}, "indptr"),
    "pointer to fewer values": ({"indptr": [0, 1, 1, 2]}, "indptr"),
    "too few pointers": ({"indptr": [0, 1, 3]}, "indptr"),
    "no pointers": ({"indptr": np.empty(0, int), "shape": (0, 3)}, "indptr"),
    "pointers of two axes": ({"indptr": [[0, 1, 1, 3]]}, "indptr"),
    "fractional pointers": ({"indptr": [0.0, 1.0, 1.0, 3.0]}, "indptr"),
    "column beyond the last": ({"indices": [1, 0, 3]}, "3 columns"),
    "column -1": ({"indices": [1, 0, -1]}, "3 columns"),
    "column 2**64 - 1": ({"indices": np.array([1, 0, 2**64 - 1], dtype=np.uint64)}, "3 columns"),
    "fewer columns than values": ({"indices": [1, 0]}, "2 indices"),
    "complex values": ({"data": [1j, 1, 1]}, "complex"),
    "words for values": ({"data": ["a", "b", "c"]}, "numbers"),
    "values of two axes": ({"data": [[2.0, 1.0, -3.0]]}, "(1, 3)"),
    "negative shape": ({"shape": (-3, 3)}, "shape"),
    "three sizes": ({"shape": (3, 3, 1)}, "shape"),
    "fractional shape": ({"shape": (3.0, 3.0)}, "shape"),
    "more rows than there is memory": ({"shape": (2**62, 3)}, "indptr"),
    "more columns than int64 counts": ({"shape": np.array([3, 2**63], dtype=np.uint64)}, "shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_do_not_fit_are_refused(name):
    changed, word = REFUSED[name]
    with pytest.raises(ValueError, match="sparse array") as caught:
        checked_csr(**PARTS | changed)
    assert word in str(caught.value)


NUMBERS = st.lists(st.integers(-2, 6) | st.sampled_from([10**8, 2**31, 2**62, -(2**62)]), max_size=6)


@settings(max_examples=300)
@given(indices=NUMBERS, indptr=NUMBERS, rows=st.integers(-1, 5), columns=st.integers(-1, 5))
def test_any_parts_are_refused_or_have_a_dense_form(indices, indptr, rows, columns):
    indices, indptr = np.array(indices, dtype=np.int64), np.array(indptr, dtype=np.int64)
    try:
        array = checked_csr(np.ones(indices.size), indices, indptr, (rows, columns))
    except ValueError:
        return
    assert isinstance(array, csr_array)
    assert array.toarray().sum() == indices.size
