"""Labels to columns of targets and outputs back to labels.

Classes are numbers 0 .. k-1 here. Two classes make one column, +1 for class 1, in every coding.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class OneVsRest:
    """One column per class, +1 for its rows; the largest output wins."""

    name: ClassVar[str] = "ovr"
    n_classes: int

    @property
    def outputs(self) -> int:
        """The number of columns."""
        return self.n_classes if self.n_classes > 2 else 1

    def encode(self, labels: Array) -> Array:
        """Targets (n, q) of -1 and +1."""
        own = np.arange(self.n_classes)[-self.outputs :]
        return np.where(labels[:, None] == own, 1.0, -1.0)

    def scores(self, outputs: Array) -> Array:
        """One score per class, or one in all for two classes, as scikit-learn's decision_function has them."""
        return outputs if self.outputs > 1 else outputs.ravel()

    def decode(self, outputs: Array) -> Array:
        """The class of each row."""
        return outputs.argmax(axis=1) if self.outputs > 1 else (outputs.ravel() > 0).astype(np.intp)

    def owner(self, coef: Array) -> Array:
        """The class that each point speaks for, by its coefficients (m, q)."""
        return self.decode(coef)


@dataclass(frozen=True)
class OneVsOne:
    """One column per pair of classes i < j, as in LIBSVM; the class with the most votes wins, the first one of equals.

    A column is positive for class i and 0 for rows of other classes; with two classes it is positive for class 1.
    With `break_ties` outputs part those that are equal in votes, as SVC's parameter of that name has it.
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
        """(k, q): +1, -1 or 0 as a column is for, against or not about a class."""
        signs = np.zeros((self.n_classes, self.outputs))
        for column, (i, j) in enumerate(combinations(range(self.n_classes), 2)):
            signs[i, column], signs[j, column] = 1.0, -1.0
        return signs if self.n_classes > 2 else -signs

    def encode(self, labels: Array) -> Array:
        """Targets (n, q) of -1, 0 and +1."""
        return self.signs[labels]

    def votes(self, outputs: Array) -> Array:
        """The number of columns won by each class (n, k); an output of 0 goes to the column's negative class."""
        return np.where(outputs > 0, 1.0, -1.0) @ self.signs.T / 2 + (self.n_classes - 1) / 2

    def scores(self, outputs: Array) -> Array:
        """Votes, with the sum of outputs squeezed below half a vote to part equals, as SVC has them."""
        if self.n_classes == 2:
            return outputs.ravel()
        confidence = outputs @ self.signs.T
        return self.votes(outputs) + confidence / (3 * (np.abs(confidence) + 1))

    def decode(self, outputs: Array) -> Array:
        """The class of each row."""
        if self.break_ties and self.n_classes > 2:
            return self.scores(outputs).argmax(axis=1)
        return self.votes(outputs).argmax(axis=1)

    def owner(self, coef: Array) -> Array:
        """The class that each point speaks for, by its coefficients (m, q)."""
        return (coef @ self.signs.T).argmax(axis=1)


CODINGS = {coding.name: coding for coding in (OneVsRest, OneVsOne)}
