"""From the fitted transformers of a Pipeline to a `Preparation`. Needs NumPy only: transformers may be read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .program import Preparation
from .steps import READERS
from .tape import Tape, name_of


def preparation_of(steps: Sequence[Any], given: int, names: tuple[str, ...] = ()) -> Preparation:
    """Return what transformers that follow each other do to rows of `given` columns; ValueError where one is unknown."""
    tape = Tape(given, ALL, names)
    places = list(range(given))
    for step in steps:
        places = tape.read(step, places)
    return tape.finished(places)


def flattened(steps: Sequence[Any]) -> list[Any]:
    """Return transformers that follow each other without Pipelines around them, and without those that do nothing."""
    flat: list[Any] = []
    for step in steps:
        if name_of(step) == "Pipeline":
            flat += flattened([inner for _, inner in step.steps])
        elif not isinstance(step, str | None):
            flat.append(step)
    return flat


def _read_pipeline(step: Any, places: list[int], tape: Tape) -> list[int]:
    for _, inner in step.steps:
        places = tape.read(inner, places)
    return places


def _read_columns(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add the parts of a ColumnTransformer in the order of their outputs."""
    written = []
    for name, transformer, _ in step.transformers_:
        chosen = [places[number] for number in np.asarray(step._transformer_to_input_indices[name], dtype=np.intp)]
        if isinstance(transformer, str) and transformer == "drop":
            continue
        if chosen:
            written.append((step.output_indices_[name].start, tape.read(transformer, chosen)))
    return [place for _, part in sorted(written, key=lambda entry: entry[0]) for place in part]


def _read_union(step: Any, places: list[int], tape: Tape) -> list[int]:
    if step.transformer_weights:
        raise ValueError("cannot ship a FeatureUnion with transformer_weights; put a scaler behind its parts")
    return [place for _, inner in step.transformer_list for place in tape.read(inner, places)]


ALL = READERS | {"Pipeline": _read_pipeline, "ColumnTransformer": _read_columns, "FeatureUnion": _read_union}
