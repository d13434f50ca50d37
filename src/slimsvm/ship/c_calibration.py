"""Probabilities in exported C: tables and the body of a function from scores to the probabilities of all classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..calibration import LEAST, Calibration
from .artefact import Array
from .c_decisions import function
from .literals import as_float32, float_literal


@dataclass(frozen=True)
class MapCode:
    """The C code of one kind of map: tables, constants, and the probability of the only score or of score k."""

    tables: Callable[[Any], dict[str, Array]]
    constants: Callable[[Any], dict[str, float]]
    #: statements before the loop over scores, an expression of scores[k], and whether it calls expf
    before: tuple[str, ...]
    probability: str
    exponential: bool


def _interpolation() -> str:
    """Return the function that reads a rising curve at a score."""
    return function(
        "static float curve(float score, int k)",
        [
            "int i = knot_starts[k];",
            "const int last = knot_starts[k + 1] - 1;",
            "if (!(score > knot_scores[i]))",
            "    return knot_values[i];",
            "while (i < last && score >= knot_scores[i + 1])",
            "    i++;",
            "if (i == last)",
            "    return knot_values[last];",
            "const float share = (score - knot_scores[i]) / (knot_scores[i + 1] - knot_scores[i]);",
            "return knot_values[i] + share * (knot_values[i + 1] - knot_values[i]);",
        ],
    )


LOGISTIC = "1 / (1 + expf(-({})))"
#: a softmax: the probabilities are divided by their sum afterwards; the largest score is subtracted against overflow
SOFTMAX = ("float top = scores[0];", "for (int k = 1; k < SCORES; k++)", "    top = scores[k] > top ? scores[k] : top;")

TWO_SIDED = [
    "proba[1] = proba[0] < LEAST ? LEAST : proba[0] > 1 - LEAST ? 1 - LEAST : proba[0];",
    "proba[0] = 1 - proba[1];",
]
NORMALISED = [
    "float sum = 0;",
    "for (int k = 0; k < CLASSES; k++) {",
    "    proba[k] = proba[k] < LEAST ? LEAST : proba[k] > 1 - LEAST ? 1 - LEAST : proba[k];",
    "    sum += proba[k];",
    "}",
    "for (int k = 0; k < CLASSES; k++)",
    "    proba[k] /= sum;",
]


def _isotonic_tables(calibration: Any) -> dict[str, Array]:
    return {
        "knot_scores": as_float32(calibration.scores, "calibration"),
        "knot_values": as_float32(calibration.values, "calibration"),
        "knot_starts": calibration.starts.astype(np.int32),
    }


def _sigmoid_tables(calibration: Any) -> dict[str, Array]:
    return {name: as_float32(getattr(calibration, name), "calibration") for name in ("slope", "shift")}


def _no_tables(_: Any) -> dict[str, Array]:
    return {}


def _no_constants(_: Any) -> dict[str, float]:
    return {}


def _temperature(calibration: Any) -> dict[str, float]:
    return {"TEMPERATURE": calibration.temperature}


_SIGMOID = MapCode(_sigmoid_tables, _no_constants, (), LOGISTIC.format("slope[k] * scores[k] + shift[k]"), True)
_ISOTONIC = MapCode(_isotonic_tables, _no_constants, (), "curve(scores[k], k)", False)
#: by name and whether there are two classes
CODE: dict[tuple[str, bool], MapCode] = {
    ("sigmoid", True): _SIGMOID,
    ("sigmoid", False): _SIGMOID,
    ("isotonic", True): _ISOTONIC,
    ("isotonic", False): _ISOTONIC,
    ("temperature", True): MapCode(_no_tables, _temperature, (), LOGISTIC.format("scores[k] / TEMPERATURE"), True),
    ("temperature", False): MapCode(_no_tables, _temperature, SOFTMAX, "expf((scores[k] - top) / TEMPERATURE)", True),
}


def map_code(calibration: Calibration, n_classes: int) -> MapCode:
    """Return the C code of a map."""
    return CODE[calibration.name, n_classes == 2]


def constants(calibration: Calibration, n_classes: int) -> list[str]:
    """Return the constants of the map's functions."""
    own = map_code(calibration, n_classes).constants(calibration)
    return [f"#define {name} {float_literal(value)}" for name, value in {"LEAST": LEAST, **own}.items()]


def functions(calibration: Calibration, n_classes: int, prefix: str) -> list[str]:
    """Return the functions of probabilities, and `predict` by the largest of them."""
    code, two = map_code(calibration, n_classes), n_classes == 2
    body = [
        "float scores[SCORES];",
        f"{prefix}_scores(x, scores);",
        *code.before,
        "for (int k = 0; k < SCORES; k++)",
        f"    proba[k] = {code.probability};",
        *(TWO_SIDED if two else NORMALISED),
    ]
    predict = [
        "int best = 0;",
        "float proba[CLASSES];",
        f"{prefix}_proba(x, proba);",
        "for (int k = 1; k < CLASSES; k++)",
        "    if (proba[k] > proba[best])",
        "        best = k;",
        "return best;",
    ]
    curve = [_interpolation()] if calibration.name == "isotonic" else []
    return [
        *curve,
        function(f"void {prefix}_proba(const float *x, float *proba)", body),
        function(f"int {prefix}_predict(const float *x)", predict),
    ]
