"""Successive halving: many settings on few rows, then the best third of them on twice as many, and so on.

Neighbours of the best settings are added in between, and trials continue from the points of earlier ones. Time limits
shorten stages; they do not change the results of finished stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType

from .result import TuningProgress
from .space import Settings, Space
from .trials import FoldedRows, Trial, TrialEffort, Trials

#: training rows of the first stage; more: fewer good settings are lost there, and trials take longer
FIRST_ROWS = 1500
#: the most training rows of the last stage; more: errors nearer to those of the last fit, and longer trials
MOST_ROWS = 12_000
#: the most support vectors in trials of the first stage; more: trials nearer to the last fit, and longer ones
FIRST_SIZE = 64
#: L-BFGS steps of the stages; those of the last one are the reducer's own
STEPS = (15, 20, 30, 50)
#: one in KEEP settings goes from one stage to the next, and at least LEAST_KEPT; a larger KEEP leaves time for more
#: settings in the first stage
KEEP, LEAST_KEPT = 3, 3
#: neighbours are added in this stage, counted from 0, around so many of the best settings; more: a closer search
WIDEN_AT, CENTRES = 1, 3
#: the same for the last stage, which has as many rows and steps as the last fit; a metric needs them to show its value
LAST_CENTRES = 1
#: neighbours that settings have about, for the estimate of the time left
NEIGHBOURS = 4
#: no trials to start from
NO_STARTS: Mapping[Settings, Trial] = MappingProxyType({})
#: the share of the search time that has passed at the end of each stage
SHARES = (0.35, 0.65, 0.85, 1.0)
#: the time of the last fit, as a multiple of a trial with as many steps and rows: it also makes smaller models, and refines
LAST_FIT_TRIALS = 5.0
#: the most of the time limit that is reserved for the last fit; more: fewer trials
MOST_RESERVED = 0.6


def efforts(rows: FoldedRows, budget: int) -> list[TrialEffort]:
    """Return the effort of a trial in each stage; of stages with the same rows and sizes, the one with most steps."""
    largest, stages = min(rows.n_train, MOST_ROWS), len(STEPS)
    planned = {}
    for stage, steps in enumerate(STEPS):
        last = stage == stages - 1
        n = largest if last else min(FIRST_ROWS * 2**stage, largest)
        size = budget if last else min(budget, FIRST_SIZE * 2**stage)
        folds = 1 if stage == 0 else len(rows.folds)
        planned[n, size, folds] = TrialEffort(n, steps, folds, size)
    return list(planned.values())


@dataclass
class Clock:
    """The time limit of a search, and how long trials take."""

    limit: float | None
    began: float = field(default_factory=perf_counter)
    work: float = 0.0
    seconds: float = 0.0

    @property
    def gone(self) -> float:
        """Seconds since the search began."""
        return perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Seconds until the limit, above 0; None without one."""
        return None if self.limit is None else max(self.limit - self.gone, 1e-3)

    def spare(self, last_fit: float) -> float | None:
        """Return the seconds until the last fit must begin, above 0; None without a limit."""
        return None if self.left is None else max(self.left - self.reserved(last_fit), 1e-3)

    def add(self, trial: Trial) -> None:
        """Update the estimate of how long work takes; later trials count more, because rows and models grow."""
        self.work = 0.8 * self.work + trial.effort.work
        self.seconds = 0.8 * self.seconds + trial.seconds

    def seconds_for(self, work: float) -> float:
        """Return the estimated seconds of some work."""
        return work * self.seconds / self.work if self.work else 0.0

    def reserved(self, last_fit: float) -> float:
        """Return the seconds that are reserved for the last fit."""
        seconds = self.seconds_for(last_fit)
        return seconds if self.limit is None else min(seconds, MOST_RESERVED * self.limit)

    def allows(self, work: float, last_fit: float, share: float) -> bool:
        """Return whether there is time for some work within a share of the time for the search."""
        if self.limit is None:
            return True
        return self.gone + self.seconds_for(work) <= share * (self.limit - self.reserved(last_fit))


@dataclass
class Halving:
    """A search in stages; `table` collects its trials."""

    trials: Trials
    space: Space
    clock: Clock
    size: int  # the most support vectors
    last_fit: float  # work of the last fit
    callback: Callable[[TuningProgress], None]
    table: list[Trial] = field(default_factory=list)
    planned: float = 0.0  # work of the stages that follow

    def search(self, settings: Sequence[Settings], planned: Sequence[TrialEffort]) -> list[Trial]:
        """Return the trials of the last stage for which there was time, the best first."""
        best: list[Trial] = []
        entrants = list(settings)
        starts: dict[Settings, Trial] = {}
        shares, last = SHARES[-len(planned) :], len(planned) - 1
        centres = {last: LAST_CENTRES} | {min(WIDEN_AT, last): CENTRES}
        for number, effort in enumerate(planned):
            self.planned = self._work_after(len(entrants), planned[number + 1 :])
            stage = f"stage {number + 1} of {len(planned)}"
            trials = self.stage(entrants, effort, stage, shares[number], starts)
            if number in centres and trials:
                near = self.neighbours(trials[: centres[number]], entrants)
                starts |= near
                trials = ranked([*trials, *self.stage(list(near), effort, f"{stage}, neighbours", shares[number], starts)])
            best = trials or best
            entrants = [trial.settings for trial in best[: max(len(best) // KEEP, LEAST_KEPT)]]
            starts |= {trial.settings: trial for trial in best}
        return best

    def _work_after(self, entrants: int, later: Sequence[TrialEffort]) -> float:
        """Return the work of later stages, with neighbours of the best."""
        counts = [max(entrants // KEEP ** (number + 1), LEAST_KEPT) + CENTRES * NEIGHBOURS for number in range(len(later))]
        return sum(effort.work * count for effort, count in zip(later, counts, strict=True))

    def neighbours(self, best: Sequence[Trial], known: Sequence[Settings]) -> dict[Settings, Trial]:
        """Return the neighbours of the best settings that are not known yet, each with the trial that it is near to."""
        parents = {near: trial for trial in reversed(best) for near in self.space.neighbours(trial.settings)}
        return {near: trial for near, trial in parents.items() if near not in set(known)}

    def stage(
        self,
        entrants: Sequence[Settings],
        effort: TrialEffort,
        stage: str,
        share: float = 1.0,
        starts: Mapping[Settings, Trial] = NO_STARTS,
    ) -> list[Trial]:
        """Return the trials of a stage for which there was time, the best first."""
        trials: list[Trial] = []
        for settings in entrants:
            if self.table and not self.clock.allows(effort.work, self.last_fit, share):
                break
            start = starts.get(settings)
            points = start.points if start is not None and start.effort.size == effort.size else ()
            trial = self.trials.run(settings, effort, stage, self.clock.spare(self.last_fit), points)
            self.clock.add(trial)
            self._check_time(trial)
            trials.append(trial)
            self.table.append(trial)
            self._tell(stage, len(trials), len(entrants), effort, trials)
        return ranked(trials)

    def _check_time(self, trial: Trial) -> None:
        """Raise TimeoutError if the first trial has used up all the time."""
        if self.table or self.clock.limit is None or self.clock.gone < self.clock.limit:
            return
        needed = self.clock.gone + self.clock.seconds_for(self.last_fit)
        raise TimeoutError(
            f"time_limit={self.clock.limit:g} is too short for one trial, which took {trial.seconds:.2g} seconds on "
            f"{trial.effort.rows:,} rows, and the last fit; give {needed:.2g} seconds at least, better ten times as many"
        )

    def _tell(self, stage: str, done: int, of: int, effort: TrialEffort, trials: Sequence[Trial]) -> None:
        seconds_left = self.clock.seconds_for((of - done) * effort.work + self.planned + self.last_fit)
        if self.clock.left is not None:
            seconds_left = min(seconds_left, self.clock.left)
        self.callback(TuningProgress(stage, done, of, min(trial.error for trial in trials), self.clock.gone, seconds_left))


def ranked(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials by error, the lowest first; of equal ones the fixed metric first, then as they were tried."""
    return sorted(trials, key=lambda trial: (trial.error, trial.settings.metric != "fixed"))
