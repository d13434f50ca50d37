"""distill: a small kernel machine that learns from any fitted classifier, regressor or function."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from ..clock import Deadline, check_time_limit
from ..importers.around import make_scaler, resolve_scale
from ..kernels import Array
from ..tables.preparation import is_table, table_preparation
from ..text import short, warn_user
from .svc import SlimSVC
from .svr import SlimSVR, in_units_of
from .teachers import Softener, Teacher, folds_of, out_of_fold, rows_near
from .validation import seed_of

#: students are compared on one fold of FOLDS, and on more folds until there are ENOUGH_ROWS validation rows. More of them:
#: a student of the teacher is kept by chance more rarely, and more time
FOLDS, ENOUGH_ROWS = 5, 2000
#: standard errors by which a student of the teacher must be better than that of labels: LIKELY where the teacher is better
#: by CLEARLY, else UNLIKELY; and the difference at which no more folds are used. Higher: the labels are kept more often
LIKELY, UNLIKELY, CLEARLY, DECIDED = 1.0, 2.0, 2.0, 3.0
#: the weights of the teacher's targets beside the labels that are tried, for classes and for values
SHARES = {True: (0.25, 0.5), False: (0.5, 1.0)}
#: students of all rows, of which the one most like the teacher is returned: some begin in a poor place. More: more time
TURNS = 3
#: the students by name: of labels alone, and what the name of one that learns from made rows ends in
PLAIN, MADE = "labels", " and made rows"
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
    made near the given ones, which the teacher labels. Validation rows decide which of these is kept: the labels alone,
    unless another student is better by more than one standard error of the difference, or by more than two where the
    teacher itself is not clearly better. A teacher's outputs for rows of its own training say little more than
    their labels do, so those used are of clones that were trained without the row.

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
    if y is not None and len(np.shape(y)) == 2 and np.shape(y)[1] > 1:
        raise ValueError(
            f"y has {np.shape(y)[1]} columns, and a student has one target; distil one teacher for each of them"
        )
    given = Teacher.of(teacher, None if y is None else column_or_1d(y), X.shape[1] if len(X.shape) == 2 else None)
    rows = _Rows.of(given, X, y, X_unlabelled, sample_weight, groups)
    return _Trial(rows, _template(student, rows, budget, seed), cv, seed, deadline, verbose).best()


def _template(student: Any, rows: _Rows, budget: Any, seed: int) -> Any:
    """Return the student before it is fitted, with what prepares its rows."""
    regresses = rows.teacher.classes is None
    kind: Any = SlimSVR if regresses else SlimSVC
    if student is not None and not isinstance(student, kind):
        raise ValueError(f"this teacher's student is a {kind.__name__}, not {short(student)}; give one with your settings")
    svm = (kind(random_state=seed) if student is None else clone(student)).set_params(budget=budget)
    if regresses and student is None:  # C and epsilon are in units of the targets
        svm.set_params(**in_units_of(rows.labels))
    if is_table(rows.X):
        return make_pipeline(table_preparation(), svm)
    scaler = make_scaler(resolve_scale("auto", rows.X), issparse(rows.X))
    return svm if scaler is None else make_pipeline(scaler, svm)


@dataclass(frozen=True)
class _Rows:
    """The rows as given, and what the teacher may say about them."""

    teacher: Teacher
    X: Any
    labels: Array  # as given, or the teacher's
    weights: Array
    groups: Array | None
    further: Any  # rows without labels
    answers: Array | None  # the teacher's outputs for the rows themselves; None where clones make them, or none are asked
    truth: bool  # whether the labels are given

    @classmethod
    def of(cls, teacher: Teacher, X: Any, y: Any, further: Any, sample_weight: Any, groups: Any) -> _Rows:
        """Return the rows with labels, after checks."""
        check_consistent_length(X, y, sample_weight, groups)
        weights = np.asarray(_check_sample_weight(sample_weight, np.zeros((X.shape[0], 1)), dtype=np.float64))
        groups = None if groups is None else column_or_1d(groups)
        further = further if further is None or hasattr(further, "shape") else np.asarray(further)
        if further is not None and further.shape[1:] != X.shape[1:]:
            raise ValueError(f"X_unlabelled has rows of shape {further.shape[1:]}, and X of {X.shape[1:]}")
        if further is None and (y is None or not teacher.can_be_cloned):
            warn_user(
                f"the teacher cannot be {'trained again without y' if y is None else 'cloned'}, so it labels the given "
                "rows itself; if these are the rows of its training, its outputs say little more than their labels. Give "
                "rows that it has not seen as X_unlabelled"
            )
        if y is None:
            answers = _answers(teacher, X)
            known = np.flatnonzero(_known(answers))
            X, weights, answers = _safe_indexing(X, known), weights[known], answers[known]
            labels = answers if teacher.classes is None else teacher.classes[answers.argmax(axis=1)]
            return cls(teacher, X, labels, weights, None if groups is None else groups[known], further, answers, False)
        labels = column_or_1d(y, warn=True)
        labels = labels.astype(np.float64) if teacher.classes is None else labels
        if teacher.classes is None and not np.isfinite(labels).all():
            raise ValueError("y has values that are not finite; leave these rows out")
        itself = further is None and not teacher.can_be_cloned
        return cls(teacher, X, labels, weights, groups, further, _answers(teacher, X) if itself else None, True)

    @property
    def cloned(self) -> bool:
        """Whether clones of the teacher label the rows."""
        return self.truth and self.teacher.can_be_cloned

    def splits(self, seed: int) -> list[tuple[Array, Array]]:
        """Return training and validation rows of as many folds as make enough validation rows, five at most."""
        if self.labels.size < 2 * FOLDS:
            raise ValueError(f"there are {self.labels.size} rows; distilling takes a few hundred, and {2 * FOLDS} at least")
        folds = folds_of(FOLDS, self.labels, self.teacher.classes is not None, self.groups, seed)
        return folds[: int(np.ceil(ENOUGH_ROWS * FOLDS / self.labels.size))]


@dataclass(frozen=True)
class _Lesson:
    """What the teacher says about rows of one split: of training rows by clones that have not seen the row."""

    rows: _Rows
    train: Array
    validation: Array
    teacher: Teacher  # labels made rows
    softener: Softener
    targets: Array  # (n, k) probabilities or (n,) values; NaN: the label alone
    judged: Array  # targets of the validation rows
    losses: Array  # of the teacher on the validation rows

    @classmethod
    def of(cls, rows: _Rows, train: Array, validation: Array, cv: Any, seed: int, deadline: Deadline) -> _Lesson:
        """Train the clones and return what they say."""
        teacher, classes = rows.teacher, rows.teacher.classes
        targets = np.full((rows.labels.size, *(() if classes is None else (classes.size,))), np.nan)
        if rows.cloned:
            X, labels, weights = _safe_indexing(rows.X, train), rows.labels[train], rows.weights[train]
            groups = None if rows.groups is None else rows.groups[train]
            folds, clones = folds_of(cv, labels, classes is not None, groups, seed), deadline.share(0.5)
            teacher = teacher.trained_on(X, labels, weights)
            targets[train] = out_of_fold(rows.teacher, X, labels, folds, weights, lambda: clones.over)
            targets[validation] = _answers(teacher, _safe_indexing(rows.X, validation))
        elif rows.answers is not None:
            targets = rows.answers.copy()
        softener = Softener()
        if classes is not None:
            softener = Softener.fitted(targets, np.searchsorted(classes, rows.labels))
            targets = softener(targets)
        judged = targets[validation]
        if rows.truth and rows.answers is None and not rows.cloned:
            judged = _softened(teacher, softener, _safe_indexing(rows.X, validation))
        losses = _losses(judged, rows.labels[validation], rows)
        return cls(rows, train, validation, teacher, softener, targets, judged, losses)

    def disagreement(self, predicted: Array) -> Array:
        """Return the loss of predictions for validation rows by the teacher, who is less noisy than labels; NaN without."""
        classes = self.rows.teacher.classes
        if classes is None:
            return _losses(predicted, self.judged, self.rows)
        return np.asarray(1 - self.judged[np.arange(predicted.size), np.searchsorted(classes, predicted)])


@dataclass
class _Trial:
    """The students that are tried: the losses of each on the validation rows of the folds so far."""

    rows: _Rows
    template: Any
    cv: Any
    seed: int
    deadline: Deadline
    verbose: bool
    losses: dict[str, list[Array]] = field(default_factory=dict)
    disagreements: dict[str, list[Array]] = field(default_factory=dict)
    lessons: list[_Lesson] = field(default_factory=list)

    def best(self) -> Any:
        """Return the student that is clearly better than that of labels on validation rows, or that; fitted to all rows."""
        splits, left = self.rows.splits(self.seed), self._names()
        for number, (train, validation) in enumerate(splits):
            if self.lessons and self.deadline.over:
                break
            lesson = _Lesson.of(self.rows, train, validation, self.cv, self.seed, self.deadline)
            self.lessons.append(lesson)
            fits = 2 * (len(splits) - number) + len(left)
            for place, name in enumerate([PLAIN, *left]):
                self._try(name, lesson, fits - place)
            left = sorted((name for name in left if name in self.losses), key=self._advantage)[-2 if number == 0 else -1 :]
            if number > 0 and left and abs(self._advantage(left[-1])) > DECIDED:
                break
        kept = left[-1] if left and self._advantage(left[-1]) > (LIKELY if self._trusted else UNLIKELY) else PLAIN
        fitted = self._final(kept)
        fitted.distillation_ = self._result(kept)
        return fitted

    def _final(self, kept: str) -> Any:
        """Return the student fitted to all rows: of several, the one that is most like the teacher on rows made anew."""
        lesson, everything, tried = self._whole(), np.arange(self.rows.labels.size), []
        for turn in range(1 if kept == PLAIN else TURNS):
            if turn and self.deadline.over:
                break
            tried.append(self._fitted(lesson, everything, kept, TURNS - turn, turn))
        if len(tried) == 1:
            return tried[0]
        rows = [*self._made(tried[0], self.rows.X, TURNS), self.rows.X][0]
        wanted = _answers(lesson.teacher, rows)
        known = np.flatnonzero(_known(wanted))
        rows, wanted, classes = _safe_indexing(rows, known), wanted[known], self.rows.teacher.classes
        labels = wanted if classes is None else classes[wanted.argmax(axis=1)]
        return min(tried, key=lambda student: _losses(student.predict(rows), labels, self.rows).mean())

    def _names(self) -> list[str]:
        """Return the students that are tried beside that of labels."""
        shares = SHARES[self.rows.teacher.classes is not None]
        return [f"teacher {share:g}{form}" for form in ([""] if issparse(self.rows.X) else [MADE, ""]) for share in shares]

    def _advantage(self, name: str) -> float:
        """Return by how many standard errors a student is better than that of labels.

        A trusted teacher is asked too: its outputs for rows that it has not seen have less noise than labels have.
        """
        tables = [self.losses, *[self.disagreements] * self._trusted]
        off = [np.concatenate(table[PLAIN][: len(table[name])]) - np.concatenate(table[name]) for table in tables]
        return _in_standard_errors(*self._mean_and_error(np.mean(off, axis=0)))

    @property
    def _trusted(self) -> bool:
        """Whether the teacher is clearly better than the student of labels."""
        off = np.concatenate(self.losses[PLAIN]) - np.concatenate([lesson.losses for lesson in self.lessons])
        return _in_standard_errors(*self._mean_and_error(off)) > CLEARLY

    def _whole(self) -> _Lesson:
        """Return the lesson of all rows: the teacher's outputs of the rows that clones have not seen."""
        first, targets = self.lessons[0], self.lessons[0].targets.copy()
        for lesson in self.lessons:
            targets[lesson.validation] = lesson.targets[lesson.validation]
        return replace(first, targets=targets, teacher=self.rows.teacher)

    def _try(self, name: str, lesson: _Lesson, left: int) -> None:
        """Fit a student to the training rows and keep its losses on the validation rows, if there is time."""
        if self.losses and (
            self.deadline.over or (name != PLAIN and np.isnan(lesson.targets).all() and self.rows.further is None)
        ):
            return
        fitted = self._fitted(lesson, lesson.train, name, left)
        predicted = fitted.predict(_safe_indexing(self.rows.X, lesson.validation))
        losses = _losses(predicted, self.rows.labels[lesson.validation], self.rows)
        self.losses.setdefault(name, []).append(losses)
        by_teacher = lesson.disagreement(np.asarray(predicted))
        self.disagreements.setdefault(name, []).append(np.where(np.isnan(by_teacher), losses, by_teacher))
        if self.verbose:
            print(f"{name}: error {self._error(name):.4g} (teacher {self._teacher_error():.4g})")

    def _fitted(self, lesson: _Lesson, chosen: Array, name: str, left: int, turn: int = 0) -> Any:
        """Return a student fitted to these rows and what its name says; another one at each turn."""
        rows, share = self.rows, 0.0 if name == PLAIN else float(name.removesuffix(MADE).split()[-1])
        model: Any = clone(self.template)
        svm = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if self.deadline.left is not None:
            svm.set_params(time_limit=max(self.deadline.left / left, 1e-3))
        if turn:
            svm.set_params(random_state=self.seed + turn)
        X, y, weights = _safe_indexing(rows.X, chosen), rows.labels[chosen], rows.weights[chosen]
        if name == PLAIN:
            return _fit(model, X, y, weights, None)
        targets = _mixed(rows, lesson.targets[chosen], y, share)
        more = [rows.further] if rows.further is not None else []
        if name.endswith(MADE):
            more += self._made(model, X, turn)
        for further in more:
            answers = _softened(lesson.teacher, lesson.softener, further)
            known = np.flatnonzero(_known(answers))
            answers = answers[known]
            X, targets = _stacked(X, _safe_indexing(further, known)), np.concatenate([targets, answers])
            weights = np.concatenate([weights, np.full(answers.shape[0], weights.mean())])
            certain = answers if rows.teacher.classes is None else rows.teacher.classes[answers.argmax(axis=1)]
            y = np.concatenate([y, certain])
        if rows.teacher.classes is None:
            return _fit(model, X, targets, weights, None)
        svm.set_params(trainer=None)
        return _fit(model, X, y, weights, targets[:, np.isin(rows.teacher.classes, y)])

    def _made(self, model: Any, X: Any, turn: int) -> list[Any]:
        """Return rows made near the given ones, others at each turn; none where they cannot be made."""
        if issparse(X):
            return []
        prepared = clone(model[:-1]).fit_transform(X) if isinstance(model, Pipeline) else np.asarray(X)
        made = rows_near(X, prepared, min(X.shape[0], MOST_MADE), np.random.default_rng(self.seed + turn))
        return [] if made is None else [made]

    def _weights(self, count: int) -> Array:
        return np.concatenate([self.rows.weights[lesson.validation] for lesson in self.lessons[:count]])

    def _error(self, name: str) -> float:
        if name not in self.losses:
            return np.inf
        return float(np.average(np.concatenate(self.losses[name]), weights=self._weights(len(self.losses[name]))))

    def _teacher_error(self) -> float:
        losses = np.concatenate([lesson.losses for lesson in self.lessons])
        return float(np.average(losses, weights=self._weights(len(self.lessons))))

    def _mean_and_error(self, losses: Array) -> tuple[float, float]:
        """Return the mean of losses of the first validation rows, and its standard error."""
        weights = np.concatenate([self.rows.weights[lesson.validation] for lesson in self.lessons])[: losses.size]
        mean = float(np.average(losses, weights=weights))
        spread = float(np.average(np.square(losses - mean), weights=weights))
        return mean, float(np.sqrt(spread / max(losses.size - 1, 1)))

    def _result(self, kept: str) -> Distillation:
        count = len(self.losses[kept])
        off = np.concatenate(self.losses[PLAIN][:count]) - np.concatenate(self.losses[kept])
        errors = {name: self._error(name) for name in self.losses}
        deviation = self._mean_and_error(off)[1]
        return Distillation(self._teacher_error(), errors[PLAIN], errors[kept], deviation, kept, errors)


def _in_standard_errors(mean: float, error: float) -> float:
    return mean / error if error else np.sign(mean) * np.inf if mean else 0.0


def _mixed(rows: _Rows, targets: Array, labels: Array, share: float) -> Array:
    """Return targets of rows: labels, and the teacher's with this share."""
    classes = rows.teacher.classes
    truth = labels if classes is None else (labels[:, None] == classes).astype(np.float64)
    both = (1 - share) * truth + share * targets
    return np.where(np.isnan(both), truth, both)


def _known(outputs: Array) -> Array:
    """Return which rows have an output."""
    return ~np.isnan(outputs).reshape(outputs.shape[0], -1).any(axis=1)


def _fit(model: Any, X: Any, y: Array, weights: Array, probabilities: Array | None) -> Any:
    """Return a model fitted to labels or values, or to probabilities of classes."""
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    settings: dict[str, Any] = {f"{step}sample_weight": weights} if np.ptp(weights) else {}
    settings |= {} if probabilities is None else {f"{step}probabilities": probabilities}
    return model.fit(X, y, **settings)


def _answers(teacher: Teacher, X: Any) -> Array:
    """Return the outputs of a teacher for rows; NaN where it has none, with a warning."""
    outputs = teacher(X)
    failed = int((~_known(outputs)).sum())
    if failed == outputs.shape[0]:
        raise ValueError(f"the teacher has no output for any of {failed} rows (they are NaN or infinite)")
    if failed:
        warn_user(f"the teacher has no output for {failed} of {outputs.shape[0]} rows; their labels alone are used")
    return outputs


def _softened(teacher: Teacher, softener: Softener, X: Any) -> Array:
    outputs = _answers(teacher, X)
    return outputs if teacher.classes is None else softener(outputs)


def _losses(predicted: Array, labels: Array, rows: _Rows) -> Array:
    """Return the loss of each row: 1 for a wrong class, or the squared error as a share of the targets' variance."""
    classes = rows.teacher.classes
    if classes is None:
        return np.asarray(np.square(predicted - labels) / (np.var(rows.labels) or 1.0))
    classes_found = classes[predicted.argmax(axis=1)] if predicted.ndim == 2 else predicted
    return np.asarray(classes_found != labels, dtype=np.float64)


def _stacked(X: Any, more: Any) -> Any:
    if issparse(X):
        return sparse_vstack([X, more]).tocsr()
    if isinstance(X, np.ndarray):
        return np.concatenate([X, np.asarray(more)])
    import pandas as pd

    return pd.concat([X, more], ignore_index=True)
