"""Cotter, Shalev-Shwartz & Srebro 2012, "The Kernelized Stochastic Batch Perceptron": figure 2, its terms and ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.early import NO_CACHE, after_draws, error_of, optimal_slack
from benchmarks.problems import problem
from benchmarks.reproduce.experiment import Cell, Claim, Experiment, Row, mean_by
from benchmarks.reproduce.figures import colors, plain_numbers
from slimsvm import SlimSVC
from slimsvm.kernels import RBF
from slimsvm.model import Status
from slimsvm.trainers import SBP, SDCA, SMO, Pegasos, Perceptron

#: passes over the rows by which a trainer would end before max_iter
ENDLESS = 10**9

DATA = {"a9a": "Adult", "reuters_moneyfx": "Reuters", "mnist8": "MNIST"}
#: multiples of n kernel evaluations at which errors are measured
MULTIPLES = (64, 256, 1024, 4096)
#: the perceptron of the paper, the last weights, on Adult alone: its second pass begins after these, and the paper says
#: what happens then
PLAIN = "perceptron, paper"
LATE = {("a9a", PLAIN): (16384, 32768)}
SEEDS = range(3)
#: our rounds, in which a draw is n evaluations; nu of the optimum is added to the paper's form
ROUNDS = {"sbp, paper": SBP(bias=False, batch=1), "sbp": SBP()}
#: trainers that the paper charges n evaluations for every step
CHARGED = {"pegasos, paper": Pegasos(passes=ENDLESS, gap=0.0, replace=True, averaged=False), "sdca": SDCA(passes=ENDLESS)}
#: trainers whose evaluations are counted
COUNTED = {
    "perceptron": Perceptron(passes=ENDLESS),
    PLAIN: Perceptron(passes=ENDLESS, averaged=False),
    "smo, one pair": SMO(working_set=2),
}
#: steps of the first model of those. Later ones are for this share of the evaluations, by the evaluations a step of the one
#: before, up to so many times or until one has made nearly as many as asked for
FEWEST, AIM, TRIES, NEARLY = 4, 0.96, 8, 0.9
#: times as many steps as before at most: the first steps may be cheap, and say little of those that follow
GROWTH = 8
#: trainers without chance
FIXED = ("smo, one pair",)


def cells() -> Iterator[Cell]:
    """Yield a cell for each data set, contender and seed."""
    for data in DATA:
        for label in (*ROUNDS, *CHARGED, *COUNTED):
            if label == PLAIN and (data, label) not in LATE:
                continue
            for seed in SEEDS[:1] if label in FIXED else SEEDS:
                yield {"data": data, "trainer": label, "seed": seed}


@cache
def signed(data: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a problem with its training and test labels as -1 and 1."""
    p = problem(data)
    positive = np.unique(p.y)[1]
    return p, np.where(p.y == positive, 1.0, -1.0), np.where(p.y_test == positive, 1.0, -1.0)


@cache
def known_nu(data: str) -> float:
    """Return nu of the optimum, as the paper takes it."""
    p, y, _ = signed(data)
    return optimal_slack(p.X, y, p.gamma, p.C)


def run(cell: Cell) -> Iterator[Row]:
    """Yield the test error after each number of evaluations."""
    data, label = cell["data"], cell["trainer"]
    multiples = (*MULTIPLES, *LATE.get((data, label), ()))
    models = rounds if label in ROUNDS else charged if label in CHARGED else counted
    for multiple, evaluations, steps, error in models(data, label, multiples, cell["seed"]):
        yield {"multiple": multiple, "evaluations": evaluations, "steps": steps, "test_error": round(error, 5)}


#: a multiple of n, kernel evaluations, steps and the test error then
Measured = Iterator[tuple[int, int, int, float]]


def rounds(data: str, label: str, multiples: tuple[int, ...], seed: int) -> Measured:
    """Yield the errors of one run of the batch perceptron on its way."""
    p, y, y_test = signed(data)
    trainer = replace(ROUNDS[label], C=p.C, nu=known_nu(data) if label == "sbp, paper" else None)
    runs = after_draws(trainer, RBF(p.gamma), p.X, y, multiples, seed)
    for multiple, (state, model) in zip(multiples, runs, strict=True):
        yield multiple, state.responses.rows.meter.evaluations, state.t, error_of(model, p.X_test, y_test)


def charged(data: str, label: str, multiples: tuple[int, ...], seed: int) -> Measured:
    """Yield the errors after as many steps as multiples; each is a training of its own."""
    for multiple in multiples:
        yield multiple, *measured(fit(data, CHARGED[label], multiple, seed), data)


def counted(data: str, label: str, multiples: tuple[int, ...], seed: int) -> Measured:
    """Yield the errors of models within the evaluations; each is a training of its own."""
    n, steps = problem(data).X.shape[0], FEWEST
    last = best = fit(data, COUNTED[label], steps, seed)
    for multiple in multiples:
        for _ in range(TRIES):
            made = last.n_kernel_evals_ / (multiple * n)
            if made <= 1:
                best = last
            if NEARLY <= made <= 1 or (made <= 1 and last.status_ is not Status.MAX_ITER):
                break
            steps = max(int(steps * min(AIM / made, GROWTH)), 1)
            last = fit(data, COUNTED[label], steps, seed)
        yield multiple, *measured(best, data)


def fit(data: str, trainer: Any, steps: int, seed: int) -> SlimSVC:
    """Return a model after so many steps, without a cache, so that evaluations mean the same for all."""
    p, _, _ = signed(data)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return SlimSVC(C=p.C, gamma=p.gamma, trainer=trainer, max_iter=steps, cache_mb=NO_CACHE, random_state=seed).fit(
            p.X, p.y
        )


def measured(model: SlimSVC, data: str) -> tuple[int, int, float]:
    """Return the evaluations and steps of a model, and its test error."""
    p, _, _ = signed(data)
    return model.n_kernel_evals_, model.n_iter_, float(np.mean(model.predict(p.X_test) != p.y_test))


def claims(rows: list[Row]) -> list[Claim]:
    """Return what the paper's text says of its figure 2."""
    means = mean_by(rows, ("data", "trainer", "multiple"), "test_error")
    error = {(data, trainer, int(multiple)): 100 * value for (data, trainer, multiple), value in means.items()}

    def listed(data: str, *labels: str) -> str:
        texts = (" / ".join(f"{error.get((data, label, m), np.nan):.2f}" for m in MULTIPLES) for label in labels)
        return "; ".join(f"{label} {text} %" for label, text in zip(labels, texts, strict=True))

    def wins(data: str, label: str, other: str, margin: float = 0.0) -> bool | None:
        pairs = [(error.get((data, label, m)), error.get((data, other, m))) for m in MULTIPLES]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        return all(a <= b + margin for a, b in known) if len(known) == len(MULTIPLES) else None

    def lacking(data: str, *labels: str) -> str:
        without = [label for label in labels if any((data, label, m) not in error for m in MULTIPLES)]
        return f"no rows yet of {'; '.join(without)}"

    def slower(data: str) -> bool | None:
        smo, sbp = (error.get((data, label, MULTIPLES[0])) for label in ("smo, one pair", "sbp, paper"))
        return None if smo is None or sbp is None else smo > sbp

    out = []
    for data, name in DATA.items():
        both = [wins(data, "sbp, paper", other, 0.1) for other in ("pegasos, paper", "sdca")]
        out.append(
            Claim.of(
                f"{name}: the SBP outperforms Pegasos and SDCA (known nu, n evaluations a step, no bias).",
                None if None in both else all(both),
                listed(data, "sbp, paper", "pegasos, paper", "sdca"),
                lacking(data, "sbp, paper", "pegasos, paper", "sdca"),
            )
        )
        out.append(
            Claim.of(
                f"{name}: SMO makes relatively little progress until a critical point.",
                slower(data),
                listed(data, "smo, one pair"),
                lacking(data, "smo, one pair", "sbp, paper"),
            )
        )
        out.append(
            Claim.of(
                f"{name}, our own terms: the default `sbp`, which is given C and not nu, is as good as the paper's form "
                "with the nu of the optimum (within half a point).",
                wins(data, "sbp", "sbp, paper", 0.5),
                listed(data, "sbp", "sbp, paper"),
                lacking(data, "sbp", "sbp, paper"),
            )
        )
    after = LATE["a9a", PLAIN]
    late = [error.get(("a9a", PLAIN, m), np.nan) for m in (MULTIPLES[-1], *after)]
    out.append(
        Claim.of(
            "On Adult the perceptron overfits after the first pass.",
            bool(max(late[1:]) > late[0]) if np.isfinite(late).all() else None,
            f"{' / '.join(f'{value:.2f}' for value in late)} % after {MULTIPLES[-1]:,}, {after[0]:,} and {after[1]:,} n",
            lacking("a9a", PLAIN),
        )
    )
    return out


def draw(rows: list[Row], file: Path) -> None:
    """Draw test error against evaluations in units of n."""
    import matplotlib.pyplot as plt

    means = mean_by(rows, ("data", "trainer", "multiple"), "test_error")
    data, color = list(dict.fromkeys(row["data"] for row in rows)), colors((*ROUNDS, *CHARGED, *COUNTED))
    figure, panels = plt.subplots(1, len(data), figsize=(4.2 * len(data), 3.8), layout="constrained", squeeze=False)
    for axes, name in zip(panels[0], data, strict=True):
        known = {row["trainer"] for row in rows if row["data"] == name}
        for label in (label for label in color if label in known):
            points = sorted((int(m), 100 * e) for (d, t, m), e in means.items() if (d, t) == (name, label))
            style = {"ls": "--" if "paper" in label else "-", "color": color[label]}
            axes.plot(*zip(*points, strict=True), marker="o", ms=3, label=label, **style)
        axes.set(xscale="log", yscale="log", title=name, xlabel="kernel evaluations / n", ylabel="test error, %")
        plain_numbers(axes)
        axes.legend(fontsize=8)
    figure.savefig(file, metadata={"Date": None})


def expected(cell: Cell) -> float:
    """Return the seconds of a cell, about; MNIST has the most rows and features."""
    seconds = {"sbp, paper": 25, "sbp": 10, "smo, one pair": 25, "perceptron": 15, PLAIN: 15}.get(cell["trainer"], 1)
    return seconds * (6 if cell["data"] == "mnist8" else 1)


EXPERIMENT = Experiment(
    "batch_perceptron",
    "Cotter, Shalev-Shwartz & Srebro 2012, figure 2: error against kernel evaluations",
    "On the paper's terms: one row a step, nu from the optimum, n evaluations charged for each step of SBP, Pegasos and "
    "SDCA, no bias, lambda = 1 / n. On ours: the default `sbp`, with a bias and C. Means of three seeds. 2 sigma^2 is 25 "
    "on MNIST and 0.5 on Reuters, as in the paper's table 2, and 20 on Adult, where our text of the paper has lost it. The "
    "wall-clock paragraph: `python -m benchmarks speed`.",
    ("data", "trainer", "seed", "multiple", "evaluations", "steps", "test_error"),
    cells,
    run,
    claims,
    draw,
    expected=expected,
)
