"""Facts of each kernel for exporters, file formats and the compiled core. Imports the standard library only.

A kernel value is a function, `value`, of a sum over features, `total`. One entry in `SPECS` adds a kernel to every
exporter. A new sum or value function also needs its ONNX operators in `ship.onnx`, and each kernel has a case in
`_core/expansion.c`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from ..text import short

#: the largest degree that a model file may have: 2^1024 overflows float64
MAX_DEGREE = 1024


@dataclass(frozen=True)
class Sum:
    """A sum over the features of a row x and a point z; `term` is an expression that is valid in C and in JavaScript."""

    name: str
    term: str
    #: the degree of the sum: sum(t x, t z) = t^power sum(x, z)
    power: int
    #: whether the term is x z; a feature's scale may then move from the row to the point
    inner: bool = False
    #: whether sum(x + t, z + t) = sum(x, z); a feature's centre may then move from the row to the point
    shift_invariant: bool = False
    #: whether the sum is an integer for integer features
    integer: bool = True
    #: sum(x, z) is the sum of own(x) and own(z) over all features, and of joint(x, z) where both are nonzero; None means 0
    own: str | None = None
    joint: str = "x * z"


@dataclass(frozen=True)
class Value:
    """The kernel value as an expression of the sum `s`; library functions of the language are in braces."""

    name: str
    expression: str
    #: the library function in it
    library: str | None = None


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel and the values it may have: numbers between `low` and `high`, both excluded."""

    name: str
    default: float
    domain: str
    low: float
    high: float
    whole: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether a value is a number within the bounds; NaN is not."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        number: Any = value if isinstance(value, Integral) else float(value)  # ints may be beyond float64
        return bool(self.low < number < self.high)


@dataclass(frozen=True)
class KernelSpec:
    """One kernel: its parameters, its formula, and its name or number in other formats (None: the format lacks it)."""

    name: str
    form: int  # its number in _core/core.h
    parameters: tuple[Parameter, ...]
    total: Sum
    value: Value
    libsvm: str | None = None
    onnx: str | None = None  # kernel_type of an SVMClassifier
    #: whether some rows have no kernel values (`Kernel.check_rows`)
    partial: bool = False


_LARGEST = sys.float_info.max
GAMMA = Parameter("gamma", 1.0, "a finite number above 0", 0.0, _LARGEST)
COEF0 = Parameter("coef0", 0.0, "a finite number", -_LARGEST, _LARGEST)
DEGREE = Parameter("degree", 1, f"a whole number from 0 to {MAX_DEGREE}", -1, MAX_DEGREE + 1, whole=True)

_SQUARE = "(x - z) * (x - z)"
INNER = Sum("inner", "x * z", power=2, inner=True)
SQUARES = Sum("squares", _SQUARE, power=2, shift_invariant=True, own="x * x", joint="-2 * x * z")
MANHATTAN = Sum(
    "manhattan",
    "(x > z ? x - z : z - x)",
    power=1,
    shift_invariant=True,
    own="(x > 0 ? x : -x)",
    joint="(x > 0 ? (z > 0 ? -2 * (x < z ? x : z) : 0) : (z < 0 ? 2 * (x > z ? x : z) : 0))",
)
CHI_SQUARED = Sum(
    "chi_squared",
    f"(x + z != 0 ? {_SQUARE} / (x + z) : 0)",
    power=1,
    integer=False,
    own="x",
    joint="-4 * x * z / (x + z)",
)

IDENTITY = Value("identity", "s")
EXP = Value("exp", "{exp}(-GAMMA * s)", "exp")
POWER = Value("power", "power(GAMMA * s + COEF0)")
TANH = Value("tanh", "{tanh}(GAMMA * s + COEF0)", "tanh")

SPECS: dict[str, KernelSpec] = {
    spec.name: spec
    for spec in (
        KernelSpec("linear", 0, (), INNER, IDENTITY, "linear", "LINEAR"),
        KernelSpec("rbf", 1, (GAMMA,), SQUARES, EXP, "rbf", "RBF"),
        KernelSpec("poly", 2, (GAMMA, COEF0, DEGREE), INNER, POWER, "polynomial", "POLY", partial=True),
        KernelSpec("sigmoid", 3, (GAMMA, COEF0), INNER, TANH, "sigmoid", "SIGMOID"),
        KernelSpec("laplacian", 4, (GAMMA,), MANHATTAN, EXP),
        KernelSpec("chi2", 5, (GAMMA,), CHI_SQUARED, EXP, partial=True),
    )
}


def spec_of(kernel: str, what: str) -> KernelSpec:
    """Return the spec of a kernel. In the error for an unknown kernel, `what` is the subject."""
    if kernel not in SPECS:
        raise ValueError(f"{what} has no {short(kernel)} kernel; it has {sorted(SPECS)}")
    return SPECS[kernel]


def check_parameters(kernel: str, given: Mapping[str, object]) -> None:
    """Raise ValueError unless these are the parameters of the kernel and each of them is within its bounds.

    A kernel that is not in `SPECS` (a precomputed one) has no parameters.
    """
    known = SPECS[kernel].parameters if kernel in SPECS else ()
    names = [parameter.name for parameter in known]
    if set(given) != set(names):
        raise ValueError(f"the {kernel} kernel has the parameters {names}, not {short(sorted(map(str, given)))}")
    for parameter in known:
        if not parameter.allows(given[parameter.name]):
            raise ValueError(
                f"{parameter.name}={short(given[parameter.name])} of the {kernel} kernel must be {parameter.domain}"
            )


def core_arguments(kernel: str, given: Mapping[str, float]) -> tuple[int, float, float, int]:
    """Return the first four arguments of `core.expansion`: the form's number, gamma, coef0 and degree."""
    get = given.get  # quick: every prediction of a single row comes here
    return (
        SPECS[kernel].form,
        get("gamma", GAMMA.default),
        get("coef0", COEF0.default),
        get("degree", DEGREE.default),  # type: ignore[return-value]
    )
