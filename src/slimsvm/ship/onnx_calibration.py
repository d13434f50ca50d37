"""Probabilities in exported ONNX models: the nodes from scores to the probabilities of all classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration import LEAST, Calibration

if TYPE_CHECKING:
    from .onnx import Graph


def add_probabilities(g: Graph, calibration: Calibration, scores: str, n_classes: int) -> str:
    """Add `probabilities` (n, k) to a graph, from scores (n, k), which are [-f, f] for two classes."""
    if n_classes == 2:
        scores = g.add("Gather", scores, g.constant("second", np.array([1])), axis=1)
    p = MAPS[calibration.name](g, calibration, scores, n_classes)
    least, most = (g.constant(f"p_{name}", np.array(end)) for name, end in (("least", LEAST), ("most", 1 - LEAST)))
    p = g.add("Min", g.add("Max", p, least), most)
    if n_classes == 2:
        return g.add("Concat", g.add("Sub", g.constant("certain", np.array(1.0)), p), p, name="probabilities", axis=1)
    total = g.add("ReduceSum", p, g.constant("classes_axis", np.array([1])), keepdims=1)
    return g.add("Div", p, total, name="probabilities")


def _sigmoid(g: Graph, calibration: Any, scores: str, n_classes: int) -> str:  # noqa: ARG001
    scaled = g.add("Mul", scores, g.constant("slope", calibration.slope))
    return g.add("Sigmoid", g.add("Add", scaled, g.constant("shift", calibration.shift)))


def _temperature(g: Graph, calibration: Any, scores: str, n_classes: int) -> str:
    scaled = g.add("Div", scores, g.constant("temperature", np.array(calibration.temperature)))
    return g.add("Sigmoid", scaled) if n_classes == 2 else g.add("Softmax", scaled, axis=1)


def _isotonic(g: Graph, calibration: Any, scores: str, n_classes: int) -> str:  # noqa: ARG001
    """Add the curve of each score: the value at its first knot, plus each piece's rise times the share passed."""
    found, zero = [], g.constant("none", np.array(0.0))
    for k in range(calibration.starts.size - 1):
        knots = slice(int(calibration.starts[k]), int(calibration.starts[k + 1]))
        x, y = calibration.scores[knots], calibration.values[knots]
        column = g.add("Gather", scores, g.constant(f"column_{k}", np.array([k])), axis=1)
        if x.size == 1:
            flat = g.add("Mul", column, zero)
            found.append(g.add("Add", flat, g.constant(f"base_{k}", y[:1])))
            continue
        passed = g.add("Div", g.add("Sub", column, g.constant(f"knots_{k}", x[:-1])), g.constant(f"widths_{k}", np.diff(x)))
        share = g.add("Min", g.add("Max", passed, zero), g.constant("all", np.array(1.0)))
        rises, base = g.constant(f"rises_{k}", np.diff(y)[:, None]), g.constant(f"base_{k}", y[:1])
        found.append(g.add("Gemm", share, rises, base))
    return found[0] if len(found) == 1 else g.add("Concat", *found, axis=1)


MAPS: dict[str, Callable[[Any, Any, str, int], str]] = {
    "sigmoid": _sigmoid,
    "isotonic": _isotonic,
    "temperature": _temperature,
}
