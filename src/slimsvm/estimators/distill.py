"""distill: a small kernel machine that learns from any fitted classifier, regressor or function."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from ..clock import Deadline, check_time_limit
from ..importers.scalers import make_scaler, resolve_scale
from ..kernels import Array
from ..tables.preparation import is_table, table_preparation
from ..text import short
from ..warning import warn_user
from .near_rows import rows_near
from .svc import SlimSVC
from .svr import SlimSVR, in_units_of
from .teachers import Softener, Teacher, folds_of, out_of_fold
from .validation import seed_of

#: the share of the rows on which students are compared
VALIDATION = 0.2
#: the weights of the teacher's targets beside the labels that are tried
SHARES = (0.5, 1.0)
#: made rows at most; more: more time
MOST_MADE = 20_000


@dataclass(frozen=True)
class Distillation:
    """What distilling brought, on validation rows that neither the students nor their teacher were trained on.

    Errors are shares of misclassified rows, or 1 - R^2. They are of students and of a teacher that were trained without
    the validation rows; the student that is returned then learned from all rows.
    """

    teacher_error: float
    plain_error: float  # of the small model that is fitted to labels
    student_error: float  # of the kept one
    standard_error: float  # of the difference plain_error - student_error
    kept: str  # what the kept student was fitted to
    errors: dict[str, float]  # of all students that were tried


def distill(
    teacher: Any,
    X: Any,
    y: Any = None,
    *,
    budget: Any,
    cv: Any = 5,
    X_unlabelled: Any = None,
    student: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    time_limit: float | None = None,
    verbose: bool = False,
    random_state: Any = None,
) -> Any:
    """Make a small kernel machine of any teacher: a forest, boosted trees, a network, a Gaussian process, a function.

    The student is fitted to the labels, to the teacher's probabilities or values, or to a mean of both, and also to rows
    made near the given ones, which the teacher labels. Validation rows decide which of these is kept. A teacher's outputs
    for rows of its own training say little more than their labels do, so those used are of clones that were trained without
    the row.

    Parameters
    ----------
    teacher : object or callable
        A fitted classifier or regressor with `predict_proba`, `decision_function` or `predict`, a Pipeline or search of
        one, or a function from rows to probabilities (n_rows, n_classes), labels or values. It is not changed.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Rows as the teacher takes them.
    y : array-like of shape (n_samples,), default=None
        Their labels or target values. Without them the teacher's predictions are the labels, and the student is compared
        with the teacher and not with the truth.
    budget : int, float or str
        How large the student may be, as in `SlimSVC`.
    cv : int or splitter, default=5
        The folds of the clones.
    X_unlabelled : like X, default=None
        Further rows, which the teacher was not trained on, to be labelled by it.
    student : SlimSVC or SlimSVR, default=None
        Its settings. None: those of a SlimSVC or SlimSVR.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the loss and in errors.
    groups : array-like of shape (n_samples,), default=None
        Rows of a group are in the same fold, and either all validation rows or none.
    time_limit : float, default=None
        Seconds after which no further student is tried. None: no limit.
    verbose : bool, default=False
        Print the error of each student.
    random_state : int, RandomState instance or None, default=None
        Chooses folds, validation rows and made rows.

    Returns
    -------
    SlimSVC, SlimSVR or Pipeline
        The fitted student. It is in a Pipeline behind `table_preparation()` if X has words, dates or holes, and behind a
        StandardScaler if the features are on widely different scales. Its `distillation_` has `teacher_error`,
        `plain_error` (of the small model fitted to labels), `student_error`, `standard_error` (of the difference of the
        last two), `kept` and `errors`.

    Warns
    -----
    UserWarning
        If the teacher cannot be cloned and there are no rows that it has not seen, and for rows on which it fails.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from slimsvm import distill
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> small = distill(forest, X, y, budget=4, random_state=0)
    >>> len(small.support_vectors_) <= 4
    True
    """
    check_time_limit(time_limit)
    deadline, seed = Deadline(time_limit), seed_of(random_state)
    X = X if hasattr(X, "shape") else np.asarray(X)
    given = Teacher.of(teacher, None if y is None else column_or_1d(y), X.shape[1] if len(X.shape) == 2 else None)
    lesson = _Lesson.of(given, X, y, X_unlabelled, sample_weight, groups, cv, seed, deadline)
    return _Trial(lesson, _template(student, given, lesson, budget, seed), deadline, verbose).best()


def _template(student: Any, teacher: Teacher, lesson: _Lesson, budget: Any, seed: int) -> Any:
    """Return the student before it is fitted, with what prepares its rows."""
    kind: Any = SlimSVR if teacher.classes is None else SlimSVC
    if student is not None and not isinstance(student, kind):
        raise ValueError(f"this teacher's student is a {kind.__name__}, not {short(student)}; give one with your settings")
    svm = (kind(random_state=seed) if student is None else clone(student)).set_params(budget=budget)
    if teacher.classes is None and student is None:  # C and epsilon are in units of the targets
        svm.set_params(**in_units_of(lesson.labels))
    if is_table(lesson.X):
        return make_pipeline(table_preparation(), svm)
    scaler = make_scaler(resolve_scale("auto", lesson.X), issparse(lesson.X))
    return svm if scaler is None else make_pipeline(scaler, svm)


@dataclass(frozen=True)
class _Lesson:
    """Rows with labels and the teacher's targets: of clones that have not seen the row, or NaN for none."""

    X: Any
    labels: Array  # as given, or the teacher's
    weights: Array
    targets: Array  # (n, k) probabilities or (n,) values; NaN: the label alone
    train: Array  # rows that students are fitted to before the last fit
    validation: Array
    teacher_error: float
    teacher: Teacher  # labels made rows; not trained on the validation rows, if it could be cloned
    last_teacher: Teacher  # labels made rows for the last fit
    softener: Softener
    further: Any  # rows without labels
    further_targets: Array | None
    seed: int

    @classmethod
    def of(
        cls,
        teacher: Teacher,
        X: Any,
        y: Any,
        further: Any,
        sample_weight: Any,
        groups: Any,
        cv: Any,
        seed: int,
        deadline: Deadline,
    ) -> _Lesson:
        """Return what the teacher says about the rows."""
        check_consistent_length(X, y, sample_weight, groups)
        weights = np.asarray(_check_sample_weight(sample_weight, np.zeros((X.shape[0], 1)), dtype=np.float64))
        groups = None if groups is None else column_or_1d(groups)
        trusted = y is not None and teacher.can_be_cloned
        if not trusted and further is None:
            warn_user(
                f"the teacher cannot be {'trained again without y' if y is None else 'cloned'}, so it labels the given "
                "rows itself; if these are the rows of its training, its outputs say little more than their labels. Give "
                "rows that it has not seen as X_unlabelled"
            )
        if y is None:
            given = _answers(teacher, X)
            known = ~np.isnan(given).reshape(given.shape[0], -1).any(axis=1)
            X, weights, given = _safe_indexing(X, np.flatnonzero(known)), weights[known], given[known]
            groups = None if groups is None else groups[known]
            labels = given if teacher.classes is None else teacher.classes[given.argmax(axis=1)]
        else:
            labels = column_or_1d(y, warn=True)
            labels = labels.astype(np.float64) if teacher.classes is None else labels
            if teacher.classes is None and not np.isfinite(labels).all():
                raise ValueError("y has values that are not finite; leave these rows out")
        train, validation = _split(labels, teacher.classes is not None, groups, seed)
        aware, error = teacher, 0.0
        if trusted:
            inner = None if groups is None else groups[train]
            clones = Deadline(deadline.left and deadline.left / 2)
            folds = folds_of(cv, labels[train], teacher.classes is not None, inner, seed)
            aware = teacher.trained_on(_safe_indexing(X, train), labels[train], weights[train])
            raw = np.full((labels.size, *(() if teacher.classes is None else (teacher.classes.size,))), np.nan)
            raw[validation] = _answers(aware, _safe_indexing(X, validation))
            raw[train] = out_of_fold(
                teacher, _safe_indexing(X, train), labels[train], folds, weights[train], lambda: clones.over
            )
        elif y is None:
            raw = given
        elif further is None:
            raw = _answers(teacher, X)
        else:  # its outputs for rows of its training are not asked for
            raw = np.full((labels.size, *(() if teacher.classes is None else (teacher.classes.size,))), np.nan)
        softener = Softener()
        if teacher.classes is not None:
            softener = Softener.fitted(raw, np.searchsorted(teacher.classes, labels))
            raw = softener(raw)
        if y is not None:
            judged = raw[validation] if trusted or further is None else _softened(teacher, softener, X, validation)
            error = _mean(_losses(judged, labels[validation], teacher.classes, labels), weights[validation])
        lesson = cls(X, labels, weights, raw, train, validation, error, aware, teacher, softener, None, None, seed)
        return lesson if further is None else lesson._with_further(further)

    def _with_further(self, further: Any) -> _Lesson:
        """Return the lesson with rows that the teacher labels."""
        further = further if hasattr(further, "shape") else np.asarray(further)
        if further.shape[1:] != self.X.shape[1:]:
            raise ValueError(f"X_unlabelled has rows of shape {further.shape[1:]}, and X of {self.X.shape[1:]}")
        targets = _softened(self.last_teacher, self.softener, further, np.arange(further.shape[0]))
        known = np.flatnonzero(~np.isnan(targets).reshape(targets.shape[0], -1).any(axis=1))
        return replace(self, further=_safe_indexing(further, known), further_targets=targets[known])

    def mixed(self, rows: Array, share: float) -> Array:
        """Return targets of rows: labels, and the teacher's with this share."""
        classes, labels = self.teacher.classes, self.labels[rows]
        own = labels if classes is None else (labels[:, None] == classes).astype(np.float64)
        both = (1 - share) * own + share * self.targets[rows]
        return np.where(np.isnan(both), own, both)


@dataclass
class _Trial:
    """The students that are tried, by name, with their losses on validation rows."""

    lesson: _Lesson
    template: Any
    deadline: Deadline
    verbose: bool
    losses: dict[str, Array] = field(default_factory=dict)

    def best(self) -> Any:
        """Return the student that is best on validation rows, fitted to all rows."""
        lesson = self.lesson
        plain, kinds = "labels", [(f"teacher {share:g}", share) for share in SHARES]
        if np.isnan(lesson.targets).all() and lesson.further is None:
            kinds = []  # the teacher has said nothing
        self._try(plain, None, made=False, left=2 + 2 * len(kinds))
        for number, (name, share) in enumerate(kinds):
            self._try(name, share, made=False, left=3 + len(kinds) - number)
        soft = min(kinds, key=lambda kind: self._error(kind[0]), default=None)
        if soft is not None:
            self._try(f"{soft[0]} and made rows", soft[1], made=True, left=2)
        kept = min(self.losses, key=self._error)
        share = dict(kinds).get(kept.removesuffix(" and made rows"))
        fitted = self._fitted(np.arange(lesson.labels.size), share, made=kept.endswith("made rows"), left=1)
        fitted.distillation_ = self._result(plain, kept)
        return fitted

    def _try(self, name: str, share: float | None, *, made: bool, left: int) -> None:
        """Fit a student to the training rows and keep its losses on the validation rows, if there is time."""
        if self.losses and self.deadline.over:
            return
        lesson = self.lesson
        fitted = self._fitted(lesson.train, share, made=made, left=left)
        predicted = fitted.predict(_safe_indexing(lesson.X, lesson.validation))
        self.losses[name] = _losses(predicted, lesson.labels[lesson.validation], lesson.teacher.classes, lesson.labels)
        if self.verbose:
            print(f"{name}: error {self._error(name):.4g} (teacher {lesson.teacher_error:.4g})")

    def _fitted(self, rows: Array, share: float | None, *, made: bool, left: int) -> Any:
        """Return a student fitted to rows with the teacher's targets in this share; None for labels alone."""
        lesson, whole = self.lesson, rows.size == self.lesson.labels.size
        model: Any = clone(self.template)
        svm = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if self.deadline.left is not None:
            svm.set_params(time_limit=max(self.deadline.left / left, 1e-3))
        X, y, weights = _safe_indexing(lesson.X, rows), lesson.labels[rows], lesson.weights[rows]
        if share is None:
            return _fit(model, X, y, weights, None)
        targets, more = lesson.mixed(rows, share), []
        if lesson.further is not None:
            more.append((lesson.further, lesson.further_targets))
        if made:
            more += self._made(model, X, lesson.last_teacher if whole else lesson.teacher)
        for further, answers in more:
            X, targets = _stacked(X, further), np.concatenate([targets, answers])
            weights = np.concatenate([weights, np.full(answers.shape[0], weights.mean())])
            certain = answers if lesson.teacher.classes is None else lesson.teacher.classes[answers.argmax(axis=1)]
            y = np.concatenate([y, certain])
        if lesson.teacher.classes is None:
            return _fit(model, X, targets, weights, None)
        svm.set_params(trainer=None)
        return _fit(model, X, y, weights, targets[:, np.isin(lesson.teacher.classes, y)])

    def _made(self, model: Any, X: Any, teacher: Teacher) -> list[tuple[Any, Array]]:
        """Return rows made near the given ones with the teacher's targets; none where they cannot be made."""
        rng = np.random.default_rng(self.lesson.seed)
        if issparse(X):
            return []
        prepared = clone(model[:-1]).fit_transform(X) if isinstance(model, Pipeline) else np.asarray(X)
        made = rows_near(X, prepared, min(X.shape[0], MOST_MADE), rng)
        if made is None:
            return []
        answers = _softened(teacher, self.lesson.softener, made, np.arange(made.shape[0]))
        known = np.flatnonzero(~np.isnan(answers).reshape(answers.shape[0], -1).any(axis=1))
        return [(_safe_indexing(made, known), answers[known])]

    def _error(self, name: str) -> float:
        if name not in self.losses:
            return np.inf
        return _mean(self.losses[name], self.lesson.weights[self.lesson.validation])

    def _result(self, plain: str, kept: str) -> Distillation:
        weights = self.lesson.weights[self.lesson.validation]
        off = self.losses[plain] - self.losses[kept]
        spread = np.average(np.square(off - _mean(off, weights)), weights=weights)
        errors = {name: self._error(name) for name in self.losses}
        deviation = float(np.sqrt(spread / max(off.size - 1, 1)))
        return Distillation(self.lesson.teacher_error, errors[plain], errors[kept], deviation, kept, errors)


def _fit(model: Any, X: Any, y: Array, weights: Array, probabilities: Array | None) -> Any:
    """Return a model fitted to labels or values, or to probabilities of classes."""
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    settings: dict[str, Any] = {f"{step}sample_weight": weights} if np.ptp(weights) else {}
    settings |= {} if probabilities is None else {f"{step}probabilities": probabilities}
    return model.fit(X, y, **settings)


def _answers(teacher: Teacher, X: Any) -> Array:
    """Return the outputs of a teacher for rows; NaN where it has none, with a warning."""
    outputs = teacher(X)
    failed = int(np.isnan(outputs).reshape(outputs.shape[0], -1).any(axis=1).sum())
    if failed == outputs.shape[0]:
        raise ValueError(f"the teacher has no output for any of {failed} rows (they are NaN or infinite)")
    if failed:
        warn_user(f"the teacher has no output for {failed} of {outputs.shape[0]} rows; their labels alone are used")
    return outputs


def _softened(teacher: Teacher, softener: Softener, X: Any, rows: Array) -> Array:
    outputs = _answers(teacher, _safe_indexing(X, rows))
    return outputs if teacher.classes is None else softener(outputs)


def _split(labels: Array, classes: bool, groups: Array | None, seed: int) -> tuple[Array, Array]:
    """Return the training and the validation rows."""
    rows = np.arange(labels.shape[0])
    if rows.size < 4:
        raise ValueError(
            f"there are {rows.size} rows; distilling takes a few hundred, of which a fifth are validation rows"
        )
    if groups is not None:
        return next(GroupShuffleSplit(1, test_size=VALIDATION, random_state=seed).split(rows, labels, groups))
    strata = labels if classes and np.unique(labels, return_counts=True)[1].min() > 1 / VALIDATION else None
    train, validation = train_test_split(rows, test_size=VALIDATION, stratify=strata, random_state=seed)
    return np.sort(train), np.sort(validation)


def _losses(predicted: Array, labels: Array, classes: Array | None, all_labels: Array) -> Array:
    """Return the loss of each row: 1 for a wrong class, or the squared error as a share of the targets' variance."""
    if classes is None:
        return np.asarray(np.square(predicted - labels) / (np.var(all_labels) or 1.0))
    found = classes[predicted.argmax(axis=1)] if predicted.ndim == 2 else predicted
    return np.asarray(found != labels, dtype=np.float64)


def _mean(losses: Array, weights: Array) -> float:
    return float(np.average(losses, weights=weights))


def _stacked(X: Any, more: Any) -> Any:
    """Return rows of both."""
    if issparse(X):
        return sparse_vstack([X, more]).tocsr()
    if isinstance(X, np.ndarray):
        return np.concatenate([X, np.asarray(more)])
    import pandas as pd

    return pd.concat([X, more], ignore_index=True)
