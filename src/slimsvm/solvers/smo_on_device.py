"""Rounds of SMO whose vectors are beside the rows, on a GPU: the host only makes the pair steps of each working set.

The rounds are those of `smo`. They end when the host needs all vectors: at the optimum, at limits, or for Newton's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..rows.protocol import DualVectors, WorkingBlock

if TYPE_CHECKING:
    from .smo import RoundCount, SmoState


def run_on_device(state: SmoState, vectors: DualVectors, rounds: RoundCount, steps: int) -> bool:
    """Run rounds of at most `most` pair steps until one needs the host; return whether there were any."""
    before, look = state.steps, vectors.look()
    while look.gap > state.tol:
        state.gap, state.working = look.gap, look.working
        if not _make_steps(state, vectors, look, int(min(rounds.limit - state.steps, steps))):
            break
        state.run.checkpoint.offer(lambda: state.state(rounds))
        look = vectors.look()
        if _needs_host(state, look, rounds):
            break
        state.run.record(gap=look.gap)
        state.run.report(rounds.progress.update(look.gap))
    return state.steps > before


def _needs_host(state: SmoState, look: WorkingBlock, rounds: RoundCount) -> bool:
    """Return whether the run ends, or Newton's method is due."""
    if state.steps >= rounds.limit or state.run.over or rounds.is_stalled(look.objective):
        return True
    if not state.newton_waits(rounds) or not state.may_be_due(rounds):
        return False
    v = state.v
    return state.due_rows(rounds, v, *state.bounds(v)) is not None


def _make_steps(state: SmoState, vectors: DualVectors, look: WorkingBlock, most: int) -> int:
    """Solve the block to a tenth of the gap in at most `most` pair steps, move the rows, and return the number of steps."""
    index = look.working
    real = np.float64 if state.needs_float64 else look.block.dtype
    alpha, y, cap, shift = state.alpha[index], state.y[index], state.cap[index], state.shift[index]
    before, goal = alpha.copy(), max(0.1 * look.gap, 0.5 * state.tol)
    block = look.block.astype(real, copy=False)
    steps, _ = state.pair_steps(block, y.astype(real), cap, alpha, look.v.astype(real), goal, most)
    moved = np.flatnonzero(alpha != before)
    moved_alpha, up = alpha[moved], y[moved] > 0
    rises, falls = moved_alpha < cap[moved], moved_alpha > 0
    signed, change = (moved_alpha - shift[moved]) * y[moved], (moved_alpha - before[moved]) * y[moved]
    vectors.move(index[moved], change, signed, np.where(up, rises, falls), np.where(up, falls, rises))
    state.alpha[index] = alpha  # last, so that Ctrl-C leaves coefficients and responses of one round
    state.steps += steps
    return steps
