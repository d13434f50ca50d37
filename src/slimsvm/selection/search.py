"""The selection of a small model: from a full model, or from the labels only.

Part of the rows is kept for validation. The reducer makes models of growing size from the other rows, and the errors on the
validation rows decide which model is kept. With few rows, this is done on several folds, and the errors are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from ..budget import AUTO, NO_BUDGET, Budget
from ..c_bytes import NO_SCALER, Room, ScalerTables, Shape
from ..goals import Goal, OneVsOne, OneVsRest
from ..kernels import Array, Kernel, Matrix, Precomputed
from ..model import CLEARLY, Expansion, Fit, Holdout, Judgement, Status, Task
from ..pairs import PairTargets
from ..rows.homes import open_rows
from ..rows.protocol import Meter, Rows
from ..run import BY_ITSELF, Run
from ..warning import warn_user
from .allowance import MOST_RECALL_LOST, Allowance
from .budgets import checked_budget, room_for, size_limit
from .folds import CUT_SHORT, FoldPaths, fold_rows, judge_folds
from .path import Path, Step, sizes_up_to
from .scoring import Scoring
from .timing import microseconds
from .units import NO_UNITS, Units

#: a model within a tolerance is searched up to this size first; each further search goes so many times as far. More: fewer
#: searches for large models, and longer ones for small models
FIRST_REACH, FURTHER = 64, 4
#: the smallest size is bisected until two sizes differ by this share of the larger; less: smaller models, more time
CLOSE = 1 / 8
#: all folds are used if a smaller model is better on the first fold by this many standard errors of the difference. More:
#: all folds are used less often, which takes less time and follows the first fold's chance more often
IN_DOUBT = 1.0
#: the factor from a C of absolute errors to one of squared errors, for targets of variance 1. Their slopes are equal at an
#: error of a sixth, which many errors are near; more: less regularisation of small regressors
SQUARED_FOR_ABSOLUTE = 3.0
#: the most targets of pairs of classes, 2 GiB
MOST_TARGETS = 1 << 28
#: the precisions that are taken first under a limit in bytes
FIRST = ("int8", "float32")
#: how a full model is judged where it has no labels but its own
AGREEMENT = "its own predictions, with which small models should agree"
#: the judgement of a full model that other models are compared with
NO_ERROR = Judgement(0.0, 0.0)


@dataclass(frozen=True)
class Baseline:
    """The full models that small models are compared with: their validation error, how it was found, and each fold's."""

    judgement: Judgement
    judged: str
    models: tuple[Expansion, ...] = ()


def itself(estimator: Any) -> Any:
    """Return the estimator."""
    return estimator


@dataclass(frozen=True)
class Selection:
    """Rows, labels and settings from which one model is selected; the validation rows are the same in every run."""

    X: Matrix
    labels: Array  # in the form of the goal
    weights: Array
    kernel: Kernel
    goal: Goal
    reducer: Any
    seed: int
    ids: Array  # the rows' numbers in the training set
    validation_fraction: float = 0.2
    device: str = "cpu"
    cache_mb: float = 512.0
    meter: Meter = field(default_factory=Meter)
    budget: Budget = NO_BUDGET
    precision: str = AUTO
    scoring: Scoring | None = None  # instead of the goal's own loss
    estimator: Any = None  # the estimator that models are scored and timed in
    deployed: Callable[[Any], Any] = itself  # from the estimator to a Pipeline that predicts `raw` rows
    raw: Any = None  # rows before the transformers of a Pipeline; None means X
    scaler: ScalerTables = NO_SCALER  # these transformers as C tables
    follow: bool = True  # whether the reducer gets the full model; otherwise it works from the labels only
    run: Run = BY_ITSELF  # whom all work tells how far it is, when it must end, and where its states are saved
    squared: bool = False  # whether C belongs to squared errors, and has no unit; otherwise its unit is 1 / that of targets
    units: Units = NO_UNITS  # of labels that are values
    probabilities: Array | None = None  # (n, k): what small models are fitted to in place of labels
    held_out: int = 0  # so many of the last rows are the validation rows; 0: they are drawn

    @classmethod
    def of(cls, estimator: Any, seed: int, X: Matrix, labels: Array, weights: Array, **more: Any) -> Selection:
        """Return the selection with the settings of an estimator."""
        return cls(
            X,
            labels,
            weights,
            seed=seed,
            validation_fraction=estimator.validation_fraction,
            device=estimator._home or estimator.device,
            cache_mb=estimator.cache_mb,
            budget=checked_budget(estimator.budget, estimator.precision),
            precision=estimator.precision,
            scoring=Scoring.of(estimator.scoring),
            estimator=estimator,
            **more,
        )

    @property
    def strata(self) -> Array:
        """The class of each row; 0 without classes."""
        strata = self.goal.strata(self.labels)
        return np.zeros(self.labels.size, dtype=np.intp) if strata is None else strata

    def split(self) -> tuple[Array, Array]:
        """Return the training rows and the validation rows; a class with too few rows is in both."""
        return self.fold_rows()[0]

    def fold_rows(self) -> list[tuple[Array, Array]]:
        """Return the training rows and the validation rows of each fold."""
        if self.held_out:
            rows = np.arange(self.labels.size)
            return [(rows[: -self.held_out], rows[-self.held_out :])]
        return fold_rows(self.strata, self.validation_fraction, self.seed)

    def folds(self) -> list[Task]:
        """Return the tasks of the split and, with few rows, of further folds."""
        rows = self.fold_rows()
        runs = [self.run.within(f"fold {number}").of(number, len(rows)) for number in range(len(rows))]
        return [replace(self, run=run).task(*each) for run, each in zip(runs, rows, strict=True)]

    def within(self, name: str) -> Selection:
        """Return the selection whose tasks save their states under this name."""
        return replace(self, run=self.run.within(name))

    def rows(self, index: Array, error: float = np.inf) -> Rows:
        """Return some of the rows in the home of the device, with kernel values to within `error`."""
        return open_rows(
            self.kernel,
            self.X,
            device=self.device,
            meter=self.meter,
            cache_mb=self.cache_mb,
            error=error,
            ids=self.ids[index],
            index=None if index.size == self.labels.size else index,
        )

    def task(
        self, train: Array, validation: Array | None = None, error: float = np.inf, targets: PairTargets | None = None
    ) -> Task:
        """Return the task on some of the rows, with others for validation; targets are written out by default."""
        return Task(
            rows=self.rows(train, error),
            targets=self._targets(train) if targets is None else targets,  # type: ignore[arg-type]
            weights=self.weights[train],
            rng=np.random.default_rng(self.seed),
            holdout=None if validation is None else self.holdout(validation),
            goal=self.goal,
            run=self.run,
            room=self.room,
        )

    def _targets(self, train: Array) -> Array:
        """Return the targets of some rows, written out; pairs of very many classes would take too much memory."""
        if isinstance(self.goal, OneVsOne) and train.size * self.goal.outputs > MOST_TARGETS:
            raise ValueError(
                f"small models with an output for each pair of {self.goal.n_classes:,} classes need {self.goal.outputs:,} "
                f"targets for each of {train.size:,} rows, more than {MOST_TARGETS >> 27} GiB; give multiclass='ovr', "
                "which has an output for each class"
            )
        if self.probabilities is not None and isinstance(self.goal, OneVsRest):
            return self.goal.targets_of(self.probabilities[train])
        return self.goal.encode(self.labels[train])

    def whole(self, error: float = np.inf) -> Task:
        """Return the task on all rows."""
        return self.within("all rows").task(np.arange(self.labels.size), error=error)

    def training(self, trainer: Any, error: float) -> Task:
        """Return the task on all rows for a trainer, without the zeros of pairs of classes if it takes `PairTargets`."""
        pairs = isinstance(self.goal, OneVsOne) and self.goal.outputs > 1 and trainer.takes_pairs
        targets = PairTargets(self.labels, self.goal.n_classes) if pairs else None
        return self.within("training").task(np.arange(self.labels.size), error=error, targets=targets)

    def holdout(self, validation: Array) -> Holdout:
        """Return the validation rows with their labels and weights."""
        labels, scorer = self.labels[validation], None
        if self.scoring is not None:
            scorer = self._scorer(self.scoring, self.scoring.rows_of(self.X, validation), labels)
        return Holdout(self.rows(validation), labels, self.weights[validation], self.goal, scorer)

    def _scorer(self, scoring: Scoring, rows: Matrix, labels: Array) -> Callable[[Expansion, Array], Judgement]:
        """Return a function that judges models by a scorer, with values in the user's unit."""
        units = self.units
        if not self.goal.real:
            return scoring.judge(self.estimator, self.goal, rows, labels, self.seed)
        judged = scoring.judge(self.estimator, self.goal, rows, units.outside(labels), self.seed)
        return lambda model, outputs: judged(units.model_outside(model), units.outside(outputs))

    def judged(self, full: Expansion) -> Judgement:
        """Return the validation error of a full model, on the validation rows of all folds."""
        if not self.goal.labelled:
            return self._judged_by_itself(full)
        return judge_folds(self.folds(), lambda _: full)

    def following(self, full: Expansion) -> Selection:
        """Return the selection with the full model's scores as labels, if rows have no labels."""
        if self.goal.labelled:
            return self
        scores = full.on(self.rows(np.arange(self.labels.size))).ravel()
        variance = float(np.cov(scores, aweights=self.weights, ddof=0)) or 1.0
        return replace(self, labels=scores, goal=replace(self.goal, variance=variance))  # type: ignore[type-var]

    def _judged_by_itself(self, full: Expansion) -> Judgement:
        """Return the full model's judgement if its own scores are the labels."""
        return NO_ERROR if self.scoring is None else judge_folds(self.following(full).folds(), lambda _: full)

    def baseline(self, trainer: Any, error: float) -> tuple[Baseline | None, Array | None]:
        """Return the full models of the folds, and coefficients from which training on all rows can start.

        There are none where a second run would make the model another one, since its steps depend on the rows drawn before.
        Return (None, None) if small models are compared with the full model of all rows.
        """
        if not self.goal.labelled:
            return None, None
        index = self.fold_rows()
        fits = list[Fit]()
        for number, (train, _) in enumerate(index):
            share = self.run.share(1 / (len(index) + 1 - number))  # the last share is for training on all rows
            fits.append(trainer.fit(replace(self, run=share.within(f"baseline {number}")).task(train, error=error)))
        start = None
        if fits[0].dual is not None and not (fits[0].draws is not None and fits[0].draws.any()):
            start = np.zeros((self.labels.size, self.goal.outputs))
            start[index[0][0]] = fits[0].dual
        models = tuple(fit.model.written_out() for fit in fits)
        return self.refitted(models), start

    def refitted(self, models: Sequence[Expansion]) -> Baseline:
        """Return the baseline of full models that were fitted without the validation rows of their folds."""
        judged = judge_folds(self.folds(), lambda number: models[number])
        return Baseline(judged, "full models fitted without the validation rows", tuple(models))

    def limit(self, full: Expansion | None) -> int | None:
        """Return the support vectors that the budgets allow; None without budgets, or if the full model is within them.

        Impossible budgets raise ValueError with the nearest possible ones.
        """
        most = self.labels.size if full is None else full.size
        return size_limit(self.budget, self.room, self._time_of_size, most, full=full is not None)

    @property
    def shape(self) -> Shape:
        """What exports take bytes for, with the metric that the reducer may learn."""
        parts: dict[str, Any] = dict.fromkeys(self.reducer.learned(self.kernel), True)
        if issparse(self.X):
            parts["density"] = max(self.X.nnz / self.X.shape[0], 1.0)
        calibration = getattr(self.estimator, "calibration", None) or ""
        return Shape.of(self.kernel.name, self.X.shape[1], self.goal, map=calibration, scaler=self.scaler, **parts)

    @cached_property
    def room(self) -> Room | None:
        """What a limit in bytes allows; None without one."""
        return room_for(self.budget, self.precision, self.shape)

    @property
    def tables(self) -> str:
        """The precision of models that a reducer has not chosen one for: the given one, or the one with most room."""
        if self.precision != AUTO:
            return self.precision
        return "float32" if self.room is None else next(name for name in FIRST if name in self.room.precisions)

    def meant(self, model: Expansion) -> Expansion:
        """Return a model for tables of its precision."""
        return model if model.precision != "float32" else model.meant_for(self.tables)

    def select(
        self, full: Expansion, tolerance: float | None = None, baseline: Baseline | None = None
    ) -> tuple[Expansion, Path | None]:
        """Return the model to keep and the path it is from.

        With a `tolerance`, that is the smallest model within the budgets whose error is at most the `baseline`'s plus the
        tolerance; otherwise the best within the budgets. The baseline is by default the full model's own error. The full
        model is returned, without a path, if it is within the budgets or no smaller model is good enough. After Ctrl-C
        the status of the path is INTERRUPTED, and the model is the best so far.
        """
        limit = self.limit(full)
        if (limit is None and tolerance is None) or full.size < 2:
            return self.meant(full), None
        full = full.written_out() if self.follow else full  # reducers take an array of coefficients
        selection = self.following(full)
        if tolerance is None:
            return selection.best(limit or 1, full)
        self._warn_of_rare_classes(tolerance)
        given = baseline or Baseline(self.judged(full), AGREEMENT)
        allowance = Allowance(given.judgement, tolerance, given.judged, selection._class_rows())
        return selection._in_units(full, lambda inside, same: inside._smallest(same, limit, allowance, given.models))

    def best(self, limit: int, full: Expansion | None) -> tuple[Expansion, Path | None]:
        """Return the best model of at most `limit` points, and its path: from the full model, or from the labels only.

        The largest model is kept unless a smaller one is clearly better. If that is in doubt after the first fold, all
        folds decide.
        """
        return self._in_units(full, lambda inside, same: inside._best(limit, same))

    def _in_units(
        self, full: Expansion | None, search: Callable[[Selection, Expansion | None], tuple[Expansion, Path | None]]
    ) -> tuple[Expansion, Path | None]:
        """Return the result of a search on standardised values, in the user's unit; classes are not changed."""
        if not self.goal.real:
            model, path = search(self, full)
        else:
            units = Units.of(self.labels, self.weights)
            same = None if full is None else units.model_inside(full)
            found, path = search(self._inside(units), same)
            model = full if found is same and full is not None else units.model_outside(found)
            path = None if path is None else units.path_outside(path)
        if path is not None:
            path = replace(path.with_models(self.meant), shape=self.shape)
        return self.meant(model), path

    def _inside(self, units: Units) -> Selection:
        """Return the selection with standardised labels.

        Reducers use squared errors. A C of absolute errors has the unit 1 / that of the labels. It becomes a C of squared
        errors here, through the weights that it multiplies.
        """
        goal: Any = self.goal
        goal = replace(goal, epsilon=goal.epsilon / units.scale, variance=goal.variance / units.scale**2)
        absolute = goal.labelled and not self.squared
        weights = self.weights * SQUARED_FOR_ABSOLUTE / units.scale if absolute else self.weights
        return replace(self, labels=units.inside(self.labels), goal=goal, weights=weights, units=units)

    def _best(self, limit: int, full: Expansion | None) -> tuple[Expansion, Path]:
        folds = self._on_folds(full)
        path = self._extended(folds, limit, count=1)
        if path.best(limit, IN_DOUBT).size < path.up_to(limit).size and path.status not in CUT_SHORT:
            path = self._extended(folds, limit)
        return self._finished(path, path.best(limit), folds)

    def _on_folds(self, full: Expansion | None, fulls: Sequence[Expansion] = ()) -> FoldPaths:
        seen = full if self.follow else None
        # models that are not refined on all rows should at least follow the full model of all rows
        own = [self.units.model_inside(each) if self.goal.real else each for each in fulls if self.reducer.finishes]
        return FoldPaths(self.reducer, seen, self.run.deadline.within(self.reducer.time_limit), self.folds(), own)

    def _extended(self, folds: FoldPaths, limit: int, count: int | None = None) -> Path:
        """Return the reducer's path to `limit`, with a warning if the time limit cut it short."""
        path = self._within_room(folds.extend(sizes_up_to(limit, self.reducer.sizes_per_doubling), count))
        if path.status is Status.TIME_LIMIT:
            warn_user(
                f"{type(self.reducer).__name__} {path.status.value}. The largest model that it found has {path.sizes[-1]} "
                f"support vectors; {limit} were asked for",
                ConvergenceWarning,
            )
        if path.status is Status.CLAMPED:
            warn_user(f"{type(self.reducer).__name__} {path.status.value}", ConvergenceWarning)
        return path

    def _within_room(self, path: Path) -> Path:
        """Return the path without models that take more bytes than the budget: those of sparse points may."""
        if self.room is None:
            return path
        steps = tuple(step for step in path if self.room.fits(self.meant(step.model)))
        if not steps:
            least = min(self.room.bytes_of(self.meant(step.model)) for step in path)
            raise ValueError(
                f"budget='{self.budget}' is too small: the smallest model takes {least:,} bytes. Give '{least} B' or more"
            )
        return replace(path, steps=steps)

    def _smallest(
        self, full: Any, limit: int | None, allowance: Allowance, fulls: Sequence[Expansion]
    ) -> tuple[Expansion, Path | None]:
        folds, end = self._on_folds(full, fulls), limit or full.size - 1
        reach = min(FIRST_REACH, end)
        while True:
            folds.paths = []
            path = replace(self._extended(folds, reach), allowance=allowance)
            step = path.within(allowance)
            if step is not None:
                path = self._refined(folds, path, allowance)
                return self._finished(path, path.within(allowance) or step, folds)
            hopeless = min(path.errors) > allowance.limit and levels_off(path)
            if reach == end or path.status in CUT_SHORT or hopeless:
                break
            reach = min(FURTHER * reach, end)
        if path.status is Status.INTERRUPTED:
            return (full if limit is None else path.best(limit).model), path
        self._warn_of_no_model(reach, limit, allowance)
        return (full, None) if limit is None else self._finished(path, path.best(limit), folds)

    def _warn_of_no_model(self, reach: int, limit: int | None, allowance: Allowance) -> None:
        """Warn that no model is within the tolerance, with what was compared and what is returned."""
        kept = "the full model is returned" if limit is None else f"the best of at most {limit} is returned"
        recall = "" if allowance.class_rows is None else f", and keeps each class's recall to within {MOST_RECALL_LOST}"
        warn_user(
            f"no model of at most {reach} support vectors has the validation error allowed, {allowance.limit:.4g} less a "
            f"standard error{recall}; {kept}. The full model has {allowance.full.error:.4g}, judged by {allowance.judged}. "
            "Raise tolerance or budget, or try another reducer",
        )

    def _refined(self, folds: FoldPaths, path: Path, allowance: Allowance) -> Path:
        """Return the path with models between the smallest good one and its smaller neighbour, by bisection."""
        while self.reducer.refines and path.status not in CUT_SHORT and not folds.deadline.over:
            step = path.within(allowance)
            gap = next(((a, b) for a, b in pairwise(path.sizes) if step is not None and b == step.size), None)
            if gap is None or gap[1] - gap[0] <= max(1, CLOSE * gap[1]):
                return path
            try:
                path = replace(folds.insert(sum(gap) // 2), allowance=allowance)
            except KeyboardInterrupt:
                return replace(path, status=Status.INTERRUPTED)
        return path

    def _finished(self, path: Path, step: Step, folds: FoldPaths) -> tuple[Expansion, Path]:
        """Return the model of a step, refined on all rows by reducers with `finishes`, and the path.

        The refinement is skipped after Ctrl-C or a time limit. The step's model is kept if Ctrl-C ends the refinement,
        which marks the path, or if the error on all rows gets clearly worse.
        """
        step = self._quick_enough(path, step)
        path = path.keep(step)
        if path.status not in CUT_SHORT:
            self.run.during("shrink").report(1.0)  # folds that were not needed count as done
        if not self.reducer.finishes or path.status in CUT_SHORT or folds.deadline.over:
            return step.model, path
        reducer = replace(self.reducer, time_limit=folds.deadline.left)
        try:
            finished = reducer.finished(self.whole(), step, folds.full)
            all_rows = self.holdout(np.arange(self.labels.size))
            worse = all_rows.judge(finished).worse_than(all_rows.judge(step.model), CLEARLY)
            too_large = self.room is not None and not self.room.fits(self.meant(finished))
            return (step.model if worse or too_large else finished), path
        except KeyboardInterrupt:
            return step.model, replace(path, status=Status.INTERRUPTED)

    # Rare classes.

    def _class_rows(self) -> Array | None:
        """Return the number of validation rows of each class; None without classes, or with a scorer."""
        if not self.goal.n_classes or self.scoring is not None:
            return None
        labels = np.concatenate([self.labels[validation] for _, validation in self.fold_rows()])
        return np.bincount(labels, minlength=self.goal.n_classes)

    def _warn_of_rare_classes(self, tolerance: float) -> None:
        """Warn if a tolerance would allow a model to lose most rows of a rare class."""
        if not self.goal.n_classes or self.scoring is not None:
            return
        shares = np.bincount(self.labels, weights=self.weights, minlength=self.goal.n_classes) / self.weights.sum()
        share = float(shares[shares > 0].min())
        if share <= 4 * tolerance and share < 0.5 / self.goal.n_classes:
            warn_user(
                f"tolerance={tolerance:g} is not well below the rarest class's share of the rows, {share:.2g}. Its recall "
                f"is kept to within {MOST_RECALL_LOST} or one validation row. For more, lower tolerance, or give "
                "scoring='balanced_accuracy'",
            )

    # Time.

    def _time(self, model: Expansion) -> float:
        """Return the microseconds of a row with a model, transformers included."""
        fitted = self.estimator._with_model(model, self.goal)
        row = _safe_indexing(self.X if self.raw is None else self.raw, np.arange(1))
        return microseconds(partial(self.deployed(fitted).predict, row))

    def _time_of_size(self, size: int) -> float:
        """Return the microseconds of a row with a model of that size."""
        some = np.arange(size) % self.X.shape[0]
        points = self.ids[some][:, None] if isinstance(self.kernel, Precomputed) else self.X[some]
        return self._time(Expansion(self.kernel, points, np.ones((size, self.goal.outputs)), np.zeros(self.goal.outputs)))

    def _quick_enough(self, path: Path, step: Step) -> Step:
        """Return the step, or the next smaller one that predicts within the allowed time."""
        allowed = self.budget.microseconds
        if allowed is None:
            return step
        smaller = [each for each in path if each.size <= step.size]
        quick = (each for each in reversed(smaller) if self._time(each.model) <= allowed)
        return next(quick, smaller[0])


def levels_off(path: Path) -> bool:
    """Return whether the sizes of the last search step have no lower error than the smaller ones.

    Still larger models then hardly have one either, and each step takes many times as long as the one before.
    """
    earlier = [error for size, error in zip(path.sizes, path.errors, strict=True) if FURTHER * size <= path.sizes[-1]]
    return bool(earlier) and min(path.errors) >= min(earlier)


def check_selection(validation_fraction: Any, tolerance: Any, scoring: Any = None) -> None:
    """Raise ValueError unless both are shares of rows; with a scoring, the tolerance is in units of the score."""
    if not isinstance(validation_fraction, Real) or not 0 < float(validation_fraction) < 1:
        raise ValueError(f"validation_fraction must be a share of the rows between 0 and 1, not {validation_fraction!r}")
    most, what = (
        (1.0, "a share of errors from 0 up to 1") if scoring is None else (np.inf, "a difference of scores, 0 or more")
    )
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= float(tolerance) < most):
        raise ValueError(f"tolerance must be {what}, such as 0.005, not {tolerance!r}")
    Scoring.of(scoring)
