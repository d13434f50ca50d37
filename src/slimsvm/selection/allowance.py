"""What a tolerance allows: so much more validation error than the full model's, and hardly less recall of any class."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..kernels import Array
from ..model import Judgement

#: under a tolerance, recall of each class may fall by this share or by one row; less: larger models for rare classes
MOST_RECALL_LOST = 0.05
#: chance may take at most this share of a tolerance. More: a small tolerance on few rows allows no small model at all
MOST_FOR_CHANCE = 0.5


@dataclass(frozen=True)
class Allowance:
    """The validation error that a small model may have.

    A validation error is an estimate. So a model is allowed if its error is higher than the full model's by at most the
    tolerance less one standard error of the difference; that is at most half of the tolerance.

    Parameters
    ----------
    full : Judgement
        The full model's validation error and its standard error.
    tolerance : float
        How much more error is allowed.
    judged : str
        The rows or models by which the full model was judged, in words.
    class_rows : ndarray of shape (n_classes,), default=None
        The validation rows of each class; None where classes are not looked at one by one.
    """

    full: Judgement
    tolerance: float
    judged: str
    class_rows: Array | None = field(default=None, repr=False, compare=False)

    @property
    def limit(self) -> float:
        """The full model's error plus the tolerance."""
        return self.full.error + self.tolerance

    def allows(self, found: Judgement) -> bool:
        """Return whether a model with this judgement is good enough."""
        chance = min(found.noise_against(self.full), MOST_FOR_CHANCE * self.tolerance)
        return found.error + chance <= self.limit + 1e-12 and self._keeps_classes(found)

    def _keeps_classes(self, found: Judgement) -> bool:
        """Return whether recall of each class falls by at most `MOST_RECALL_LOST` or one row."""
        if self.class_rows is None or self.full.class_errors is None or found.class_errors is None:
            return True
        lost = self.class_rows * np.nan_to_num(found.class_errors - self.full.class_errors)
        return bool((lost <= np.maximum(MOST_RECALL_LOST * self.class_rows, 1.0) + 1e-9).all())

    def __str__(self) -> str:
        return (
            f"full model {self.full.error:.4g}, judged by {self.judged}; allowed: {self.limit:.4g} less a standard error "
            "of the difference"
        )
