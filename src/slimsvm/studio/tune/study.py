"""Trials kept in an Optuna study, to be resumed or shown: the extra `slimsvm[tune]`.

Each of the settings is one trial of the study. Its intermediate values are the errors of the stages, by training rows.
Settings that a stage drops are pruned, the others complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ...kernels import Array, Matrix
from ...slim.method import METRICS
from ...states import StateError, nested, pack, several
from ...text import short
from .problem import Problem
from .space import DENSE_SCALERS, SPARSE_SCALERS, Settings
from .trials import Trial, TrialEffort

#: user attributes of a study and of its trials
DATA, SEARCH, SEED, EVALUATIONS = "slimsvm_data", "slimsvm_search", "slimsvm_seed", "slimsvm_evaluations"
#: what is in the last one
EVALUATED = several(nested(Trial))


def fingerprint(X: Matrix, y: Array, weights: Array) -> str:
    """Return a number that other rows, labels or weights would not have."""
    seen = hashlib.sha256(repr(X.shape).encode())
    parts = (X.data, X.indices, X.indptr) if issparse(X) else (X,)
    for part in (*parts, weights):
        seen.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    seen.update(repr(np.asarray(y).tolist()).encode())
    return seen.hexdigest()


def open_study(study: Any, storage: Any) -> Any:
    """Return the study, or the one of that name in a storage, which is made if the storage has none."""
    if study is None and storage is None:
        return None
    if isinstance(study, str) and storage is None:
        raise ValueError(
            f"study={study!r} is a name, and there is no storage to find it in; give storage='sqlite:///tune.db', say"
        )
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "study= and storage= need Optuna, which keeps the trials; install slimsvm[tune], or leave them out"
        ) from error
    if isinstance(study, optuna.Study):
        if storage is not None:
            raise ValueError("study is an Optuna study, which has its own storage; leave storage out, or give study's name")
        return study
    try:
        return optuna.create_study(
            study_name=study or "slimsvm", storage=storage, direction="minimize", load_if_exists=True
        )
    except Exception as error:  # each database has errors of its own; a storage may have a password, which is not repeated
        words = " ".join(str(error).split())[:200]
        raise ValueError(
            f"cannot open the storage of the study: {type(error).__name__}: {words}. Give storage='sqlite:///tune.db' "
            "(--storage), say, in a folder that can be written to"
        ) from error


def seed_in(study: Any) -> int | None:
    """Return the seed that a study was made with, or None."""
    seed = None if study is None else study.user_attrs.get(SEED)
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise ValueError(f"the study {study.study_name!r} has {short(seed)} for its seed; give another name")
    return seed


def open_store(study: Any, problem: Problem, seed: int) -> NoStore | StudyStore:
    """Return where trials are kept; raise ValueError for a study of other data or settings."""
    if study is None:
        return NoStore()
    store = StudyStore(study)
    data = fingerprint(problem.X, problem.y, problem.weights)
    store.claim(data, f"{problem.size} support vectors, {problem.template!r}", seed)
    return store


class NoStore:
    """Keeps nothing."""

    def recall(self, settings: Settings, effort: TrialEffort) -> None:
        """Return None: nothing was kept."""

    def keep(self, trial: Trial) -> None:
        """Keep nothing."""

    def close(self, finalists: Iterable[Settings]) -> None:
        """Do nothing."""


class StudyStore:
    """Trials by their settings and effort, in a study that belongs to one data set and one kind of search."""

    def __init__(self, study: Any) -> None:
        self.study = study
        self.known: dict[tuple[Settings, TrialEffort], Trial] = {}
        self.open: dict[Settings, Any] = {}
        for trial in study.get_trials(deepcopy=False):
            try:
                for kept in EVALUATED.read(EVALUATIONS, trial.user_attrs.get(EVALUATIONS, []), {}):
                    self.known[kept.settings, kept.effort] = kept
            except StateError as error:
                raise ValueError(
                    f"the study {study.study_name!r} cannot be continued: its trial {trial.number} has {error.words}; give "
                    "another name"
                ) from error

    def claim(self, data: str, search: str, seed: int) -> None:
        """Write data, search and seed into the study; raise ValueError if the study has others."""
        told = self.study.user_attrs
        if [direction.name for direction in self.study.directions] != ["MINIMIZE"]:
            raise ValueError(
                f"the study {self.study.study_name!r} does not minimise one error; give another name, or make it with "
                "optuna.create_study(direction='minimize')"
            )
        if not told and self.study.get_trials(deepcopy=False):
            raise ValueError(
                f"the study {self.study.study_name!r} holds trials that slimsvm.tune did not make; give another name"
            )
        if told.get(DATA, data) != data:
            raise ValueError(
                f"the study {self.study.study_name!r} is of another data set. Give "
                "another name, or the rows, labels and weights that it was made with"
            )
        if told.get(SEARCH, search) != search:
            raise ValueError(
                f"the study {self.study.study_name!r} is of another search: {str(told[SEARCH])[:200]}; this one is "
                f"{search}. Give another name"
            )
        if told.get(SEED, seed) != seed:
            raise ValueError(
                f"the study {self.study.study_name!r} was made with random_state={told[SEED]}, and this search has {seed}; "
                "give the same, or another name"
            )
        for name, value in ((DATA, data), (SEARCH, search), (SEED, seed)):
            self.study.set_user_attr(name, value)

    def recall(self, settings: Settings, effort: TrialEffort) -> Trial | None:
        """Return the trial that was kept, or None."""
        return self.known.get((settings, effort))

    def keep(self, trial: Trial) -> None:
        """Write a trial into the study."""
        kept = self.open.get(trial.settings)
        if kept is None:
            self.study.enqueue_trial(trial.settings.parameters)
            kept = self.open[trial.settings] = self.study.ask(_distributions(trial.settings))
        kept.report(trial.error, step=len(kept.user_attrs.get(EVALUATIONS, ())))
        kept.set_user_attr(EVALUATIONS, [*kept.user_attrs.get(EVALUATIONS, ()), pack(trial)])
        self.known[trial.settings, trial.effort] = trial

    def close(self, finalists: Iterable[Settings]) -> None:
        """Mark the trials of this run as complete or pruned."""
        from optuna.trial import TrialState

        last = set(finalists)
        for settings, kept in self.open.items():
            error = kept.user_attrs[EVALUATIONS][-1]["error"]
            if settings in last:
                self.study.tell(kept, error)
            else:
                self.study.tell(kept, state=TrialState.PRUNED)
        self.open.clear()


def _distributions(settings: Settings) -> dict[str, Any]:
    """Return ranges that contain the settings. Optuna needs them for every trial; nothing is sampled from them."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    ranges: dict[str, Any] = {
        "gamma": FloatDistribution(1e-300, 1e300, log=True),
        "C": FloatDistribution(1e-300, 1e300, log=True),
        "scaling": CategoricalDistribution(sorted({*DENSE_SCALERS, *SPARSE_SCALERS})),
        "epsilon": FloatDistribution(0.0, 1e300),
        "metric": CategoricalDistribution(sorted(METRICS)),
    }
    return {name: ranges[name] for name in settings.parameters}
