"""The search for a small model: from a full model, or from the labels only.

Part of the rows is kept for validation. The reducer makes models of growing size from the other rows, and the errors on the
validation rows decide which model is kept. With few rows, this is done on several folds, and the errors are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..goals import Goal
from ..goals.values import per_target
from ..kernels import Array
from ..model import CLEARLY, Expansion, Status, Task
from ..run import Run
from ..text import warn_user
from .allowance import MOST_RECALL_LOST, Allowance
from .folds import CUT_SHORT, MOST_FOLDS_FOR_TOLERANCE, FoldPaths
from .judge import AGREEMENT, Baseline, Judge, Scoring, Units
from .limits import ALONE, Around, Limits
from .path import Path, Step, sizes_up_to
from .problem import Problem

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
#: a model, and the path that it was chosen from; None for a full model
Found = tuple[Expansion, Path | None]


@dataclass(frozen=True)
class Selection:
    """The selection of one small model: the problem, how models are judged, what they may cost, and the reducer."""

    problem: Problem
    judge: Judge
    limits: Limits
    reducer: Any
    full_goal: Goal | None = None  # of the full model, where its outputs are not those of the small one
    squared: bool = False  # whether C belongs to squared errors, and has no unit; otherwise its unit is 1 / that of targets

    @classmethod
    def of(cls, estimator: Any, problem: Problem, reducer: Any, around: Around = ALONE, **more: Any) -> Selection:
        """Return the selection with the settings of an estimator."""
        judge = Judge(Scoring.of(estimator.scoring), estimator)
        if estimator.tolerance is not None:
            problem = replace(problem, splits=replace(problem.splits, most_folds=MOST_FOLDS_FOR_TOLERANCE))
        return cls(problem, judge, Limits.of(estimator, problem, reducer, around), reducer, **more)

    def aimed_at(self, goal: Goal) -> Selection:
        """Return the selection with another goal, that of small and full models."""
        return replace(self, problem=replace(self.problem, goal=goal), full_goal=None)

    def on(self, run: Run) -> Selection:
        """Return the selection whose work is part of this run."""
        return replace(self, problem=replace(self.problem, run=run))

    @property
    def full_problem(self) -> Problem:
        """The problem of the full model."""
        if self.full_goal is None or self.problem.goal.real:  # values are in the units of this problem
            return self.problem
        return replace(self.problem, goal=self.full_goal)

    @property
    def follow(self) -> bool:
        """Whether the reducer gets the full model: outputs of single classes cannot follow those of pairs of classes."""
        goal = self.problem.goal  # two classes have one output in every coding
        return goal.n_classes < 3 or (goal.name == "ovr") == (self.full_problem.goal.name == "ovr")

    def goal_of(self, model: Expansion, full: Expansion) -> Goal:
        """Return the goal of the model that was kept: the full one's, or that of the search."""
        return (self.full_problem if model.size == full.size else self.problem).goal

    def task(self, train: Array) -> Task:
        """Return the task of a reducer on some of the rows."""
        return replace(self.problem.task(train), room=self.limits.room)

    def baseline(self, trainer: Any, error: float) -> tuple[Baseline | None, Array | None]:
        """Return the full models of the folds, and coefficients from which training on all rows can start."""
        baseline, start = self.judge.baseline(self.full_problem, trainer, error)
        return baseline if baseline is None or self.follow else replace(baseline, models=()), start

    def select(
        self,
        full: Expansion,
        tolerance: float | None = None,
        baseline: Baseline | None = None,
        outputs: Array | None = None,
    ) -> Found:
        """Return the model to keep and the path it is from.

        With a `tolerance`, that is the smallest model within the budget whose error is at most the `baseline`'s plus the
        tolerance; otherwise the best within the budget. The baseline is by default the full model's own error. The full
        model is returned, without a path, if it is within the budget or no smaller model is good enough. After Ctrl-C
        the status of the path is INTERRUPTED, and the model is the best so far. `outputs` are those of the full model on
        all rows, if they are known.
        """
        limit = self.limits.size(full.size, full=True)
        if (limit is None and tolerance is None) or full.size < 2:
            return self.limits.kept(full), None
        full = full.written_out() if self.follow else full  # reducers take an array of coefficients
        limits = self.limits.counted(full.size, full=True)
        search = replace(self, problem=self.problem.following(full), limits=limits)
        inside = search._in_units()
        same = inside._model_inside(full)
        chosen: Found
        if tolerance is None:
            known = None if self.problem.goal.real else outputs
            inside = replace(inside, problem=replace(inside.problem, full_outputs=known))
            chosen = inside._best(limit or 1, same)
        else:
            search._warn_of_rare_classes(tolerance)
            given = baseline or Baseline(self.judge.judged(self.problem, full), AGREEMENT)
            allowance = Allowance(given.judgement, tolerance, given.judged, search._class_rows())
            chosen = inside._smallest(same, limit, allowance, given.models)
        model, path = inside._outside(*chosen)
        return self.limits.kept(full) if chosen[0] is same else model, path

    def from_labels(self) -> Found:
        """Return the best model within the budget, made from the labels only, and its path."""
        limit = self.limits.size(self.problem.n, full=False) or 1
        inside = replace(self, limits=self.limits.counted(self.problem.n, full=False))._in_units()
        return inside._outside(*inside._best(limit, None))

    # Units.

    def _in_units(self) -> Selection:
        """Return the selection with standardised values as labels; classes are not changed.

        Reducers use squared errors. A C of absolute errors has the unit 1 / that of the labels. It becomes a C of squared
        errors here, through the weights that it multiplies.
        """
        problem, goal = self.problem, self.problem.goal
        if not goal.real:
            return self
        units = Units.of(problem.labels, problem.weights)
        scaled: Any = goal
        epsilon, variance = per_target(scaled.epsilon / units.scale), per_target(scaled.variance / units.scale**2)
        scaled = replace(scaled, epsilon=epsilon, variance=variance)
        absolute = goal.labelled and not self.squared
        typical = float(np.exp(np.mean(np.log(units.scale))))  # several targets share the weights of rows
        weights = problem.weights * SQUARED_FOR_ABSOLUTE / typical if absolute else problem.weights
        problem = replace(problem, labels=units.inside(problem.labels), goal=scaled, weights=weights)
        return replace(self, problem=problem, judge=replace(self.judge, units=units))

    def _model_inside(self, full: Expansion) -> Expansion:
        return self.judge.units.model_inside(full) if self.problem.goal.real else full

    def _outside(self, model: Expansion, path: Path | None) -> Found:
        if self.problem.goal.real:
            units = self.judge.units
            model, path = units.model_outside(model), None if path is None else units.path_outside(path)
        if path is not None:
            path = replace(path, shape=self.limits.shape, error_is=self.judge.error_in_words(self.problem))
        return model, path

    # The search along paths.

    def _best(self, limit: int, full: Expansion | None) -> tuple[Expansion, Path]:
        """Return the best model of at most `limit` points.

        The largest model is kept unless a smaller one is clearly better. If that is in doubt after the first fold, all
        folds decide.
        """
        folds = self._on_folds(full)
        path = self._extended(folds, limit, count=1)
        limit = self.limits.reached(limit, path)
        if path.best(limit, IN_DOUBT).size < path.up_to(limit).size and path.status not in CUT_SHORT:
            path = self._extended(folds, limit)
        chosen, path = self._in_tables(path, limit, folds)
        return chosen._finished(path, path.best(limit), folds)

    def _in_tables(self, path: Path, limit: int, folds: FoldPaths) -> tuple[Selection, Path]:
        """Return the selection with the precision of tables decided, and the models that are within the budget in it."""
        limits = self.limits.decided(path, limit, folds.tasks[0].judge)
        return replace(self, limits=limits), limits.within_bytes(path)

    def _on_folds(self, full: Expansion | None, fulls: Sequence[Expansion] = ()) -> FoldPaths:
        # models that are not refined on all rows should at least follow the full model of all rows
        inside = [self._model_inside(full_model) for full_model in fulls if self.reducer.finishes]
        tasks = [replace(task, room=self.limits.room) for task in self.judge.folds(self.problem)]
        deadline = self.problem.run.deadline.within(self.reducer.time_limit)
        return FoldPaths(self.reducer, full if self.follow else None, deadline, tasks, inside)

    def _extended(self, folds: FoldPaths, limit: int, count: int | None = None) -> Path:
        """Return the reducer's path to `limit`, with a warning if the time limit cut it short."""
        sizes = {*sizes_up_to(limit, self.reducer.sizes_per_doubling), *self.limits.sizes(limit)}
        path = self.limits.within_bytes(folds.extend(sorted(sizes), count))
        if path.status is Status.TIME_LIMIT:
            warn_user(
                f"{type(self.reducer).__name__} {path.status.value}. The largest model that it found has {path.sizes[-1]} "
                f"support vectors; {limit} were asked for",
                ConvergenceWarning,
            )
        if path.status is Status.CLAMPED:
            warn_user(f"{type(self.reducer).__name__} {path.status.value}", ConvergenceWarning)
        return path

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
                step = path.within(allowance) or step
                chosen, path = self._in_tables(path, step.size, folds)
                return chosen._finished(path, path.within(allowance) or path.best(step.size), folds)
            hopeless = min(path.errors) > allowance.limit and levels_off(path)
            if reach == end or path.status in CUT_SHORT or hopeless:
                break
            reach = min(FURTHER * reach, end)
        if path.status is not Status.INTERRUPTED:
            self._warn_of_no_model(reach, limit, allowance)
        if limit is None:
            return full, path if path.status is Status.INTERRUPTED else None
        limit = self.limits.reached(limit, path)
        chosen, path = self._in_tables(path, limit, folds)
        return chosen._finished(path, path.best(limit), folds)

    def _warn_of_no_model(self, reach: int, limit: int | None, allowance: Allowance) -> None:
        """Warn that no model is within the tolerance, with what was compared and what is returned."""
        returned = "the full model is returned" if limit is None else f"the best of at most {limit} is returned"
        recall = "" if allowance.class_rows is None else f", and keeps each class's recall to within {MOST_RECALL_LOST}"
        warn_user(
            f"no model of at most {reach} support vectors has the validation error allowed, {allowance.limit:.4g} less "
            f"a standard error{recall}; {returned}. The full model has {allowance.full.error:.4g}, judged by "
            f"{allowance.judged}. Raise tolerance or budget, or try another reducer",
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
        step = self.limits.quick_enough(path, step)
        path, meant = path.keep(step).with_models(self.limits.meant), self.limits.meant
        if path.status not in CUT_SHORT:
            self.problem.run.during("shrink").report(1.0)  # folds that were not needed count as done
        if not self.reducer.finishes or path.status in CUT_SHORT or folds.deadline.over:
            return meant(step.model), path
        reducer = replace(self.reducer, time_limit=folds.deadline.left)
        try:
            everything = np.arange(self.problem.n)
            finished = reducer.finished(self.on(self.problem.run.within("all rows")).task(everything), step, folds.full)
            all_rows = self.judge.holdout(self.problem, everything)
            worse = all_rows.judge(finished).worse_than(all_rows.judge(step.model), CLEARLY)
            return meant(finished if not worse and self.limits.fits(finished) else step.model), path
        except KeyboardInterrupt:
            return meant(step.model), replace(path, status=Status.INTERRUPTED)

    # Rare classes.

    def _class_rows(self) -> Array | None:
        """Return the number of validation rows of each class; None without classes, or with a scorer."""
        problem = self.problem
        if not problem.goal.n_classes or self.judge.scoring is not None:
            return None
        labels = np.concatenate([problem.labels[validation] for _, validation in problem.fold_rows()])
        return np.bincount(labels, minlength=problem.goal.n_classes)

    def _warn_of_rare_classes(self, tolerance: float) -> None:
        """Warn if a tolerance would allow a model to lose most rows of a rare class."""
        problem, classes = self.problem, self.problem.goal.n_classes
        if not classes or self.judge.scoring is not None:
            return
        shares = np.bincount(problem.labels, weights=problem.weights, minlength=classes) / problem.weights.sum()
        share = float(shares[shares > 0].min())
        if share <= 4 * tolerance and share < 0.5 / classes:
            warn_user(
                f"tolerance={tolerance:g} is not well below the rarest class's share of the rows, {share:.2g}. Its recall "
                f"is kept to within {MOST_RECALL_LOST} or one validation row. For more, lower tolerance, or give "
                "scoring='balanced_accuracy'",
            )


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
    upper, what = (
        (1.0, "a share of errors from 0 up to 1") if scoring is None else (np.inf, "a difference of scores, 0 or more")
    )
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= float(tolerance) < upper):
        raise ValueError(f"tolerance must be {what}, such as 0.005, not {tolerance!r}")
    Scoring.of(scoring)
