"""What the papers mention and never print: randomised rules, the bias, refits, pruning, early ends; and the bound.

python -m benchmarks.ablations                a table of test errors, and docs/results/bound.svg
python -m benchmarks.ablations --data magic   of one data set, without the figure
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import Problem, problem, shortened
from benchmarks.reproduce.__main__ import draw_svg
from benchmarks.reproduce.experiment import RESULTS
from benchmarks.reproduce.paths import all_models, small_models
from slimsvm import SlimSVC
from slimsvm.model import Expansion
from slimsvm.papers.optimally_sparse import BIASES
from slimsvm.reducers import AggressiveSlant, Slant
from slimsvm.solvers.bias import fewest_errors
from slimsvm.trainers import BudgetL1

DATA = ("magic", "a8a", "ijcnn1")
#: the first rows that are learned from, of which the figure has fewer, and the first test rows
ROWS, FEWER, TEST_ROWS = 2000, 1000, 5000
#: vectors of the models of `slant` and its settings there; the budget B of `budget-l1`, its C times B as in the paper, and
#: the steps before the pruning
SIZES = (64, 256)
FINE: dict[str, Any] = {"eta": 0.25, "eps": 1 / 16}
BUDGET, BUDGET_COST, STEPS = 256, 10.0, (64, 256, 1024)
#: the C of the models in the figure
COSTS = (0.1, 1.0, 10.0)

#: words, vectors and the test error
Measured = tuple[str, int, float]


def signed(p: Problem, labels: np.ndarray) -> np.ndarray:
    """Return labels as -1 and +1."""
    return np.where(labels == np.unique(p.y)[1], 1.0, -1.0)


def slants(p: Problem, full: SlimSVC) -> Iterator[Measured]:
    """Yield models of `slant`: the sign or a random number added, the bias kept or learned, with a refit or without."""
    y = signed(p, p.y_test)

    def wrong(model: Expansion) -> float:
        return float(np.mean(y * model(p.X_test)[:, 0] <= 0))

    *_, analysed = all_models(full, p.X, p.y, Slant.paper(), [len(p.y)])
    shifted = np.clip(0.5 - y * analysed(p.X_test)[:, 0], 0, 1).mean()
    yield "slant, eta = eps = 1/2: the sign", analysed.size, wrong(analysed)
    yield "the same: Z from [-1/2, 1/2] added (expected)", analysed.size, float(shifted)
    for size in SIZES:
        for bias in BIASES:
            plain = Slant(**FINE, bias=bias, refit=False)
            for words, reducer in (("", plain), (", refit", replace(plain, refit=True))):
                models = small_models(full, p.X, p.y, reducer, [size])
                yield f"slant, at most {size} vectors: bias {bias}{words}", models[size].size, wrong(models[size])


def budgets(p: Problem) -> Iterator[Measured]:
    """Yield budget-L1 SVMs with C = 10 / B: the optimum, pruned, with a new bias, and after a number of steps."""

    def measured(words: str, svc: SlimSVC) -> Measured:
        return words, svc.model_.size, float(np.mean(svc.predict(p.X_test) != p.y_test))

    def fitted(trainer: BudgetL1) -> SlimSVC:
        C = BUDGET_COST / BUDGET
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return SlimSVC(C=C, gamma=p.gamma, trainer=replace(trainer, C=C)).fit(p.X, p.y)

    words = f"budget-l1, B = {BUDGET}"
    yield measured(f"{words}: the optimum", fitted(BudgetL1(budget=BUDGET)))
    few = fitted(BudgetL1(budget=BUDGET, prune=True))
    yield measured(f"{words}: pruned to B, bias kept", few)
    outputs = few.model_(p.X)[:, 0] - few.model_.bias[0]
    bias = fewest_errors(outputs, signed(p, p.y), np.ones(len(p.y)))
    few.model_ = replace(few.model_, bias=np.array([bias]))
    yield measured(f"{words}: pruned to B, bias of the fewest errors in training", few)
    for steps in STEPS:
        printed = fitted(BudgetL1.paper(B=BUDGET, iterations=steps))  # type: ignore[arg-type]
        yield measured(f"{words}: as printed, {steps:,} steps, pruned to B", printed)


def few_rows(name: str, count: int) -> Problem:
    """Return a problem with its first rows only."""
    p = shortened(problem(name), count)
    return replace(p, X_test=p.X_test[:TEST_ROWS], y_test=p.y_test[:TEST_ROWS])


def table(name: str) -> dict[str, tuple[int, float]]:
    """Return vectors and test errors of one data set."""
    p = few_rows(name, ROWS)
    full = SlimSVC(C=p.C, gamma=p.gamma).fit(p.X, p.y)
    rows = [("the SVM", full.model_.size, 1 - full.score(p.X_test, p.y_test)), *slants(p, full), *budgets(p)]
    return {words: (size, error) for words, size, error in rows}


def draw_bound(file: Path) -> None:
    """Draw the vectors of both variants of `slant`, at eta = eps = 1/2, against the bound 4 |w|^2."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    for color, name in enumerate(DATA):
        p, points = few_rows(name, FEWER), []
        for C in COSTS:
            full = SlimSVC(C=C, gamma=p.gamma).fit(p.X, p.y)
            w = full.model_
            norm = float(w.coef[:, 0] @ (w(w.points)[:, 0] - w.bias[0]))
            sizes = []
            for kind in (Slant, AggressiveSlant):
                *_, small = all_models(full, p.X, p.y, kind.paper(), [len(p.y)])
                sizes.append(small.size)
            if min(sizes):  # the kept bias alone is within 1/2 of all margin targets where C is small and a class is rare
                points.append((4 * norm, *sizes))
        bound, basic, aggressive = np.array(points).T
        axes.plot(bound, basic, "o-", color=f"C{color}", label=f"{name}, basic")
        axes.plot(bound, aggressive, "o--", mfc="white", color=f"C{color}", label=f"{name}, aggressive")
    axes.set(xscale="log", yscale="log", xlabel="4 |w|²", ylabel="support vectors")
    ends = axes.get_xlim()
    axes.plot(ends, ends, ":", color="0.5", label="the bound (Lemma 4.2)")
    axes.legend(fontsize=8)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Print the table in Markdown, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=tuple(DATA))
    given: Any = parser.parse_args()
    tables = {name: table(name) for name in given.data}
    print("| test error, % (vectors) | " + " | ".join(tables) + " |\n|---" + "|---" * len(tables) + "|")
    for words in next(iter(tables.values())):
        cells = (f"{100 * error:.1f} ({size:,})" for size, error in (found[words] for found in tables.values()))
        print(f"| {words} | " + " | ".join(cells) + " |")
    if len(tables) == len(DATA):
        draw_svg()
        draw_bound(RESULTS / "bound.svg")


if __name__ == "__main__":
    main()
