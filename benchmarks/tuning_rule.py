"""How every contender is tuned in a given time: settings one at a time on few rows, the best ones on more, one on all.

A third of the seconds goes to a search along the settings, each of them changed alone from the best so far, with short
trainings on a quarter of the rows. The three best are then trained on all rows that are not for validation. What is left,
about half of the seconds, belongs to the last training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

Settings = dict[str, Any]
#: the error of a setting, with the share of the rows that it is trained on and the seconds that training may take
Error = Callable[[Settings, float, float], float]


@dataclass(frozen=True)
class Round:
    """Settings that are trained on a share of the rows until a share of all the seconds is over."""

    rows: float
    until: float
    training: float  # the share of the seconds for a single training


FIRST, SECOND = Round(0.25, 0.36, 0.04), Round(1.0, 0.55, 0.08)
#: settings that the second round compares
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


class _Trials:
    """The trainings of one round."""

    def __init__(self, error: Error, budget: Budget, place: Round) -> None:
        self.error, self.budget, self.place = error, budget, place
        self.found: list[tuple[float, Settings]] = []
        self.longest = 0.0

    @property
    def ranked(self) -> list[Settings]:
        """The settings that have an error, the lowest first."""
        return [settings for error, settings in sorted(self.found, key=lambda each: each[0]) if error < np.inf]

    @property
    def over(self) -> bool:
        """Whether another training would hardly end within the round; never before one has an error."""
        return bool(self.ranked) and not self.budget.allows(self.place.until, self.longest)

    def add(self, settings: Settings) -> None:
        """Train with a setting."""
        begun = perf_counter()
        error = self.error(settings, self.place.rows, self.place.training * self.budget.seconds)
        self.found.append((error, settings))
        self.longest = max(self.longest, perf_counter() - begun)


def tune(choices: Mapping[str, Sequence[Any]], error: Error, budget: Budget) -> tuple[Settings | None, int]:
    """Return the best setting, None where none has an error, and how many were tried."""
    first, second = _Trials(error, budget, FIRST), _Trials(error, budget, SECOND)
    _search(choices, first)
    for settings in first.ranked[:FINALISTS]:
        if not second.over:
            second.add(settings)
    return next(iter(second.ranked), None), len(first.found)


def _search(choices: Mapping[str, Sequence[Any]], trials: _Trials) -> None:
    """Change one setting at a time from the best so far, until no change is new or the round is over."""
    usual, tried = {name: values[0] for name, values in choices.items()}, 0
    trials.add(usual)
    while len(trials.found) > tried:
        tried = len(trials.found)
        for name, values in choices.items():
            for value in values:
                settings = next(iter(trials.ranked), usual) | {name: value}
                if trials.over:
                    return
                if all(settings != known for _, known in trials.found):
                    trials.add(settings)
