"""What a contender is: it makes a model whose C, compiled for size, is within a number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.c_code import compiled_bytes

Array = np.ndarray
#: shares of what fits into the bytes that contenders choose from: points, rounds of trees or hidden units
SHARES = (1.0, 0.25)


class TooFewBytesError(ValueError):
    """No model of a contender is within the bytes."""


@dataclass(frozen=True)
class Data:
    """Rows as they are measured, with class numbers or target values, and a scaler for models that need one."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    scaler: Any = None  # not fitted; None where features are on one scale already

    @property
    def real(self) -> bool:
        """Whether the targets are values."""
        return self.y.dtype.kind == "f"

    @property
    def outputs(self) -> int:
        """Outputs of a model: one for two classes and for values."""
        classes = 1 if self.real else int(self.y.max()) + 1
        return 1 if classes <= 2 else classes


@dataclass(frozen=True)
class Shipped:
    """A model as C, whose function `model_predict` gives a class number or a value, and in Python."""

    source: bytes
    predict: Callable[[Array], Array]
    facts: dict[str, Any] = field(default_factory=dict)  # what a row tells of it


@dataclass(frozen=True)
class Contender:
    """A kind of model."""

    name: str

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return the values of each setting, the usual one first; settings that matter most come first."""
        raise NotImplementedError

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return a model of at most so many bytes, found in about so many seconds."""
        raise NotImplementedError


def c_bytes(source: bytes) -> int:
    """Return the bytes of text and data of a source compiled by `gcc -Os`, as a budget in bytes counts them."""
    return compiled_bytes(source)


LARGEST = """    int best = 0;
    for (int k = 1; k < {outputs}; k++)
        if (out[k] > out[best])
            best = k;
    return best;"""


def decision(data: Data) -> str:
    """Return the statements from outputs to a prediction."""
    if data.real:
        return "    return out[0];"
    return "    return out[0] > 0;" if data.outputs == 1 else LARGEST.format(outputs=data.outputs)
