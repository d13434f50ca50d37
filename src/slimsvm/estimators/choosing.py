"""The search of `SlimSVCCV` and `SlimSVRCV`: the scores of all folds for all settings of a grid."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from ..budget import Budget
from ..clock import Deadline
from ..kernels import Array, Matrix, make_kernel
from ..rows.memory import gathered
from ..rows.protocol import Meter
from ..rows.threads import Spaces
from ..run import NO_CHECKPOINT, Checkpoint, Run, silent
from ..selection.cells import Cell, Group, Settings
from ..states import floats, pack, unpack
from ..trainers.smo import SMO
from .base import within_spread
from .folded import FoldedModels, FoldedRows, folded_models
from .methods import make_trainer
from .validation import check_classes, class_weights

Scorer = Callable[..., float]
#: a fold: the numbers of its training rows and of the rows that it is tested on
Split = tuple[Array, Array]


@dataclass
class SavedCell:
    """The scores of one setting in a checkpoint."""

    scores: Annotated[Array, floats("folds", finite=False)]
    sizes: Annotated[Array, floats("folds", finite=False)]
    seconds: float


@dataclass(frozen=True)
class Samples:
    """The rows, labels and weights of a search, its folds, and how a model is scored."""

    template: Any  # the estimator with the checked rows' features, without a model
    X: Matrix
    y: Array
    weights: Array
    weighted: bool
    splits: list[Split]
    scorer: Scorer | None  # None: the estimator's own score
    score_params: Mapping[str, Any] = field(default_factory=dict)


def why_separately(estimator: Any) -> str | None:
    """Return why each setting must be fitted by itself; None if all folds and all C can share kernel values."""
    trainer = make_trainer(estimator) if estimator.trainer is not None else None
    if Budget.of(estimator.budget).given or estimator.tolerance is not None:
        return "the models are small ones"
    if type(trainer) is not SMO:
        return f"the trainer is {estimator.trainer!r}, not 'smo'"
    if getattr(estimator, "calibration", None) is not None:
        return "calibration needs folds of its own"
    if trainer.max_iter != -1 or trainer.time_limit is not None or estimator.time_limit is not None:
        return "max_iter or time_limit may end fits early"
    return None


class Search:
    """The cells of a grid: groups of settings that share a kernel matrix, and what is known of each cell."""

    def __init__(
        self,
        samples: Samples,
        groups: Sequence[Group],
        *,
        deadline: Deadline,
        checkpoint: Checkpoint = NO_CHECKPOINT,
        tell: Callable[[str], None] = silent,
    ) -> None:
        self.samples, self.groups, self.deadline = samples, groups, deadline
        self.checkpoint, self.tell = checkpoint, tell
        self.cells = [cell for group in groups for cell in group.cells]
        self.found: list[Cell | None] = [None] * len(self.cells)
        self.meter, self.begun, self.recalled = Meter(), perf_counter(), 0
        self.spaces: dict[np.dtype, Spaces] = {}
        self.separately = why_separately(samples.template)

    def run(self) -> None:
        """Score all cells, or as many as there is time for."""
        if self.separately is not None:
            self.tell(f"each setting is fitted by itself, since {self.separately}")
        first = 0
        for group in self.groups:
            self.recall(group, first)
            places = [place for place in range(first, first + len(group.Cs)) if self.found[place] is None]
            places.sort(key=lambda place: self.cells[place]["C"])
            if places and not self.deadline.over:
                since = perf_counter()
                for place, cell in zip(places, self.scored(group, places), strict=False):
                    now = perf_counter()
                    self.keep(place, Cell(cell.scores, cell.sizes, now - since))
                    since = now
            first += len(group.Cs)

    def recall(self, group: Group, first: int) -> None:
        """Take the cells of a group from the checkpoint."""
        for number, settings in enumerate(group.cells):
            saved = self.checkpoint.within(_name(settings)).saved()
            if saved is not None:
                read = unpack(SavedCell, saved, folds=len(self.samples.splits))
                self.found[first + number] = Cell(read.scores, read.sizes, read.seconds)
                self.recalled += 1

    def keep(self, place: int, cell: Cell) -> None:
        """Keep a cell, save it, and say how far the search is."""
        self.found[place] = cell
        state = pack(SavedCell(cell.scores, cell.sizes.astype(np.float64), cell.seconds))
        self.checkpoint.within(_name(self.cells[place])).keep(state)
        done, seconds = sum(cell_result is not None for cell_result in self.found), perf_counter() - self.begun
        seconds_left = seconds / max(done - self.recalled, 1) * (len(self.found) - done)
        self.tell(
            f"{done} of {len(self.found)}: {_words(self.cells[place])}: score {cell.scores.mean():.4f}, "
            f"{cell.sizes.mean():,.0f} support vectors; {seconds:.1f} s, {seconds_left:.0f} s left"
        )

    def scored(self, group: Group, places: Sequence[int]) -> Iterator[Cell]:
        """Yield the scores for rising values of C."""
        Cs = np.array([self.cells[place]["C"] for place in places])
        if self.separately is None:
            yield from self.together(group.settings, Cs)
            return
        for C in Cs:
            if self.deadline.over:
                return
            yield self.by_itself({"C": float(C), **group.settings})

    def together(self, settings: Settings, Cs: Array) -> Iterator[Cell]:
        """Yield the scores of models that share kernel values."""
        template = copy.copy(self.samples.template).set_params(**settings)
        data = replace(folded_rows(template, self.samples), held=self.spaces)
        kernel = make_kernel(template.kernel, gamma=self.width(template), degree=template.degree, coef0=template.coef0)
        template._check_rows(kernel, data.X)
        run = Run(deadline=self.deadline)
        for models in folded_models(data, kernel, Cs, self.meter, run, self.tell):
            scores = [self.score(template, data, models, fold) for fold in range(len(data.tests))]
            yield Cell(np.array(scores), models.sizes, 0.0)

    def width(self, template: Any) -> float:
        """Return gamma as a number, of all rows."""
        return template._width(self.samples.X, self.samples.weights if self.samples.weighted else None)

    def score(self, template: Any, data: FoldedRows, models: FoldedModels, fold: int) -> float:
        """Return the score of the model of a fold for the rows that it has not seen."""
        samples, test, outputs = self.samples, data.tests[fold], models.outputs[fold]
        if samples.scorer is None:
            decoded = data.goal.decode(outputs)
            weights = samples.weights[test]
            if data.goal.real:
                return float(r2_score(samples.y[test], decoded, sample_weight=weights))
            return float(np.average(decoded == data.labels[test], weights=weights)) if weights.any() else np.nan
        rows = gathered(samples.X, test)
        fitted = template._with_model(models.model(fold), data.goal)
        fitted._read = lambda X, read: read(outputs) if X is rows else type(template)._read(fitted, X, read)
        try:
            return self.judged(fitted, rows, test)
        finally:
            del fitted._read  # it refers to `fitted`, and such a cycle would keep the rows

    def judged(self, fitted: Any, rows: Matrix, test: Array) -> float:
        """Return the scorer's score of an estimator."""
        samples = self.samples
        if samples.scorer is None:
            return float(fitted.score(rows, samples.y[test], sample_weight=samples.weights[test]))
        params = _check_method_params(samples.X, dict(samples.score_params), test)
        try:
            return float(samples.scorer(fitted, rows, samples.y[test], **params))
        except AttributeError as error:
            raise ValueError(
                f"the scorer {samples.scorer!r} asks for what a {type(fitted).__name__} with these settings does not have: "
                f"{error}. For a scorer of probabilities give estimator={type(fitted).__name__}(calibration='sigmoid'), "
                "which takes longer; 'roc_auc' and 'average_precision' need none"
            ) from error

    def by_itself(self, settings: Settings) -> Cell:
        """Return the scores of models that are fitted one after the other."""
        samples, scores, sizes = self.samples, [], []
        for train, test in samples.splits:
            estimator = clone(samples.template).set_params(**settings)
            X, y = _safe_split(estimator, samples.X, samples.y, train)
            estimator.fit(X, y, samples.weights[train] if samples.weighted else None)
            scores.append(self.judged(estimator, _safe_split(estimator, samples.X, None, test, train)[0], test))
            sizes.append(estimator.model_.size)
        return Cell(np.array(scores), np.array(sizes), 0.0)


def folded_rows(template: Any, samples: Samples) -> FoldedRows:
    """Return the rows with the weights of each fold; set the template's classes."""
    labelled = template._labelled(samples.y, samples.weights, whole=True)
    trainer = within_spread(make_trainer(template), labelled.goal)
    weights = np.zeros((len(samples.splits), samples.y.size))
    for fold, (fold_weights, (train, _)) in enumerate(zip(weights, samples.splits, strict=True)):
        fold_weights[:] = np.bincount(train, minlength=fold_weights.size) * samples.weights
        if labelled.goal.n_classes:
            check_fold(fold, template.classes_[np.unique(labelled.labels[fold_weights > 0])])
            factors = class_weights(template.class_weight, template.classes_, samples.y[fold_weights > 0])
            fold_weights *= factors[labelled.labels]
    return FoldedRows(
        samples.X,
        labelled.labels,
        labelled.goal,
        weights,
        [test for _, test in samples.splits],
        template.device,
        template.cache_mb,
        trainer.tol,
    )


def check_fold(fold: int, classes: Array) -> None:
    """Raise ValueError if the training rows of a fold have one class only."""
    try:
        check_classes(classes)
    except ValueError as error:
        raise ValueError(
            f"fold {fold} leaves no training rows of two classes: {error}. Give cv=StratifiedKFold(shuffle=True), fewer "
            "folds, or groups that have rows of several classes"
        ) from None


def _name(settings: Settings) -> str:
    return _words(settings)


def _words(settings: Settings) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in settings.items())


def _value(value: Any) -> str:
    if callable(value):
        return getattr(value, "__name__", repr(value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
