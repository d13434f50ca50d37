"""Tuning without a limit on the model: C, width, scaling and tube of a full model, by `SlimSVCCV`.

The first round has a coarse grid for each scaling and few rows of each fold. The second has a fine one around the best,
with all rows. All cells of a width share their kernel values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ...budget import NO_BUDGET
from ...c_bytes import NO_SCALER
from ...estimators import SlimSVCCV, SlimSVRCV
from ...estimators.shrink import scaler_tables
from ...kernels import Array
from ...model import Status
from .halving import FIRST_ROWS, Clock
from .problem import Problem
from .result import LAST_FIT, Constraint, TuningProgress, TuningResult, columns
from .space import WIDTHS, Settings, Space
from .trials import Fold, FoldedRows, Trial, TrialEffort

#: the values of C in the first round, and the factors of the best width and C in the second
COSTS, WIDTH_FACTORS, COST_FACTORS = np.logspace(-1, 3, 5), (0.5, 1.0, 2.0), (0.3, 1.0, 3.0)
#: the most widths in the first round; more: finer, and slower
MOST_WIDTHS = 5
#: the share of the time left for the second round; the rest is for the last fit
SECOND_SHARE = 0.7


@dataclass
class WholeSearch:
    """The search for the settings of a full model; `table` collects its trials."""

    problem: Problem
    rows: FoldedRows
    scalers: dict[str, Any]
    space: Space
    clock: Clock
    tell: Callable[[TuningProgress], None]
    table: list[Trial] = field(default_factory=list)

    def best(self, n_trials: int) -> Trial:
        """Return the trial with the lowest error of the second round."""
        count = int(np.clip(n_trials // (COSTS.size * len(self.scalers)), 1, MOST_WIDTHS))
        multiples = np.geomspace(*WIDTHS, count + 2)[1:-1] if self.space.has_width else np.ones(1)
        few = [Fold(fold.train[: 2 * FIRST_ROWS], fold.validation) for fold in self.rows.folds]
        for number, (scaling, unit) in enumerate(self.space.units.items()):
            share = 0.4 / (len(self.scalers) - number)
            self.round("stage 1 of 2", scaling, few, COSTS, unit * multiples, share)
        first = min(self.table, key=lambda trial: trial.error).settings
        widths = first.gamma * np.array(WIDTH_FACTORS if self.space.has_width else (1.0,))
        before = len(self.table)
        self.round("stage 2 of 2", first.scaling, self.rows.folds, first.C * np.array(COST_FACTORS), widths, SECOND_SHARE)
        return min(self.table[before:], key=lambda trial: trial.error)

    def round(self, stage: str, scaling: str, folds: Sequence[Fold], Cs: Array, gammas: Array, share: float) -> None:
        """Add the trials of a grid with one scaling, as many as a share of the time that is left allows."""
        template, scaler, real = self.template(), self.scalers[scaling], self.problem.real
        if not real:
            template.set_params(calibration=None)  # probabilities are not compared
        X = self.problem.X if scaler is None else scaler.transform(self.problem.X)
        settings: dict[str, Any] = {
            "Cs": [float(C) for C in Cs],
            "gammas": [float(gamma) for gamma in gammas],
            "cv": [(fold.train, fold.validation) for fold in folds],
            "refit": False,
            "time_limit": None if self.clock.left is None else share * self.clock.left,
        }
        if real:
            tubes = [tube for tube in self.space.tubes if tube is not None]
            choice: Any = SlimSVRCV(template, epsilons=tubes[1:2] if stage.startswith("stage 1") else tubes, **settings)
        else:
            choice = SlimSVCCV(template, **settings)
        choice.fit(X, self.problem.y, self.problem.weights if np.ptp(self.problem.weights) else None)
        table = choice.cv_results_
        for place, cell in enumerate(table["params"]):
            if np.isfinite(table["mean_test_score"][place]):
                scores = np.array([table[f"split{k}_test_score"][place] for k in range(len(folds))])
                self.table.append(self.trial(stage, scaling, folds, cell, scores, table, place))
        best = min(trial.error for trial in self.table)
        seconds_left = self.clock.left or 0.0
        self.tell(
            TuningProgress(
                f"{stage}, {scaling}", len(table["params"]), len(table["params"]), best, self.clock.gone, seconds_left
            )
        )

    def trial(
        self,
        stage: str,
        scaling: str,
        folds: Sequence[Fold],
        cell: dict[str, Any],
        scores: Array,
        table: dict[str, Any],
        place: int,
    ) -> Trial:
        """Return a cell of the grid as a trial."""
        gamma = cell.get("gamma", self.space.units[scaling])
        settings = Settings(float(gamma), cell["C"], scaling, cell.get("epsilon"))
        size, error = int(table["mean_n_support"][place]), float(1 - scores.mean())
        validation = sum(fold.validation.size for fold in folds)
        noise = (
            scores.std() / np.sqrt(scores.size - 1)
            if scores.size > 1
            else np.sqrt(max(error * (1 - error), 0) / validation)
        )
        effort = TrialEffort(min(fold.train.size for fold in folds), 0, len(folds), size)
        nbytes = self.nbytes(size, scaling)
        seconds = float(table["mean_fit_time"][place]) * len(folds)
        return Trial(settings, effort, error, float(noise), size, nbytes, seconds, Status.CONVERGED, stage)

    def nbytes(self, size: int, scaling: str) -> int:
        """Return the bytes of the exported C of a model with so many support vectors."""
        scaler = self.scalers[scaling]
        tables = NO_SCALER if scaler is None else scaler_tables([scaler])
        return replace(self.problem.shape, scaler=tables).bytes(size, "float32")

    def template(self) -> Any:
        """Return the estimator whose settings are kept, for a full model."""
        return clone(self.problem.template).set_params(budget=None, tolerance=None, trainer="smo", time_limit=None)

    def fit(self, best: Trial, X: Any, y: Any, sample_weight: Any) -> TuningResult:
        """Return the result with the best settings fitted to all rows."""
        began, chosen = perf_counter(), best.settings
        tuned = {name: value for name, value in chosen.parameters.items() if name not in ("scaling", "metric")}
        estimator = self.template().set_params(time_limit=self.clock.left, **tuned)
        pipeline: Pipeline = chosen.pipeline(estimator, sparse=self.problem.sparse)
        weights = {} if sample_weight is None else {f"{pipeline.steps[-1][0]}__sample_weight": sample_weight}
        pipeline.fit(X, y, **weights)
        estimator.set_params(time_limit=self.problem.template.time_limit)
        model = estimator.model_
        effort = TrialEffort(self.problem.y.size, 0, 1, model.size)
        last = Trial(
            chosen,
            effort,
            best.error,
            best.standard_error,
            model.size,
            self.nbytes(model.size, chosen.scaling),
            perf_counter() - began,
            estimator.status_,
            LAST_FIT,
        )
        constraint = Constraint(NO_BUDGET, None)
        return TuningResult(
            pipeline, {**chosen.parameters, "budget": None}, best.error, columns([*self.table, last], constraint), True
        )
