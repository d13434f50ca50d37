"""Paths of models whose points are in a learned projection, or whose tables have few bits.

Under a limit in bytes, layouts compete: ranks of the projection, or none, and bits. Each fills the bytes with points. They
take a few steps each; the best of them on validation rows take more, and the best of these takes all. So a limit finds
points, rank and bits by itself, in a number of steps that is known before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..c_bytes import Room
from ..goals.decision import Decision
from ..goals.margin_targets import CrossEntropy, RowLoss
from ..kernels import RBF, Array
from ..model import Expansion, Task
from ..reducers.base import EndedModels
from ..selection.path import Made
from ..solvers.basis import wanted
from .joint import BITS, RATE, Joint, Layout, Numbers, Plan, Rows
from .learner import LAST_SECONDS, MOST_STEPS, batches_for
from .paths import ended

#: ranks that compete, as far as rows have more features
RANKS = (2, 4, 6, 8, 12, 16, 24, 32)
#: the largest rank as a share of the features, and the fewest points of a layout
MOST_RANK, FEWEST_POINTS = 0.6, 2
#: precisions that compete, where a limit leaves the choice
SHORT = ("int8", "int4")
#: rounds of the competition: the steps of each layout, how many layouts are left for the next round, and with a time limit
#: the share of the time left; then the steps of the last one. More: a safer choice, less time for the last one
COMPETITION, STEPS = ((200, 4, 0.1), (600, 2, 0.1), (1200, 1, 0.25)), 6000
#: points of the model, with one output or several, that is found with the best coefficients at every step, and from which
#: layouts in all features start; its share of the time; and the rates from there: fast steps lose some of what it has. Such
#: layouts compete with a third of their points too, if these are many, which take fewer steps in the same time
SEED_POINTS, SEED_SECONDS, SEED_RATES, THIRD_FROM = (128, 64), 0.2, (2 * RATE, RATE / 4), 512
#: the share of the steps and of the rate for the refinement of the chosen model on all rows
FINISH = 0.25
#: the most numbers in rows that are dense in memory
MOST_NUMBERS = 1 << 28
#: groups of real targets, for the directions of a projection and initial points
GROUPS = 5


@dataclass(frozen=True)
class Compact:
    """The rows of a task for mini-batches, the loss of models on them, and their groups."""

    task: Task
    loss: RowLoss
    rows: Rows
    groups: Array
    kind: str = "both"  # of metric, beside a projection

    @classmethod
    def of(cls, task: Task, model: Expansion | None, kind: str = "both", *, by_entropy: bool = False) -> Compact:
        """Return the problem of a task; targets are the labels', or the full model's where rows have none."""
        goal, margin_targets = task.goal, wanted(task, None if task.goal.labelled else model)
        by_entropy = by_entropy or (goal.decision is Decision.LARGEST and goal.outputs > 1)
        loss: RowLoss = CrossEntropy(task.targets) if by_entropy else margin_targets
        groups = goal.groups(task.targets)
        if goal.real:
            middle = np.clip(np.zeros(task.rows.n), margin_targets.low[:, 0], margin_targets.high[:, 0])
            groups = np.searchsorted(np.quantile(middle, np.arange(1, GROUPS) / GROUPS), middle)
        return cls(task, loss, Rows(task, loss), groups, kind)

    def joint(self, precision: str) -> Joint:
        """Return the descent for tables of a precision."""
        rng = np.random.default_rng(self.task.rng.integers(2**32))
        gamma: float = self.task.rows.kernel.gamma  # type: ignore[attr-defined]
        return Joint(self.rows, gamma, rng, bits=BITS[precision], kind=self.kind)

    def made(self, layout: Layout) -> Made:
        """Return the settings of a model."""
        metric = "projection" if layout.rank else self.kind
        return Made(target="label", metric=metric, loss=self.loss.name, precision=layout.precision)


@dataclass
class Entrant:
    """A layout in the competition, with its descent and its numbers."""

    layout: Layout
    joint: Joint
    numbers: Numbers
    rate: float = RATE

    @classmethod
    def of(cls, problem: Compact, layout: Layout) -> Entrant:
        """Return a layout at its start."""
        joint = problem.joint(layout.precision)
        return cls(layout, joint, joint.start(layout, problem.groups))

    @classmethod
    def grown(cls, problem: Compact, layout: Layout, seed: Expansion, rate: float) -> Entrant:
        """Return a layout that starts from a model with factors and widths, and new points without coefficients."""
        entrant = cls.of(problem, layout)
        fresh, known = entrant.numbers, entrant.joint.numbers(seed)
        count = min(known.widths.size, layout.size)
        points = np.vstack([known.points[:count], fresh.points[count:]])
        coef = np.vstack([known.coef[:count], 0 * fresh.coef[count:]])
        widths = np.concatenate([known.widths[:count], np.full(layout.size - count, known.widths.mean(), np.float32)])
        entrant.numbers, entrant.rate = Numbers(points, coef, known.bias, widths, known.map), rate
        return entrant

    @classmethod
    def held(cls, problem: Compact, layouts: Sequence[Layout], seed: Expansion) -> list[Entrant]:
        """Return a model with factors and widths as it is, in the tables that have room for it."""
        short = [layout.precision for layout in layouts if not layout.rank and layout.size >= seed.size]
        joints = {precision: problem.joint(precision) for precision in short}
        return [cls(Layout(seed.size, 0, each), joint, joint.numbers(seed)) for each, joint in joints.items()]

    @classmethod
    def all_of(cls, problem: Compact, layouts: Sequence[Layout], seed: Expansion | None) -> list[Entrant]:
        """Return all layouts at their starts."""
        if seed is None:
            return [cls.of(problem, layout) for layout in layouts]
        found = []
        for layout in layouts:
            if layout.rank:
                found.append(cls.of(problem, layout))
                continue
            smaller = [replace(layout, size=layout.size // 3)] if layout.size >= THIRD_FROM else []
            found += [cls.grown(problem, each, seed, rate) for each in (layout, *smaller) for rate in SEED_RATES]
        return found

    def descend(self, task: Task, steps: int, share: float) -> None:
        """Take some steps, or with a time limit as many as a share of the time allows."""
        most = steps if task.run.deadline.left is None else MOST_STEPS
        self.numbers = self.joint.descended(self.numbers, Plan(most, self.rate), task.run.share(share).saved_by())

    def model(self, task: Task) -> Expansion:
        """Return the present model."""
        return self.joint.model(task.rows.kernel, self.numbers, self.layout.precision)  # type: ignore[arg-type]

    def error(self, task: Task) -> float:
        """Return the validation error."""
        return task.judge(self.model(task)).error


def can_be_compact(task: Task) -> bool:
    """Return whether such models exist for a task: with the rbf kernel, and rows that are dense in memory."""
    rows = task.rows
    return isinstance(rows.kernel, RBF) and rows.in_one_place and rows.n * rows.d <= MOST_NUMBERS


def ranks_for(features: int) -> tuple[int, ...]:
    """Return the ranks that compete for rows of so many features."""
    return tuple(rank for rank in RANKS if rank <= MOST_RANK * features)


def layouts_within(room: Room, task: Task, rank: int | None, most: int) -> list[Layout]:
    """Return the layouts that fill a limit in bytes, without those of fewer points than outputs need."""
    ranks = (0, *ranks_for(task.rows.d)) if rank is None else (rank,)
    short = [precision for precision in room.precisions if precision in SHORT]
    found = [
        Layout(room.points(precision, most, widths=True, factors=not each, rank=each), each, precision)
        for precision in short or room.precisions
        for each in ranks
    ]
    return [layout for layout in found if layout.size >= FEWEST_POINTS]


def best_within(
    task: Task, problem: Compact, layouts: Sequence[Layout], seed: Expansion | None = None, steps: int = 50
) -> EndedModels:
    """Yield the model of the layout that wins; layouts in all features start from the `seed`, if there is one.

    In a short time mini-batches may lose more than they find, so that the seed itself, in short tables, can win.
    """
    seed = None if seed is None or seed.metric is None or seed.metric.factors is None else seed
    entrants, effort = Entrant.all_of(problem, layouts, seed), steps / 50 * batches_for(task.rows.n, STEPS) / STEPS
    for few, left, share in COMPETITION:
        if len(entrants) > left:
            for number, entrant in enumerate(entrants):
                entrant.descend(task, max(int(effort * few), 1), share / (len(entrants) - share * number))
            entrants = sorted(entrants, key=lambda entrant: np.nan_to_num(entrant.error(task), nan=1.0))[:left]
    [best] = entrants[:1]
    best.descend(task, max(int(effort * STEPS), 1), LAST_SECONDS)
    held = [] if seed is None else Entrant.held(problem, layouts, seed)
    best = min([best, *held], key=lambda entrant: np.nan_to_num(entrant.error(task), nan=np.inf))
    yield best.model(task), problem.made(best.layout)
    return ended(best.layout.size, [best.layout.size], task.run)


def of_sizes(task: Task, problem: Compact, sizes: Sequence[int], rank: int, steps: int) -> Iterator[tuple[Expansion, Made]]:
    """Yield models of each size in a projection to so many coordinates; in all features for a rank of 0."""
    for number, size in enumerate(sizes):
        entrant = Entrant.of(problem, Layout(min(size, task.rows.n), rank))
        share = size / sum(sizes[number:])
        entrant.descend(task, max(int(steps * size / sizes[-1]), COMPETITION[0][0]), share)
        yield entrant.model(task), problem.made(entrant.layout)
        if task.run.over:
            return


def refined(task: Task, found: Expansion, made: Made, problem: Compact, steps: int) -> Expansion:
    """Return a model after some more steps on all rows, through the same rounding."""
    joint, limited = problem.joint(made.precision), task.run.deadline.left is not None
    plan = Plan(
        MOST_STEPS if limited else int(FINISH * steps / 50 * batches_for(task.rows.n)), FINISH * RATE, rounded_from=0.0
    )
    numbers = joint.descended(joint.numbers(found), plan, task.run.share(LAST_SECONDS).saved_by())
    return joint.model(task.rows.kernel, numbers, made.precision)  # type: ignore[arg-type]


def with_default(rank: int | None, task: Task) -> int:
    """Return the rank, by default one that separates the classes; raise ValueError if rows have fewer features."""
    if rank is not None and rank > task.rows.d:
        raise ValueError(f"rank={rank} is more than the {task.rows.d} features of the rows; give at most that many")
    return rank or min(max(task.goal.n_classes - 1, 8), task.rows.d)


def renewed(task: Task) -> Task:
    """Return the task with random numbers of its own: other models do not depend on how many these take."""
    return replace(task, rng=task.rng.spawn(1)[0])
