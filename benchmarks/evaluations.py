"""Measure test error against kernel evaluations for each trainer (Cotter, Shalev-Shwartz & Srebro 2012, figure 2).

python -m benchmarks.evaluations --plot docs/evaluations.svg > evaluations.jsonl      (needs the extra: slimsvm[plots])
python -m benchmarks.evaluations --rows evaluations.jsonl --plot docs/evaluations.svg      (the picture alone)

Each point is a separate training run with twice the steps of the one before. No kernel rows are cached, so that evaluations
mean the same for all trainers. lambda = 1/n, which is C = 1; the kernel is the paper's on mnist8
(2 sigma^2 = 25) and reuters_moneyfx (0.5), and 2 sigma^2 = 20 on a9a, where our text of the paper has lost its own.
Of these trainers only smo has a bias here, since pegasos, sdca and perceptron have none.

All responses are kept up to date here, so a row with a sufficient margin costs Pegasos and SDCA nothing. The paper counts n
evaluations for each of their steps: `paper_evaluations`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import Problem, problem
from benchmarks.reproduce.figures import plain_numbers
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.model import Status
from slimsvm.trainers import TRAINERS

DATA = ("a9a", "mnist8", "reuters_moneyfx")
#: label -> trainer, settings, and the steps of the first point; the form of its paper has a label of its own
CONTENDERS: dict[str, tuple[str, dict[str, Any], int]] = {
    "sbp": ("sbp", {"bias": False}, 1),
    "sbp, paper": ("sbp", {"bias": False, "batch": 1}, 16),
    "smo": ("smo", {}, 64),
    "pegasos": ("pegasos", {}, 64),
    "pegasos, paper": ("pegasos", {"replace": True, "averaged": False}, 64),
    "sdca": ("sdca", {}, 64),
    "perceptron": ("perceptron", {}, 64),
    "smo, one pair": ("smo", {"working_set": 2}, 16),  # the slowest for its evaluations: it gets what time is left
}
#: trainers whose steps the paper counts with n evaluations each, whether a row moves or not
PAPER_COUNTS_STEPS = ("pegasos", "sdca")
#: settings by which a trainer would end before max_iter
ENDLESS = {"passes": 10**9, "gap": 0.0}
COUNTS = {"kernel_evaluations": "kernel evaluations", "paper_evaluations": "kernel evaluations as the paper counts them"}
#: MiB for kernel rows: none fits
NO_CACHE = 1e-9


def contender(label: str) -> Any:
    """Return the trainer of a label, which runs until max_iter or its tol."""
    name, settings, _ = CONTENDERS[label]
    fields = {field.name for field in dataclasses.fields(TRAINERS[name])}
    return TRAINERS[name](**{key: value for key, value in (ENDLESS | settings).items() if key in fields})


def train(p: Problem, label: str, steps: int) -> tuple[SlimSVC, dict[str, Any]]:
    """Return a model after so many steps, and its row."""
    settings: dict[str, Any] = {"gamma": p.gamma, "C": p.C, "cache_mb": NO_CACHE, "random_state": 0}
    start = perf_counter()
    model = SlimSVC(trainer=contender(label), max_iter=steps, **settings).fit(p.X, p.y)
    seconds = perf_counter() - start
    return model, {
        "benchmark": "evaluations",
        "data": p.name,
        "train_rows": p.X.shape[0],
        "constant_error": 1 - float(np.unique(p.y_test, return_counts=True)[1].max() / p.y_test.size),
        "trainer": label,
        "max_iter": steps,
        "kernel_evaluations": model.n_kernel_evals_,
        "paper_evaluations": p.X.shape[0] * steps if CONTENDERS[label][0] in PAPER_COUNTS_STEPS else model.n_kernel_evals_,
        "support_vectors": model.model_.size,
        "test_error": float(np.mean(model.predict(p.X_test) != p.y_test)),
        "seconds": seconds,
    }


def ladder(p: Problem, label: str, seconds: float, most: float) -> Iterator[dict[str, Any]]:
    """Yield rows with twice the steps each, until the trainer converges or the next run would pass a limit."""
    deadline, steps = perf_counter() + seconds, CONTENDERS[label][2]
    while True:
        start = perf_counter()
        model, row = train(p, label, steps)
        yield row
        end = perf_counter()
        if model.status_ is not Status.MAX_ITER or end + 2 * (end - start) > deadline or 2 * model.n_kernel_evals_ > most:
            return
        steps *= 2


def measure(data: list[str], labels: list[str], seconds: float, most: float) -> list[dict[str, Any]]:
    """Return the rows of all ladders, printed as they come; each ladder gets an equal share of the remaining time."""
    rows, deadline, left = [], perf_counter() + seconds, len(data) * len(labels)
    for name in data:
        p = problem(name)
        for label in labels:
            for row in ladder(p, label, (deadline - perf_counter()) / left, most):
                line(**row)
                rows.append(row)
            left -= 1
    return rows


def plot(rows: list[dict[str, Any]], output: str) -> None:
    """Draw a column of panels for each data set: evaluations as made, and as the paper counts them."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "slimsvm", "font.size": 11}
    data = list(dict.fromkeys(row["data"] for row in rows))
    figure, panels = plt.subplots(
        2, len(data), figsize=(4.6 * len(data), 7.6), layout="constrained", squeeze=False, sharex="col", sharey="col"
    )
    for line_of_panels, (key, words) in zip(panels, COUNTS.items(), strict=True):
        for name, axes in zip(data, line_of_panels, strict=True):
            draw([row for row in rows if row["data"] == name], key, axes)
            axes.set(xlabel=words, title=name)
        line_of_panels[0].set_ylabel("test error, %")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(output, metadata={"Date": None})


def draw(rows: list[dict[str, Any]], key: str, axes: Any) -> None:
    """Draw one panel, up to the error of a constant; the dotted line is one evaluation of all pairs of rows."""
    for number, label in enumerate(dict.fromkeys(row["trainer"] for row in rows)):
        points = [(row[key], 100 * row["test_error"]) for row in rows if row["trainer"] == label]
        style = "o--" if "," in label else "o-"
        axes.plot(*np.reshape(points, (-1, 2)).T, style, ms=3, color=f"C{number}", label=label)
    axes.axvline(rows[0]["train_rows"] ** 2, ls=":", color="0.5")
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(95 * min(row["test_error"] for row in rows), 100 * rows[0]["constant_error"])
    plain_numbers(axes)
    axes.grid(alpha=0.3)


def main() -> None:
    """Measure, or read earlier rows; then draw them where --plot names a file."""
    known = [label for label, (name, *_) in CONTENDERS.items() if name in TRAINERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--trainers", nargs="+", choices=known, default=known)
    parser.add_argument("--seconds", type=float, default=720, help="for all of it, about")
    parser.add_argument("--evaluations", type=float, default=1e10, help="at most, for one point")
    parser.add_argument("--rows", type=Path, help="JSON lines of an earlier run to draw, instead of a new one")
    parser.add_argument("--plot", help="the picture to write, such as docs/evaluations.svg")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.rows:
        rows = [json.loads(text) for text in options.rows.read_text().splitlines()]
    else:
        rows = measure(options.data, options.trainers, options.seconds, options.evaluations)
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
