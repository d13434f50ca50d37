"""The result of tuning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...budget import Budget
from ...checks import check_at_least_zero
from ..runs import columns_of
from .trials import Trial

#: the stage after all trials
LAST_FIT = "last fit"


@dataclass(frozen=True)
class TuningProgress:
    """The argument of a callback after each trial.

    Attributes
    ----------
    stage : str
        The present stage.
    done, of : int
        Trials of the stage that are done, and all of them.
    error : float
        The lowest error of the stage so far.
    seconds, seconds_left : float
        Time gone, and an estimate of the time left, the last fit included.
    """

    stage: str
    done: int
    of: int
    error: float
    seconds: float
    seconds_left: float

    @property
    def last(self) -> bool:
        """Whether all trials are done, and the last fit begins."""
        return self.stage == LAST_FIT

    def __str__(self) -> str:
        if self.last:
            return f"last fit, {self.seconds:.0f} s gone, about {self.seconds_left:.0f} s left"
        return (
            f"{self.stage}: {self.done} of {self.of}, best error {self.error:.4g}, {self.seconds:.0f} s gone, "
            f"about {self.seconds_left:.0f} s left"
        )


def print_tuning(progress: TuningProgress) -> None:
    """Print the progress to stderr."""
    print(f"slimsvm: tune: {progress}", file=sys.stderr)


@dataclass(frozen=True)
class Constraint:
    """Limits on a model: what it may cost, and its error; None for no limit."""

    budget: Budget
    error: float | None

    def __post_init__(self) -> None:
        if self.error is not None:
            check_at_least_zero("max_error", self.error)

    @property
    def whole(self) -> bool:
        """Whether there is no limit, so that the model is a full one."""
        return not self.budget.given and self.error is None

    def met(self, trial: Trial) -> bool:
        """Return whether a trial's model is within all limits."""
        return (
            (self.budget.count is None or trial.size <= self.budget.count)
            and (self.budget.bytes is None or trial.nbytes <= self.budget.bytes)
            and (self.error is None or trial.error <= self.error)
        )


@dataclass(frozen=True, repr=False)
class TuningResult:
    """The result of `tune`.

    Attributes
    ----------
    best_estimator_ : Pipeline
        The chosen scaler, if any, and a SlimSVC or SlimSVR, fitted to all rows.
    best_params_ : dict
        The settings chosen: gamma, C, scaling, metric, budget, and epsilon for a regression.
    best_error_ : float
        The error of these settings on validation rows in the last stage. It is the lowest of several, and therefore
        slightly optimistic.
    results_ : dict
        The trials in the order in which they were made, a list for each column: gamma, C, scaling, (epsilon,) metric, size,
        bytes, rows, error, standard_error, seconds, stage, feasible, status. `pandas.DataFrame(result.results_)` is the
        table. The last row is the last fit, with the error on its own validation rows.
    feasible_ : bool
        Whether the settings chosen were within all limits on validation rows.
    """

    best_estimator_: Any
    best_params_: dict[str, Any]
    best_error_: float
    results_: dict[str, list[Any]]
    feasible_: bool

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={_short(value)}" for name, value in self.best_params_.items())
        return f"TuningResult(error {self.best_error_:.4g} with {settings}; {len(self.results_['gamma']) - 1} trials)"


def columns(trials: Sequence[Trial], constraint: Constraint) -> dict[str, list[Any]]:
    """Return the trials as lists by column."""
    rows = [
        trial.settings.parameters
        | {"size": trial.size, "bytes": trial.nbytes, "rows": trial.effort.rows}
        | {"error": trial.error, "standard_error": trial.standard_error, "seconds": trial.seconds}
        | {"stage": trial.stage, "feasible": constraint.met(trial), "status": trial.status.value}
        for trial in trials
    ]
    return columns_of(rows, rows[0])


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
