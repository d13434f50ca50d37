"""All pairs of many classes without the zeros: targets of rows and coefficients of points.

A row takes part in the k - 1 pairs of its class. Written out, n rows have n k (k - 1) / 2 targets, most of them 0:
gigabytes for 1,000 classes. The pairs are (0, 1), (0, 2), ..., (1, 2), ... as in LIBSVM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray


def pairs_of(group: int, n_classes: int) -> Array:
    """Return the numbers of the k - 1 pairs of one class, in the order of the other classes."""
    first, second = np.arange(group), np.arange(group + 1, n_classes)
    before = first * n_classes - first * (first + 1) // 2 + group - first - 1
    after = group * n_classes - group * (group + 1) // 2 + second - group - 1
    return np.concatenate([before, after])


@dataclass(frozen=True)
class PairTargets:
    """The targets (n, q) of all pairs of classes: +1 for rows of the first class, -1 for rows of the second, else 0."""

    labels: Array  # class numbers
    n_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and pairs."""
        return self.labels.size, self.n_classes * (self.n_classes - 1) // 2

    @cached_property
    def groups(self) -> list[Array]:
        """The rows of each class."""
        order = np.argsort(self.labels, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.labels, minlength=self.n_classes))[:-1])

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """The first and the second class of each pair."""
        return np.triu_indices(self.n_classes, 1)

    def column(self, pair: int) -> tuple[Array, Array]:
        """Return the rows that take part in a pair, by class, and their targets."""
        first, second = (self.groups[side[pair]] for side in self.pairs)
        return np.concatenate([first, second]), np.repeat([1.0, -1.0], [first.size, second.size])


@dataclass(frozen=True)
class PairDual:
    """The coefficients (n, q) of all rows in all pairs of classes, from which another run can start."""

    against: Array  # (n, k - 1): for each row, a coefficient against every other class, in their order
    targets: PairTargets

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and pairs."""
        return self.targets.shape

    def __getitem__(self, place: tuple[Array, int]) -> Array:
        """Return the coefficients of the rows that take part in a pair, by class; `place` is (these rows, the pair)."""
        first, second = (int(side[place[1]]) for side in self.targets.pairs)
        groups = self.targets.groups
        return np.concatenate([self.against[groups[first], second - 1], self.against[groups[second], first]])


@dataclass(frozen=True)
class PairCoefficients:
    """The coefficients (m, q) of points that are sorted by class: each point has one against every other class.

    `np.asarray` writes them out, with the zeros in the pairs of other classes.
    """

    against: Array  # (m, k - 1), in the order of the other classes
    counts: Array  # (k,), the number of points of each class

    @property
    def shape(self) -> tuple[int, int]:
        """Points and pairs."""
        return self.against.shape[0], self.counts.size * (self.counts.size - 1) // 2

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return self.against.size

    @property
    def owner(self) -> Array:
        """The class of each point."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    @property
    def T(self) -> Array:  # noqa: N802
        """The coefficients written out, one row per pair."""
        return np.asarray(self).T

    @cached_property
    def written(self) -> Array:
        """The coefficients written out, (m, q); kept for later predictions."""
        return np.asarray(self)

    def __getstate__(self) -> dict[str, Array]:
        """Return the fields without the coefficients that `written` keeps."""
        return {"against": self.against, "counts": self.counts}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Write the coefficients out, (m, q)."""
        written = np.zeros(self.shape, dtype or self.against.dtype)
        for columns, points in self.groups():
            written[points, columns] = self.against[points]
        return written

    def outputs(self, product: Callable[[slice, Array], Array]) -> Array:
        """Return the outputs (n, q) without the bias; product(points, V) is K(rows, points) @ V for some of the points."""
        total: Array | None = None
        for columns, points in self.groups():
            part = product(points, self.against[points])
            total = np.zeros((self.shape[1], part.shape[0])) if total is None else total
            total[columns] += part.T
        assert total is not None  # there are two classes at least
        return total.T

    def groups(self) -> list[tuple[Array, slice]]:
        """Return the pairs and the points of each class."""
        ends = np.cumsum(self.counts)
        return [
            (pairs_of(group, self.counts.size), slice(end - count, end))
            for group, (end, count) in enumerate(zip(ends.tolist(), self.counts.tolist(), strict=True))
        ]
