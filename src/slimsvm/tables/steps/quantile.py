"""Numbers become their quantiles among the training rows, uniform or normal: QuantileTransformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..program import Array, Step
from ..tape import Tape

#: by how much a number may lie within the range and still count as its end, as in scikit-learn
BOUND = 1e-7
#: the normal quantile of BOUND less half of a unit in the last place of 1, where scikit-learn clips
REACH = 5.199337582605575


@dataclass(frozen=True)
class Quantile(Step):
    """The interpolated place of a number among `quantiles`, a row for each column, from 0 to 1; or its normal quantile."""

    kind: ClassVar[str] = "quantile"
    precise: ClassVar[bool] = True
    quantiles: Array  # (inputs, count), rising
    references: Array  # (count,)
    normal: bool

    @property
    def source(self) -> str:
        """The code."""
        ends = (
            "    if (IN_J + BOUND > quantiles[first + NUMBERS - 1]) p = 1;\n"
            "    if (IN_J - BOUND < quantiles[first]) p = 0;\n"
            if self.normal
            else "    if (IN_J == quantiles[first + NUMBERS - 1]) p = 1;\n    if (IN_J == quantiles[first]) p = 0;\n"
        )
        return (
            "for (INT j = 0; j < COUNT; j++) {\n    const INDEX first = j * NUMBERS;\n"
            "    INT low = 0, high = NUMBERS;\n    while (low < high) {\n        const INDEX middle = (low + high) >> 1;\n"
            "        if (quantiles[first + middle] < IN_J)\n            low = middle + 1;\n"
            "        else\n            high = middle;\n    }\n"
            "    while (high < NUMBERS && quantiles[first + high] == IN_J)\n        high++;\n"
            "    VAR p = IN_J;\n    if (low == NUMBERS)\n        p = 1;\n    else if (high > low)\n"
            "        p = (references[low] + references[high - 1]) / 2;\n    else if (low == 0)\n        p = 0;\n    else\n"
            "        p = references[low - 1] + (IN_J - quantiles[first + low - 1])\n"
            "            / (quantiles[first + low] - quantiles[first + low - 1])\n"
            "            * (references[low] - references[low - 1]);\n"
            f"{ends}    OUT_J = ISNAN(IN_J) ? IN_J : {'probit(p)' if self.normal else 'p'};\n}}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return np.column_stack(
            [self._column(column, quantiles) for column, quantiles in zip(values.T, self.quantiles, strict=True)]
        )

    def _column(self, x: Array, quantiles: Array) -> Array:
        """Return the mean of both interpolations, which differ where quantiles are equal."""
        forward = np.interp(x, quantiles, self.references)
        p = 0.5 * (forward - np.interp(-x, -quantiles[::-1], -self.references[::-1]))
        if self.normal:
            p = np.where(x - BOUND < quantiles[0], 0.0, np.where(x + BOUND > quantiles[-1], 1.0, p))
        else:
            p = np.where(x == quantiles[0], 0.0, np.where(x == quantiles[-1], 1.0, p))
        return np.where(np.isnan(x), np.nan, probit(p) if self.normal else p)

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        tables = {"quantiles": self.quantiles.ravel(), "references": self.references, "NUMBERS": self.references.size}
        return tables | ({"BOUND": BOUND} if self.normal else {})

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        if self.references.ndim != 1 or self.quantiles.shape != (self.inputs.size, self.references.size):
            raise ValueError("there are as many quantiles for each column")
        if not self.references.size or not np.isfinite(self.quantiles).all() or (np.diff(self.quantiles) < 0).any():
            raise ValueError("quantiles are rising numbers")


#: Wichura's algorithm AS 241 for the normal quantile, to 1e-16: in the middle a ratio of polynomials of (p - 1/2)^2, and in
#: the tails of r = sqrt(-log p) less 1.6 or 5
MIDDLE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
     1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
     687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
NEAR = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def probit(p: Array) -> Array:
    """Return the normal quantile of p, clipped to REACH."""
    tail = np.minimum(p, 1 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.sqrt(-np.log(tail))
        outside = np.sign(p - 0.5) * np.where(r <= 5, _ratio(NEAR, r - 1.6), _ratio(FAR, r - 5))
        q = p - 0.5
        quantile = np.where(np.abs(q) <= 0.425, q * _ratio(MIDDLE, 0.180625 - q * q), outside)
    quantile = np.where(tail <= 0, np.sign(p - 0.5) * REACH, quantile)
    return np.clip(quantile, -REACH, REACH)


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = (np.polyval(coefficients, x) for coefficients in polynomials)
    return above / below


def _horner(coefficients: tuple[float, ...], x: str) -> str:
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text} * {x} + {coefficient!r})"
    return text


def _quotient(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: str) -> str:
    return f"{_horner(polynomials[0], x)}\n            / {_horner(polynomials[1], x)}"


PROBIT = f"""FUNCTION probit(REAL p) {{
    const REAL q = p - 0.5;
    if (ABS(q) <= 0.425) {{
        const REAL s = 0.180625 - q * q;
        return q * {_quotient(MIDDLE, "s")};
    }}
    const REAL tail = q < 0 ? p : 1 - p;
    VAR x = {REACH!r};
    if (tail > 0) {{
        const REAL r = SQRT(-LOG(tail));
        const REAL s = r <= 5 ? r - 1.6 : r - 5;
        x = r <= 5
            ? {_quotient(NEAR, "s")}
            : {_quotient(FAR, "s")};
    }}
    x = x > {REACH!r} ? {REACH!r} : x;
    return q < 0 ? -x : x;
}}
"""


def read(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a QuantileTransformer."""
    quantiles, references = (np.asarray(part, dtype=np.float64) for part in (step.quantiles_, step.references_))
    return tape.add(Quantile(np.array(places), quantiles.T.copy(), references, step.output_distribution == "normal"))


READERS = {"QuantileTransformer": read}
FITTED: dict[str, tuple[str, ...]] = {"QuantileTransformer": ("quantiles_", "references_", "n_quantiles_")}
