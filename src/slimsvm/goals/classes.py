"""Classification: from labels to columns of targets, and from outputs back to labels.

Classes are numbers 0 .. k-1 here. Two classes make one column, +1 for class 1, in every coding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..pairs import PairCoefficients
from .decision import Decision
from .margin_targets import MarginTargets

Array = np.ndarray


class Classification:
    """What all codings share: outputs should have a margin of 1 or more, and the loss counts errors."""

    #: whether rows have labels
    labelled: ClassVar[bool] = True
    #: whether targets are real values; they are -1, 0 and +1
    real: ClassVar[bool] = False
    #: what the mean of the losses is
    loss: ClassVar[str] = "the share of misclassified rows"

    def margin_targets(self, targets: Array) -> MarginTargets:
        """Return y f >= 1 for each row and output."""
        return MarginTargets.beyond(targets, 1.0)

    def followed(self, targets: Array, outputs: Array) -> MarginTargets:
        """Return y f >= h with the full model's margins h = min(1, y f), and no margin target for rows that it gets wrong.

        Raise ValueError where the full model gets every row wrong.
        """
        margins = targets * outputs
        if not (margins > 0).any() and (margins < 0).any():
            raise ValueError(
                "the full model gets the class of every row wrong, so a small model cannot follow it; check its kernel "
                "parameters, and that X and y are the rows and labels of its training"
            )
        return MarginTargets.beyond(targets, np.where(margins > 0, np.minimum(margins, 1.0), -np.inf))

    def groups(self, targets: Array) -> Array:
        """Return the class of each row, as a number."""
        return np.unique(targets, axis=0, return_inverse=True)[1].ravel()

    def strata(self, labels: Array) -> Array | None:
        """Return the classes."""
        return labels

    def decode(self, outputs: Array) -> Array:
        raise NotImplementedError

    def concerned(self, coef: Array) -> Array:
        """Return True for each point and output: one class against the rest concerns all rows."""
        return np.ones(coef.shape, dtype=bool)

    def losses(self, labels: Array, outputs: Array) -> Array:
        """Return 1 for each misclassified row, and 0 for the others."""
        return (self.decode(outputs) != labels).astype(np.float64)


@dataclass(frozen=True)
class OneVsRest(Classification):
    """One column per class, +1 for its rows; the largest output is predicted."""

    name: ClassVar[str] = "ovr"
    n_classes: int

    @property
    def outputs(self) -> int:
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def decision(self) -> Decision:
        return Decision.LARGEST if self.outputs > 1 else Decision.SIGN

    def encode(self, labels: Array) -> Array:
        """Return targets (n, q) of -1 and +1."""
        classes = np.arange(self.n_classes)[-self.outputs :]
        return np.where(labels[:, None] == classes, 1.0, -1.0)

    def targets_of(self, probabilities: Array) -> Array:
        """Return targets (n, q) from -1 to 1 for probabilities of the classes (n, k).

        None is exactly 0, which would say that the output does not concern the row.
        """
        targets = 2 * probabilities[:, -self.outputs :] - 1
        return np.where(targets == 0, np.finfo(np.float64).eps, targets)

    def margin_targets(self, targets: Array) -> MarginTargets:
        """Return a margin of 1 for targets of -1 and 1, none for 0, and less for those between, of probabilities.

        The most probable class should be ahead of the second one by the difference of their probabilities, and others
        behind it by theirs. More than that is no loss, as with labels.
        """
        margins = targets
        if self.outputs > 1:
            ordered = np.sort(targets, axis=1)
            best, second = ordered[:, -1:], ordered[:, -2:-1]
            margins = (targets - np.where(targets == best, second, best)) / 2
        concerned = targets != 0
        low, high = concerned & (margins >= 0), concerned & (margins < 0)
        return MarginTargets(np.where(low, margins, -np.inf), np.where(high, margins, np.inf))

    def groups(self, targets: Array) -> Array:
        certain = bool(np.isin(np.abs(targets), (0, 1)).all())
        return super().groups(targets if certain else self.encode(self.decode(targets)))

    def scores(self, outputs: Array) -> Array:
        """Return one score per class, or a single one for two classes, as scikit-learn's decision_function does."""
        return outputs if self.outputs > 1 else outputs.ravel()

    def pair_scores(self, outputs: Array) -> Array:
        """Return half the difference of the outputs for each pair of classes i < j; positive for class i.

        For two classes it is the single score.
        """
        if self.outputs == 1:
            return outputs.ravel()
        first, second = np.triu_indices(self.n_classes, 1)
        return (outputs[:, first] - outputs[:, second]) / 2

    def decode(self, outputs: Array) -> Array:
        return outputs.argmax(axis=1) if self.outputs > 1 else (outputs.ravel() > 0).astype(np.intp)

    def owner(self, coef: Array) -> Array:
        return self.decode(coef)


@dataclass(frozen=True)
class OneVsOne(Classification):
    """One column per pair of classes i < j, as in LIBSVM; the class with the most votes is predicted, or the first such.

    A column is positive for class i and 0 for rows of other classes; with two classes it is positive for class 1.
    With `break_ties` the sums of outputs decide between equal votes, as with SVC's parameter of that name.

    The methods loop over classes: a table of all classes by all pairs would have k^3 / 2 entries.
    """

    name: ClassVar[str] = "ovo"
    n_classes: int
    break_ties: bool = False

    @property
    def outputs(self) -> int:
        return self.n_classes * (self.n_classes - 1) // 2

    @property
    def decision(self) -> Decision:
        if self.n_classes == 2:
            return Decision.SIGN
        return Decision.SCORED_VOTES if self.break_ties else Decision.VOTES

    @property
    def signs(self) -> Array:
        """The sign of each class in each column, (k, q): +1, -1, or 0; for exporters, whose classes are few."""
        return self.encode(np.arange(self.n_classes))

    def _blocks(self) -> Iterator[tuple[int, slice]]:
        """Yield each class i but the last with its columns, those of the pairs (i, i + 1), (i, i + 2), ..."""
        start = 0
        for i in range(self.n_classes - 1):
            stop = start + self.n_classes - 1 - i
            yield i, slice(start, stop)
            start = stop

    def encode(self, labels: Array) -> Array:
        """Return targets (n, q) of -1, 0 and +1."""
        targets, sign = np.zeros((labels.size, self.outputs)), 1.0 if self.n_classes > 2 else -1.0
        for i, columns in self._blocks():
            later = np.flatnonzero(labels > i)
            targets[later, columns.start + labels[later] - i - 1] = -sign
            targets[labels == i, columns] = sign
        return targets

    def _sums(self, values: Array) -> Array:
        """Return for each class the sum of the columns with its sign, (n, k)."""
        lines, sums = values.T, np.zeros((self.n_classes, values.shape[0]))  # outputs are in lines, one for each column
        for i, columns in self._blocks():
            sums[i] += lines[columns].sum(axis=0)
            sums[i + 1 :] -= lines[columns]
        return sums.T if self.n_classes > 2 else -sums.T

    def votes(self, outputs: Array) -> Array:
        """Return the number of columns won by each class (n, k); an output of 0 is for the column's negative class."""
        votes, won = np.zeros((self.n_classes, outputs.shape[0]), dtype=np.int32), (outputs > 0).T
        for i, columns in self._blocks():
            votes[i] += won[columns].sum(axis=0, dtype=np.int32)
            votes[i + 1 :] += ~won[columns]
        return votes.T if self.n_classes > 2 else votes[::-1].T

    def scores(self, outputs: Array) -> Array:
        """Return votes, plus the sums of outputs scaled to less than half a vote, which break ties, as SVC does."""
        if self.n_classes == 2:
            return outputs.ravel()
        confidence = self._sums(outputs)
        return self.votes(outputs) + confidence / (3 * (np.abs(confidence) + 1))

    def pair_scores(self, outputs: Array) -> Array:
        """Return the outputs, which are one for each pair of classes; for two classes a single score."""
        return outputs if self.n_classes > 2 else outputs.ravel()

    def decode(self, outputs: Array) -> Array:
        if self.outputs == 1:  # a table of votes would take as long as a GPU's kernel values
            return (outputs[:, 0] > 0).astype(np.intp)
        if self.break_ties:
            return self.scores(outputs).argmax(axis=1)
        return self.votes(outputs).argmax(axis=1)

    def owner(self, coef: Array | PairCoefficients) -> Array:
        if isinstance(coef, PairCoefficients):
            return coef.owner
        return self._sums(coef).argmax(axis=1)

    def concerned(self, coef: Array) -> Array:
        """Return whether the class that a point favours most is one of each pair, (m, q)."""
        return self.encode(self.owner(coef)) != 0


@dataclass(frozen=True)
class OneVsOneDag(OneVsOne):
    """One column per pair of classes, read as a decision DAG (Platt, Cristianini & Shawe-Taylor 2000).

    The output for the first and the last of the remaining classes removes one of them, k - 1 times for a row.
    """

    name: ClassVar[str] = "dag"

    @property
    def decision(self) -> Decision:
        """How outputs become a class."""
        return Decision.DAG if self.n_classes > 2 else super().decision

    def scores(self, outputs: Array) -> Array:
        """Return the scores of votes, with k more for the class that the DAG leads to, so that it has the largest."""
        scores = super().scores(outputs)
        if self.n_classes > 2:
            scores[np.arange(scores.shape[0]), self.decode(outputs)] += self.n_classes
        return scores

    def decode(self, outputs: Array) -> Array:
        if self.n_classes == 2:
            return super().decode(outputs)
        return self.walk(outputs.shape[0], lambda rows, column: outputs[rows, column])

    def walk(self, n_rows: int, output: Callable[[Array, int], Array]) -> Array:
        """Return the class of each row; output(rows, column) is asked only for the columns that rows come to."""
        k, first = self.n_classes, np.zeros(n_rows, dtype=np.intp)
        for last in range(k - 1, 0, -1):  # rows at `first` have the classes first .. first + last
            wins = np.empty(n_rows, dtype=bool)
            for i in np.unique(first):
                rows = np.flatnonzero(first == i)
                column = i * (2 * k - i - 1) // 2 + last - 1  # of the pair (i, i + last)
                wins[rows] = output(rows, int(column)) > 0
            first[~wins] += 1
        return first
