"""The optimum without a bias and its slack, from which the papers' experiments take their nu."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm import SlimSVC
from slimsvm.trainers import SMO


def optimum_without_bias(X: Any, y: np.ndarray, gamma: float, C: float, tol: float = 1e-2) -> SlimSVC:
    """Return the C-SVM without a bias."""
    return SlimSVC(C=C, gamma=gamma, trainer=SMO(tol=tol, bias=False)).fit(X, y)


def optimal_slack(X: Any, y: np.ndarray, gamma: float, C: float) -> float:
    """Return nu of the optimum without a bias: the mean hinge loss over |w|."""
    model = optimum_without_bias(X, y, gamma, C)
    length = np.sqrt(model.model_.coef[:, 0] @ model.decision_function(model.support_vectors_))
    return float(np.maximum(0.0, 1 - y * model.decision_function(X)).mean() / length)
