"""Budget-L1-SVM (Dekel & Singer 2006): the loss of the largest slacks only."""

from __future__ import annotations

from dataclasses import dataclass

from .norm_budget import NormBudget
from .norms import OneInf


@dataclass(frozen=True)
class BudgetL1(NormBudget):
    """Budget-L1-SVM: C times the sum of the B = `budget` largest slacks instead of the sum of all.

    Rows with a smaller slack than the B-th largest are not support vectors (Theorem 2). So there are at most B support
    vectors except for ties, and the free support vectors do tie. `prune` keeps the B largest coefficients despite ties.
    """

    norm = OneInf
