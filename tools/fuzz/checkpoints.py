"""Mutants of checkpoints: fits go on from states that a hostile file holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm.estimators import resume
from slimsvm.files.container import unpack_file
from slimsvm.papers.batch_perceptron import SBP
from slimsvm.reducers import Slim
from slimsvm.trainers.smo import SMO

from .containers import container_bytes, container_content, mutate_container
from .mutations import Rng, mutate_tree
from .reader import Reader

#: few steps: many mutants in a short time
QUICK = Slim(steps=1)
METRIC = replace(QUICK, metric="both")
#: states of each fit that mutants begin with: the first, the last and some between
STATES = 3


@cache
def fits() -> dict[str, tuple[Any, Any, Any]]:
    """Return the fits by the hash of their rows."""
    return {_data_hash(states[0]): fit for fit, states in _written_fits()}


@cache
def _written_fits() -> list[tuple[tuple[Any, Any, Any], list[bytes]]]:
    """Return small fits of every method that goes on from checkpoints, with rows of their own, and their checkpoints."""
    two, three = ([_rows(n, classes, seed) for seed, n in enumerate((60, 90, 40, 44, 36))] for classes in (2, 3))
    sparse = csr_array(np.where(two[3][0] > 0.8, two[3][0], 0.0))
    listed = [
        (SlimSVC(C=10.0, trainer=SMO(working_set=8)), *two[0]),
        (SlimSVC(C=0.3, gamma=0.02, trainer=SMO(working_set=8)), *two[1]),  # with problems of active rows
        (SlimSVR(C=10.0, trainer=SMO(working_set=8)), two[2][0], two[2][0][:, 0] * two[2][0][:, 1]),
        (SlimOneClassSVM(nu=0.2, trainer=SMO(working_set=8)), three[2][0], None),
        (SlimSVC(trainer=SBP(max_iter=30, working_set=40), random_state=0), *two[4]),
        (SlimSVC(trainer=SBP(max_iter=40, working_set=10, early_stopping=True), random_state=0), *three[3]),
        (SlimSVC(4, reducer=QUICK, random_state=0), sparse, two[3][1]),
        (SlimSVC(4, trainer=None, reducer=QUICK, random_state=0), *three[4]),
        (SlimSVC(tolerance=0.2, reducer=QUICK, random_state=0), two[0][0] + 1.0, two[0][1]),
        (SlimSVC(3, trainer=None, reducer=METRIC, random_state=0), two[1][0] + 1.0, two[1][1]),
        (SlimSVC(3, calibration="sigmoid", reducer=QUICK, random_state=0), two[2][0] + 1.0, two[2][1]),
    ]
    return [(fit, _states(*fit)) for fit in listed]


def _rows(n: int, classes: int, seed: int) -> tuple[Any, Any]:
    return make_classification(n, 4, n_informative=3, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=seed)


def _states(estimator: Any, X: Any, y: Any) -> list[bytes]:
    """Return every checkpoint that a fit writes."""
    written: list[bytes] = []
    saving = clone(estimator).set_params(checkpoint=("state", 1e-9))
    with (
        patch.object(resume, "write_whole", lambda path, pieces: written.append(b"".join(pieces))),  # noqa: ARG005
        warnings.catch_warnings(action="ignore"),
    ):
        saving.fit(X, y)
    return written


def _data_hash(data: bytes) -> Any:
    return unpack_file(data)[0]["checkpoint"]["identity"]["data"]


def _seeds() -> Iterable[Any]:
    for _, written in _written_fits():
        for place in np.unique(np.linspace(0, len(written) - 1, STATES).astype(int)):
            yield container_content(written[place])


def _mutate(rng: Rng, content: Any) -> None:
    """Change the states; rarely what stands around them, which is compared with the fit and refused."""
    entry = content["header"].get("checkpoint")
    states = entry.get("states") if isinstance(entry, dict) else None
    if isinstance(states, dict | list) and rng.random() < 0.5:
        mutate_tree(rng, states)
    else:
        mutate_container(rng, content, header=0.05)


def _use(path: Path) -> None:
    """Go on with the fit that the file is of, and predict."""
    path.with_suffix(".copy").write_bytes(path.read_bytes())  # a fit that ends deletes its checkpoint
    estimator, X, y = _fit_of(path)
    going_on = clone(estimator).set_params(checkpoint=path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run may end otherwise than it would have ended
        going_on.fit(X, y)
        scores = going_on.predict(X) if isinstance(estimator, SlimSVR) else going_on.decision_function(X)
    if not np.isfinite(scores).all():
        raise AssertionError("a fit that goes on from this state gives scores that are no numbers")


def _fit_of(path: Path) -> tuple[Any, Any, Any]:
    """Return the fit with the rows that the file names, or any fit."""
    try:
        return fits()[_data_hash(path.read_bytes())]
    except (ValueError, KeyError, TypeError):
        return next(iter(fits().values()))


CHECKPOINTS = Reader(".state", _seeds, _mutate, container_bytes, _use)
