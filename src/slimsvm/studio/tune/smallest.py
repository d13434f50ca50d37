"""The smallest model whose error is within a limit: each stage ends with smaller and smaller models.

The order of the trials does not depend on the clock, and all are judged on the same rows. A time limit only ends the
sequence, so more time never gives a larger model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...selection.allowance import smallest
from .halving import CENTRES, FIRST_SIZE, KEEP, LEAST_KEPT, WIDEN_AT, Halving, efforts, ranked
from .space import Settings
from .trials import Trial, TrialEffort

#: sizes are bisected until they differ by one part in this many; more: smaller models, more trials
RESOLUTION = 8
#: settings of the first stage: one for each scaling
GUESSES = 4
#: sizes that a stage tries about, for the estimate of the time left
SIZES = 6


def find_smallest(search: Halving, settings: Sequence[Settings], allowed: float) -> Trial:
    """Return the smallest trial whose error is within `allowed`, or the one of the lowest error if none is."""
    size, entrants = min(FIRST_SIZE, search.size), list(settings[:GUESSES])
    folds = len(search.trials.rows.folds)
    planned = [replace(each, folds=folds) for each in efforts(search.trials.rows, size)]
    planned = [planned[0], *planned]  # a few guesses first, so that a small model is found soon
    for number, effort in enumerate(planned):
        search.planned = sum(each.work * (KEEP + SIZES) * LEAST_KEPT for each in planned[number:])
        stage = f"stage {number + 1} of {len(planned)}"
        found = search.stage(entrants, replace(effort, size=size), stage)
        if found and number == min(WIDEN_AT + 1, len(planned) - 1):
            near = search.neighbours(found[:CENTRES], entrants)
            found = ranked([*found, *search.stage(list(near), found[0].effort, f"{stage}, neighbours", starts=near)])
        if not found:
            break
        entrants = [trial.settings for trial in found[: max(len(found) // KEEP, LEAST_KEPT)]]
        size = _resized(search, found[:LEAST_KEPT], allowed, f"{stage}, sizes")
        if number == 0:
            entrants += settings[GUESSES:]
    return smallest_of(search.table, allowed)


def smallest_of(trials: Sequence[Trial], allowed: float) -> Trial:
    """Return the smallest trial within the error, of several the best; the best of all if none is."""
    place = smallest([trial.effort.size for trial in trials], [trial.error for trial in trials], allowed)
    return ranked(trials)[0] if place is None else trials[place]


def _resized(search: Halving, leaders: Sequence[Trial], allowed: float, stage: str) -> int:
    """Return the size of the smallest model within the error that the leading settings reach.

    Sizes are doubled until a model is within it, halved while one is, and bisected.
    """

    def within(settings: Sequence[Settings], effort: TrialEffort) -> list[Trial]:
        return [trial for trial in search.stage(settings, effort, stage) if trial.error <= allowed]

    settings, effort, too_small = [trial.settings for trial in leaders], leaders[0].effort, 0
    good = [trial for trial in leaders if trial.error <= allowed]
    while not good and effort.size < search.size:
        too_small, effort = effort.size, replace(effort, size=min(2 * effort.size, search.size))
        good = within(settings, effort)
    while good and not too_small and good[0].effort.size > 1:
        size = good[0].effort.size // 2
        smaller = within([trial.settings for trial in good], replace(effort, size=size))
        good, too_small = (smaller, 0) if smaller else (good, size)
    while good and good[0].effort.size - too_small > max(1, good[0].effort.size // RESOLUTION):
        size = (good[0].effort.size + too_small) // 2
        smaller = within([trial.settings for trial in good], replace(effort, size=size))
        good, too_small = (smaller, too_small) if smaller else (good, size)
    return good[0].effort.size if good else effort.size
