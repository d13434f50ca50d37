"""SlimSVCCV and SlimSVRCV beside GridSearchCV of separate fits: seconds, errors of the chosen models, memory.

python -m benchmarks.choose                           every work of `WORKS`
python -m benchmarks.choose a8a letter --cache-mb 512 some of them
python -m benchmarks.choose a8a --device cuda         on a GPU

GridSearchCV is run on `--sample` cells, spread over the grid and its folds, unless `--whole` is given, and its seconds are
those of the sample times the number of cells over those of the sample. On a machine that others use, compare core_seconds.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.problems import Problem, arrays, problem
from benchmarks.timing import line
from slimsvm import SlimSVC, SlimSVCCV, SlimSVR, SlimSVRCV
from slimsvm.rows.threads import thread_count

#: seven values around a usual one
SEVEN = np.logspace(-1, 2, 7)


@dataclass(frozen=True)
class Work:
    """Rows, and the grid that is searched on them."""

    data: Problem
    folds: int
    Cs: np.ndarray
    gammas: np.ndarray
    epsilons: np.ndarray | None = None


def widths(gamma: float) -> np.ndarray:
    """Return seven kernel widths around one."""
    return gamma * np.logspace(-1, 1, 7)


def grid_of(name: str, first: int | None = None) -> Work:
    """Return five folds, seven values of C and seven gammas on a problem, or on its first rows."""
    p = problem(name)
    p = p if first is None else Problem(name, p.X[:first], p.y[:first], p.X_test, p.y_test, p.gamma, p.C)
    return Work(p, 5, SEVEN, widths(p.gamma))


def a8a() -> Work:
    """Return TorchKM's work on a8a: ten folds and 50 values of C."""
    p = problem("a8a")
    return Work(
        Problem("a8a", p.X.toarray(), p.y, p.X_test.toarray(), p.y_test, 0.1, 1.0),
        10,
        np.logspace(-2, 2, 50),
        np.array([0.1]),
    )


def wide() -> Work:
    """Return rows of the size of TorchKM's largest: 20,000 of 1,000 features, with ten folds and 50 values of C."""
    X, y = make_classification(22_000, 1000, n_informative=50, n_redundant=0, flip_y=0.05, random_state=0)
    X = StandardScaler().fit_transform(X).astype(np.float32)
    data = Problem("wide", X[:20_000], y[:20_000], X[20_000:], y[20_000:], 1e-3, 1.0)
    return Work(data, 10, np.logspace(-2, 2, 50), np.array([1e-3]))


def housing() -> Work:
    """Return the regression of cal_housing: five values each of C, gamma and epsilon."""
    stored = arrays("cal_housing")
    scaler = StandardScaler().fit(stored["X_train"])
    y, y_test = (stored[name].astype(np.float64) for name in ("y_train", "y_test"))
    X, X_test = scaler.transform(stored["X_train"]), scaler.transform(stored["X_test"])
    data = Problem("cal_housing", X, y, X_test, y_test, 0.1, 1.0)
    return Work(data, 5, np.logspace(-1, 1.5, 5), 0.1 * np.logspace(-1, 1, 5), np.array([0.02, 0.05, 0.1, 0.2, 0.4]))


WORKS = {
    "a8a": a8a,
    "ijcnn1": lambda: grid_of("ijcnn1"),
    "letter": lambda: grid_of("letter"),
    "usps": lambda: grid_of("usps"),
    "mnist": lambda: grid_of("mnist", 10_000),
    "cal_housing": housing,
    "wide": wide,
}


def peak() -> float:
    """Return the most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def chosen(work: Work, cache_mb: float, device: str) -> Any:
    """Print what the search takes, and return it."""
    p, real = work.data, work.epsilons is not None
    settings: dict[str, Any] = {"Cs": list(work.Cs), "gammas": list(work.gammas), "cv": folds_of(work)}
    before, start, busy = peak(), perf_counter(), process_time()
    if real:
        search = SlimSVRCV(SlimSVR(cache_mb=cache_mb, device=device), epsilons=list(work.epsilons), refit=False, **settings)  # type: ignore[arg-type]
    else:
        search = SlimSVCCV(SlimSVC(cache_mb=cache_mb, device=device), refit=False, **settings)
    search.fit(p.X, p.y)
    seconds, busy = perf_counter() - start, process_time() - busy
    best = (SlimSVR if real else SlimSVC)(cache_mb=cache_mb, device=device).set_params(**search.best_params_).fit(p.X, p.y)
    line(
        work=p.name,
        what=type(search).__name__,
        threads=thread_count(),
        device=device,
        cache_mb=cache_mb,
        cells=len(search.cv_results_["params"]),
        folds=work.folds,
        seconds=seconds,
        core_seconds=busy,
        memory_mb=peak() - before,
        best=str(search.best_params_),
        score=search.best_score_,
        test_error=100 * (1 - float(best.score(p.X_test, p.y_test))),
        kernel_values=search.n_kernel_evals_ / 1e6,
    )
    return search


def folds_of(work: Work) -> Any:
    """Return the folds, which are the same for all contenders."""
    kind = KFold if work.epsilons is not None else StratifiedKFold
    return kind(work.folds, shuffle=True, random_state=0)


def cells_of(work: Work) -> list[dict[str, float]]:
    """Return the settings of all cells."""
    tubes = [{}] if work.epsilons is None else [{"epsilon": float(each)} for each in work.epsilons]
    return [{"C": float(C), "gamma": float(gamma), **tube} for gamma in work.gammas for tube in tubes for C in work.Cs]


def separately(work: Work, estimator: Any, sample: int, search: Any) -> None:
    """Print what separate fits of a sample of cells and folds take, and by how much their scores differ."""
    p = work.data
    pairs = [(cell, fold) for cell in range(len(cells_of(work))) for fold in range(work.folds)]
    rng = np.random.default_rng(0)
    some = rng.permutation(len(pairs))[:sample] if sample else np.arange(len(pairs))
    splits, table = list(folds_of(work).split(p.X, p.y)), search.cv_results_
    seconds, busy, differences = 0.0, 0.0, []
    for cell, fold in (pairs[place] for place in some):
        train, test = splits[fold]
        start, before = perf_counter(), process_time()
        fitted = clone(estimator).set_params(**cells_of(work)[cell]).fit(p.X[train], p.y[train])
        score = fitted.score(p.X[test], p.y[test])
        seconds, busy = seconds + perf_counter() - start, busy + process_time() - before
        differences.append(abs(score - table[f"split{fold}_test_score"][cell]))
    line(
        work=p.name,
        what=f"GridSearchCV({type(estimator).__name__})",
        fits=len(some),
        of=len(pairs),
        seconds=seconds * len(pairs) / len(some),
        core_seconds=busy * len(pairs) / len(some),
        largest_difference=float(max(differences)),
        mean_difference=float(np.mean(differences)),
    )


def main() -> None:
    """Run the works that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="*", default=list(WORKS), help=f"of {', '.join(WORKS)}")
    parser.add_argument("--cache-mb", type=float, default=3000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sample", type=int, default=20, help="fits of GridSearchCV(SlimSVC); 0: none")
    parser.add_argument("--svc", type=int, default=3, help="fits of GridSearchCV(SVC); 0: none")
    parser.add_argument("--whole", action="store_true", help="run all fits of GridSearchCV(SlimSVC)")
    given = parser.parse_args()
    for name in given.works:
        work = WORKS[name]()
        search = chosen(work, given.cache_mb, given.device)
        real = work.epsilons is not None
        if given.sample or given.whole:
            own = SlimSVR if real else SlimSVC
            separately(work, own(device=given.device), 0 if given.whole else given.sample, search)
        if given.svc:
            theirs = SVR(cache_size=2000) if real else SVC(cache_size=2000)
            separately(work, theirs, given.svc, search)


if __name__ == "__main__":
    main()
