"""The preparation of a table in JSON: columns, and steps with their tables by name; null is NaN."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..tables.program import Column, Preparation, Step
from ..tables.steps import STEPS
from ..text import short

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
