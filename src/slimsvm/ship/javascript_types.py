"""What an exported JavaScript module exports, declared for TypeScript."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..goals import Decision
from .artefact import Artefact
from .literals import label_literals, listing
from .preparation_javascript import declaration

ROW = """\
/** All features, or nonzeros only: from feature numbers, counted from 0, to values. */
export type Row =
  | ArrayLike<number>
  | ReadonlyMap<number, number>
  | { readonly indices: ArrayLike<number>; readonly values: ArrayLike<number> };
"""
TEXT = """\
/** A text. */
export type Row = string;
"""


def declarations(a: Artefact, stem: str) -> str:
    """Return the declarations of a module."""
    values = {Decision.VALUE: "number", Decision.VALUES: "number[]"}
    predicted = "Label" if a.classes.size else values.get(a.decision, "1 | -1")
    lines = [f"// Types of {json.dumps(stem)[1:-1]}: {a.summary}.", "", _row(a)]
    lines += [f"export declare const features: {a.features};"]
    if a.names:
        lines += [f"export declare const featureNames: {_tuple(map(json.dumps, a.names))};"]
    if a.classes.size:
        lines += [f"export declare const classes: {_tuple(label_literals(a.classes, json.dumps))};"]
        lines += ["export type Label = (typeof classes)[number];"]
    lines += [f"export declare function predict(row: Row): {predicted};"]
    lines += [] if a.decision in values else ["export declare function scores(row: Row): number[];"]
    lines += [] if a.calibration is None else ["export declare function proba(row: Row): number[];"]
    lines += [] if a.interval is None else ["export declare function interval(row: Row): [number, number];"]
    return "\n".join([*lines, ""])


def _row(a: Artefact) -> str:
    if a.preparation is not None:
        return declaration(a.preparation)
    return ROW if a.words is None else TEXT


def _tuple(words: Iterable[str]) -> str:
    return f"readonly [\n    {listing(words)}\n]"
