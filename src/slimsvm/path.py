"""The path: models of growing size with their validation errors, and the choice along it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import overload

import numpy as np

from .model import Expansion, Status

#: steps that a printed path shows at its beginning and at its end
SHOWN = 6


@dataclass(frozen=True, repr=False)
class Step:
    """One model on the path, its validation error and the settings that made it."""

    model: Expansion
    error: float
    settings: str = ""
    standard_error: float = 0.0  # of the error

    @property
    def size(self) -> int:
        """The number of support vectors."""
        return self.model.size

    def __repr__(self) -> str:
        return f"Step(size={self.size}, error={self.error:.4g}, settings={self.settings!r})"


@dataclass(frozen=True, repr=False)
class Path:
    """Models by size, the smallest first, at most one of each size.

    Parameters
    ----------
    steps : tuple of Step
        Each has a `model`, its `size`, its validation `error` with its `standard_error`, and the `settings` that made it.
        `path[i]` is one of them.
    status : Status
        How the reducer ended.
    n_validation : int, default=0
        The number of validation rows that the errors were counted on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SlimSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> path = SlimSVC(4, reducer="slant-aggressive", random_state=0).fit(X, y).path_
    >>> path.sizes
    [1, 2, 3, 4]
    >>> path[-1].size
    4
    """

    steps: tuple[Step, ...]
    status: Status
    n_validation: int = 0

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
        """The validation error of each model."""
        return [step.error for step in self.steps]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, place: int | slice) -> Step | tuple[Step, ...]:
        """Return the step at a place, or a tuple of steps for a slice."""
        return self.steps[place]

    def __repr__(self) -> str:
        """Return a table of sizes, errors and settings; the middle of a long path is left out."""
        lines = [f"{step.size:>6}  {step.error:<8.4g}  {step.settings}".rstrip() for step in self.steps]
        if len(lines) > 2 * SHOWN:
            lines[SHOWN:-SHOWN] = [f"   ...  ({len(lines) - 2 * SHOWN} more)"]
        title = f"Path of {len(self)} models on {self.n_validation} validation rows; {self.status.value}"
        return "\n".join([title, "  size  error     settings", *lines])

    def best(self, budget: int) -> Step:
        """Return the largest step of at most `budget` points whose error is within a standard error of the lowest.

        Differences of a few validation rows are chance, and no reason to use fewer points than the budget allows.
        """
        affordable = [step for step in self.steps if step.size <= budget]
        if not affordable:
            raise ValueError(f"no model of at most {budget} support vectors; this path has sizes {self.sizes}")
        errors = np.nan_to_num([step.error for step in affordable])
        lowest = int(errors.argmin())
        bound = errors[lowest] + affordable[lowest].standard_error
        return max((step for step, error in zip(affordable, errors, strict=True) if error <= bound), key=lambda s: s.size)

    def within(self, error: float) -> Step | None:
        """Return the smallest step with at most this error, alone and on average with the next two; None if none has.

        Larger models are rarely worse. Where the next two miss the error, the small one met it by chance.
        """
        for number, step in enumerate(self.steps):
            if step.error <= error and np.mean(self.errors[number : number + 3]) <= error:
                return step
        return None


def merge(paths: Iterable[Path], status: Status, n_validation: int = 0) -> Path:
    """Return one path with the best step of every size."""
    best: dict[int, Step] = {}
    for path in paths:
        for step in path.steps:
            if step.size not in best or step.error < best[step.size].error:
                best[step.size] = step
    return Path(tuple(best[size] for size in sorted(best)), status, n_validation)


def prefer(first: Path, second: Path) -> Path:
    """Return the first path, with steps of the second where these are better by more than a standard error, or alone."""
    steps = {step.size: step for step in first}
    for step in second:
        mine = steps.get(step.size)
        if mine is None or step.error < mine.error - mine.standard_error:
            steps[step.size] = step
    return Path(tuple(steps[size] for size in sorted(steps)), second.status, first.n_validation)


def sizes_up_to(budget: int, per_doubling: int = 4) -> list[int]:
    """Return the sizes to try: 1, 2, 3, ... up to twice `per_doubling`, then so many to each doubling, up to `budget`.

    A size within a quarter of a step of the budget is left out: a model of nearly the same size is not worth its time.
    """
    grid = {round(2 ** (k / per_doubling)) for k in range(per_doubling * int(np.log2(max(budget, 1)) + 1))}
    first, close = set(range(1, 2 * per_doubling + 1)), budget / 2 ** (0.25 / per_doubling)
    return sorted({size for size in grid if size <= close} | {size for size in first if size < budget} | {budget})
