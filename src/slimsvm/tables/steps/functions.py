"""Functions of each number: a FunctionTransformer of a few of NumPy's, of dates, or of nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...text import short
from ..program import Array, Step
from ..recognition import days
from ..tape import Tape

#: NumPy's functions that are shipped: their code
CODE = {"log1p": "LOG1P(IN)", "log": "LOG(IN)", "sqrt": "SQRT(IN)", "square": "IN * IN", "abs": "ABS(IN)",
        "absolute": "ABS(IN)", "expm1": "EXPM1(IN)"}  # fmt: skip


@dataclass(frozen=True)
class Function(Step):
    """One of NumPy's functions."""

    kind: ClassVar[str] = "function"
    precise: ClassVar[bool] = True
    name: str

    @property
    def source(self) -> str:
        """The code."""
        return f"for (INT i = 0; i < COUNT; i++)\n    OUT = {CODE[self.name]};\n"

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return np.asarray(getattr(np, self.name)(values))

    def check(self) -> None:
        """Raise ValueError for another function."""
        if self.name not in CODE:
            raise ValueError(f"there is no function {self.name!r}; there are {sorted(CODE)}")


def read(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a FunctionTransformer."""
    name = name_of_function(step.func)
    if name is None:
        return places
    if name == "days":
        tape.dates |= {tape.columns_of[place] for place in places}
        return places
    return tape.add(Function(np.array(places), name))


def name_of_function(function: Any) -> str | None:
    """Return the name of a function that is shipped; None for no function. Raise ValueError for another one."""
    if function is None or function == "none":
        return None
    if function is days or function == "days":
        return "days"
    for name in CODE:
        if function is getattr(np, name) or function == name:
            return name
    known = ", ".join(f"np.{name}" for name in CODE)
    raise ValueError(
        f"cannot ship a FunctionTransformer of {short(function)}: Python code runs in Python only. There are {known}; or "
        "apply it to the rows before the Pipeline"
    )


def function_named(name: Any) -> Any:
    """Return the function of a name in a file; None for no function."""
    name = name_of_function(name)
    return None if name is None else days if name == "days" else getattr(np, name)


READERS = {"FunctionTransformer": read}
