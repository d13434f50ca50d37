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
        weights = np.ones(classes) if self.weights is None else self.weights
        arrays = (self.coef, self.born, weights)
        if (
            not all(isinstance(array, Array) for array in arrays)
            or self.coef.dtype.kind != "f"
            or weights.dtype.kind != "f"
        ):
            raise ValueError("it has the stream of another model")
        shapes = [array.shape for array in arrays]
        counts = (self.seen, self.moves, self.budget, *self.born.tolist())
        counted = all(isinstance(count, int) and 0 <= count < 2**32 for count in counts)
        if shapes != [(size, outputs), (size,), (classes,)] or not counted or not 0 < self.budget >= size:
            raise ValueError("it has the stream of another model")
        numbers = (self.lam, self.late, self.epsilon, self.nu or 0.0)
        real = all(isinstance(number, int | float) and 0 <= number < np.inf for number in numbers)
        real = real and isinstance(self.slack, int | float) and -np.inf < self.slack <= 0
        if not real or not np.isfinite(self.coef).all() or not (weights > 0).all():
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
