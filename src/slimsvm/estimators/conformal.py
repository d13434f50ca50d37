"""Intervals around the values of a regressor, from its errors on rows that it was not trained on (split-conformal)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, train_test_split

from ..calibration import Conformal
from ..kernels import Array
from .validation import seed_of

#: up to FEW_ROWS rows, errors are those of FOLDS models, each on the rows that it was not trained on; beyond, those of one
#: model on HELD_OUT of the rows. More: errors of models that are nearer to the final one, and more time
FEW_ROWS, FOLDS, HELD_OUT = 10_000, 5, 0.2


def conformal_of(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Conformal:
    """Return the errors of models that are made as the estimator on a part of the rows."""
    y = np.asarray(y, dtype=np.float64)
    if y.shape[0] < 2 * FOLDS:
        raise ValueError(f"calibration='conformal' takes {2 * FOLDS} rows at least, and there are {y.shape[0]}")
    seed, rows = seed_of(estimator.random_state), np.arange(y.shape[0])
    if rows.size <= FEW_ROWS:
        folds = list(KFold(FOLDS, shuffle=True, random_state=seed).split(rows))
    else:
        folds = [tuple(train_test_split(rows, test_size=HELD_OUT, random_state=seed))]
    limit = None if estimator.time_limit is None else estimator.time_limit / (len(folds) + 1)
    errors = [_errors(estimator, X, y, sample_weight, train, held, limit) for train, held in folds]
    return Conformal.of(np.concatenate(errors))


def _errors(estimator: Any, X: Any, y: Array, sample_weight: Any, train: Array, held: Array, limit: Any) -> Array:
    """Return the absolute errors of a model on the rows that it was not trained on."""
    like = clone(estimator).set_params(calibration=None, checkpoint=None, warm_start=False, time_limit=limit)
    weights = None if sample_weight is None else np.asarray(sample_weight)[train]
    like.fit(X[train], y[train], weights)
    return np.abs(y[held] - like.predict(X[held]))
