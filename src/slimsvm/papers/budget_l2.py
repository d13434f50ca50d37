"""Budget-L2-SVM (Dekel & Singer 2006): about the 2-norm of the largest slacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .any_norm import AnyNorm
from .norm_budget import NormBudget
from .norms import TwoInf


@dataclass(frozen=True)
class BudgetL2(NormBudget):
    """Budget-L2-SVM: C times about the 2-norm of the B = `budget` largest slacks; `steps` as in `AnyNorm`.

    The number of support vectors grows with B but is not bounded by it. `prune` keeps the B largest coefficients.
    """

    norm = TwoInf
    steps: str = "exact"

    def any_norm(self, budget: int | None) -> AnyNorm:
        """Return the same trainer in the general form."""
        return replace(super().any_norm(budget), steps=self.steps)
