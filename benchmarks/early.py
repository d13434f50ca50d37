"""Measure how good sbp is early: error on held-out training rows after few draws, our default and the paper's form.

python -m benchmarks.early [--data reuters_moneyfx a9a ijcnn1] [--seeds 2]

The paper's form (one row a round, no bias) is given nu of the optimum, which a user does not know. A draw costs n kernel
evaluations in both. One run is measured after each number of draws. Test rows have no part in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.problems import problem
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.kernels import RBF
from slimsvm.model import Expansion
from slimsvm.papers.batch_perceptron import BatchPerceptron
from slimsvm.rows.host import HostRows
from slimsvm.rows.protocol import Meter
from slimsvm.trainers import SBP

#: training rows at most, held-out rows at most, and the share of the training rows that is learned from
MOST, HELD_OUT, SHARE = 8000, 5000, 0.7
DRAWS = (16, 64, 256, 1024)
FORMS = {"default": SBP(), "paper, known nu": SBP(bias=False, batch=1)}
#: MiB for kernel rows: none fits, so that a draw costs n evaluations
NO_CACHE = 1e-9


def optimal_slack(X: Any, y: np.ndarray, gamma: float, C: float) -> float:
    """Return nu of the optimum without a bias: the mean hinge loss over |w|."""
    model = optimum_without_bias(X, y, gamma, C)
    length = np.sqrt(model.model_.coef[:, 0] @ model.decision_function(model.support_vectors_))
    return float(np.maximum(0.0, 1 - y * model.decision_function(X)).mean() / length)


def optimum_without_bias(X: Any, y: np.ndarray, gamma: float, C: float, tol: float = 1e-2) -> SlimSVC:
    """Return the C-SVM without a bias, trained on the rows that matter.

    The first rows are those that the model with a bias has inside its margin. Rows that violate the optimality conditions
    join until there are none, so the result is the optimum on all rows to `tol`.
    """
    matter = y * SlimSVC(C=C, gamma=gamma).fit(X, y).decision_function(X) < 1
    while True:
        model = SlimSVC(C=C, gamma=gamma, trainer="sdca", tol=tol).fit(X[matter], y[matter])
        violating = (y * model.decision_function(X) < 1 - tol) & ~matter
        if not violating.any():
            return model
        matter |= violating


def after_draws(
    trainer: SBP, kernel: RBF, X: Any, y: np.ndarray, draws: Sequence[int], seed: int
) -> Iterator[tuple[BatchPerceptron, Expansion]]:
    """Yield one run, and the model that it has by then, after each number of draws or a part of a batch more."""
    run = BatchPerceptron(
        HostRows(kernel, X, Meter(), NO_CACHE),
        y,
        np.ones(y.size),
        np.random.default_rng(seed),
        validation=np.zeros(0, dtype=int),
        bias=trainer.bias,
        batch=trainer.batch,
        root=trainer.root,
        C=trainer.C,
        nu=trainer.nu,
    )
    for count in draws:
        while run.drawn < count:
            run.round()
        iterate = run.result()
        scale, bias = iterate.predictor
        rows = np.flatnonzero(iterate.coef)
        yield run, Expansion(kernel, X[rows], scale * iterate.coef[rows, None], np.array([bias]))


def error_of(model: Expansion, X: Any, y: np.ndarray) -> float:
    """Return the share of rows on the wrong side."""
    return float(np.mean((model(X)[:, 0] > 0) != (y > 0)))


def measure(data: str, seed: int) -> None:
    """Print a line for each form on one split of the training rows."""
    p = problem(data)
    order = np.random.default_rng(seed).permutation(p.X.shape[0])
    count = min(MOST, int(SHARE * order.size))
    learned, held = order[:count], order[count : count + HELD_OUT]
    y = np.where(p.y == np.unique(p.y)[1], 1.0, -1.0)
    X, kernel = p.X[learned], RBF(p.gamma)
    for name, form in FORMS.items():
        nu = None if name == "default" else optimal_slack(X, y[learned], p.gamma, p.C)
        runs = after_draws(replace(form, C=p.C, nu=nu), kernel, X, y[learned], DRAWS, seed)
        found = [round(100 * error_of(model, p.X[held], y[held]), 2) for _, model in runs]
        figures = {f"error_{draws}": error for draws, error in zip(DRAWS, found, strict=True)}
        line(benchmark="early", data=data, rows=count, seed=seed, form=name, **figures)


def main() -> None:
    """Run all data sets and seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["reuters_moneyfx", "a9a", "ijcnn1"])
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    for data in given.data:
        for seed in range(given.seeds):
            measure(data, seed)


if __name__ == "__main__":
    main()
