"""The path: models of growing size with their held-out errors, and the choice along it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .model import Expansion, Status


@dataclass(frozen=True)
class Step:
    """One model on the path, the settings that made it and its held-out error."""

    model: Expansion
    error: float
    settings: str = ""

    @property
    def size(self) -> int:
        """The number of support vectors."""
        return self.model.size


@dataclass(frozen=True)
class Path:
    """Models by size, at most one of each, the smallest first; `judges` rows gave the held-out errors."""

    steps: tuple[Step, ...]
    status: Status
    judges: int = 0

    @property
    def models(self) -> list[Expansion]:
        """The models, the smallest first."""
        return [step.model for step in self.steps]

    @property
    def sizes(self) -> list[int]:
        """The number of support vectors of each model."""
        return [step.size for step in self.steps]

    @property
    def errors(self) -> list[float]:
        """The held-out error of each model."""
        return [step.error for step in self.steps]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def best(self, budget: int) -> Step:
        """The largest step of at most `budget` points whose held-out error is within a standard error of the lowest.

        A few held-out rows more or less are no reason to do with fewer points than the budget has.
        """
        affordable = [step for step in self.steps if step.size <= budget]
        if not affordable:
            raise ValueError(f"no model of at most {budget} support vectors; this path has sizes {self.sizes}")
        errors = np.nan_to_num([step.error for step in affordable])
        lowest = errors.min()
        noise = np.sqrt(lowest * (1 - lowest) / self.judges) if self.judges else 0.0
        return max(
            (s for s, error in zip(affordable, errors, strict=True) if error <= lowest + noise), key=lambda s: s.size
        )

    def within(self, error: float) -> Step | None:
        """The smallest step whose held-out error is at most `error`, and that on average of it and the next two sizes.

        Larger models are rarely worse: where the next ones miss, this one was lucky.
        """
        for number, step in enumerate(self.steps):
            if step.error <= error and np.mean(self.errors[number : number + 3]) <= error:
                return step
        return None


def standard_error(error: float, judges: int) -> float:
    """How far an error counted on `judges` rows may be off by chance; 0 where nobody counted."""
    return float(np.sqrt(error * (1 - error) / judges)) if judges else 0.0


def merge(paths: Iterable[Path], status: Status, judges: int = 0) -> Path:
    """One path with the best step of every size."""
    best: dict[int, Step] = {}
    for path in paths:
        for step in path.steps:
            if step.size not in best or step.error < best[step.size].error:
                best[step.size] = step
    return Path(tuple(best[size] for size in sorted(best)), status, judges)


def prefer(first: Path, second: Path) -> Path:
    """The steps of the first path, but for sizes where the second is better by more than a standard error, or alone."""
    steps = {step.size: step for step in first}
    for step in second:
        mine = steps.get(step.size)
        if mine is None or step.error < mine.error - standard_error(mine.error, first.judges):
            steps[step.size] = step
    return Path(tuple(steps[size] for size in sorted(steps)), second.status, first.judges)


def sizes_up_to(budget: int, per_doubling: int = 4) -> list[int]:
    """1, 2, 3, ... as many as twice `per_doubling`, then so many to each doubling, up to and with `budget`.

    A size within a quarter of a step of the budget is left out: a model of nearly the same size is hardly worth its time.
    """
    grid = {round(2 ** (k / per_doubling)) for k in range(per_doubling * int(np.log2(max(budget, 1)) + 1))}
    first, close = set(range(1, 2 * per_doubling + 1)), budget / 2 ** (0.25 / per_doubling)
    return sorted({size for size in grid if size <= close} | {size for size in first if size < budget} | {budget})
