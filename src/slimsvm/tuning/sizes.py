"""The smallest model within an error: sizes are halved while the error stays within it, then bisected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .settings import Settings
from .stages import Halving
from .trials import Trial, TrialEffort

STAGE = "size"
#: sizes are bisected until they differ by at most one part in this many
RESOLUTION = 8


def smallest(search: Halving, finalists: Sequence[Trial], allowed: float) -> Trial:
    """Return the trial of the smallest model whose error is within `allowed`; the best finalist if none is."""
    within = [trial for trial in finalists if trial.error <= allowed]
    if not within:
        return finalists[0]
    too_small = 0
    while within[0].effort.size > 1:
        size = within[0].effort.size // 2
        found = _within(search, [trial.settings for trial in within], replace(within[0].effort, size=size), allowed)
        if not found:
            too_small = size
            break
        within = found
    best = within[0]
    while best.effort.size - too_small > max(1, best.effort.size // RESOLUTION) and too_small:
        size = (best.effort.size + too_small) // 2
        found = _within(search, [trial.settings for trial in within], replace(best.effort, size=size), allowed)
        if found:
            within, best = found, found[0]
        else:
            too_small = size
    return best


def _within(search: Halving, settings: Sequence[Settings], effort: TrialEffort, allowed: float) -> list[Trial]:
    """Return the trials of a size that are within the error, the best first."""
    return [trial for trial in search.stage(settings, effort, STAGE, 1.0, {}) if trial.error <= allowed]
