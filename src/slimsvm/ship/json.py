"""JSON: the model as plain numbers in double precision, for programs of one's own and for `slimsvm.runtime`.

    {"format": "slimsvm", "version": 1, "kernel": {"name", "gamma", ...}, "coding": {"name", ...}, "classes": [...],
     "scaling": null or {"centre", "scale", "low", "high"}, "points": [[...]], "coef": [[...]], "bias": [...]}

f(x) = sum_j k(clip((x - centre) * scale, low, high), points_j) coef_j + bias. With the coding "ovr" the largest output is
that of the class, with "ovo" outputs are of pairs of classes that vote; two classes have one output, above 0 for the
second.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..multiclass import CODINGS
from .artefact import Array, Artefact, Scaling
from .formulas import formula_of

VERSION = 1


@dataclass(frozen=True)
class JSONExporter:
    """One JSON object."""

    ending: ClassVar[str] = ".json"

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:  # noqa: ARG002
        """The file."""
        formula_of(artefact, "JSON")
        a = artefact if artefact.size else artefact.compact()  # an empty list would not tell the number of features
        coding = {"name": a.coding.name} | {k: v for k, v in asdict(a.coding).items() if k != "n_classes"}
        document = {
            "format": "slimsvm",
            "version": VERSION,
            "kernel": {"name": a.kernel, **a.parameters},
            "coding": coding,
            "classes": a.classes.tolist(),
            "scaling": None if a.scaling is None else _scaling_entry(a.scaling),
            "points": a.points.tolist(),
            "coef": a.coef.tolist(),
            "bias": a.bias.tolist(),
        }
        return {self.ending: (json.dumps(document, allow_nan=False) + "\n").encode()}


def _scaling_entry(scaling: Scaling) -> dict[str, Any]:
    """The arrays of a scaling; null stands for no end."""
    entry: dict[str, Any] = {"centre": scaling.centre.tolist(), "scale": scaling.scale.tolist()}
    for name, ends in (("low", scaling.low), ("high", scaling.high)):
        entry[name] = [end if np.isfinite(end) else None for end in ends.tolist()]
    return entry


def read_json(path: str | os.PathLike[str]) -> Artefact:
    """The artefact in a JSON file that slimsvm wrote."""
    try:
        return _artefact(json.loads(Path(path).read_bytes()))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"cannot read {os.fspath(path)!r} as a model that slimsvm exported to JSON: {error}") from error


def _artefact(document: Any) -> Artefact:
    if not isinstance(document, dict) or document.get("format") != "slimsvm":
        raise ValueError('it is not an object with "format": "slimsvm"')
    if document["version"] > VERSION:
        raise ValueError(f"it is of version {document['version']}, and this slimsvm reads {VERSION}; install a newer one")
    kernel, coding = dict(document["kernel"]), dict(document["coding"])
    points, coef, bias = (np.asarray(document[name], dtype=np.float64) for name in ("points", "coef", "bias"))
    classes = np.asarray(document["classes"])
    if points.ndim != 2 or coef.shape != (points.shape[0], bias.size):
        raise ValueError(
            f"points of shape {points.shape}, coef of {coef.shape} and bias of {bias.shape} do not fit together"
        )
    return Artefact(
        kernel.pop("name"),
        kernel,
        points,
        coef,
        bias,
        CODINGS[coding.pop("name")](classes.size, **coding),
        classes,
        _scaling(document["scaling"]),
    )


def _scaling(entry: Any) -> Scaling | None:
    if entry is None:
        return None
    return Scaling(
        np.asarray(entry["centre"], dtype=np.float64),
        np.asarray(entry["scale"], dtype=np.float64),
        _ends(entry["low"], -np.inf),
        _ends(entry["high"], np.inf),
    )


def _ends(values: list[float | None], none: float) -> Array:
    return np.array([none if value is None else value for value in values], dtype=np.float64)
