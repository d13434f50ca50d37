"""Factors that are kept from one call of Newton's method to the next."""

import numpy as np

from slimsvm.rows.curvatures import HostFactor
from slimsvm.solvers.newton import MANY, KeptFactors


def test_only_large_factors_are_kept_for_first_steps_of_the_same_size():
    kept = KeptFactors()
    kept.keep(0, HostFactor(np.eye(MANY - 1)))
    kept.keep(1, HostFactor(np.eye(MANY)))
    assert kept.get(0, MANY - 1, 0) is None
    assert kept.get(1, MANY, 0) is not None
    assert kept.get(1, MANY + 1, 0) is None
    assert kept.get(1, MANY, 5) is None


def test_no_more_factors_are_kept_than_there_is_memory_for():
    kept = KeptFactors(2 * MANY**2)
    for output in (0, 1, 1, 2):
        kept.keep(output, HostFactor(np.eye(MANY)))
    assert set(kept.factors) == {0, 1}
