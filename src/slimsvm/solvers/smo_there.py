"""Rounds of SMO whose vectors are beside the rows, on a GPU: the host only makes the pair steps of each working set.

The rounds are those of `smo`. They end when the host needs all vectors: at the optimum, at limits, or for Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..rows.protocol import DualVectors, Look

if TYPE_CHECKING:
    from .smo import RoundCount, SmoState


def run_there(run: SmoState, vectors: DualVectors, rounds: RoundCount, most: int, report: Callable[[float], None]) -> bool:
    """Run rounds of at most `most` pair steps until one needs the host; return whether there were any."""
    before, look = run.steps, vectors.look()
    while look.gap > run.tol:
        run.gap, run.working = look.gap, look.working
        if not _make_steps(run, vectors, look, int(min(rounds.limit - run.steps, most))):
            break
        run.keeper.offer(lambda: run.state(rounds))
        look = vectors.look()
        if _needs_host(run, look, rounds):
            break
        run.record(gap=look.gap)
        report(rounds.progress.update(look.gap))
    return run.steps > before


def _needs_host(run: SmoState, look: Look, rounds: RoundCount) -> bool:
    """Return whether the run ends, or Newton's method is due."""
    if run.steps >= rounds.limit or run.deadline.over or rounds.is_stalled(look.objective):
        return True
    if not run.newton_waits(rounds) or not run.may_be_due(rounds):
        return False
    v = run.v
    return run.due_rows(rounds, v, *run.bounds(v)) is not None


def _make_steps(run: SmoState, vectors: DualVectors, look: Look, most: int) -> int:
    """Solve the block to a tenth of the gap in at most `most` pair steps, move the rows, and return the number of steps."""
    index = look.working
    real = np.float64 if run.needs_float64 else look.block.dtype
    alpha, y, cap, shift = run.alpha[index], run.y[index], run.cap[index], run.shift[index]
    before, goal = alpha.copy(), max(0.1 * look.gap, 0.5 * run.tol)
    block = look.block.astype(real, copy=False)
    steps, _ = run.pair_steps(block, y.astype(real), cap, alpha, look.v.astype(real), goal, most)
    moved = np.flatnonzero(alpha != before)
    found, up = alpha[moved], y[moved] > 0
    rises, falls = found < cap[moved], found > 0
    signed, change = (found - shift[moved]) * y[moved], (found - before[moved]) * y[moved]
    vectors.move(index[moved], change, signed, np.where(up, rises, falls), np.where(up, falls, rises))
    run.alpha[index] = alpha  # last, so that Ctrl-C leaves coefficients and responses of one round
    run.steps += steps
    return steps
