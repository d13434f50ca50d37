"""Measure test error against size for every reducer, on the same full model, trained once by SVC.

python -m benchmarks.frontier > frontier.jsonl                                 all data sets and reducers: hours
python -m benchmarks.frontier --data a8a --methods slim,slant-aggressive       some of them
python -m benchmarks.frontier --data a8a --rows 2000 --budget 16               a quick run

One run makes the whole path of a method. The model of each size is the one that this path gives for a budget of that size,
chosen on validation rows. slim spends most of its time on the largest size, so it is run once for each size. Methods that
need a full model get SVC's, and their seconds do not include its training; the others are trained from the labels alone,
and slim both ways. Lines with a `target` say what slim should reach; the last line says where it is behind the best of the
others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.problems import Problem, problem, shortened
from benchmarks.timing import line
from slimsvm import SlimSVC, compress
from slimsvm.reducers import REDUCERS
from slimsvm.rows.threads import thread_count

HOUSE = "slim"
FROM_LABELS = ", labels"
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Target:
    """A test error in percent that slim should reach at a size, within `share` times the seconds of SVC.fit."""

    size: int
    error: float
    share: float | None = None


#: data sets without targets were not used when slim was designed
TARGETS: dict[str, tuple[Target, ...]] = {
    "a8a": (Target(4, 14.80, 1.0), Target(16, 14.70, 1.0)),
    "ijcnn1_35k": (Target(16, 2.3, 4.0), Target(64, 1.95, 4.0), Target(128, 1.8, 4.0), Target(512, 1.45)),
    "w8a": (Target(64, 1.05, 1.0), Target(256, 0.85, 1.0)),
    "magic": (Target(8, 11.8, 3.0), Target(32, 11.7, 3.0), Target(128, 11.55, 3.0)),
    "mnist8_c10": (Target(32, 1.0, 1.0), Target(128, 0.85, 1.0), Target(256, 0.70, 1.0)),
    "pageblocks": (),
    "usps": (),
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Full:
    """SVC's model of a problem, and the seconds of its training."""

    svc: SVC
    seconds: float

    @classmethod
    def of(cls, p: Problem) -> Full:
        """Train the model."""
        svc = SVC(C=p.C, gamma=p.gamma, cache_size=2000)
        start = perf_counter()
        return cls(svc.fit(p.X, p.y), perf_counter() - start)


def ways(names: Sequence[str]) -> list[str]:
    """Return what is run: each reducer, and slim a second time from the labels alone."""
    both = [HOUSE + FROM_LABELS] if HOUSE in names and not REDUCERS[HOUSE].needs_model else []
    return [*names, *both]


def follows(label: str) -> bool:
    """Return whether a method is run on the full model."""
    return label == HOUSE or (label in REDUCERS and REDUCERS[label].needs_model)


def shrunk(p: Problem, full: Full, label: str, budget: int, seed: int, time_limit: float) -> tuple[SlimSVC, float]:
    """Return the estimator with the path of a method to a budget, and the seconds it took."""
    kind = REDUCERS[label.removesuffix(FROM_LABELS)]
    settings: dict[str, Any] = {"reducer": kind(time_limit=time_limit), "random_state": seed}
    start = perf_counter()
    if follows(label):
        model = compress(full.svc, p.X, p.y, budget=budget, **settings)
    else:
        model = SlimSVC(budget, trainer=None, C=p.C, gamma=p.gamma, **settings).fit(p.X, p.y)
    return model, perf_counter() - start


def test_error(p: Problem, model: SlimSVC, outputs: np.ndarray) -> float:
    """Return the share of test rows that these outputs classify wrongly."""
    return float(np.mean(model.classes_[model.goal_.decode(outputs)] != p.y_test))


def path_rows(p: Problem, full: Full, label: str, budget: int, seed: int, time_limit: float) -> Iterator[Row]:
    """Yield a row for each size on the path of a method, or one row that says why there is no path."""
    common: Row = {"benchmark": "frontier", "data": p.name, "method": label, "seed": seed, "threads": thread_count()}
    common["follows"] = "full model" if follows(label) else "labels"
    try:
        model, seconds = shrunk(p, full, label, budget, seed, time_limit)
    except (ValueError, MemoryError, TimeoutError) as error:
        yield common | {"failed": str(error)}
        return
    if model.path_ is None:
        yield common | {"failed": f"the full model has {model.model_.size} support vectors, no more than {budget}"}
        return
    for size in sorted({*SIZES, budget}):
        if size > budget or size >= 2 * model.path_.sizes[-1] or size < model.path_.sizes[0]:
            continue
        step = model.path_.best(size)
        # the estimator itself has the model of its budget, which some methods finish with all rows
        small = model.model_ if size == budget else step.model
        yield common | {
            "size": size,
            "support_vectors": step.size,
            "test_error": test_error(p, model, small(p.X_test)),
            "held_out_error": step.error,
            "path_to": budget,
            "seconds": seconds,
            "share_of_svc_fit": seconds / full.seconds,
            "kernel_evaluations": model.n_kernel_evals_,
            "ending": model.path_.status.name,
        }


def measured(p: Problem, full: Full, labels: Sequence[str], given: argparse.Namespace) -> list[Row]:
    """Return the rows of all methods, printed as they come; slim runs once for each size."""
    rows = []
    for label in labels:
        for budget in [given.budget, *(size for size in SIZES if size < given.budget and label == HOUSE)]:
            for seed in given.seeds:
                for row in path_rows(p, full, label, budget, seed, given.time_limit):
                    line(**row)
                    rows.append(row)
    return rows


def mean_of(rows: Sequence[Row], name: str, **wanted: Any) -> float | None:
    """Return the mean over seeds of a figure of the rows with these values; None where there are no such rows."""
    values = [row[name] for row in rows if name in row and all(row.get(key) == value for key, value in wanted.items())]
    return float(np.mean(values)) if values else None


def print_targets(data: str, rows: Sequence[Row]) -> None:
    """Print a line for each target, with the result of the path that ends at its size."""
    for target in TARGETS.get(data, ()):
        wanted = {"data": data, "method": HOUSE, "size": target.size, "path_to": target.size}
        error, share = (mean_of(rows, name, **wanted) for name in ("test_error", "share_of_svc_fit"))
        if error is None or share is None:
            continue
        line(
            benchmark="frontier target",
            **wanted,
            target=target.error / 100,
            test_error=error,
            target_share=target.share,
            share_of_svc_fit=share,
            reached=100 * error <= target.error and (target.share is None or share <= target.share),
        )


def behind(data: str, rows: Sequence[Row], budget: int, test_rows: int) -> Iterator[Row]:
    """Yield the sizes at which the best of the others is ahead by more than 0.1 points and half a standard error."""
    others = sorted({row["method"] for row in rows} - {HOUSE, HOUSE + FROM_LABELS})
    for size in SIZES:
        ours = mean_of(rows, "test_error", data=data, method=HOUSE, size=size, path_to=size)
        errors = {m: mean_of(rows, "test_error", data=data, method=m, size=size, path_to=budget) for m in others}
        rivals = {m: error for m, error in errors.items() if error is not None}
        if ours is None or not rivals:
            continue
        best = min(rivals, key=lambda m: rivals[m])
        margin = max(0.001, 0.5 * np.sqrt(rivals[best] * (1 - rivals[best]) / test_rows))
        if ours > rivals[best] + margin:
            yield {"data": data, "size": size, HOUSE: round(ours, 5), best: round(rivals[best], 5)}


def compare(name: str, given: argparse.Namespace) -> list[Row]:
    """Print all lines of one data set; return the sizes at which slim is behind."""
    p = problem(name)
    if given.rows:
        p = shortened(p, given.rows)
    full = Full.of(p)
    line(
        benchmark="frontier",
        data=name,
        method="svc",
        size=int(full.svc.support_.size),
        test_error=1 - full.svc.score(p.X_test, p.y_test),
        seconds=full.seconds,
        threads=1,
    )
    rows = measured(p, full, ways(given.methods), given)
    print_targets(name, rows)
    return list(behind(name, rows, given.budget, p.y_test.size))


def names_of(table: Sequence[str]) -> Any:
    """Return a parser of names from a table, separated by commas."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        strange = sorted(set(names) - set(table))
        if strange:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(strange)}; there are {', '.join(table)}")
        return names

    return parse


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=names_of(tuple(TARGETS)), default=list(TARGETS), help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--methods", type=names_of(tuple(REDUCERS)), default=list(REDUCERS), help="of REDUCERS (all)")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0], help="(0)")
    parser.add_argument("--budget", type=int, default=SIZES[-1], help=f"where paths end ({SIZES[-1]})")
    parser.add_argument("--rows", type=int, help="training rows at most, for a quick look (all)")
    parser.add_argument("--time-limit", type=float, default=1800.0, help="seconds for each path (1800)")
    return parser.parse_args()


def main() -> None:
    """Run each data set, then print where slim is behind."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # rows say how paths ended
    warnings.filterwarnings("ignore", "budget=.* is not below", UserWarning)
    given = arguments()
    lost = [row for name in given.data for row in compare(name, given)]
    if HOUSE in given.methods:
        line(benchmark="frontier behind", method=HOUSE, data=",".join(given.data), behind=lost)
    else:
        line(benchmark="frontier behind", skipped=f"there is no {HOUSE} among the methods")


if __name__ == "__main__":
    main()
