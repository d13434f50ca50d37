"""From labels to columns of targets, and from outputs back to labels.

Classes are numbers 0 .. k-1 here. Two classes make one column, +1 for class 1, in every coding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class OneVsRest:
    """One column per class, +1 for its rows; the largest output is predicted."""

    name: ClassVar[str] = "ovr"
    n_classes: int

    @property
    def outputs(self) -> int:
        """The number of columns."""
        return self.n_classes if self.n_classes > 2 else 1

    def encode(self, labels: Array) -> Array:
        """Return targets (n, q) of -1 and +1."""
        own = np.arange(self.n_classes)[-self.outputs :]
        return np.where(labels[:, None] == own, 1.0, -1.0)

    def scores(self, outputs: Array) -> Array:
        """Return one score per class, or a single one for two classes, as scikit-learn's decision_function does."""
        return outputs if self.outputs > 1 else outputs.ravel()

    def decode(self, outputs: Array) -> Array:
        """Return the class of each row."""
        return outputs.argmax(axis=1) if self.outputs > 1 else (outputs.ravel() > 0).astype(np.intp)

    def owner(self, coef: Array) -> Array:
        """Return the class that the coefficients (m, q) of each point favour most."""
        return self.decode(coef)


@dataclass(frozen=True)
class OneVsOne:
    """One column per pair of classes i < j, as in LIBSVM; the class with the most votes is predicted, the first of equals.

    A column is positive for class i and 0 for rows of other classes; with two classes it is positive for class 1.
    With `break_ties` the sums of outputs decide between equal votes, as with SVC's parameter of that name.

    Work goes class by class through the k - 1 columns of each: a table of all classes by all pairs would have k^3 / 2
    entries.
    """

    name: ClassVar[str] = "ovo"
    n_classes: int
    break_ties: bool = False

    @property
    def outputs(self) -> int:
        """The number of columns."""
        return self.n_classes * (self.n_classes - 1) // 2

    @property
    def signs(self) -> Array:
        """(k, q): +1, -1 or 0 as a column is for, against or not about a class; for exporters, whose classes are few."""
        return self.encode(np.arange(self.n_classes))

    def columns_of(self, own: int) -> tuple[Array, Array]:
        """Return the columns that are positive for a class, and those that are negative for it."""
        k = self.n_classes
        first = np.arange(k) * (2 * k - np.arange(k) - 1) // 2  # the column of the pair (i, i + 1)
        lower, upper = first[:own] + own - np.arange(own) - 1, np.arange(first[own], first[own] + k - 1 - own)
        return (upper, lower) if k > 2 else (lower, upper)

    def encode(self, labels: Array) -> Array:
        """Return targets (n, q) of -1, 0 and +1."""
        targets = np.zeros((labels.size, self.outputs))
        for own in np.unique(labels):
            rows = np.flatnonzero(labels == own)
            for columns, sign in zip(self.columns_of(own), (1.0, -1.0), strict=True):
                targets[np.ix_(rows, columns)] = sign
        return targets

    def _sums(self, values: Array) -> Array:
        """Return for each class the sum of the columns for it less the sum of those against it, (n, k)."""
        sums = np.empty((values.shape[0], self.n_classes))
        for own in range(self.n_classes):
            positive, negative = self.columns_of(own)
            sums[:, own] = values[:, positive].sum(axis=1) - values[:, negative].sum(axis=1)
        return sums

    def votes(self, outputs: Array) -> Array:
        """Return the number of columns won by each class (n, k); an output of 0 is for the column's negative class."""
        won = self._sums((outputs > 0).astype(np.int8))  # less the columns lost as the negative class
        return won + [self.columns_of(own)[1].size for own in range(self.n_classes)]

    def scores(self, outputs: Array) -> Array:
        """Return votes, plus sums of outputs squeezed to less than half a vote to decide between equals, as SVC does."""
        if self.n_classes == 2:
            return outputs.ravel()
        confidence = self._sums(outputs)
        return self.votes(outputs) + confidence / (3 * (np.abs(confidence) + 1))

    def decode(self, outputs: Array) -> Array:
        """Return the class of each row."""
        if self.break_ties and self.n_classes > 2:
            return self.scores(outputs).argmax(axis=1)
        return self.votes(outputs).argmax(axis=1)

    def owner(self, coef: Array) -> Array:
        """Return the class that the coefficients (m, q) of each point favour most."""
        return self._sums(coef).argmax(axis=1)


CODINGS = {coding.name: coding for coding in (OneVsRest, OneVsOne)}
