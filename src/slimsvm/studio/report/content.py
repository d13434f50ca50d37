"""The content of the page as plain values: figures of every model, confusion matrices, sample rows and settings."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import confusion_matrix

from ...kernels import Array, Matrix
from ...ship.boards import in_words as in_words_on
from ...ship.source import artefact_of
from ..tradeoff.datasets import Split
from ..tradeoff.methods import FULL, in_words
from ..tradeoff.result import Tradeoff
from ..tradeoff.rows import Row, finished, settings_of
from ..tradeoff.summary import NOT_NEAR, Point, advice, clearly_worse, smallest_good, summarise, whole
from ..tradeoff.tasks import TaskKind, task_of_row

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


#: classes up to which confusion matrices are shown
MOST_CLASSES = 30
#: sample rows in the page, and numbers in all of them
SAMPLES, SAMPLE_NUMBERS = 40, 20_000
#: test rows at most whose predicted values are drawn against their targets
MOST_PAIRS = 200
#: verdicts of a novelty detector, and what the page calls them
VERDICTS, VERDICT_NAMES = np.array([-1, 1]), ("novel", "usual")
#: the sides of images that can be drawn in the page
SIDES = range(8, 33)


@dataclass(frozen=True)
class Study:
    """The rows of one study with its data and models."""

    rows: Sequence[Row]
    result: Tradeoff
    split: Split  # of the first seed
    method: str  # the one that the page opens with
    title: str
    target: str | None = None  # a processor on which models of the method are measured

    @cached_property
    def on_board(self) -> list[list[str]]:
        """What the models of the method take on the processor, in words."""
        if self.target is None:
            return []
        rows = self.split.X_test[:4]
        dense = rows.toarray() if issparse(rows) else rows
        models = [(point.size, self.model(point)) for point in self.points if point.method == self.method]
        return [
            [f"{whole(size)} support vectors on {self.target}, {form}", words]
            for size, model in models
            if model is not None
            for form, words in in_words_on(artefact_of(model), self.target, dense)
        ]

    @property
    def task(self) -> TaskKind:
        """What the models do."""
        return task_of_row(self.rows[-1])

    @cached_property
    def classes(self) -> Array:
        """The labels, sorted; the two verdicts of a novelty detector; nothing for regression."""
        if self.task.has_classes:
            return np.unique(np.concatenate([self.split.y, self.split.y_test]))
        return np.zeros(0) if self.task.has_labels else VERDICTS

    @property
    def class_names(self) -> list[str]:
        """What the page calls the classes."""
        return [str(label) for label in self.classes] if self.task.has_labels else list(VERDICT_NAMES)

    @cached_property
    def truth(self) -> Array | None:
        """What predictions for the test rows are compared with: labels, or the full model's verdicts if it was kept."""
        if self.task.has_labels:
            return self.split.y_test
        model = None if self.full is None else self.model(self.full)
        return None if model is None else model.predict(self.split.X_test)

    @property
    def names(self) -> list[str]:
        """The names of the features, as the models know them; nothing if they know none."""
        models = (self.model(point) for point in self.points)
        known = (getattr(model, "feature_names_in_", ()) for model in models if model is not None)
        return list(map(str, next(known, ())))

    @property
    def points(self) -> list[Point]:
        """The figures, a point for each method and budget."""
        return summarise(self.rows)

    @property
    def full(self) -> Point | None:
        """The full model."""
        return next((point for point in self.points if point.method == FULL), None)

    @property
    def chosen(self) -> Point | None:
        """The smallest good model of the method; the largest one if there are no validation errors."""
        mine = [point for point in self.points if point.method == self.method]
        budget = smallest_good(self.rows, self.method)
        return next((point for point in mine if point.budget == budget), mine[-1] if mine else self.full)

    def row(self, point: Point) -> Row:
        """Return the row of a point: that of the first seed, if there is one."""
        mine = [r for r in finished(self.rows) if (r["method"], r["budget"]) == (point.method, point.budget)]
        return next((row for row in mine if row["seed"] == self.seed), mine[0])

    def model(self, point: Point) -> Any:
        """Return the model of the first seed, or None: models of other seeds may have been trained on its test rows."""
        row = self.row(point)
        return self.result.model(row) if row["seed"] == self.seed else None

    @property
    def seed(self) -> int:
        """The first seed, which drew the test rows."""
        return self.rows[0]["seed"]


def key_of(point: Point) -> str:
    """Return the name of a point in the page."""
    return f"{point.method}/{point.budget or 'all'}"


def content(study: Study) -> dict[str, Any]:
    """Return the content of the page, except the models."""
    chosen, names = study.chosen, dict(zip(study.classes.tolist(), study.class_names, strict=True))
    return {
        "title": study.title,
        "method": study.method,
        "chosen": None if chosen is None else key_of(chosen),
        "by_validation": chosen is not None and chosen.validation_error is not None,
        "far": NOT_NEAR if chosen and study.full and clearly_worse(chosen, study.full) else "",
        "advice": advice(chosen, study.full) if chosen else "",
        "full": None if study.full is None else key_of(study.full),
        "task": study.task.name,
        "words": {name: getattr(study.task, name) for name in ("error", "quality", "sentence")},
        "classes": study.class_names,
        "labels": {exported_label(label): name for label, name in names.items()},
        "features": int(study.split.X.shape[1]),
        "names": study.names,
        "points": [_point(study, point) for point in study.points],
        "unfinished": [
            {name: row[name] for name in ("method", "budget", "seed", "status", "reason")}
            for row in study.rows
            if row not in finished(study.rows)
        ],
        "samples": samples(study.split.X_test, study.truth, names),
        "image": image_of(study.split.X),
        "facts": facts(study),
    }


def exported_label(label: Any) -> str:
    """Return a label as the JavaScript export writes it: True is 1, and 2.0 is 2."""
    return str(int(label)) if isinstance(label, bool | float) and float(label).is_integer() else str(label)


def _point(study: Study, point: Point) -> dict[str, Any]:
    row, model = study.row(point), study.model(point)
    return {
        **{name: _rounded(value) for name, value in asdict(point).items()},
        "key": key_of(point),
        "note": row["reason"],
        "path": [[_rounded(float(number)) for number in step.split(":")] for step in row["path"].split()],
        "confusion": None if model is None else confusion(model, study),
        "pairs": None if model is None else pairs(model, study),
    }


def _rounded(value: Any) -> Any:
    """Return whole numbers as they are, others with six digits, and None for one that is missing."""
    if not isinstance(value, float):
        return value
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.6g}")


def confusion(model: Any, study: Study) -> list[list[int]] | None:
    """Return the test rows by true and predicted class; None without classes or for many of them."""
    if not 0 < study.classes.size <= MOST_CLASSES or study.truth is None:
        return None
    return confusion_matrix(study.truth, model.predict(study.split.X_test), labels=study.classes).tolist()


def pairs(model: Any, study: Study) -> list[list[float]] | None:
    """Return the target and the predicted value of some test rows, evenly spaced by their targets; None for classes."""
    if study.classes.size:
        return None
    y = study.split.y_test
    rows = np.argsort(y, kind="stable")[np.linspace(0, y.size - 1, min(y.size, MOST_PAIRS)).astype(int)]
    values = zip(y[rows].tolist(), model.predict(study.split.X_test[rows]).tolist(), strict=True)
    return [[_rounded(float(target)), _rounded(value)] for target, value in values]


def samples(X: Matrix, labels: Array | None, names: Mapping[Any, str]) -> list[dict[str, Any]]:
    """Return some rows with their labels, every class in turn; labels that have no name are values."""
    count = min(SAMPLES, SAMPLE_NUMBERS // X.shape[1], X.shape[0])
    labels = np.full(X.shape[0], "") if labels is None else labels
    turns = np.zeros(X.shape[0], dtype=int)
    for label in names:
        mine = np.flatnonzero(labels == label)
        turns[mine] = np.arange(mine.size)
    rows = np.argsort(turns, kind="stable")[:count]
    dense = X[rows].toarray() if issparse(X) else X[rows]
    shown = [names.get(label) or (label if isinstance(label, str) else f"{label:.6g}") for label in labels[rows].tolist()]
    labelled = zip(dense.tolist(), shown, strict=True)
    return [{"row": [int(x) if x == int(x) else x for x in row], "label": label} for row, label in labelled]


def image_of(X: Matrix) -> dict[str, Any] | None:
    """Return the side and the largest value if rows look like square images: no negative numbers, one range for most."""
    side = isqrt(X.shape[1])
    if issparse(X) or side * side != X.shape[1] or side not in SIDES or X.min() < 0:
        return None
    tops = X.max(axis=0)
    return {"side": side, "top": float(tops.max())} if np.median(tops) >= 0.5 * tops.max() > 0 else None


def facts(study: Study) -> list[list[str]]:
    """Return data, settings and machine in words."""
    row, split = study.rows[-1], study.split
    return [
        ["Data", f"{row['data']} (fingerprint {row['fingerprint']})"],
        ["Rows", f"{split.y.size:,} for training and validation, {split.y_test.size:,} for testing"],
        ["Features", f"{split.X.shape[1]:,}{': ' * bool(study.names)}{', '.join(study.names)}"],
        *_targets(study),
        ["Settings", ", ".join(f"{name} = {value}" for name, value in settings_of(row).items()) or row["settings"]],
        *_methods(study),
        ["Seeds", _seeds(study)],
        *_others(study),
        [
            "Versions",
            f"slimsvm {row['slimsvm']}, scikit-learn {row['scikit_learn']}, NumPy {row['numpy']}, Python {row['python']}",
        ],
        ["Machine", f"{row['machine']}; threads: {row['threads']}"],
        *study.on_board,
    ]


def _targets(study: Study) -> list[list[str]]:
    """Return the classes or the values of the training rows, in words."""
    y = study.split.y
    if not study.task.has_labels:
        return [["Labels", "none: a model is compared with the full one"]]
    if not study.task.has_classes:
        return [["Targets", f"from {y.min():.6g} to {y.max():.6g}, mean {y.mean():.6g}, standard deviation {y.std():.6g}"]]
    counts = [f"{label}: {int((y == label).sum()):,}" for label in study.classes[:MOST_CLASSES]]
    return [["Classes", f"{study.classes.size:,}; training rows of each: {', '.join(counts)}"]]


def _methods(study: Study) -> list[list[str]]:
    names = dict.fromkeys(row["method"] for row in study.rows)
    return [[f"Method {name}", words] for name in names if (words := in_words(name))]


def _seeds(study: Study) -> str:
    seeds = list(dict.fromkeys(row["seed"] for row in study.rows))
    words = ", ".join(map(str, seeds))
    return words if len(seeds) == 1 else f"{words}; figures are means, models and confusion matrices are of seed {seeds[0]}"


def _others(study: Study) -> list[list[str]]:
    """Return that the file of the rows has further studies, which the page does not show."""
    count = len(study.result.rows) - len(study.rows)
    return [["Other runs", f"{count:,} in the same file, of other data or settings, are not shown"]] if count else []
