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
    """Models by size, at most one of each, the smallest first."""

    steps: tuple[Step, ...]
    status: Status

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
        """The step of at most `budget` points with the lowest held-out error, the largest one of equals."""
        affordable = [step for step in self.steps if step.size <= budget]
        if not affordable:
            raise ValueError(f"no model of at most {budget} support vectors; this path has sizes {self.sizes}")
        return min(affordable, key=lambda step: (np.nan_to_num(step.error), -step.size))

    def within(self, error: float) -> Step | None:
        """The smallest step whose held-out error is at most `error`, if there is one."""
        return next((step for step in self.steps if step.error <= error), None)


def merge(paths: Iterable[Path], status: Status) -> Path:
    """One path with the best step of every size."""
    best: dict[int, Step] = {}
    for path in paths:
        for step in path.steps:
            if step.size not in best or step.error < best[step.size].error:
                best[step.size] = step
    return Path(tuple(best[size] for size in sorted(best)), status)


def sizes_up_to(budget: int) -> list[int]:
    """1, 2, 3, ... 8, then four sizes to each doubling, up to and with `budget`."""
    grid = {round(2 ** (k / 4)) for k in range(4 * int(np.log2(max(budget, 1)) + 1))}
    return sorted({size for size in grid | set(range(1, 9)) if size < budget} | {budget})
