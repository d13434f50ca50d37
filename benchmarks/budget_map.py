"""Map the test errors of budget-L1 and budget-L2 over the budget B and the weights kept s (Dekel & Singer 2006, figure 1).

python -m benchmarks.budget_map                    the paper's settings; heat maps in results/budget_map.png
python -m benchmarks.budget_map --problems 4       a quick run

The exact optimum has many free support vectors, all at the same margin (a tie in Theorem 2), whatever the budget, and does
not survive the loss of some. Steps that end early, --tol 1, leave about B of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from benchmarks.problems import arrays
from benchmarks.timing import line
from slimsvm.kernels import RBF, Precomputed
from slimsvm.model import Task
from slimsvm.rows.host import HostRows
from slimsvm.solvers.bias import fewest_errors
from slimsvm.trainers import BudgetL1, BudgetL2
from slimsvm.trainers.frames.per_output import BinaryTrainer

TRAIN_ROWS, TEST_ROWS, STEP = 1000, 4000, 20
SIZES = np.arange(STEP, TRAIN_ROWS + 1, STEP)
WORKERS = 2

Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Settings:
    """The paper's by default: sigma = 1 in exp(-|x - z|^2 / (2 sigma^2)) for rows of norm 1 on average.

    `steps` is a fixed number of pair steps from 0, those of the paper, in place of the optimum. With `bias_again` the bias
    is the one with the fewest errors on the training rows, after each pruning; else it is that of the unpruned model.
    """

    cost: float = 10.0
    gamma: float = 0.5
    tol: float = 1e-3
    steps: int | None = None
    bias_again: bool = False

    def trainer(self, norm: str, budget: int) -> BinaryTrainer:
        """Return a trainer; C falls with the budget so that the weight of the norm stays about the same."""
        limit: dict[str, Any] = {} if self.steps is None else {"max_iter": self.steps}
        if norm == "l1":
            return BudgetL1(self.cost / budget, self.tol, budget=budget, **limit)
        limit |= {} if self.steps is None else {"steps": "paper"}
        return BudgetL2(self.cost / np.sqrt(budget), self.tol, budget=budget, **limit)


def draws(problems: int) -> Iterator[Draw]:
    """Yield problems of five digits against five: random training and test rows of MNIST."""
    stored = arrays("mnist")
    X, digits, X_test, digits_test = (stored[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        ours = rng.permutation(10)[:5]
        rows, test = rng.permutation(len(X))[:TRAIN_ROWS], rng.permutation(len(X_test))[:TEST_ROWS]
        y, y_test = (np.where(np.isin(labels, ours), 1.0, -1.0) for labels in (digits[rows], digits_test[test]))
        yield X[rows], y, X_test[test], y_test


def errors(draw: Draw, settings: Settings) -> dict[str, np.ndarray]:
    """Return the test errors of one problem by norm: a row for each budget, a column for each number of weights kept."""
    X, y, X_test, y_test = draw
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    scale = np.linalg.norm(X, axis=1).mean()
    X, X_test = X / scale, X_test / scale
    kernel = RBF(settings.gamma)
    K = kernel(X, X)
    task = Task(HostRows(Precomputed(), K), y[:, None], np.ones(y.size))
    both = np.hstack([K, kernel(X, X_test)]).astype(np.float32)
    return {norm: errors_of(norm, settings, task, both, y_test) for norm in ("l1", "l2")}


def errors_of(norm: str, settings: Settings, task: Task, K: np.ndarray, y_test: np.ndarray) -> np.ndarray:
    """Return the errors of one norm; each budget starts from the solution of the one before, unless steps are counted."""
    out, start = [], None
    for budget in SIZES:
        fit = settings.trainer(norm, int(budget)).fit(task, start)
        assert fit.dual is not None  # the points of these trainers are training rows
        outputs = pruned_outputs(fit.dual[:, 0], K)
        on_training, on_test = outputs[:, : task.rows.n], outputs[:, task.rows.n :]
        y, bias = task.targets[:, 0], np.full(SIZES.size, float(fit.model.bias[0]))
        if settings.bias_again:
            bias = np.array([fewest_errors(each, y, task.weights) for each in on_training])
        out.append((np.where(on_test + bias[:, None] > 0, 1.0, -1.0) != y_test).mean(axis=1))
        start = fit.dual if settings.steps is None else None
    return np.array(out)


def pruned_outputs(dual: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the outputs with the s largest weights, for all s in one pass: cumulative sums of STEP weights each."""
    order = np.argsort(-np.abs(dual), kind="stable")
    weights = dual[order].astype(np.float32).reshape(-1, 1, STEP)
    sums = weights @ K[order].reshape(SIZES.size, STEP, -1)
    return sums[:, 0].cumsum(axis=0, dtype=np.float64)


def draw_maps(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw one heat map for each norm from the printed rows."""
    try:
        import matplotlib as mpl
    except ImportError:
        print(f'{file} needs matplotlib: pip install "slimsvm[plots]"')
        return
    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
    for panel, norm in zip(panels, ("l1", "l2"), strict=True):
        share = {(row["B"], row["s"]): 100 * row["mean_error"] for row in rows if row["norm"] == norm}
        image = np.array([[share[int(B), int(s)] for B in SIZES] for s in SIZES])
        edges = (SIZES[0] - STEP / 2, SIZES[-1] + STEP / 2)
        heat = panel.imshow(image, origin="lower", extent=edges * 2, cmap="magma_r", vmin=5, vmax=50)
        panel.plot(edges, edges, "--", lw=1, color="tab:cyan")
        panel.annotate("s = B", (190, 130), rotation=45, ha="center", va="center", color="tab:cyan")
        panel.set(title=f"budget-{norm.upper()}", xlabel="budget B")
    panels[0].set_ylabel("weights kept, s")
    figure.colorbar(heat, ax=panels, label="mean test error, %")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100, metadata={"Software": None})


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50, help="random problems to average over (50)")
    parser.add_argument("--folder", type=Path, default=Path("results"), help="where budget_map.png goes (results)")
    parser.add_argument("--cost", type=float, default=Settings.cost, help="C is this / B for L1, / sqrt(B) for L2 (10)")
    parser.add_argument("--gamma", type=float, default=Settings.gamma, help="1 / (2 sigma^2) (0.5)")
    parser.add_argument("--tol", type=float, default=Settings.tol, help="where training ends (1e-3)")
    return parser.parse_args()


def main() -> None:
    """Print a row for each norm, B and s; then the errors at s = B; then draw."""
    given = arguments()
    settings = Settings(given.cost, given.gamma, given.tol)
    begun = perf_counter()
    with parallel_config("loky", inner_max_num_threads=1):
        solved = Parallel(n_jobs=WORKERS)(delayed(errors)(draw, settings) for draw in draws(given.problems))
    seconds = perf_counter() - begun
    means = {norm: np.mean([one[norm] for one in solved], axis=0) for norm in ("l1", "l2")}
    rows = [
        {"norm": norm, "B": int(B), "s": int(s), "mean_error": float(mean[b, k])}
        for norm, mean in means.items()
        for b, B in enumerate(SIZES)
        for k, s in enumerate(SIZES)
    ]
    for row in rows:
        line(benchmark="budget_map", **row)
    for b, B in enumerate(SIZES):
        line(benchmark="budget_map at s = B", B=int(B), l1=float(means["l1"][b, b]), l2=float(means["l2"][b, b]))
    line(benchmark="budget_map", problems=given.problems, **asdict(settings), workers=WORKERS, seconds=seconds)
    draw_maps(rows, given.folder / "budget_map.png")


if __name__ == "__main__":
    main()
