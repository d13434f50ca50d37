"""Fit the map from scores to probabilities, on rows that the scoring model was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold

from ..calibration import Calibration, Isotonic, Sigmoid, Temperature, columns
from ..kernels import Array
from ..model import Expansion
from ..selection.path import Path, sizes_up_to
from ..selection.search import Selection
from .resume import was_interrupted

#: up to FEW_ROWS rows, the scores for a calibration come from models of FOLDS folds; beyond, from the split into training
#: and validation rows. FEW_ROWS_SMALL is for small models, which take longer than full ones. More: smoother probabilities,
#: and FOLDS further models are fitted more often
FEW_ROWS, FEW_ROWS_SMALL, FOLDS = 20_000, 400, 4


def keep_calibration(
    estimator: Any, selection: Selection, trainer: Any, error: float, full: Expansion | None = None
) -> None:
    """Set `calibration_` of a fitted classifier: the map to probabilities, or None.

    `full` is an imported full model, whose training rows are unknown.
    """
    name = getattr(estimator, "calibration", None)
    if not hasattr(estimator, "classes_"):
        return
    estimator.calibration_ = None
    if name is not None and not was_interrupted(estimator.path_):
        estimator.calibration_ = calibration_of(name, selection, trainer, estimator, error, full)


def calibration_models(estimator: Any, selection: Selection) -> int:
    """Return the most further models that a calibration needs."""
    if getattr(estimator, "calibration", None) is None or estimator._labels_are != "classes":
        return 0
    return FOLDS if selection.problem.labels.size <= FEW_ROWS else 1


def calibration_of(
    name: str, selection: Selection, trainer: Any, estimator: Any, error: float, full: Expansion | None = None
) -> Calibration:
    """Return the map for a model, fitted to scores of similar models on rows that they were not trained on.

    The similar model is that of the path, unless it follows a full model that was trained on the validation rows. Then
    another one is made in the same way without these rows. With few rows there are several folds, and each row is scored by
    the model that was made without it.
    """
    path: Path | None = estimator.path_
    size = None if path is None else estimator.model_.size
    if selection.problem.labels.size <= (FEW_ROWS if path is None else FEW_ROWS_SMALL):
        folds = list(_folds(selection))
        parts = []
        for number, (train, rows) in enumerate(folds):
            part = _part(selection, number, len(folds))
            parts.append((rows, _like_model(part, trainer, train, size, error, full)))
    else:
        train, validation = selection.problem.split()
        judged = next((step for step in path or () if step.size == size), None)
        if judged is not None and not selection.reducer.used_model(judged):
            parts = [(validation, judged.model)]
        else:
            parts = [(validation, _like_model(_part(selection, 0, 1), trainer, train, size, error, full))]
    rows, problem = np.concatenate([some for some, _ in parts]), selection.problem
    outputs = np.vstack([like.on(problem.rows(some)) for some, like in parts])
    scores = problem.goal.scores(outputs)
    return calibrate(name, scores, problem.labels[rows], problem.weights[rows], problem.goal.n_classes)


def _part(selection: Selection, number: int, count: int) -> Selection:
    """Return the selection for one of several models: with its share of the time, and states under its own name."""
    return selection.on(selection.problem.run.share(1 / (count - number)).within(f"calibration {number}"))


def _folds(selection: Selection) -> Iterator[tuple[Array, Array]]:
    """Yield training and validation rows of each fold; both are all rows if a class has too few rows for folds."""
    labels, everything = selection.problem.labels, np.arange(selection.problem.labels.size)
    if np.unique(labels, return_counts=True)[1].min() < FOLDS:
        yield everything, everything
        return
    yield from StratifiedKFold(FOLDS, shuffle=True, random_state=selection.problem.seed).split(everything, labels)


def _like_model(
    selection: Selection, trainer: Any, train: Array, size: int | None, error: float, full: Expansion | None
) -> Expansion:
    """Return a model of some of the rows, made like the final one: a full model, or one of that size."""
    if trainer is not None:
        training = selection.problem if size is None else selection.on(selection.problem.run.share(0.5)).problem
        full = trainer.fit(training.task(train, error=error)).model
    if size is None or (full is not None and full.size <= size):
        assert full is not None
        return full
    reducer = selection.reducer
    path = reducer.path(selection.task(train), sizes_up_to(size, reducer.sizes_per_doubling), full)
    return path.best(size).model


def calibrate(name: str, scores: Array, labels: Array, weights: Array, n_classes: int) -> Calibration:
    """Return the map of that name for scores of rows whose classes are known."""
    given = columns(scores)
    class_numbers = np.arange(n_classes)[-given.shape[1] :]
    members = labels[:, None] == class_numbers  # (n, scores), whether a row is of the score's class
    return FITS[name](given, members, weights)


def fit_sigmoid(scores: Array, members: Array, weights: Array) -> Sigmoid:
    """Return Platt's sigmoid for each score; one more row on either side keeps its targets away from 0 and 1."""
    fitted = [_platt(column, member, weights) for column, member in zip(scores.T, members.T, strict=True)]
    slopes, shifts = np.array(fitted).T
    return Sigmoid(slopes, shifts)


def _platt(score: Array, member: Array, weights: Array) -> tuple[float, float]:
    """Return slope and shift of least log loss (Lin, Lin & Weng 2007)."""
    inside, outside = weights[member].sum(), weights[~member].sum()
    target = np.where(member, (inside + 1) / (inside + 2), 1 / (outside + 2))
    unit = float(np.abs(score).max(initial=0.0)) or 1.0
    scaled = score / unit

    def value_and_gradient(both: Array) -> tuple[float, Array]:
        logits = both[0] * scaled + both[1]
        off = weights * ((1 + np.tanh(logits / 2)) / 2 - target)
        loss = weights @ (np.logaddexp(0.0, logits) - target * logits)
        return float(loss), np.array([off @ scaled, off.sum()])

    start = np.array([1.0, np.log((inside + 1) / (outside + 1))])
    slope, shift = minimize(value_and_gradient, start, jac=True, method="BFGS").x
    return float(slope / unit), float(shift)


def fit_isotonic(scores: Array, members: Array, weights: Array) -> Isotonic:
    """Return a rising curve for each score; with n rows, values are at least 1 / (n + 2) away from 0 and 1."""
    knots, least = [], 1 / (scores.shape[0] + 2)
    for column, member in zip(scores.T, members.T, strict=True):
        curve = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(
            column, member, sample_weight=weights
        )
        knots.append((curve.X_thresholds_, curve.y_thresholds_))
    starts = np.concatenate([[0], np.cumsum([x.size for x, _ in knots])])
    return Isotonic(np.concatenate([x for x, _ in knots]), np.concatenate([y for _, y in knots]), starts)


def fit_temperature(scores: Array, members: Array, weights: Array) -> Temperature:
    """Return the temperature of least log loss."""
    unit = float(np.abs(scores).max(initial=0.0)) or 1.0
    truth = members[:, 0].astype(np.intp) if scores.shape[1] == 1 else members.argmax(axis=1)

    def loss(log_temperature: float) -> float:
        p = Temperature(unit * float(np.exp(log_temperature)))(scores)
        return -float(weights @ np.log(np.maximum(p[np.arange(truth.size), truth], np.finfo(float).tiny)))

    optimum = minimize_scalar(loss, bounds=(-12.0, 12.0), method="bounded", options={"xatol": 1e-6})
    return Temperature(unit * float(np.exp(optimum.x)))


#: how each map is fitted: (scores (n, s), members (n, s), weights (n,)) -> the map
FITS: dict[str, Callable[[Array, Array, Array], Calibration]] = {
    "sigmoid": fit_sigmoid,
    "isotonic": fit_isotonic,
    "temperature": fit_temperature,
}
