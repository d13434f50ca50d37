"""Training and validation rows of trials: the same for all settings, so that differences are not chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ...kernels import Array, Matrix

#: up to SMALL rows, each trial has an error of FOLDS folds; beyond, of the first fold. More: less noise and longer trials
SMALL, FOLDS = 8000, 3
#: the most validation rows of a fold; more: less noise in the errors of trials, and more time
MOST_VALIDATION = 10_000


@dataclass(frozen=True)
class Fold:
    """Training rows and validation rows; the first training rows are the subsample of a trial."""

    train: Array
    validation: Array


@dataclass(frozen=True)
class FoldedRows:
    """Rows, labels and weights, and their folds."""

    X: Matrix
    y: Array
    weights: Array
    real: bool  # whether y are values, not classes
    folds: tuple[Fold, ...]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.y.size

    @property
    def n_train(self) -> int:
        """The training rows that every fold has."""
        return min(fold.train.size for fold in self.folds)

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for values."""
        return 0 if self.real else np.unique(self.y).size

    def losses(self, predicted: Array, rows: Array) -> Array:
        """Return the loss of each row: 1 for a wrong class; for values, the squared error as a share of the variance."""
        if self.real:
            return np.square(predicted - self.y[rows]) / (float(np.var(self.y)) or 1.0)
        return (predicted != self.y[rows]).astype(np.float64)


def make_rows(X: Matrix, y: Array, weights: Array, seed: int, *, real: bool) -> FoldedRows:
    """Return the rows with folds that are stratified by class, in an order that starts with rows of every class."""
    rng = np.random.default_rng(seed)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros((y.size, 1)), _strata(y, real))
    folds = [
        Fold(_every_class_first(rng.permutation(train), y, real), np.sort(rng.permutation(validation)[:MOST_VALIDATION]))
        for train, validation in splits
    ]
    if y.size > SMALL:
        folds = folds[:1]
    return FoldedRows(X, y, weights, real, tuple(folds))


def _strata(y: Array, real: bool) -> Array:
    """Return the classes by which folds are made; a class with fewer rows than folds joins the largest one."""
    if real:
        return np.zeros(y.size, dtype=np.intp)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.where(counts[codes] < FOLDS, counts.argmax(), codes)


def _every_class_first(order: Array, y: Array, real: bool) -> Array:
    """Return the rows in the same order after a row of each class, so that every subsample has all classes."""
    if real:
        return order
    first = np.unique(y[order], return_index=True)[1]
    return np.concatenate([order[np.sort(first)], np.delete(order, first)])
