"""JSON: the model as plain numbers in double precision, for your own programs and for `slimsvm.runtime`.

    {"format": "slimsvm", "version": 2, "kernel": {"name", "gamma", ...}, "goal": {"name", ...}, "classes": [...],
     "scaling": null or {"centre", "scale", "low", "high"}, "points": [[...]], "coef": [[...]], "bias": [...],
     "calibration": null or {"name", ...}, "widths": null or [...], "names": [...], "projection": null or [[...]]}

Sparse points (version 4) are {"starts", "columns", "values", "features"}: the nonzeros of point j are at starts[j] to
before starts[j + 1] of columns and values, and columns are numbered from 0.

The errors of a regressor with intervals are {"sorted", "rows"}. The preparation of a table (version 5) has "columns", the
list of "steps" on a tape that begins with them, the places of the prepared row, "outputs", and the number of all columns,
"given" (`preparation_json`).

f(x) = sum_j k(clip((x - centre) * scale, low, high), points_j) coef_j + bias. Widths multiply gamma of each point; a file
without them is of version 2 and has no such entry. With a projection (version 5), a row for each feature, scaled rows are
multiplied by it. Names are those of the features; a model that knows none has no such
entry. With the goal "ovr" the class with the largest output is predicted. With "ovo" each output belongs to a pair of
classes, and the pairs vote. With "dag" the output of the first and the last remaining class removes one of them, until one
remains. Two classes have one output, above 0 for the second class. With "regression" outputs are the values of the targets;
with "novelty" the output is below 0 for novel rows; neither has classes. A calibration makes probabilities of
scores (`slimsvm.calibration`), and the class of the largest is predicted.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..calibration import CALIBRATIONS, Conformal, restored
from ..goals import GOALS, Goal, OneVsOne, Regression
from ..kernels.spec import check_parameters, spec_of
from ..scaling import Array, Scaling
from ..tables.program import Column, Preparation, Step
from ..tables.steps import STEPS
from ..text import short
from .artefact import Artefact
from .sparse import MOST_PLACES, SparsePoints, check_csr

#: tables of whole numbers; other tables are float64
WHOLE = {"inputs", "starts", "slots", "factors"}


def preparation_entry(preparation: Preparation) -> dict[str, Any]:
    """Return a preparation as an object."""
    columns = [
        {"position": each.position, "name": each.name, "kind": each.kind, "words": list(each.words)}
        for each in preparation.columns
    ]
    return {
        "given": preparation.given,
        "columns": columns,
        "steps": [_step_entry(step) for step in preparation.steps],
        "outputs": preparation.outputs.tolist(),
    }


def _step_entry(step: Step) -> dict[str, Any]:
    return {"kind": step.kind} | {field.name: _plain(getattr(step, field.name)) for field in fields(step)}


def _plain(value: Any) -> Any:
    """Return a table as lists, without infinities and NaN, which JSON does not have."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind != "f":
        return value.tolist()
    special = {np.inf: "inf", -np.inf: "-inf"}
    cells = [None if np.isnan(each) else special.get(each, each) for each in value.ravel().tolist()]
    width = value.shape[-1]
    return cells if value.ndim == 1 else [cells[row * width : (row + 1) * width] for row in range(value.shape[0])]


def read_preparation(entry: Any) -> Preparation:
    """Return the preparation of an object; `check` finds parts that do not fit together."""
    try:
        columns = tuple(
            Column(_count(each["position"]), each["name"], each["kind"], tuple(each["words"])) for each in entry["columns"]
        )
        steps = tuple(_read_step(each) for each in entry["steps"])
        return Preparation(columns, steps, _table("inputs", entry["outputs"]), _count(entry["given"]))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"its preparation is not one that slimsvm wrote: {type(error).__name__} {error}") from error


def _read_step(entry: Any) -> Step:
    kind = STEPS.get(entry["kind"])
    if kind is None:
        raise ValueError(f"it has a step of the kind {short(entry['kind'])}; there are {sorted(STEPS)}")
    values = {}
    for field in fields(kind):
        value, wanted = entry[field.name], str(field.type)
        values[field.name] = _table(field.name, value) if wanted == "Array" else value
        if wanted != "Array" and type(value).__name__ != wanted:
            raise ValueError(f"a step {kind.kind!r} has {short(value)} for {field.name}")
    return kind(**values)


def _table(name: str, values: Any) -> np.ndarray:
    """Return lists of numbers as a table."""
    if not isinstance(values, list):
        raise ValueError(f"it has {short(values)} for a table {name!r}")
    if name in WHOLE:
        if not all(type(value) is int and 0 <= value < 1 << 31 for value in values):
            raise ValueError(f"a table {name!r} has other values than places")
        return np.array(values, dtype=np.intp)
    rows = values if values and isinstance(values[0], list) else [values]
    if not all(isinstance(row, list) and len(row) == len(rows[0]) and all(map(_is_number, row)) for row in rows):
        raise ValueError(f"a table {name!r} has other values than numbers")
    table = np.array([[np.nan if value is None else float(value) for value in row] for row in rows])
    return table if rows is values else table[0]


def _is_number(value: Any) -> bool:
    return value is None or type(value) in (int, float) or value in ("inf", "-inf")


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError(f"it has {short(value)} for a number of columns")
    return value


#: the lists of sparse points
SPARSE = ("starts", "columns", "values")
#: version 3 has widths, version 4 has sparse points, and version 5 a projection or the preparation of a table
VERSION = 5


@dataclass(frozen=True)
class JSONExporter:
    """One JSON object."""

    ending: ClassVar[str] = ".json"

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:  # noqa: ARG002
        """Return the file."""
        spec_of(artefact.kernel, "the JSON export")
        artefact.check_rows("the JSON export", tables=True)
        a = artefact if artefact.size else artefact.compact()  # an empty list does not have the number of features
        ties = {"break_ties": a.goal.break_ties} if type(a.goal) is OneVsOne else {}
        document = {
            "format": "slimsvm",
            "version": _version(a),
            "kernel": {"name": a.kernel, **a.parameters},
            "goal": {"name": a.goal.name, **ties},
            "classes": a.classes.tolist(),
            "scaling": None if a.scaling is None else _scaling_entry(a.scaling),
            "points": _points_entry(a.points),
            "coef": a.coef.tolist(),
            "bias": a.bias.tolist(),
            "calibration": None if a.calibration is None else _calibration_entry(a.calibration),
        }
        document |= {} if a.widths is None else {"widths": a.widths.tolist()}
        document |= {} if a.projection is None else {"projection": a.projection.tolist()}
        document |= {"names": a.names} if a.names else {}
        document |= {} if a.spread is None else {"errors": {"sorted": a.spread.errors.tolist(), "rows": a.spread.rows}}
        document |= {} if a.preparation is None else {"preparation": preparation_entry(a.preparation)}
        return {self.ending: (json.dumps(document, allow_nan=False) + "\n").encode()}


def _version(a: Artefact) -> int:
    """Return the lowest version that holds the artefact: readers of version 2 would ignore widths."""
    if a.projection is not None or a.preparation is not None:
        return VERSION
    return 4 if isinstance(a.points, SparsePoints) else 2 if a.widths is None else 3


def _points_entry(points: Array | SparsePoints) -> Any:
    if not isinstance(points, SparsePoints):
        return points.tolist()
    lists = {name: getattr(points, name).tolist() for name in SPARSE}
    return lists | {"features": points.features}


def _scaling_entry(scaling: Scaling) -> dict[str, Any]:
    """Return the arrays of a scaling; null means no clipping."""
    entry: dict[str, Any] = {"centre": scaling.centre.tolist(), "scale": scaling.scale.tolist()}
    for name, ends in (("low", scaling.low), ("high", scaling.high)):
        entry[name] = [end if np.isfinite(end) else None for end in ends.tolist()]
    return entry


# Reading. Names and numbers of a file may end up in generated source, so all of them are checked here.


def read_json(path: str | os.PathLike[str]) -> Artefact:
    """Return the artefact in a JSON file that slimsvm wrote."""
    data = Path(path).read_bytes()
    try:
        return _artefact(json.loads(data, parse_constant=_refuse_constant))
    except RecursionError:
        reason: object = "it is nested too deeply"
    except (OverflowError, ValueError) as error:
        reason = error
    raise ValueError(f"cannot read {os.fspath(path)!r} as a model that slimsvm exported to JSON: {reason}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it has {name} for a number")


def _artefact(document: Any) -> Artefact:
    if not isinstance(document, dict) or document.get("format") != "slimsvm":
        raise ValueError('it is not an object with "format": "slimsvm"')
    version = _entry(document, "version", int)
    if version > VERSION:
        raise ValueError(f"it is of version {version}, and this slimsvm reads {VERSION}; install a newer one")
    kernel = dict(_entry(document, "kernel", dict))
    name = _entry(kernel, "name", str)
    del kernel["name"]
    whole = {parameter.name for parameter in spec_of(name, "slimsvm").parameters if parameter.whole}
    check_parameters(name, kernel)
    kernel = {each: value if each in whole else float(value) for each, value in kernel.items()}  # JSON may have 1 for 1.0
    classes = _classes(_entry(document, "classes", list))
    points, coef = _points(document), _numbers(document, "coef", 2)
    goal = _goal(_entry(document, "goal" if version > 1 else "coding", dict), classes.size, coef.shape[1])
    scaling = _scaling(document.get("scaling"))
    bias, calibration = _numbers(document, "bias", 1), _calibration(document.get("calibration"))
    widths = None if document.get("widths") is None else _numbers(document, "widths", 1)
    names = tuple(_entry(document, "names", list)) if document.get("names") is not None else ()
    preparation = None if document.get("preparation") is None else read_preparation(document["preparation"])
    projection = None if document.get("projection") is None else _numbers(document, "projection", 2)
    artefact = Artefact(
        name,
        kernel,
        points,
        coef,
        bias,
        goal,
        classes,
        scaling,
        calibration,
        widths,
        names,
        None,
        preparation,
        _spread(document),
        projection=projection,
    )
    artefact.check()
    return artefact.settled()


def _points(document: dict[str, Any]) -> Array | SparsePoints:
    """Return the points, dense or sparse."""
    entry = document.get("points")
    if not isinstance(entry, dict):
        return _numbers(document, "points", 2)
    features = _entry(entry, "features", int)
    starts, columns, values = _places(entry, "starts"), _places(entry, "columns"), _numbers(entry, "values", 1)
    check_csr(starts, columns, values.size, features)
    return SparsePoints.of(starts, columns, values, features)


def _places(entry: dict[str, Any], name: str) -> Array:
    """Return a list of places in other lists."""
    if not all(type(place) is int and 0 <= place < MOST_PLACES for place in _entry(entry, name, list)):
        raise ValueError(f"the {name} of its points are not all places in a list")
    return np.array(entry[name], dtype=np.int64)


def _entry(document: dict[str, Any], name: str, kind: type) -> Any:
    value = document.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"it has {short(value)} for {name!r}, which should be of type {kind.__name__}")
    return value


def _numbers(document: dict[str, Any], name: str, axes: int) -> Array:
    """Return a list of numbers, or of lists of equally many numbers, as an array."""
    values = _entry(document, name, list)
    rows = values if axes == 2 else [values]
    if not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        raise ValueError(f"its {name} are not rows of equal lengths")
    if not all(type(number) in (int, float) for row in rows for number in row):
        raise ValueError(f"its {name} are not all numbers")
    return np.array(values, dtype=np.float64).reshape(len(rows), -1 if rows else 0)[slice(None) if axes == 2 else 0]


def _classes(values: list[Any]) -> Array:
    kinds = {type(value) for value in values}
    if not (kinds <= {int, float} or kinds in ({str}, {bool})):
        raise ValueError(f"its classes are not all numbers, strings or truth values: {short(values)}")
    classes = np.array(values)
    if classes.dtype.kind not in "biufU" or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
        raise ValueError(f"its classes are not finite numbers of 64 bits: {short(values)}")
    return classes


def _goal(entry: dict[str, Any], n_classes: int, outputs: int) -> Goal:
    name = _entry(entry, "name", str)
    if name not in GOALS:
        raise ValueError(f"it has the goal {short(name)}; there are {sorted(GOALS)}")
    settings = {key: value for key, value in entry.items() if key != "name"}
    if name == OneVsOne.name and settings.keys() <= {"break_ties"} and isinstance(settings.get("break_ties", False), bool):
        return OneVsOne(n_classes, **settings)
    if settings:
        raise ValueError(f"it has a goal {name!r} with unknown settings {short(settings)}")
    if name == Regression.name:
        return Regression(outputs=outputs)
    return GOALS[name]() if GOALS[name].real else GOALS[name](n_classes)


def _calibration_entry(calibration: Any) -> dict[str, Any]:
    """Return the name and the numbers of a map to probabilities."""
    values = {field.name: np.asarray(getattr(calibration, field.name)).tolist() for field in fields(calibration)}
    return {"name": calibration.name, **values}


def _calibration(entry: Any) -> Any:
    if entry is None:
        return None
    if not isinstance(entry, dict) or entry.get("name") not in CALIBRATIONS:
        raise ValueError(f"it has {short(entry)} for 'calibration'; there are {sorted(CALIBRATIONS)}")
    listed = {name: value if isinstance(value, list) else [value] for name, value in entry.items()}
    names = [field.name for field in fields(CALIBRATIONS[entry["name"]])]
    return restored(entry["name"], {name: _numbers(listed, name, 1) for name in names})


def _spread(document: dict[str, Any]) -> Conformal | None:
    if document.get("errors") is None:
        return None
    entry = _entry(document, "errors", dict)
    return Conformal(_numbers(entry, "sorted", 1), _entry(entry, "rows", int))


def _scaling(entry: Any) -> Scaling | None:
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ValueError(f"it has {short(entry)} for 'scaling', which should be null or an object")
    centre, scale = (_numbers(entry, name, 1) for name in ("centre", "scale"))
    return Scaling(centre, scale, _ends(entry, "low", -np.inf), _ends(entry, "high", np.inf))


def _ends(entry: dict[str, Any], name: str, none: float) -> Array:
    values = _entry(entry, name, list)
    numbers = _numbers({name: [0.0 if value is None else value for value in values]}, name, 1)
    return np.where([value is None for value in values], none, numbers)
