"""Every kind of kernel machine: many classes, regression, novelty, probabilities, tolerance, tuning.

python -m benchmarks machines                          all parts
python -m benchmarks machines --parts regression calibration
python -m benchmarks machines --parts tolerance --sets letter usps      these sets only
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from benchmarks.problems import Problem, arrays, problem, shades
from benchmarks.timing import interleaved, line
from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress, tune
from slimsvm.rows.threads import thread_count

#: the sets on which a tolerance is tried
TOLERANCE_SETS = (
    *("a8a", "a9a", "ijcnn1", "w8a", "covtype", "magic", "pageblocks"),
    *("letter", "usps", "mnist", "newsgroups20", "reuters_moneyfx"),
)
#: budgets of small models of many classes, fitted to the labels
DIRECT = {"letter": (130, 520), "mnist": (100, 500), "usps": (50, 300), "pageblocks": (20,), "newsgroups20": (200,)}


#: whether a data set is to be measured
Wanted = Callable[[str], bool]


def error(model: Any, p: Problem) -> float:
    """Return the share of test rows that a classifier gets wrong."""
    return float(np.mean(model.predict(p.X_test) != p.y_test))


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    start = perf_counter()
    result = run()
    return perf_counter() - start, result


def many_classes(wanted: Wanted) -> None:
    """Small models of many classes, from the labels and from an SVC."""
    for name, budgets in filter(lambda item: wanted(item[0]), DIRECT.items()):
        p = problem(name)
        full_error = error(SlimSVC(gamma=p.gamma, C=p.C).fit(p.X, p.y), p)
        for budget in budgets:
            small = SlimSVC(budget, gamma=p.gamma, C=p.C, trainer=None, random_state=0)
            seconds, fitted = timed(partial(small.fit, p.X, p.y))
            found = {"seconds": seconds, "test_error": error(fitted, p), "full_error": full_error}
            line(benchmark="direct", data=name, budget=budget, **found)
    for name, p, budget in filter(lambda item: wanted(item[0]), compressed_problems()):
        full_seconds, full = timed(partial(SVC(gamma=p.gamma, C=p.C, cache_size=2000).fit, p.X, p.y))
        seconds, small = timed(partial(compress, full, p.X, p.y, budget=budget, random_state=0))
        line(
            benchmark="compress",
            data=name,
            budget=budget,
            seconds=seconds,
            test_error=error(small, p),
            full_error=error(full, p),
            full_seconds=full_seconds,
        )


def compressed_problems() -> Iterator[tuple[str, Problem, int]]:
    """Yield problems of many classes whose SVC is compressed, and the budgets: letter, and ten made classes."""
    yield "letter", problem("letter"), 520
    X, y = make_classification(
        11_000, 16, n_informative=12, n_redundant=2, n_classes=10, n_clusters_per_class=2, class_sep=1.5, random_state=0
    )
    A, B, a, b = train_test_split(StandardScaler().fit_transform(X), y, test_size=0.2, random_state=0)
    yield "made", Problem("made", A, a, B, b, gamma=1 / 16, C=10.0), 128


def thousand_classes(wanted: Wanted) -> None:
    """A full model of 1,000 classes, five rows each, against SVC: seconds to fit it and to predict 200 rows."""
    if not wanted("made"):
        return
    rng, y = np.random.default_rng(0), np.repeat(np.arange(1000), 5)
    X = rng.normal(size=(1000, 16))[y] + 0.3 * rng.normal(size=(y.size, 16))
    X_test = X[rng.choice(y.size, 200)] + 0.1 * rng.normal(size=(200, 16))
    models = {"slimsvm": SlimSVC(C=10.0), "svc": SVC(C=10.0, cache_size=2000)}
    fits, fitted = interleaved({key: partial(model.fit, X, y) for key, model in models.items()}, dict.fromkeys(models, 1))
    predictions, labels = interleaved(
        {key: partial(model.predict, X_test) for key, model in fitted.items()}, dict.fromkeys(models, 3)
    )
    line(
        benchmark="thousand classes",
        fit_seconds=fits["slimsvm"],
        fit_seconds_svc=fits["svc"],
        predict_seconds=predictions["slimsvm"],
        predict_seconds_svc=predictions["svc"],
        different_labels=int((labels["slimsvm"] != labels["svc"]).sum()),
    )


def small_data(wanted: Wanted) -> None:
    """Seconds of SlimSVC(128).fit where rows are few."""
    digits = train_test_split(*load_digits(return_X_y=True), random_state=0)
    sets = {"digits": (digits[0], digits[2])} | {
        name: (p.X, p.y) for name in ("pageblocks", "usps") for p in [problem(name)] if p.X.shape[0] < 10_000
    }
    for name, (X, y) in filter(lambda item: wanted(item[0]), sets.items()):
        seconds = min(timed(partial(SlimSVC(128, C=10.0, random_state=0).fit, X, y))[0] for _ in range(3))
        line(benchmark="small data", data=name, rows=X.shape[0], seconds=seconds, target_at_most=2.0)


def regression_sets() -> dict[str, tuple[Any, ...]]:
    """Return standardised rows and targets, train and test, with the settings of SVR and a budget."""
    sets: dict[str, tuple[Any, ...]] = {}
    for name, budget in (("cal_housing", 256), ("abalone", 64)):
        stored = {key: value.astype(np.float64) for key, value in arrays(name).items() if value.dtype.kind in "fiu"}
        scaler = StandardScaler().fit(stored["X_train"])
        X, X_test = scaler.transform(stored["X_train"]), scaler.transform(stored["X_test"])
        sets[name] = X, stored["y_train"], X_test, stored["y_test"], {"gamma": 1 / X.shape[1], "C": 10.0}, budget
    X, y = make_friedman1(20_000, noise=1.0, random_state=0)
    A, B, a, b = train_test_split(X, y, random_state=0)
    sets["friedman1"] = A, a, B, b, {"gamma": "scale", "C": 10.0}, 64
    return sets


def regression(wanted: Wanted) -> None:
    """SlimSVR against SVR: seconds, the same function, and R^2 with few vectors."""
    chosen = {name: each for name, each in regression_sets().items() if wanted(name)}
    for name, (X, y, X_test, y_test, settings, budget) in chosen.items():
        models = {"slimsvm": SlimSVR(**settings), "svr": SVR(**settings, cache_size=2000)}
        seconds, fitted = interleaved(
            {key: partial(model.fit, X, y) for key, model in models.items()}, {"slimsvm": 3, "svr": 2}
        )
        small_seconds, small = timed(partial(SlimSVR(budget, **settings, random_state=0).fit, X, y))
        line(
            benchmark="regression",
            data=name,
            threads=thread_count(),
            times_svr=seconds["svr"] / seconds["slimsvm"],
            seconds=seconds["slimsvm"],
            difference=float(np.abs(fitted["slimsvm"].predict(X_test) - fitted["svr"].predict(X_test)).max()),
            vectors=fitted["slimsvm"].model_.size,
            r2_full=fitted["svr"].score(X_test, y_test),
            budget=budget,
            r2_small=small.score(X_test, y_test),
            small_seconds=small_seconds,
        )


def novelty(wanted: Wanted) -> None:
    """SlimOneClassSVM against OneClassSVM: one digit in, the rest out."""
    digits = train_test_split(*load_digits(return_X_y=True), random_state=0)
    stored = arrays("mnist")
    sets = {
        "digits": (digits[0] / 16, digits[2], digits[1] / 16, digits[3]),
        "mnist": (shades(stored["X_train"]), stored["y_train"], shades(stored["X_test"]), stored["y_test"]),
    }
    chosen = {name: each for name, each in sets.items() if wanted(name)}
    for (name, (X, y, X_test, y_test)), digit in product(chosen.items(), (0, 3, 8)):
        inside = X[y == digit]
        models = {"slimsvm": SlimOneClassSVM(nu=0.1), "one_class": OneClassSVM(nu=0.1, cache_size=2000)}
        seconds, fitted = interleaved(
            {key: partial(model.fit, inside) for key, model in models.items()}, {"slimsvm": 3, "one_class": 3}
        )
        small = SlimOneClassSVM(32, nu=0.1, random_state=0).fit(inside)
        scores = {key: model.decision_function(X_test) for key, model in (fitted | {"small": small}).items()}
        line(
            benchmark="novelty",
            data=name,
            digit=digit,
            rows=inside.shape[0],
            times_one_class_svm=seconds["one_class"] / seconds["slimsvm"],
            difference=float(np.abs(scores["slimsvm"] - scores["one_class"]).max()),
            auc_full=roc_auc_score(y_test == digit, scores["one_class"]),
            auc_32=roc_auc_score(y_test == digit, scores["small"]),
            vectors=fitted["slimsvm"].model_.size,
        )


def calibration(wanted: Wanted) -> None:
    """Log loss and seconds against CalibratedClassifierCV(SVC)."""
    for name in filter(wanted, ("a8a", "magic", "letter")):
        p = problem(name)
        rival = CalibratedClassifierCV(SVC(gamma=p.gamma, C=p.C, cache_size=2000), ensemble=False)
        ours = SlimSVC(gamma=p.gamma, C=p.C, calibration="sigmoid", random_state=0)
        theirs_seconds, theirs = timed(partial(rival.fit, p.X, p.y))
        seconds, fitted = timed(partial(ours.fit, p.X, p.y))
        line(
            benchmark="calibration",
            data=name,
            log_loss=log_loss(p.y_test, fitted.predict_proba(p.X_test)),
            log_loss_rival=log_loss(p.y_test, theirs.predict_proba(p.X_test)),
            share_of_rivals_time=seconds / theirs_seconds,
        )


def tolerance(wanted: Wanted) -> None:
    """The model that tolerance=0.005 keeps, against the full one."""
    for name in filter(wanted, TOLERANCE_SETS):
        p = problem(name)
        full = SlimSVC(gamma=p.gamma, C=p.C).fit(p.X, p.y)
        seconds, small = timed(partial(SlimSVC(tolerance=0.005, gamma=p.gamma, C=p.C, random_state=0).fit, p.X, p.y))
        line(
            benchmark="tolerance",
            data=name,
            full_size=full.model_.size,
            full_error=error(full, p),
            size=small.model_.size,
            test_error=error(small, p),
            seconds=seconds,
        )


def tuning(wanted: Wanted) -> None:
    """tune(budget=64, time_limit=120) against the best of a 7 x 7 grid of full SVCs chosen by three folds."""
    for name in filter(wanted, ("magic", "pageblocks", "a8a", "letter", "usps")):
        p = problem(name)
        seconds, found = timed(partial(tune, p.X, p.y, budget=64, time_limit=120, random_state=0))
        width = 1 / p.X.shape[1]
        grid = {"gamma": [width * 4.0**power for power in range(-3, 4)], "C": [10.0**power for power in range(-2, 5)]}
        # the same optimum as SVC's, in less time
        search = GridSearchCV(SlimSVC(), grid, cv=3, n_jobs=thread_count()).fit(p.X, p.y)
        line(
            benchmark="tuning",
            data=name,
            test_error=error(found.best_estimator_, p),
            grid_error=error(search.best_estimator_, p),
            seconds=seconds,
        )


PARTS = {
    "many-classes": many_classes,
    "thousand-classes": thousand_classes,
    "small-data": small_data,
    "regression": regression,
    "novelty": novelty,
    "calibration": calibration,
    "tolerance": tolerance,
    "tuning": tuning,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="data sets; all by default")
    arguments = parser.parse_args()
    for name in arguments.parts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PARTS[name](lambda data: arguments.sets is None or data in arguments.sets)
