"""The model card: what the chosen model is, how good it is and how to use it, in Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from ..tradeoff.methods import FULL
from ..tradeoff.summary import Point, whole
from .content import Study, confusion, facts

HEAD = ("method", "support vectors", "bytes", "µs per row")
#: what a model does not know, by task
LIMITS = {
    "classify": "The model gives a class to every row, also to rows unlike any that it was trained on. Scores are not "
    "probabilities.",
    "regress": "The model gives a value to every row, also to rows unlike any that it was trained on, and does not say how "
    "sure it is.",
    "novelty": "The model was compared with the full model, not with rows that are known to be novel.",
}


def card(study: Study, page: str) -> str:
    """Return the card of the chosen model."""
    chosen = study.chosen
    parts = [
        f"# Model card: {escaped(study.title)}",
        f"A kernel machine on a budget, made by slimsvm. The interactive report is {escaped(page)}.",
        *([] if chosen is None else _chosen(study, chosen)),
        "## All models",
        table((*HEAD, study.task.error), [_cells(point) for point in study.points]),
        "Bytes are those of the constant tables of the float32 C export. Times are per row when all test rows are "
        "predicted at once on the machine below. Errors on test rows are means over the seeds, with standard errors.",
        "## Data and settings",
        table(("", ""), facts(study)),
        "## Limits",
        f"The figures hold for rows drawn as the test rows were. {LIMITS[study.task.name]}",
    ]
    return "\n\n".join(parts) + "\n"


def _chosen(study: Study, chosen: Point) -> list[str]:
    """Return the part about the chosen model."""
    rule = (
        "It is the smallest model whose validation error is within one standard error of the lowest; test rows had no part "
        "in this choice."
        if chosen.validation_error is not None
        else "There are no validation errors to choose by; it is the last model of its method."
    )
    lines = ["## Chosen model", _sentence(study, chosen), rule]
    if study.full is not None and chosen.method != FULL:
        lines.append(f"The full model: {_sentence(study, study.full)}")
    model = study.model(chosen)
    matrix = None if model is None else confusion(model, study)
    if matrix is not None:
        names = study.class_names
        rows = [(name, *map(str, counts)) for name, counts in zip(names, matrix, strict=True)]
        what = ("true class", "predicted class") if study.task.has_labels else ("the full model's verdict", "this model's")
        lines += [f"Test rows by {what[0]} (down) and {what[1]} (across):", table(("", *names), rows)]
    return lines


def _sentence(study: Study, point: Point) -> str:
    return (
        f"{escaped(point.method)}, {whole(point.size)} support vectors, {whole(point.bytes)} bytes, "
        f"{point.us:.3g} µs per row, {study.task.in_words(point.error)} (standard error {study.task.spread(point.se)})."
    )


def _cells(point: Point) -> tuple[str, ...]:
    error = f"{100 * point.error:.2f} % ± {100 * point.se:.2f}"
    return point.method, whole(point.size), whole(point.bytes), f"{point.us:.3g}", error


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of escaped cells."""
    lines = [map(escaped, head), ["---"] * len(head)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [*lines, *(map(escaped, row) for row in rows)])


def escaped(text: str) -> str:
    """Return a text that Markdown and HTML show as it is, on one line."""
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", html.escape(" ".join(str(text).split()), quote=False))
