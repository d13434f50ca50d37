"""Neural networks of one or two hidden layers as contenders, with weights of 4 or 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .base import SHARES, Array, Contender, Data, Shipped, decision
from .descent import Descent, Parameters, Prepared, codes_in_c, in_c, loss_gradient, most_within, prediction, row_in_c

LAYER = """    float {name}[{units}];
    for (int j = 0; j < {units}; j++) {{
        float s = 0;
        for (int i = 0; i < {inputs}; i++)
            s += ({row}) * {table}(j * {inputs} + i);
        s = s * {table}_step[j] + {table}_bias[j];
        {name}[j] = {end};
    }}
"""
NETWORK = """#include <stdint.h>
{tables}
{kind} model_predict(const float *x)
{{
{layers}{decision}
}}
"""


def outputs_of(parameters: Parameters, X: Array) -> list[Array]:
    """Return the values of each layer: the rows, the hidden units, the outputs."""
    layers, count = [X], len(parameters) // 2
    for number in range(count):
        values = layers[-1] @ parameters[f"w{number}"] + parameters[f"b{number}"]
        layers.append(np.maximum(values, 0) if number < count - 1 else values)
    return layers


def gradients_of(parameters: Parameters, layers: Sequence[Array], slope: Array) -> Parameters:
    """Return the gradients from that of the outputs, by backpropagation."""
    found: Parameters = {}
    for number in reversed(range(len(parameters) // 2)):
        found |= {f"w{number}": layers[number].T @ slope, f"b{number}": slope.sum(axis=0)}
        slope = (slope @ parameters[f"w{number}"].T) * (layers[number] > 0)
    return found


def network_in_c(data: Data, prepared: Prepared, parameters: Parameters, bits: int) -> bytes:
    """Return the C. The centre of the rows and the units of the targets are in the biases and the last steps."""
    scales, row = row_in_c(prepared)
    count, tables, layers, name = len(parameters) // 2, [scales] if scales else [], [], ""
    for number in range(count):
        W, bias = parameters[f"w{number}"], parameters[f"b{number}"].astype(np.float64)
        if number == 0:
            bias = bias - (prepared.centre * (1.0 if prepared.scale is None else prepared.scale)) @ W
        if number == count - 1 and data.real:
            W, bias = W * prepared.spread, bias * prepared.spread + prepared.middle
        tables += [codes_in_c(f"w{number}", W, bits), in_c(f"w{number}_bias", bias.astype(np.float32))]
        last = number == count - 1
        layer = {"row": row if number == 0 else f"{name}[i]", "end": "s" if last else "s > 0 ? s : 0"}
        name = "out" if last else f"hidden{number}"
        layers.append(LAYER.format(name=name, units=W.shape[1], inputs=W.shape[0], table=f"w{number}", **layer))
    text = NETWORK.format(
        tables="\n".join(tables), kind="float" if data.real else "int", layers="".join(layers), decision=decision(data)
    )
    return text.encode()


def random_network(features: int, units: int, hidden: int, outputs: int) -> Parameters:
    """Return He's initial weights, with biases of 0."""
    rng, widths = np.random.default_rng(0), [features, *[units] * hidden, outputs]
    found: Parameters = {}
    for number, (before, after) in enumerate(pairwise(widths)):
        found[f"w{number}"] = (rng.normal(size=(before, after)) * np.sqrt(2 / before)).astype(np.float32)
        found[f"b{number}"] = np.zeros(after, np.float32)
    return found


@dataclass(frozen=True)
class NetworkContender(Contender):
    """Rectified units, trained by AdamW with the rounding of the weights in the loop."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return bits of the weights, hidden layers, lengths of steps, penalties, and shares of the units that fit."""
        return {"bits": (4, 8), "hidden": (1, 2), "rate": (5e-3, 2e-3, 1.5e-2), "decay": (1e-2, 1e-4, 0.1), "share": SHARES}

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return the network."""
        prepared, bits, (d, q) = Prepared.of(data), settings["bits"], (data.X.shape[1], data.outputs)

        def source(units: int) -> bytes:
            return network_in_c(data, prepared, random_network(d, units, settings["hidden"], q), bits)

        units = max(int(settings["share"] * most_within(size, source, "hidden unit")), 1)
        start = random_network(d, units, settings["hidden"], q)
        tables = {name: bits for name in start if name.startswith("w")}

        def gradients(parameters: Parameters, rows: Array, _: float) -> Parameters:
            layers = outputs_of(parameters, prepared.X[rows])
            return gradients_of(parameters, layers, loss_gradient(data, layers[-1], prepared.y[rows]))

        found = Descent(start, tables, settings["rate"], settings["decay"]).run(gradients, len(data.X), seconds)

        def predict(X: Array) -> Array:
            outputs = outputs_of(found, prepared.inside(X))[-1]
            return prediction(data, outputs * prepared.spread + prepared.middle)

        return Shipped(network_in_c(data, prepared, found, bits), predict, {"units": units})
