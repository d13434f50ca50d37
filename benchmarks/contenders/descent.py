"""What small trained models share: tables of 4 or 8 bits, Adam with rounding in the loop, losses, how many units fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from slimsvm.ship.literals import table

from .base import Array, Data, TooFewBytesError, c_bytes

Parameters = dict[str, Array]
#: rows in a step
BATCH = 1024
#: the share of the seconds without rounding. More: a better start, less time for what rounding changes
EXACT = 0.4
#: bytes by which the code may differ between models of one shape
SLACK = 16


@dataclass(frozen=True)
class Prepared:
    """Rows as a model is trained on: centred, scaled where the data need it, with targets of variance 1."""

    X: Array
    y: Array
    centre: Array
    scale: Array | None  # None: one factor for all, which tables absorb
    middle: float
    spread: float

    @staticmethod
    def of(data: Data) -> Prepared:
        """Return the rows of a data set, prepared."""
        centre, scale = data.X.mean(axis=0, dtype=np.float64), None
        if data.scaler is not None:
            scale = 1 / clone(data.scaler).fit(data.X).scale_
        middle, spread = (float(data.y.mean()), float(data.y.std())) if data.real else (0.0, 1.0)
        X = (data.X - centre) * (1.0 if scale is None else scale)
        y = (data.y - middle) / spread if data.real else data.y
        return Prepared(X.astype(np.float32), y, centre, scale, middle, spread)

    def inside(self, X: Array) -> Array:
        """Return other rows, prepared."""
        return ((X - self.centre) * (1.0 if self.scale is None else self.scale)).astype(np.float32)


def codes_of(W: Array, bits: int) -> tuple[Array, Array]:
    """Return the codes of a table (rows, columns), from -top to top, and the step of each column."""
    top = 2 ** (bits - 1) - 1
    step = np.maximum(np.abs(W).max(axis=0), 1e-9) / top
    return np.rint(W / step).astype(np.int8), step.astype(np.float32)


def rounded(W: Array, bits: int) -> Array:
    """Return a table as its codes give it."""
    codes, step = codes_of(W, bits)
    return codes * step


def loss_gradient(data: Data, outputs: Array, y: Array) -> Array:
    """Return the gradient of the mean loss by the outputs: squares, logistic, or cross-entropy."""
    if data.real:
        return (outputs - y[:, None]) / len(y)
    if data.outputs == 1:
        return (expit(outputs) - y[:, None]) / len(y)
    chances = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(y)), y] -= 1
    return chances / len(y)


def prediction(data: Data, outputs: Array) -> Array:
    """Return class numbers or values from outputs."""
    if data.real:
        return outputs[:, 0]
    return (outputs[:, 0] > 0).astype(int) if data.outputs == 1 else outputs.argmax(axis=1)


@dataclass
class Descent:
    """AdamW along a cosine for so many seconds; the tables named in `bits` are rounded in the later part.

    Gradients are those at the rounded tables, and move the tables behind them (the straight-through estimator).
    `kept` has a mask for each sparse table: entries outside are zero.
    """

    parameters: Parameters
    bits: Mapping[str, int]
    rate: float
    decay: float = 1e-2
    kept: dict[str, Array] = field(default_factory=dict)

    def effective(self, *, rounding: bool) -> Parameters:
        """Return the parameters as the model uses them."""
        used = {name: W * self.kept[name] if name in self.kept else W for name, W in self.parameters.items()}
        return {name: rounded(W, self.bits[name]) if rounding and name in self.bits else W for name, W in used.items()}

    def run(
        self,
        gradients: Callable[[Parameters, Array, float], Parameters],
        rows: int,
        seconds: float,
        sparsify: Callable[[Parameters], dict[str, Array]] | None = None,
    ) -> Parameters:
        """Return the trained parameters; `gradients` takes the row numbers of a step and the share of the time gone."""
        rng, start, step = np.random.default_rng(0), perf_counter(), 0
        first = {name: np.zeros_like(W) for name, W in self.parameters.items()}
        second = {name: np.zeros_like(W) for name, W in self.parameters.items()}
        while (gone := (perf_counter() - start) / max(seconds, 1e-3)) < 1 or step == 0:
            gone, step = min(gone, 1.0), step + 1
            if sparsify is not None and not self.kept and gone > EXACT / 2:
                self.kept = sparsify(self.parameters)
            found = gradients(self.effective(rounding=gone > EXACT), rng.integers(rows, size=min(BATCH, rows)), gone)
            rate = self.rate * 0.5 * (1 + np.cos(np.pi * gone))
            for name, W in self.parameters.items():
                first[name] += 0.1 * (found[name] - first[name])
                second[name] += 1e-3 * (np.square(found[name]) - second[name])
                size = np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8
                W -= rate * (first[name] / (1 - 0.9**step) / size + (self.decay * W if W.ndim == 2 else 0.0))
        return self.effective(rounding=True)


def in_c(name: str, values: Array) -> str:
    """Return a C table of floats, or of integers of 8 bits."""
    kind = "float" if values.dtype.kind == "f" else "int8_t"
    return f"static const {kind} {name}[{values.size}] = {{\n{table(values)}\n}};"


def codes_in_c(name: str, W: Array, bits: int) -> str:
    """Return a table of codes, column by column, with the macro `name(i)` that reads one, and the steps of its columns."""
    codes, step = codes_of(W, bits)
    flat = codes.T.ravel()
    steps = in_c(f"{name}_step", step)
    if bits == 8:
        return f"{in_c(f'{name}_codes', flat)}\n#define {name}(i) {name}_codes[i]\n{steps}"
    halves = np.append(flat + 8, [8] * (flat.size % 2)).astype(np.uint8).reshape(-1, 2)
    packed = (halves[:, 0] | halves[:, 1] << 4).astype(np.int64)
    text = f"static const uint8_t {name}_codes[{packed.size}] = {{\n{table(packed)}\n}};"
    return f"{text}\n#define {name}(i) (({name}_codes[(i) >> 1] >> ((i) & 1) * 4 & 15) - 8)\n{steps}"


def row_in_c(prepared: Prepared) -> tuple[str, str]:
    """Return the table of scales, and the expression of a feature of a row: scaled, and centred by the biases."""
    if prepared.scale is None:
        return "", "x[i]"
    return in_c("scale", prepared.scale.astype(np.float32)), "x[i] * scale[i]"


def most_within(size: int, source: Callable[[int], bytes], what: str, most: int = 1 << 20) -> int:
    """Return the largest count up to `most` whose C is within the bytes; its bytes grow with the count."""
    size -= SLACK
    if c_bytes(source(1)) > size:
        raise TooFewBytesError(f"one {what} and the code take {c_bytes(source(1))} bytes, of {size + SLACK}")
    low, high = 1, 2
    while high <= most and c_bytes(source(high)) <= size:
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if c_bytes(source(middle)) <= size else (low, middle)
    return low
