"""Progress of a tuning run."""

from __future__ import annotations

import sys
from dataclasses import dataclass

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
