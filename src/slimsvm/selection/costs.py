"""Costs of a model in use: bytes of exported tables, microseconds of a call of predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ..kernels import Kernel
from ..kernels.spec import SPECS
from ..metric import Metric
from ..model import Expansion

#: bits of an entry in the tables of a C export, by precision
BITS = {"float32": 32, "int16": 16, "int8": 8}
#: bytes of the factor of a feature, with its centre
FACTOR_BYTES = {"float32": 4, "int16": 8, "int8": 4}
#: integer exports keep coefficients in 16 bits up to this many coefficients for each coordinate of a point
CHEAP_COEFFICIENTS = 1 / 8


@dataclass(frozen=True)
class ScalerTables:
    """The C tables of scalers in front of a model: a centre and a scale for each feature, and two limits where they clip.

    With int8 and a kernel of distances, the centre and the scale have 16 bits each if centres are `near` 0 in units of the
    scale. All other numbers have 32 bits.
    """

    features: int = 0
    clips: bool = False
    near: bool = False

    def bytes(self, kernel: Kernel, precision: str) -> int:
        """Return the most bytes of the tables."""
        if precision == "int8" and self.near and not self.clips and _is_of_distances(kernel):
            return 4 * self.features
        return 4 * self.features * (4 if self.clips else 2)

    def behind(self, other: ScalerTables) -> ScalerTables:
        """Return the tables of these scalers behind others, which are one table for each number."""
        if not self.features or not other.features:
            return other if not self.features else self
        return ScalerTables(max(self.features, other.features), self.clips or other.clips)


#: the tables of a model without scalers
NO_SCALER = ScalerTables()


def _is_of_distances(kernel: Kernel) -> bool:
    return kernel.name in SPECS and SPECS[kernel.name].total.shift_invariant


def table_bytes(
    kernel: Kernel, points: int, features: int, outputs: int, precision: str = "float32", *, widths: bool = False
) -> int:
    """Return the bytes of the tables that the C export writes for a model of this shape, without those of a scaler.

    A linear kernel has one point for each output, the sum of all. With `widths`, each point has one number more.
    """
    bits, points = BITS[precision], max(points, 1)
    if kernel.name == "linear":
        points = min(points, outputs)
    cheap = precision != "float32" and outputs <= CHEAP_COEFFICIENTS * features
    bias = 2 if precision == "int8" and outputs > 1 and _is_of_distances(kernel) else 4
    return points * ((features + widths) * bits + outputs * (16 if cheap else bits)) // 8 + bias * outputs


def factor_bytes(kernel: Kernel, features: int, precision: str = "float32") -> int:
    """Return the most bytes of the learned factors of a model without a scaler.

    Kernels of inner products need none in float32: the points contain the factors. Integers may need a factor for each
    feature, where factors differ much (`ship.balance`). Those of distances also need the centre of each feature, and with
    int8 both have 16 bits.
    """
    if kernel.name in SPECS and SPECS[kernel.name].total.inner:
        return 0 if precision == "float32" else 4 * features
    return features * FACTOR_BYTES[precision]


def model_bytes(model: Expansion, precision: str = "float32") -> int:
    """Return the most bytes of the tables that the C export writes for a model, without those of a scaler."""
    learned, shape = model.metric or Metric(), (model.kernel, model.size, model.points.shape[1], model.bias.size)
    extra = 0 if learned.factors is None else factor_bytes(model.kernel, model.points.shape[1], precision)
    projection = 0 if learned.projection is None else learned.projection.size * BITS[precision] // 8
    return table_bytes(*shape, precision, widths=learned.widths is not None) + extra + projection


def check_exportable(kernel: Kernel, precision: str) -> None:
    """Raise ValueError where the C export has no tables of this precision for the kernel."""
    if kernel.name not in SPECS:
        raise ValueError(f"budget_bytes is for C tables, and the C export has no {kernel.name!r} kernel; it has {[*SPECS]}")
    if precision != "float32" and not SPECS[kernel.name].total.integer:
        raise ValueError(f"the {kernel.name} kernel has no {precision} tables; give budget_precision='float32'")


def microseconds(call: Callable[[], Any], calls: int = 200, seconds: float = 0.05, least: int = 1) -> float:
    """Return the time of the fastest of several calls; after that many seconds no more are made than the `least`."""
    best, end = float("inf"), perf_counter() + seconds
    for number in range(1, calls + 1):
        start = perf_counter()
        call()
        now = perf_counter()
        best = min(best, now - start)
        if now > end and number >= least:
            break
    return 1e6 * best
