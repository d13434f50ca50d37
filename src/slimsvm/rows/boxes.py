"""Rows in small boxes: a product skips points that are far from all rows of a box.

exp(-gamma |x - z|^2) is nearly 0 for most pairs if gamma is large for the data. Rows are sorted into the leaves
of a k-d tree (Bentley 1975) over their principal axes. The distance of a point from a leaf's box is at most its distance
from each row in it, so all skipped kernel values are below `NEGLIGIBLE` times the allowed error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core import core
from ..kernels import RBF, Array, Kernel, squared_norms
from .precision import FLOAT32_ERROR, Prepared
from .threads import one_blas_thread

#: the largest kernel value that is skipped, as a share of the allowed error of a value; small, since sums have many terms
NEGLIGIBLE = 2.0**-20
#: rows of a box; more: fewer points are skipped; fewer: products of small matrices, which are slow
BOX_ROWS = 512
#: axes of a box: the first principal axes of the rows
AXES = 6
#: boxes are made after this many multiply-adds in products, which take about as long as making boxes
LARGE_WORK = 1 << 31
#: boxes are not used if more than this share of pairs of rows, or of pairs of boxes and points, is within reach
MOST_PAIRS, MOST_NEAR = 0.25, 0.5
#: rows in a sample for the principal axes and these shares
SAMPLE = 1024


class Boxes:
    """Rows in boxes: the numbers of the rows in each, and its bounds along the axes."""

    def __init__(self, values: Array, reach: float, box_rows: int = BOX_ROWS) -> None:
        sample = values[:: max(values.shape[0] // SAMPLE, 1)].astype(np.float64)
        _, axes = np.linalg.eigh(np.cov(sample.T, ddof=0).reshape(values.shape[1], -1))
        self.axes, self.reach = np.ascontiguousarray(axes[:, ::-1][:, :AXES]), reach
        placed = np.concatenate([self._along(values[part]) for part in _parts(values.shape[0])])
        self.members = _leaves(placed, box_rows)
        self.starts, self.rows = np.cumsum([0, *(rows.size for rows in self.members)]), np.concatenate(self.members)
        self.low = np.array([placed[rows].min(axis=0) for rows in self.members])
        self.high = np.array([placed[rows].max(axis=0) for rows in self.members])

    @property
    def count(self) -> int:
        """The number of boxes."""
        return len(self.members)

    def _along(self, values: Array) -> Array:
        return values.astype(np.float64, copy=False) @ self.axes

    def placed(self, points: Array) -> Array:
        """Return the coordinates of points along the axes, (axes, m)."""
        return np.ascontiguousarray(self._along(points).T)

    def search(self, placed: Array) -> Callable[[int], tuple[Array, Array]]:
        """Return a function from a box's number to its rows and the points within reach of it; a thread needs its own."""
        scratch, found = np.empty(placed.shape[1]), np.empty(placed.shape[1], dtype=np.intp)

        def near(box: int) -> tuple[Array, Array]:
            count = core.near_box(self.low[box], self.high[box], placed, self.reach, scratch, found)
            return self.members[box], found[:count]

        return near

    def share(self, values: Array) -> float:
        """Return the share of pairs of boxes and points within reach, with a sample of the rows as points."""
        placed = self.placed(values[:: max(values.shape[0] // SAMPLE, 1)])
        near = self.search(placed)
        step = max(self.count // 64, 1)
        return float(np.mean([near(box)[1].size for box in range(0, self.count, step)])) / placed.shape[1]


class LazyBoxes:
    """The boxes of some rows, made after products of `large_work` multiply-adds, which pay for them."""

    def __init__(self, kernel: Kernel, error: float, *, box_rows: int = BOX_ROWS, large_work: int = LARGE_WORK) -> None:
        self.kernel, self.error, self.work = kernel, error, 0
        self.box_rows, self.large_work = box_rows, large_work
        self.least = NEGLIGIBLE * min(error, FLOAT32_ERROR)
        self.made = False
        self.boxes: Boxes | None = None

    def anew(self) -> LazyBoxes:
        """Return the boxes of other rows with the same kernel."""
        return LazyBoxes(self.kernel, self.error, box_rows=self.box_rows, large_work=self.large_work)

    def of(self, rows: Prepared, points: int) -> Boxes | None:
        """Return the boxes of the rows for a product with `points` points, or None where they are not worth it."""
        if not isinstance(self.kernel, RBF) or rows.sparse or self.least == 0 or rows.count < 8 * self.box_rows:
            return None
        self.work += rows.count * points * rows.values.shape[1]
        if self.work < self.large_work:
            return None
        if not self.made:
            with one_blas_thread():  # other threads of BLAS would wait actively and slow down the product that follows
                self.boxes = _boxes(rows.values, -float(np.log(self.least)) / self.kernel.gamma, self.box_rows)
            self.made = True
        return self.boxes


def _boxes(values: Array, reach: float, box_rows: int) -> Boxes | None:
    """Return boxes for squared distances up to `reach`, or None if most rows are within reach of each other."""
    sample = values[:: max(values.shape[0] // SAMPLE, 1)].astype(np.float64)
    norms = squared_norms(sample)
    if np.mean(norms[:, None] + norms - 2 * sample @ sample.T < reach) > MOST_PAIRS:
        return None
    boxes = Boxes(values, reach, box_rows)
    return boxes if boxes.share(values) < MOST_NEAR else None


def _parts(n: int) -> list[slice]:
    return [slice(start, min(start + (1 << 16), n)) for start in range(0, n, 1 << 16)]


def _leaves(placed: Array, box_rows: int) -> list[Array]:
    """Return the numbers of the rows in each leaf of a k-d tree, which is split along the axis of most variance."""
    leaves, waiting = [], [np.arange(placed.shape[0])]
    while waiting:
        rows = waiting.pop()
        if rows.size <= box_rows:
            leaves.append(np.sort(rows))
            continue
        part = placed[rows]
        half = rows.size // 2
        order = np.argpartition(part[:, part.var(axis=0).argmax()], half)
        waiting += [rows[order[half:]], rows[order[:half]]]
    return leaves
