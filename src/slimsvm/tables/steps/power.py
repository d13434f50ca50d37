"""Powers that make numbers more normal, standardised: PowerTransformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..program import Array, Step
from ..tape import Tape


@dataclass(frozen=True)
class Power(Step):
    """(power(x) - centre) * scale, with the power of Yeo and Johnson, or for numbers above 0 of Box and Cox."""

    kind: ClassVar[str] = "power"
    precise: ClassVar[bool] = True
    exponents: Array
    centre: Array
    scale: Array
    box_cox: bool

    @property
    def source(self) -> str:
        """The code."""
        power = "box_cox" if self.box_cox else "yeo_johnson"
        return f"for (INT i = 0; i < COUNT; i++)\n    OUT = ({power}(IN, EXPONENTS) - CENTRE) * SCALE;\n"

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        with np.errstate(all="ignore"):
            if self.box_cox:
                powers = _power(np.log(values), self.exponents)
            else:
                above = _power(np.log1p(np.abs(values)), self.exponents)
                powers = np.where(values >= 0, above, -_power(np.log1p(np.abs(values)), 2 - self.exponents))
        return (powers - self.centre) * self.scale

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return {"EXPONENTS": self.exponents, "CENTRE": self.centre, "SCALE": self.scale}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        if any(
            parameter.shape != self.inputs.shape or not np.isfinite(parameter).all() for parameter in self.words.values()
        ):
            raise ValueError("there are finite powers, centres and scales for each column")


#: exponents nearer to 0 count as 0, as in scikit-learn
LEAST = 2.220446049250313e-16


def _power(logarithms: Array, exponents: Array) -> Array:
    """Return (exp(logarithm)^exponent - 1) / exponent, the logarithm itself for an exponent of 0."""
    none = np.abs(exponents) < LEAST
    return np.where(none, logarithms, np.expm1(exponents * logarithms) / np.where(none, 1.0, exponents))


POWERS = f"""FUNCTION power_of_log(REAL logarithm, REAL exponent) {{
    return ABS(exponent) < {LEAST!r} ? logarithm : EXPM1(exponent * logarithm) / exponent;
}}
"""
YEO_JOHNSON = """FUNCTION yeo_johnson(REAL x, REAL exponent) {
    return x >= 0 ? power_of_log(LOG1P(x), exponent) : -power_of_log(LOG1P(-x), 2 - exponent);
}
"""
BOX_COX = """FUNCTION box_cox(REAL x, REAL exponent) {
    return power_of_log(LOG(x), exponent);
}
"""


def read(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a PowerTransformer."""
    n, scaler = len(places), getattr(step, "_scaler", None) if step.standardize else None
    centre = np.zeros(n) if scaler is None else np.asarray(scaler.mean_, dtype=np.float64)
    scale = np.ones(n) if scaler is None else 1 / np.asarray(scaler.scale_, dtype=np.float64)
    exponents = np.asarray(step.lambdas_, dtype=np.float64)
    return tape.add(Power(np.array(places), exponents, centre, scale, step.method == "box-cox"))


READERS = {"PowerTransformer": read}
FITTED: dict[str, tuple[str, ...]] = {"PowerTransformer": ("lambdas_", "_scaler")}
