"""How a model that learns row by row learns on: what it knows beside its function. Needs NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Learning:
    """The state of a stream in plain numbers, for files and exports. The function is sum_j coef_j k(z_j, .) / S + bias.

    S is lam (seen + late), or 1 without lam.
    """

    trainer: str
    budget: int
    coef: Array  # (m, q)
    born: Array  # (m,) the number of the update that added each point
    seen: int = 0
    moves: int = 0
    lam: float = 0.0
    late: float = 0.0
    epsilon: float = 0.0
    nu: float | None = None
    maintenance: str = ""
    slack: float = 0.0  # of the Forgetron: the damage of all removals, less what the mistakes allow
    rng: Mapping[str, Any] = field(default_factory=dict)  # the state of NumPy's PCG64
    weights: Array | None = None  # of the classes

    def check(self, size: int, outputs: int, classes: int) -> None:
        """Raise ValueError unless the state fits a model, and can be learned on from."""
        counts, numbers = (
            (self.seen, self.moves, self.budget),
            (self.lam, self.late, self.epsilon, self.nu or 0.0, self.slack),
        )
        tables = [self.coef, *([] if self.weights is None else [self.weights])]
        known = all(type(count) is int and 0 <= count < 2**32 for count in counts) and isinstance(self.born, Array)
        known = known and all(isinstance(table, Array) and table.dtype.kind == "f" for table in tables)
        if not known or not all(isinstance(number, int | float) for number in numbers):
            raise ValueError("it has a stream of values of other types")
        weighted = self.weights is None or (self.weights.shape == (classes,) and bool((self.weights > 0).all()))
        fits = self.coef.shape == (size, outputs) and self.born.shape == (size,) and size <= self.budget
        born = self.born.dtype.kind in "iu" and bool(((self.born >= 0) & (self.born < 2**32)).all())
        if not weighted or not fits or not born or not self.budget:
            raise ValueError("it has the stream of another model")
        if not np.isfinite([*numbers, *self.coef.ravel()]).all() or min(numbers[:4]) < 0 or self.slack > 0:
            raise ValueError("it has a stream with numbers that are none of a stream")
        if self.trainer == "rbp":
            self.generator()

    def generator(self) -> np.random.Generator:
        """Return the random generator where it is; raise ValueError for a state that is none."""
        bits = np.random.PCG64()
        try:
            if self.rng["state"]["inc"] % 2 != 1:
                raise ValueError("its increment is even")
            bits.state = dict(self.rng)  # type: ignore[assignment]
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"it has no random generator of a stream ({error})") from error
        return np.random.Generator(bits)
