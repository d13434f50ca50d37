"""The content of the page as plain values: figures of every model, confusion matrices, sample rows and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import confusion_matrix

from ..kernels import Array, Matrix
from ..tradeoffs.methods import FULL
from ..tradeoffs.result import Tradeoff
from ..tradeoffs.rows import Row, finished, settings_of
from ..tradeoffs.split import Split
from ..tradeoffs.summary import Point, smallest_good, summarise
from ..tradeoffs.words import in_words

#: classes up to which confusion matrices are shown
MOST_CLASSES = 30
#: sample rows in the page, and numbers in all of them
SAMPLES, SAMPLE_NUMBERS = 40, 20_000
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

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return np.unique(np.concatenate([self.split.y, self.split.y_test]))

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
    chosen = study.chosen
    return {
        "title": study.title,
        "method": study.method,
        "chosen": None if chosen is None else key_of(chosen),
        "by_validation": chosen is not None and chosen.validation_error is not None,
        "full": None if study.full is None else key_of(study.full),
        "classes": [str(label) for label in study.classes],
        "features": int(study.split.X.shape[1]),
        "points": [_point(study, point) for point in study.points],
        "unfinished": [
            {name: row[name] for name in ("method", "budget", "seed", "status", "reason")}
            for row in study.rows
            if row not in finished(study.rows)
        ],
        "samples": samples(study.split),
        "image": image_of(study.split.X),
        "facts": facts(study),
    }


def _point(study: Study, point: Point) -> dict[str, Any]:
    row, model = study.row(point), study.model(point)
    return {
        **{name: _rounded(value) for name, value in asdict(point).items()},
        "key": key_of(point),
        "note": row["reason"],
        "path": [[_rounded(float(number)) for number in step.split(":")] for step in row["path"].split()],
        "confusion": None if model is None else confusion(model, study.split, study.classes),
    }


def _rounded(value: Any) -> Any:
    """Return whole numbers as they are, others with six digits, and None for one that is missing."""
    if not isinstance(value, float):
        return value
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.6g}")


def confusion(model: Any, split: Split, classes: Array) -> list[list[int]] | None:
    """Return the test rows by true and predicted class; None for many classes."""
    if classes.size > MOST_CLASSES:
        return None
    return confusion_matrix(split.y_test, model.predict(split.X_test), labels=classes).tolist()


def samples(split: Split) -> list[dict[str, Any]]:
    """Return some test rows with their labels, every class in turn."""
    count = min(SAMPLES, SAMPLE_NUMBERS // split.X_test.shape[1], split.y_test.size)
    turns = np.zeros(split.y_test.size, dtype=int)
    for label in np.unique(split.y_test):
        mine = np.flatnonzero(split.y_test == label)
        turns[mine] = np.arange(mine.size)
    rows = np.argsort(turns, kind="stable")[:count]
    dense = split.X_test[rows].toarray() if issparse(split.X_test) else split.X_test[rows]
    pairs = zip(dense.tolist(), split.y_test[rows], strict=True)
    return [{"row": [int(x) if x == int(x) else x for x in row], "label": str(label)} for row, label in pairs]


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
    counts = {str(label): int((split.y == label).sum()) for label in study.classes}
    shown = ", ".join(f"{label}: {count:,}" for label, count in list(counts.items())[:MOST_CLASSES])
    return [
        ["Data", f"{row['data']} (fingerprint {row['fingerprint']})"],
        ["Rows", f"{split.y.size:,} for training and validation, {split.y_test.size:,} for testing"],
        ["Features", f"{split.X.shape[1]:,}"],
        ["Classes", f"{study.classes.size:,}; training rows of each: {shown}"],
        ["Settings", ", ".join(f"{name} = {value}" for name, value in settings_of(row).items()) or row["settings"]],
        *_methods(study),
        ["Seeds", _seeds(study)],
        [
            "Versions",
            f"slimsvm {row['slimsvm']}, scikit-learn {row['scikit_learn']}, NumPy {row['numpy']}, Python {row['python']}",
        ],
        ["Machine", f"{row['machine']}; threads: {row['threads']}"],
    ]


def _methods(study: Study) -> list[list[str]]:
    names = dict.fromkeys(row["method"] for row in study.rows)
    return [[f"Method {name}", words] for name in names if (words := in_words(name))]


def _seeds(study: Study) -> str:
    seeds = list(dict.fromkeys(row["seed"] for row in study.rows))
    words = ", ".join(map(str, seeds))
    return words if len(seeds) == 1 else f"{words}; figures are means, models and confusion matrices are of seed {seeds[0]}"
