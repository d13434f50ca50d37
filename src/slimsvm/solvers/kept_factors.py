"""Factors of curvatures that are kept from one call of Newton's method to the next."""

from __future__ import annotations

from ..rows.protocol import Factor

#: factors of at least this many coefficients are kept
MANY = 96
#: a kept factor serves one step for each `PER_STEP` coefficients, and at most `KEPT_STEPS` steps
PER_STEP, KEPT_STEPS = 96, 3
#: the most numbers in all kept factors; a thousand outputs of a thousand points would take 8 GB
MOST_KEPT = 1 << 25


class KeptFactors:
    """Factors of the outputs' curvatures, kept for points that have moved a little since.

    Any definite matrix gives a descent direction, and a line search finds the step length. With many points that is worth a
    step or two: each costs two products with the kernel values, while a new curvature costs one for each point.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self.most, self.factors = most, dict[int, Factor]()

    def keep(self, output: int, factor: Factor) -> None:
        """Keep a factor if it is large enough and there is memory for it."""
        others = sum(kept.size**2 for number, kept in self.factors.items() if number != output)
        if factor.size >= MANY and others + factor.size**2 <= self.most:
            self.factors[output] = factor

    def get(self, output: int, size: int, number: int) -> Factor | None:
        """Return the kept factor of `size` coefficients for an output's step with this number, or None."""
        factor = self.factors.get(output) if number < min(size // PER_STEP, KEPT_STEPS) else None
        return factor if factor is not None and factor.size == size else None
