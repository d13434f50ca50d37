"""Labels of files as whole numbers where all of them are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..kernels import Array

#: whole numbers below this are exact in float64
EXACT = 2**53


def as_labels(y: Array) -> Array:
    """Return numbers as integers if all of them are whole."""
    are_whole = y.dtype.kind == "f" and (np.abs(y, dtype=np.float64) < EXACT).all() and (y == np.rint(y)).all()
    return y.astype(np.int64) if are_whole else y
