"""Teachers of `distill`: any fitted classifier, regressor or function, read as probabilities of classes or as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.model_selection._search import BaseSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import has_fit_parameter

from ..kernels import Array
from ..text import short
from .calibrating import calibrate

#: functions of a teacher, the best first
FUNCTIONS = ("predict_proba", "decision_function", "predict")
#: by how much probabilities of a row may miss the sum 1
SUM_ERROR = 1e-3
#: the least probability that a teacher is believed; less: one mistake of a certain teacher makes all its rows uncertain
LEAST = 1e-4


@dataclass(frozen=True)
class Teacher:
    """A teacher as a function of rows: (n, k) probabilities or scores of classes, or (n,) values; NaN where it fails."""

    model: Any
    classes: Array | None  # those of the labels, sorted; None for a regressor

    @classmethod
    def of(cls, model: Any, y: Any, width: int | None) -> Teacher:
        """Return the teacher in a fitted model; its classes are those of y, or its own without y."""
        model = getattr(model, "best_estimator_", model) if isinstance(model, BaseSearchCV) else model
        if not callable(model) and not any(hasattr(model, name) for name in FUNCTIONS):
            raise ValueError(
                f"a teacher has {', '.join(FUNCTIONS[:-1])} or {FUNCTIONS[-1]}, or is a function of rows, and "
                f"{short(model)} is neither; give a fitted classifier or regressor"
            )
        takes = getattr(model, "n_features_in_", width)
        if width is not None and takes != width:
            raise ValueError(
                f"X has {width} features and the teacher was trained on {takes}; give rows as the teacher takes them, "
                "before the transformers of its Pipeline"
            )
        return cls(model, _classes_of(model, y))

    @property
    def can_be_cloned(self) -> bool:
        """Whether the teacher can be trained again on some rows."""
        if not hasattr(self.model, "fit") or not hasattr(self.model, "get_params"):
            return False
        try:
            return clone(self.model) is not self.model  # a frozen estimator is its own clone
        except (RuntimeError, TypeError):
            return False

    def trained_on(self, X: Any, y: Any, sample_weight: Array | None) -> Teacher:
        """Return a clone that is trained on these rows."""
        weighted = sample_weight is not None and has_fit_parameter(self.model, "sample_weight")
        settings = {"sample_weight": sample_weight} if weighted else {}
        return replace(self, model=clone(self.model).fit(X, y, **settings))

    def __call__(self, X: Any) -> Array:
        """Return the outputs of rows, a column for each class or none for values."""
        name = next((name for name in FUNCTIONS if hasattr(self.model, name)), None)
        if self.classes is None and name is not None:
            name = "predict"
        outputs = np.asarray((self.model if name is None else getattr(self.model, name))(X))
        if outputs.shape[:1] != (_rows(X),):
            raise ValueError(f"the teacher gave an array of shape {outputs.shape} for {_rows(X)} rows")
        if self.classes is None:
            return _values(outputs)
        known = np.asarray(getattr(self.model, "classes_", self.classes))
        if name == "predict" or outputs.dtype.kind not in "fiub" or (name is None and outputs.ndim == 1):
            return _certain(outputs, self.classes)
        if name == "decision_function":
            return self._placed(np.c_[-outputs, outputs] if outputs.ndim == 1 else outputs, known, -np.inf)
        return self._placed(outputs, known, 0.0)

    def _placed(self, outputs: Array, known: Array, other: float) -> Array:
        """Return the outputs of the teacher's classes in the columns of the labels' classes."""
        assert self.classes is not None
        if outputs.ndim != 2 or outputs.shape[1] != known.size:
            raise ValueError(
                f"the teacher gave an array of shape {outputs.shape} for {known.size} classes, {short(known.tolist())}; it "
                "should have a column for each class"
            )
        strange = np.setdiff1d(known, self.classes)
        if strange.size:
            raise ValueError(
                f"the teacher has classes {short(strange.tolist())} that y does not have, {short(self.classes.tolist())}; "
                "give the labels that it was trained on"
            )
        placed = np.full((outputs.shape[0], self.classes.size), other)
        placed[:, np.searchsorted(self.classes, known)] = outputs
        return placed


def out_of_fold(
    teacher: Teacher, X: Any, y: Array, folds: list[tuple[Array, Array]], weights: Array | None, over: Callable[[], bool]
) -> Array:
    """Return the outputs of clones, each on the rows of a fold that it was not trained on; NaN where time was over."""
    width = () if teacher.classes is None else (teacher.classes.size,)
    outputs = np.full((y.shape[0], *width), np.nan)
    for train, held in folds:
        if over():
            break
        part = teacher.trained_on(_safe_indexing(X, train), y[train], None if weights is None else weights[train])
        outputs[held] = part(_safe_indexing(X, held))
    return outputs


def folds_of(cv: Any, y: Array, classes: bool, groups: Array | None, seed: int) -> list[tuple[Array, Array]]:
    """Return the rows of each fold; `cv` is their number, a splitter of scikit-learn, or the folds themselves."""
    rows = np.arange(y.shape[0])
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= y.shape[0]:
            raise ValueError(f"cv must be a number of folds from 2 to {y.shape[0]}, the number of rows, not {cv}")
        kind: Any = KFold(int(cv), shuffle=True, random_state=seed)
        if groups is not None:
            kind = GroupKFold(int(cv))
        elif classes and np.unique(y, return_counts=True)[1].min() >= cv:
            kind = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        return list(kind.split(rows, y, groups))
    if hasattr(cv, "split"):
        return list(cv.split(rows, y, groups))
    raise ValueError(f"cv must be a number of folds or a splitter of scikit-learn, not {short(cv)}")


@dataclass(frozen=True)
class Softener:
    """From the outputs of a teacher to probabilities, by a map that is fitted to labels.

    Scores get a sigmoid. Probabilities get a temperature: those of a forest are far too uncertain, and those of a network
    too certain, for a student to learn how clear a row is.
    """

    map: Any = None
    given: bool = False  # whether outputs are probabilities already

    @classmethod
    def fitted(cls, outputs: Array, labels: Array) -> Softener:
        """Return the map for outputs of rows whose class numbers are known."""
        known = ~np.isnan(outputs).any(axis=1)
        if not known.any():
            return cls()
        if _are_probabilities(outputs[known]):
            logits, k = _logits(outputs[known]), outputs.shape[1]
            return cls(calibrate("temperature", logits, labels[known], np.ones(int(known.sum())), k), given=True)
        finite = np.where(np.isfinite(outputs), outputs, np.nanmin(outputs[np.isfinite(outputs)]))[known]
        scores = finite[:, 1] if finite.shape[1] == 2 else finite
        return cls(calibrate("sigmoid", scores, labels[known], np.ones(int(known.sum())), outputs.shape[1]))

    def __call__(self, outputs: Array) -> Array:
        """Return the probabilities."""
        if self.map is None:
            return outputs / np.maximum(outputs.sum(axis=1, keepdims=True), 1e-300)
        if self.given:
            return np.asarray(self.map(_logits(outputs)))
        return np.asarray(self.map(outputs[:, 1] if outputs.shape[1] == 2 else outputs))


def _classes_of(model: Any, y: Any) -> Array | None:
    """Return the classes of a classifier's labels; None for a regressor."""
    regresses = _is(is_regressor, model)
    if y is None:
        return None if regresses or not hasattr(model, "classes_") else np.unique(model.classes_)
    classifies = _is(is_classifier, model) or hasattr(model, "predict_proba") or hasattr(model, "classes_")
    if not classifies and not regresses:  # a function, or an object that does not say
        classifies = type_of_target(y) in ("binary", "multiclass")
    return np.unique(y) if classifies else None


def _is(test: Callable[[Any], bool], model: Any) -> bool:
    """Return what one of scikit-learn's tests says; False for objects that have no tags."""
    try:
        return test(model)
    except AttributeError:
        return False


def _certain(predictions: Array, classes: Array) -> Array:
    strange = np.setdiff1d(predictions.astype(classes.dtype), classes)
    if strange.size:
        raise ValueError(f"the teacher predicts {short(strange.tolist())}, and y has the classes {short(classes.tolist())}")
    return (predictions.astype(classes.dtype)[:, None] == classes).astype(np.float64)


def _values(outputs: Array) -> Array:
    if outputs.size != outputs.shape[0] or outputs.dtype.kind not in "fiub":
        raise ValueError(
            f"the teacher of a regression gave an array of {outputs.dtype} of shape {outputs.shape}; it should be a number "
            "for each row"
        )
    return np.where(np.isfinite(outputs), outputs, np.nan).astype(np.float64).ravel()


def _are_probabilities(outputs: Array) -> bool:
    return bool((outputs >= 0).all() and (np.abs(outputs.sum(axis=1) - 1) <= SUM_ERROR).all())


def _logits(probabilities: Array) -> Array:
    """Return the logarithms of probabilities, (n, k), or of the odds of two classes, (n,)."""
    logarithms = np.log(np.maximum(probabilities, LEAST))
    return logarithms[:, 1] - logarithms[:, 0] if probabilities.shape[1] == 2 else logarithms


def _rows(X: Any) -> int:
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


#: nearest rows of which one is the partner; more: made rows lie farther from given ones
NEIGHBOURS = 5
#: rows among which neighbours are looked for; more: nearer ones, and more time
SEARCHED = 20_000


def rows_near(X: Any, prepared: Array, count: int, rng: np.random.Generator) -> Any:
    """Return made rows in the form of X; distances are those of prepared rows. None for forms that cannot be made."""
    searched = rng.permutation(prepared.shape[0])[:SEARCHED]
    first = rng.choice(searched, size=count)
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, searched.size)).fit(prepared[searched])
    neighbours = near.kneighbors(prepared[first], return_distance=False)
    partner = rng.integers(
        min(1, neighbours.shape[1] - 1), neighbours.shape[1], size=count
    )  # the nearest row is the row itself
    second = searched[neighbours[np.arange(count), partner]]
    one, other = (_safe_indexing(X, rows) for rows in (first, second))
    if isinstance(one, np.ndarray) and one.dtype.kind == "f":
        return one + rng.uniform(size=one.shape) * (other - one)
    if issparse(one) or not (isinstance(one, np.ndarray) or hasattr(one, "iloc")):
        return None
    return _mixed_array(one, other, rng) if isinstance(one, np.ndarray) else _mixed_frame(one, other, rng)


def _mixed_array(one: Any, other: Any, rng: np.random.Generator) -> Any:
    return np.where(rng.uniform(size=one.shape) < 0.5, one, other)


def _mixed_frame(one: Any, other: Any, rng: np.random.Generator) -> Any:
    """Return a data frame of both: floats between the two, other cells of one of them."""
    made, other = one.reset_index(drop=True), other.reset_index(drop=True)
    for name in list(made.columns):
        share = rng.uniform(size=len(made))
        if made[name].dtype.kind == "f":
            made[name] += share * (other[name] - made[name])
        else:
            made[name] = made[name].where(share < 0.5, other[name])
    return made
