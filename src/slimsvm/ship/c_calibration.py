"""Probabilities in exported C: tables and the body of a function from scores to the probabilities of all classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..calibration import LEAST, Calibration
from .artefact import Array
from .c_decisions import Naming, function
from .literals import as_float32, float_literal


@dataclass(frozen=True)
class MapCode:
    """The C code of one kind of map: the probability of score k, and the tables and constants in it."""

    probability: str  # an expression of scores[k]
    tables: Callable[[Any], dict[str, Array]] = lambda _: {}
    constants: Callable[[Any], dict[str, float]] = lambda _: {}
    before: tuple[str, ...] = ()  # statements before the loop over scores

    @property
    def exponential(self) -> bool:
        """Whether the code calls expf."""
        return "expf" in self.probability


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


def _temperature(calibration: Any) -> dict[str, float]:
    return {"TEMPERATURE": calibration.temperature}


#: by the name of the map; "softmax" is the temperature of three classes or more
CODE = {
    "sigmoid": MapCode(LOGISTIC.format("slope[k] * scores[k] + shift[k]"), _sigmoid_tables),
    "isotonic": MapCode("curve(scores[k], k)", _isotonic_tables),
    "temperature": MapCode(LOGISTIC.format("scores[k] / TEMPERATURE"), constants=_temperature),
    "softmax": MapCode("expf((scores[k] - top) / TEMPERATURE)", constants=_temperature, before=SOFTMAX),
}


def map_code(calibration: Calibration, n_classes: int) -> MapCode:
    """Return the C code of a map."""
    return CODE["softmax" if calibration.name == "temperature" and n_classes > 2 else calibration.name]


def constants(calibration: Calibration, n_classes: int) -> list[str]:
    """Return the constants of the map's functions."""
    own = map_code(calibration, n_classes).constants(calibration)
    return [f"#define {name} {float_literal(value)}" for name, value in {"LEAST": LEAST, **own}.items()]


def functions(calibration: Calibration, n_classes: int, names: Naming) -> list[str]:
    """Return the functions of probabilities, and `predict` by the largest of them."""
    code, two = map_code(calibration, n_classes), n_classes == 2
    body = [
        "float scores[SCORES];",
        f"{names.prefix}_scores(x, scores);",
        *code.before,
        "for (int k = 0; k < SCORES; k++)",
        f"    proba[k] = {code.probability};",
        *(TWO_SIDED if two else NORMALISED),
    ]
    predict = [
        "int best = 0;",
        "float proba[CLASSES];",
        f"{names.prefix}_proba(x, proba);",
        "for (int k = 1; k < CLASSES; k++)",
        "    if (proba[k] > proba[best])",
        "        best = k;",
        "return best;",
    ]
    curve = [_interpolation()] if calibration.name == "isotonic" else []
    return [
        *curve,
        function(names.head("void", "proba", "proba"), body),
        function(names.head("int", "predict"), predict),
    ]
