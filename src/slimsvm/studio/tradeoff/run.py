"""Run methods at budgets on one data set, one row each; runs that a file has already are not made again."""

from __future__ import annotations

import json
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline

from ...importers.around import make_scaler, resolve_scale, with_names
from ...kernels import Array, Matrix
from ...rows.threads import thread_count
from ...run import silent
from .arguments import check_budgets, check_seeds, check_settings, checked_rows
from .datasets import Split, fingerprint, split_rows
from .measure import measure
from .methods import DEFAULT, FULL, Method, make_methods, method_of
from .result import MemoryStore, Tradeoff, store_of
from .rows import COLUMNS, FAILED, FORMAT, OK, SKIPPED, TEXTS, Row, key_of
from .tasks import TaskKind, task_named

#: powers of two in the usual range
BUDGETS = (4, 8, 16, 32, 64, 128)
#: for the estimated time left: a run with this many vectors takes twice as long as one with none
SHARED_WORK = 32


@dataclass(frozen=True)
class Progress:
    """A run that has ended: its number among those to make, its row, and a guess of the seconds left for all others."""

    number: int
    total: int
    row: Row
    seconds_left: float


@dataclass(frozen=True)
class Run:
    """One run to make."""

    method: Method
    budget: int | str | None
    seed: int

    @property
    def work(self) -> int:
        """An estimate of the time, in arbitrary units."""
        return SHARED_WORK + (self.budget if isinstance(self.budget, int) else SHARED_WORK if self.budget else 0)


def tradeoff(
    X: Matrix,
    y: Any,
    methods: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT,
    budgets: Iterable[int | str] = BUDGETS,
    *,
    task: str = "classify",
    seeds: int | Sequence[int] = 1,
    test: tuple[Matrix, Any] | None = None,
    test_size: float = 0.25,
    scale: str = "auto",
    time_limit: float | None = None,
    file: str | os.PathLike[str] | None = None,
    force: bool = False,
    name: str = "data",
    feature_names: Sequence[str] | None = None,
    origin: Mapping[str, str] | None = None,
    report: Callable[[Progress], None] = silent,
    **settings: Any,
) -> Tradeoff:
    """Train methods at several budgets and measure size, speed and test error of each model.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels: classes, or values to predict. None for novelty detection.
    methods : iterable of str, or mapping of str to dict, default=("slim", "spsvm", "nystroem")
        Names of reducers, of trainers, or of both, such as "lp+slim"; "none+slim" trains no full model. A mapping has for
        each name settings of the estimator, such as {"quick": {"reducer": Slim(steps=20)}}. The full model is always run.
    budgets : iterable of int or str, default=(4, 8, 16, 32, 64, 128)
        Numbers of support vectors, bytes of exported C such as "4 KB", or times of a prediction such as "20 us". Numbers
        that the full model does not exceed are skipped.
    task : {"classify", "regress", "novelty"}, default="classify"
        The estimator is `SlimSVC`, `SlimSVR` or `SlimOneClassSVM`. The test error is the share of misclassified rows; the
        unexplained variance, 1 - R^2; or the share of rows on which a model and the full one disagree.
    seeds : int or sequence of int, default=1
        The number of seeds, or the seeds; a seed draws the test rows and is the `random_state` of the run.
    test : tuple of rows and labels, default=None
        Test rows, the same for all seeds.
    test_size : float, default=0.25
        The share of X that is used for testing if no test rows are given.
    scale : {"auto", "none", "standard", "minmax", "maxabs", "robust"}, default="auto"
        How features are scaled, as by `slimsvm train --scale`. "auto" standardises dense
        features whose standard deviations differ widely.
    time_limit : float, default=None
        Seconds for the reducer in each run; the best model found by then is kept.
    file : path, default=None
        A CSV file to which each row is appended when its run ends. Runs that it has already are not made again. Models of
        the first seed are saved in a folder beside it; without a file they are kept in memory.
    force : bool, default=False
        Start a new file.
    name : str, default="data"
        The name of the data in the rows.
    feature_names : sequence of str, default=None
        Names of the features, which the models keep; else those of a data frame.
    origin : mapping, default=None
        How to find the data again, as the command line does: the columns `test`, `target` and `split` of the rows.
    report : callable, default=no report
        Called with a `Progress` after each run.
    **settings : settings of the estimator
        For all runs, such as C=10 or kernel="laplacian".

    Returns
    -------
    Tradeoff
        The rows and the models of the first seed. A run that fails is a row with its reason.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import slimsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> found = slimsvm.tradeoff(X, y, methods=["nystroem"], budgets=[3, 6])
    >>> [row["size"] for row in found.rows if row["method"] == "nystroem"]
    [3, 6]
    """
    kind = task_named(task)
    if feature_names is None and all(isinstance(column, str) for column in getattr(X, "columns", ())):
        feature_names = getattr(X, "columns", None)
    X, y = checked_rows(X, y, task=kind)
    test = None if test is None else checked_rows(*test, width=X.shape[1], task=kind)
    check_settings(settings, scale, test_size, kind)
    scale = resolve_scale(scale, X)
    make_scaler(scale, issparse(X))
    chosen = make_methods(methods, time_limit, kind)
    runs = list(_runs(chosen, check_budgets(budgets), check_seeds(seeds)))
    common = {
        "format": FORMAT,
        "data": _one_line(name),
        **(origin or {}),
        "fingerprint": fingerprint(X, y, *(test or ())),
        **_machine(),
    }
    words = _settings_words(kind, settings, scale, None if test is not None else test_size, time_limit)
    study = _Study(kind, X, y, test, test_size, scale, settings, feature_names, common, words, runs, store_of(file))
    return study.run(report, force)


def _runs(methods: Sequence[Method], budgets: Sequence[int | str], seeds: Sequence[int]) -> Iterator[Run]:
    """Yield the runs: the full model of a seed first, because its size limits the budgets."""
    for seed in seeds:
        for method in methods:
            for budget in budgets if method.budgeted else (None,):
                yield Run(method, budget, seed)


def _machine() -> dict[str, Any]:
    return {
        "slimsvm": version("slimsvm"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scikit_learn": version("scikit-learn"),
        "threads": thread_count(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


@dataclass(frozen=True)
class _Study:
    """The data and settings that all runs share."""

    task: TaskKind
    X: Matrix
    y: Array
    test: tuple[Matrix, Array] | None
    test_size: float
    scale: str
    settings: Mapping[str, Any]
    names: Sequence[str] | None  # of the features
    common: Row
    words: str  # the settings in the rows
    runs: Sequence[Run]
    store: MemoryStore
    #: the full models by seed, of a task that compares with them
    full: dict[int, Any] = field(default_factory=dict)

    def run(self, report: Callable[[Progress], None], force: bool) -> Tradeoff:
        """Make the runs that are missing, in order, and return all rows."""
        known = {key_of(row): row for row in self.store.start(force) if row["status"] != FAILED}
        blanks = [self._blank(run) for run in self.runs]
        missing = [pair for pair in zip(self.runs, blanks, strict=True) if key_of(pair[1]) not in known]
        start, work, done = perf_counter(), sum(run.work for run, _ in missing), 0
        for number, (run, blank) in enumerate(missing, 1):
            row = self._row(run, blank, known)
            known[key_of(row)] = row
            self.store.append(row)
            done += run.work
            seconds_left = (perf_counter() - start) * (work - done) / done
            report(Progress(number, len(missing), row, seconds_left))
        return Tradeoff(tuple(known[key_of(blank)] for blank in blanks), self.store.models)

    def _blank(self, run: Run) -> Row:
        """Return the row of a run that has not been made."""
        of_run = {"method": run.method.name, "budget": run.budget, "seed": run.seed, "settings": self._words(run.method)}
        empty = {name: "" if kind in TEXTS else None for name, kind in COLUMNS.items()}
        return empty | self.common | of_run

    def _words(self, method: Method) -> str:
        """Return the settings of a run for its row; a method that was given by name adds none."""
        objects = {name: value for name, value in method.settings.items() if not isinstance(value, str | None)}
        return self.words if not objects else f"{self.words} {_without_addresses(objects)}"

    def _row(self, run: Run, blank: Row, known: Mapping[Any, Row]) -> Row:
        """Make a run and return its row; errors become rows with a reason."""
        reason = self._reason_to_skip(run, known)
        if reason:
            return blank | {"status": SKIPPED, "reason": reason}
        try:
            return blank | self._figures(run)
        except Exception as error:  # one method's failure must not end the study
            return blank | {"status": FAILED, "reason": _one_line(str(error) or type(error).__name__)}

    def _reason_to_skip(self, run: Run, known: Mapping[Any, Row]) -> str:
        full = next((r for r in known.values() if (r["method"], r["seed"]) == (FULL, run.seed) and r["size"]), None)
        if not isinstance(run.budget, int) or full is None or run.budget < full["size"]:
            return ""
        return f"the full model has {full['size']} support vectors"

    def _figures(self, run: Run) -> Row:
        """Fit a model, timed, and measure it."""
        split = split_rows(self.X, self.y, self.test, self.test_size, run.seed, self.task.has_classes)
        model, seconds, notes = self._fit(run, split)
        full = None if self.task.has_labels else self._full_of(run, model, split)
        figures = {
            "status": OK,
            "reason": _one_line("; ".join(notes)),
            "seconds": seconds,
            "n_train": split.y.size,
            "n_test": split.y_test.size,
            **measure(model, split.X_test, split.y_test, self.task, full),
        }
        return figures | (self._kept(run, model) if run.seed == self.runs[0].seed else {})

    def _full_of(self, run: Run, model: Any, split: Split) -> Any:
        """Return the full model of the run's seed; it is trained again where its row comes from a file."""
        if run.method.name == FULL:
            self.full[run.seed] = model
        elif run.seed not in self.full:
            self.full[run.seed] = self._fit(Run(method_of(FULL), None, run.seed), split)[0]
        return self.full[run.seed]

    def _kept(self, run: Run, model: Any) -> Row:
        """Keep a model and return its name; a model that cannot be saved is a row without one."""
        name = _model_name(run, self.words)
        try:
            self.store.keep(name, with_names(model, self.names))
        except ValueError as error:
            return {"reason": _one_line(f"not kept: {error}")}
        return {"model": name}

    def _fit(self, run: Run, split: Split) -> tuple[Any, float, list[str]]:
        """Return the fitted model, the seconds of its fit, and its warnings."""
        scaler = make_scaler(self.scale, issparse(split.X))
        rows = split.X if scaler is None else scaler.fit_transform(split.X)
        parameters = {**self.settings, **run.method.settings, "budget": run.budget, "random_state": run.seed}
        machine = self.task.estimator(**parameters)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = perf_counter()
            machine.fit(rows, split.y)
            seconds = perf_counter() - start
        model = machine if scaler is None else make_pipeline(scaler, machine)
        return model, seconds, [str(warning.message) for warning in caught]


def _model_name(run: Run, words: str) -> str:
    """Return the file name of a model; runs of other settings in the same file have other names."""
    name = re.sub(r"[^A-Za-z0-9+-]", "_", run.method.name)
    settings = fingerprint(np.array([run.method.name, words]))[:6]
    return f"{name}-{str(run.budget or 'all').replace(' ', '')}-seed{run.seed}-{settings}.slim"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _without_addresses(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _settings_words(
    task: TaskKind, settings: Mapping[str, Any], scale: str, test_size: float | None, time_limit: float | None
) -> str:
    """Return the settings of all runs as JSON: those given, and those that matter most for the task."""
    usual = task.estimator().get_params()
    values = {name: usual[name] for name in ("kernel", "gamma", "C", "epsilon", "nu") if name in usual}
    values |= {**settings, "scale": scale, "test_size": test_size, "time_limit": time_limit}
    values |= {} if task.has_classes else {"task": task.name}
    given = {name: value for name, value in values.items() if value is not None}
    return json.dumps(given, sort_keys=True, default=_without_addresses)
