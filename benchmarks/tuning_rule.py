"""How every contender is tuned in a given time: settings one at a time on few rows, the best ones on more, one on all.

About a third of the seconds goes to a search along the settings, each of them changed alone from the best so far. The best
one, the usual one and another good one are then trained again on more rows for longer, in this order. What is left, about
half of the seconds, belongs to the last training on all rows. Rows grow with the time of a training, so that a method that
needs many passes has as many in a trial as in the end.

Validation rows are in parts, such as random rows and the last ones. A setting replaces an earlier one only where its loss
on all of them is lower by more than the standard error of the difference, row by row, and is no higher on any part. So
differences by chance choose the usual setting, which comes first, and so does a gain on some rows at the cost of others. In
the second round the best setting of the first round comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

Array = np.ndarray
Settings = dict[str, Any]


@dataclass(frozen=True)
class Round:
    """Settings that are trained on a share of the rows, or on `least` of them, until a share of the seconds is over."""

    share: float
    least: int
    until: float
    training: float  # the share of the seconds for a single training

    def rows(self, count: int) -> int:
        """Return how many of so many rows are used."""
        return min(max(int(self.share * count), self.least), count)


FIRST, SECOND = Round(0.1, 8192, 0.38, 0.055), Round(0.25, 16384, 0.58, 0.09)
#: the loss of a setting on each validation row, part by part, in a round, with the seconds that training may take; None
#: where the setting has no model
Losses = Callable[[Settings, Round, float], Sequence[Array] | None]
#: settings that the second round compares, the usual one included
FINALISTS = 3


@dataclass(frozen=True)
class Budget:
    """Seconds that begin now."""

    seconds: float
    begun: float = field(default_factory=perf_counter)

    @property
    def left(self) -> float:
        """The seconds that remain, above 0."""
        return max(self.seconds - (perf_counter() - self.begun), 1e-3)

    def allows(self, share: float, more: float) -> bool:
        """Return whether so many more seconds end within a share of all."""
        return self.seconds - self.left + more <= share * self.seconds


@dataclass(frozen=True)
class Trial:
    """A setting with its loss on each validation row, part by part."""

    settings: Settings
    losses: Sequence[Array]

    @property
    def mean(self) -> float:
        """The mean loss on all validation rows."""
        return float(np.concatenate(self.losses).mean())

    def is_clearly_better_than(self, other: Trial) -> bool:
        """Return whether the loss is lower by more than the standard error of the difference, and higher on no part."""
        parts = [theirs - ours for theirs, ours in zip(other.losses, self.losses, strict=True)]
        gains = np.concatenate(parts)
        return bool(gains.mean() > gains.std() / np.sqrt(gains.size)) and all(part.mean() >= 0 for part in parts)


class _Trials:
    """The trainings of one round."""

    def __init__(self, losses: Losses, budget: Budget, place: Round) -> None:
        self.losses, self.budget, self.place = losses, budget, place
        self.tried: list[Settings] = []
        self.found: list[Trial] = []
        self.best: Trial | None = None
        self.longest = 0.0

    @property
    def over(self) -> bool:
        """Whether another training would hardly end within the round; never before one has a model."""
        return self.best is not None and not self.budget.allows(self.place.until, self.longest)

    def add(self, settings: Settings) -> None:
        """Train with a setting."""
        begun = perf_counter()
        losses = self.losses(settings, self.place, self.place.training * self.budget.seconds)
        self.tried.append(settings)
        self.longest = max(self.longest, perf_counter() - begun)
        if losses is None:
            return
        self.found.append(Trial(settings, losses))
        if self.best is None or self.found[-1].is_clearly_better_than(self.best):
            self.best = self.found[-1]

    def finalists(self, count: int) -> list[Settings]:
        """Return the best setting, which is trained again in any case, the first one and those of the lowest loss."""
        if self.best is None:
            return []
        order = [self.best, self.found[0], *sorted(self.found, key=lambda trial: trial.mean)]
        return [trial.settings for trial in {id(trial): trial for trial in order}.values()][:count]


def tune(choices: Mapping[str, Sequence[Any]], losses: Losses, budget: Budget) -> tuple[Settings | None, int]:
    """Return the best setting, None where none has a model, and how many were tried."""
    first, second = _Trials(losses, budget, FIRST), _Trials(losses, budget, SECOND)
    _search(choices, first)
    for settings in first.finalists(FINALISTS):
        if not second.over:
            second.add(settings)
    return None if second.best is None else second.best.settings, len(first.tried)


def _search(choices: Mapping[str, Sequence[Any]], trials: _Trials) -> None:
    """Change one setting at a time from the best so far, until no change is new or the round is over."""
    usual, tried = {name: values[0] for name, values in choices.items()}, 0
    trials.add(usual)
    while len(trials.tried) > tried:
        tried = len(trials.tried)
        for name, values in choices.items():
            for value in values:
                settings = (usual if trials.best is None else trials.best.settings) | {name: value}
                if trials.over:
                    return
                if settings not in trials.tried:
                    trials.add(settings)
