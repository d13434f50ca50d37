"""Numbers are shifted, multiplied and clipped: scikit-learn's scalers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...importers.scaler_kinds import SCALER_KINDS
from ...scaling import Scaling
from ..program import Array, Step
from ..tape import Tape, name_of

CLIPS = "    OUT = OUT < LOW ? LOW : OUT > HIGH ? HIGH : OUT;\n"


@dataclass(frozen=True)
class Affine(Step):
    """clip((x - centre) * scale, low, high)."""

    kind: ClassVar[str] = "affine"
    centre: Array
    scale: Array
    low: Array
    high: Array

    @property
    def scaling(self) -> Scaling:
        """The same as a scaling."""
        return Scaling(self.centre, self.scale, self.low, self.high)

    @property
    def source(self) -> str:
        """The code."""
        return f"for (INT i = 0; i < COUNT; i++) {{\n    OUT = (IN - CENTRE) * SCALE;\n{CLIPS * self.scaling.clips}}}\n"

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return self.scaling(values)

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        end = float(np.finfo(np.float32).max)
        ends = {"LOW": np.maximum(self.low, -end), "HIGH": np.minimum(self.high, end)} if self.scaling.clips else {}
        return {"CENTRE": self.centre, "SCALE": self.scale, **ends}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        self.scaling.check(self.inputs.size)


def read(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a scaler."""
    return tape.add(Affine(np.array(places), *SCALER_KINDS[name_of(step)].scaling(step, len(places)).parts))


READERS = dict.fromkeys(SCALER_KINDS, read)
FITTED = {name: ("scale_", *kind.fitted) for name, kind in SCALER_KINDS.items()}
