"""A neural network of one hidden layer as a contender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier, MLPRegressor

from slimsvm.ship.literals import float_literal, table

from .base import SHARES, Array, Contender, Data, Shipped, TooFewBytesError, c_bytes, decision

NETWORK = """#include <stdint.h>
{tables}
{kind} model_predict(const float *x)
{{
    float hidden[{units}], out[{outputs}];
    for (int j = 0; j < {units}; j++) {{
        float s = 0;
        for (int i = 0; i < {features}; i++)
            s += {row} * first[j * {features} + i];
        s = s * {first_unit} + first_bias[j];
        hidden[j] = s > 0 ? s : 0;
    }}
    for (int k = 0; k < {outputs}; k++) {{
        float s = 0;
        for (int j = 0; j < {units}; j++)
            s += hidden[j] * second[k * {units} + j];
        out[k] = s * {second_unit} + second_bias[k];
    }}
{decision}
}}
"""


@dataclass(frozen=True)
class Network:
    """Weights (units, d) and (q, units) with their biases, and the scaling of rows."""

    first: Array
    first_bias: Array
    second: Array
    second_bias: Array
    centre: Array | None
    scale: Array | None

    def outputs(self, X: Array) -> Array:
        """Return the outputs of rows."""
        rows = X if self.centre is None else (X - self.centre) * self.scale
        return np.maximum(rows @ self.first.T + self.first_bias, 0) @ self.second.T + self.second_bias

    def in_c(self, data: Data, precision: str) -> bytes:
        """Return the C; int8 weights have one step a layer."""
        (first, first_unit), (second, second_unit) = (_weights(W, precision) for W in (self.first, self.second))
        arrays: dict[str, Array] = {"first": first, "second": second}
        arrays |= {"first_bias": self.first_bias.astype(np.float32), "second_bias": self.second_bias.astype(np.float32)}
        if self.centre is not None and self.scale is not None:
            arrays |= {"centre": self.centre.astype(np.float32), "scale": self.scale.astype(np.float32)}
        kinds = {name: "float" if values.dtype.kind == "f" else "int8_t" for name, values in arrays.items()}
        texts = [f"static const {kinds[name]} {name}[{v.size}] = {{\n{table(v)}\n}};" for name, v in arrays.items()]
        text = NETWORK.format(
            tables="\n".join(texts),
            kind="float" if data.real else "int",
            units=len(self.first),
            features=self.first.shape[1],
            outputs=len(self.second),
            row="x[i]" if self.centre is None else "(x[i] - centre[i]) * scale[i]",
            first_unit=float_literal(first_unit),
            second_unit=float_literal(second_unit),
            decision=decision(data),
        )
        return text.encode()


def _weights(W: Array, precision: str) -> tuple[Array, float]:
    if precision == "float32":
        return W.astype(np.float32), 1.0
    step = float(np.abs(W).max()) / 127 or 1.0
    return np.rint(W / step).astype(np.int8), step


@cache
def _network_bytes(features: int, outputs: int, units: int, precision: str, scaled: bool, real: bool) -> int:
    """Return the bytes of a network's C, by one of random weights: compilers would leave out tables of equal numbers."""
    draw = np.random.default_rng(0).normal
    ends = (draw(size=features), draw(size=features)) if scaled else (None, None)
    network = Network(
        draw(size=(units, features)), draw(size=units), draw(size=(outputs, units)), draw(size=outputs), *ends
    )
    y = np.zeros(1) if real else np.array([outputs - 1 if outputs > 1 else 1])
    return c_bytes(network.in_c(Data("", np.zeros((1, 1)), y, np.zeros((1, 1)), y), precision))


@dataclass(frozen=True)
class NetworkContender(Contender):
    """scikit-learn's MLP with one hidden layer, trained by Adam until the validation loss no longer falls."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return lengths of steps, penalties, shares of the units that fit, and precisions."""
        return {
            "rate": (3e-3, 1e-3, 1e-2),
            "alpha": (1e-4, 1e-2),
            "share": SHARES,
            "precision": ("int8", "float32"),
        }

    def units(self, data: Data, size: int, precision: str) -> int:
        """Return how many hidden units fit."""
        d, q = data.X.shape[1], data.outputs
        one = (d + q) * (1 if precision == "int8" else 4) + 4
        count = 8 + (size - _network_bytes(d, q, 8, precision, data.scaler is not None, data.real)) // one
        while count > 0 and _network_bytes(d, q, count, precision, data.scaler is not None, data.real) > size:
            count -= 1  # compilers round the length of some tables up
        if count < 1:
            raise TooFewBytesError(f"one hidden unit takes {one} bytes of {precision} tables besides the code, of {size}")
        return int(count)

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return the network."""
        units = max(int(settings["share"] * self.units(data, size, settings["precision"])), 1)
        scaler = None if data.scaler is None else clone(data.scaler).fit(data.X)
        rows = data.X if scaler is None else scaler.transform(data.X)
        middle, spread = (float(data.y.mean()), float(data.y.std())) if data.real else (0.0, 1.0)
        y = (data.y - middle) / spread if data.real else data.y
        kind = MLPRegressor if data.real else MLPClassifier
        steps = {"alpha": settings["alpha"], "learning_rate_init": settings["rate"], "random_state": 0}
        model = kind(hidden_layer_sizes=(units,), **steps)
        _train(model, rows, y, seconds, () if data.real else np.arange(int(data.y.max()) + 1))
        (first, second), (a, b) = model.coefs_, model.intercepts_
        centre, scale = (None, None) if scaler is None else (scaler.mean_, 1 / scaler.scale_)
        network = Network(first.T, a, spread * second.T, spread * b + middle, centre, scale)
        rounded = network
        if settings["precision"] == "int8":
            parts = (_weights(W, "int8") for W in (network.first, network.second))
            first, second = (codes * step for codes, step in parts)
            rounded = replace(network, first=first, second=second)

        def predict(X: Array) -> Array:
            found = rounded.outputs(np.asarray(X, dtype=np.float64))
            if data.real:
                return found[:, 0]
            return (found[:, 0] > 0).astype(int) if data.outputs == 1 else found.argmax(axis=1)

        return Shipped(network.in_c(data, settings["precision"]), predict, {"units": units})


def _train(model: Any, X: Array, y: Array, seconds: float, classes: Any) -> None:
    """Go through the rows until the time is over or the error on a tenth of them has not fallen for ten passes."""
    end, order = perf_counter() + seconds, np.random.default_rng(2).permutation(len(X))
    watched, rest = order[: max(len(X) // 10, 1)], order[max(len(X) // 10, 1) :]
    given = {} if len(classes) == 0 else {"classes": classes}
    best, since, kept = -np.inf, 0, None
    while perf_counter() < end and since < 10:
        model.partial_fit(X[rest], y[rest], **given)
        score = model.score(X[watched], y[watched])
        since += 1
        if score > best:
            best, since, kept = score, 0, ([W.copy() for W in model.coefs_], [b.copy() for b in model.intercepts_])
    if kept is not None:
        model.coefs_, model.intercepts_ = kept
