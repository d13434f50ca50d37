"""Transitional names."""

from ..kernels import Array
from ..model import Expansion
from ..rows.protocol import Rows
from .margins import margin_targets as demands


def outputs(rows: Rows, model: Expansion) -> Array:
    """Return f(x) for each row."""
    return model.on(rows)


__all__ = ["demands", "outputs"]
