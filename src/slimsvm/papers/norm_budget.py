"""The frame of budget-L1 and budget-L2: `AnyNorm` with a norm that a budget of support vectors defines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from .any_norm import AnyNorm
from .norms import Norm


@dataclass(frozen=True)
class NormBudget(BinaryTrainer):
    """`AnyNorm` with a norm of about the `budget` largest slacks; `prune` keeps that many of the largest coefficients."""

    weighted: ClassVar[bool] = False
    norm: ClassVar[Callable[[Any], Norm]]

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    budget: int | None = None
    prune: bool = False
    working_set: int = 2048
    time_limit: float | None = None
    starts_warm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.any_norm(2 if self.budget is None else self.budget)  # checks the settings

    def any_norm(self, budget: int | None) -> AnyNorm:
        """Return the same trainer in the general form."""
        norm, prune = type(self).norm(budget), budget if self.prune else None
        more = {"working_set": self.working_set, "time_limit": self.time_limit}
        return AnyNorm(self.C, self.tol, self.max_iter, norm, prune, **more)  # type: ignore[arg-type]

    def solve(self, problem: Binary) -> Solution:
        """Solve one output."""
        return self.any_norm(self.budget).solve(problem)
