"""Boxes of rows: what products leave out is negligible, and boxes are made only where they pay."""

import numpy as np
import pytest

from slimsvm.kernels import RBF, Linear
from slimsvm.rows.boxes import BOX_ROWS, LARGE_WORK, Boxes, LazyBoxes
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import MIXED_ERROR, Given, Precision, prepare
from slimsvm.rows.prediction import kernel_product
from slimsvm.rows.protocol import Meter

#: boxes of few rows, for small products too
ALWAYS = {"box_rows": 16, "large_work": 1}


def scattered(n=600, d=5, seed=0):
    """Rows of a few far clusters with norms that spoil float32 inner products."""
    rng = np.random.default_rng(seed)
    return 3000 * rng.integers(0, 6, (n, 1)) + 300.0 * rng.random((n, d))


KERNEL = RBF(1e-4)


def naive(A, B, V):
    return np.exp(-KERNEL.gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2)) @ V


def test_every_row_is_in_one_box_within_its_bounds():
    X = scattered()
    boxes = Boxes(X, 1.0, 16)
    np.testing.assert_array_equal(np.sort(np.concatenate(boxes.members)), np.arange(600))
    placed = boxes.placed(X)
    for rows, low, high in zip(boxes.members, boxes.low, boxes.high, strict=True):
        assert rows.size <= 16
        assert (low <= placed[:, rows].T).all()
        assert (high >= placed[:, rows].T).all()


def test_every_point_within_reach_of_a_row_is_found_with_its_box():
    X, reach = scattered(), 1e5
    boxes = Boxes(X, reach, 16)
    near = boxes.search(boxes.placed(X))
    for box in range(boxes.count):
        rows, found = near(box)
        distance = ((X[rows][:, None] - X[None]) ** 2).sum(axis=2).min(axis=0)
        assert set(np.flatnonzero(distance <= reach)) <= set(found)
        assert found.size < 300


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("large", [True, False], ids=["float32 values", "float64 values"])
def test_products_in_boxes_are_products(columns, large):
    X, error = scattered(), 1e-4
    rng = np.random.default_rng(1)
    V, index = rng.normal(size=(600, columns)), rng.permutation(600)[:200]
    home = HostRows(KERNEL, X, error=error, precision=Precision(0 if large else np.inf))
    home.boxes = LazyBoxes(KERNEL, error, **ALWAYS)
    assert home.prepared.values.dtype == np.float64
    assert home.dtype == (np.float32 if large else np.float64)
    assert home.boxes.of(home.prepared, 200) is not None
    atol = np.abs(V).sum() * (MIXED_ERROR if large else 1e-10)
    np.testing.assert_allclose(home.product_of(index, V[index]), naive(X, X[index], V[index]), rtol=0, atol=atol)
    np.testing.assert_allclose(home.product(X[index], V[index]), naive(X, X[index], V[index]), rtol=0, atol=atol)
    part = home.subset(index)
    np.testing.assert_allclose(
        part.product_of(np.arange(50), V[:50]), naive(X[index], X[index[:50]], V[:50]), rtol=0, atol=atol
    )


def test_no_boxes_where_they_do_not_pay():
    X = scattered()
    rows = prepare(KERNEL, Given(X), 600, 1e-4)
    assert LazyBoxes(KERNEL, 1e-4, **ALWAYS).of(rows, 600) is not None
    assert LazyBoxes(RBF(1e-9), 1e-4, **ALWAYS).of(rows, 600) is None  # all rows are near each other
    assert LazyBoxes(Linear(), 1e-4, **ALWAYS).of(rows, 600) is None
    assert LazyBoxes(KERNEL, 0.0, **ALWAYS).of(rows, 600) is None  # no error is allowed
    few = rows.take(np.arange(100))
    assert LazyBoxes(KERNEL, 1e-4, **ALWAYS).of(few, 600) is None


def test_boxes_wait_for_enough_work():
    rows, lazy = (
        prepare(KERNEL, Given(scattered()), 600, 1e-4),
        LazyBoxes(KERNEL, 1e-4, box_rows=16, large_work=600 * 5 * 100),
    )
    assert lazy.of(rows, 60) is None
    assert lazy.of(rows, 60) is not None


@pytest.mark.parametrize("d", [1, 2, 8])
def test_rows_that_are_all_alike_have_boxes_of_no_extent(d):
    boxes = Boxes(np.full((200, d), 7.0), 1.0, 16)
    assert sum(rows.size for rows in boxes.members) == 200
    np.testing.assert_array_equal(boxes.low, boxes.high)


def test_large_predictions_are_made_in_boxes():
    """Rows of far clusters against all of them: far fewer kernel values than pairs, and the outputs of the formula."""
    n = int(np.sqrt(LARGE_WORK / 5)) + 1
    assert n > 8 * BOX_ROWS
    X, V = scattered(n), np.random.default_rng(1).normal(size=(n, 1))
    found = kernel_product(KERNEL, X, X, V, Meter())
    some = np.arange(0, n, n // 20)
    np.testing.assert_allclose(found[some], naive(X[some], X, V), rtol=0, atol=5e-7 * np.abs(V).sum())
