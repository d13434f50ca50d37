"""Small enough: the rule by which sizes are chosen, everywhere.

Under a limit on the error, the smallest model within it is chosen. The limit is given (`tune(max_error=)`), or it is the
error of a reference plus what is allowed: the full model's (`tolerance`), the lowest one (`smallest_within`), or the lowest
one plus its standard error (the answer of a trade-off). Under a limit on the size (`budget`), the largest model is chosen
that is not clearly worse than the best: fewer points than the budget allows need a reason that is not chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..kernels import Array
from ..model import Judgement

#: under a tolerance, recall of each class may fall by this share or by one row; less: larger models for rare classes
MOST_RECALL_LOST = 0.05
#: standard errors of the difference that are taken from a tolerance; more: less is lost by chance, and larger models
MARGIN = 0.5
#: rounding of sums of errors
ROUNDING = 1e-12


def smallest(sizes: Sequence[float] | Array, errors: Sequence[float] | Array, limit: float) -> int | None:
    """Return the place of the smallest model with at most that error, of equal sizes the best; None without one."""
    good = [place for place, error in enumerate(errors) if error <= limit + ROUNDING]
    return min(good, key=lambda place: (sizes[place], errors[place]), default=None)


def largest_as_good(judgements: Sequence[Judgement], standard_errors: float) -> int:
    """Return the last place, of models by size, that is not worse than the best by so many standard errors."""
    best = min(judgements, key=lambda found: np.nan_to_num(found.error))
    return max(place for place, found in enumerate(judgements) if not found.worse_than(best, standard_errors))


@dataclass(frozen=True)
class Allowance:
    """The validation error that a small model may have.

    A validation error is an estimate, and of many sizes the one that chance favours is found. So a model is allowed if its
    error is higher than the full model's by at most the tolerance less `MARGIN` standard errors of the difference.

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

    def smallest(self, judgements: Sequence[Judgement]) -> int | None:
        """Return the first place, of models by size, that is allowed by itself and on average with the next two, or None.

        Larger models are rarely worse. If the next two have a higher error, the small one met it by chance.
        """
        for place, found in enumerate(judgements):
            near = judgements[place : place + 3]
            # the same rows judged all of them, so their mean is as uncertain as one
            mean = replace(Judgement.mean(near, np.full(len(near), 1 / len(near))), deviations=found.deviations)
            if self.allows(found) and self.allows(mean):
                return place
        return None

    def allows(self, found: Judgement) -> bool:
        """Return whether a model with this judgement is good enough."""
        margin = MARGIN * found.noise_against(self.full)
        return found.error + margin <= self.limit + ROUNDING and self._keeps_classes(found)

    def _keeps_classes(self, found: Judgement) -> bool:
        """Return whether recall of each class falls by at most `MOST_RECALL_LOST` or one row."""
        if self.class_rows is None or self.full.class_errors is None or found.class_errors is None:
            return True
        lost = self.class_rows * np.nan_to_num(found.class_errors - self.full.class_errors)
        return bool((lost <= np.maximum(MOST_RECALL_LOST * self.class_rows, 1.0) + 1e-9).all())

    def __str__(self) -> str:
        return (
            f"full model {self.full.error:.4g}, judged by {self.judged}; allowed: {self.limit:.4g} less half a standard "
            "error of the difference"
        )
