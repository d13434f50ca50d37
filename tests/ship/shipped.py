"""Small made models of every kernel, layout and scaling, and how exported files are run and compared with Python."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from slimsvm import export
from slimsvm.estimators import machine_of
from slimsvm.goals import CLASSIFIERS, Novelty, OneVsOne, OneVsRest, Regression
from slimsvm.importers.models import Imported
from slimsvm.kernels import make_kernel
from slimsvm.model import Expansion
from slimsvm.ship.artefact import NO_CLASSES
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.source import artefact_of
from tools.targets import RUNNERS, TOOLS, missing

ROWS = np.random.default_rng(0).random((150, 7)) * [1, 2, 3, 1, 1, 0.5, 1]
WORDS = np.array(sorted(["naïve", "two words", 'quo"te\\ and */ ??/', "x"]))
#: labels, and how outputs name them
LAYOUTS = {
    "two": (np.array([-1, 1]), OneVsRest(2)),
    "rest": (np.array([3, 5, 8, 13]), OneVsRest(4)),
    "words": (WORDS, OneVsRest(4)),
    "votes": (np.array([0, 1, 2, 3]), OneVsOne(4)),
    "pairs": (np.array([False, True]), OneVsOne(2)),
    "parted": (np.array([0, 1, 2, 3]), OneVsOne(4, break_ties=True)),
    "dag": (np.array([0, 1, 2, 3]), CLASSIFIERS["dag"](4)),
    "regression": (NO_CLASSES, Regression(epsilon=0.1)),
    "novelty": (NO_CLASSES, Novelty(nu=0.3)),
}
#: targets that are files; folders hold those of C
TARGETS = [name for name, kind in EXPORTERS.items() if kind.ending]
SCALERS = {
    "none": [],
    "standard": [StandardScaler()],
    "range": [MinMaxScaler((-1, 1))],
    "clipped": [MinMaxScaler(clip=True)],
    "two": [RobustScaler(), StandardScaler(with_std=False)],
}


def model_of(kernel="rbf", layout="rest", scaler="none", size=9, metric=None):
    """A fitted model of made points and coefficients, with outputs of either sign for ROWS."""
    rng = np.random.default_rng(1)
    classes, goal = LAYOUTS[layout]
    params = {"kernel": kernel, "gamma": 0.3, "degree": 3, "coef0": 0.5}
    coef = rng.normal(size=(size, goal.outputs))
    model = Expansion(make_kernel(**params), rng.permutation(ROWS)[:size], coef, np.zeros(goal.outputs), metric)
    bias = -np.median(model(ROWS), axis=0)
    svc = machine_of(Imported(replace(model, bias=bias), goal, classes, ROWS.shape[1], params))
    # fitted on some of the rows, so that others lie beyond their range
    scalers = [clone(step).fit(ROWS[:20]) for step in SCALERS[scaler]]
    return make_pipeline(*scalers, svc) if scalers else svc


def exported(model, target, folder, **settings):
    path = folder / f"made{EXPORTERS[target].ending}"
    export(model, path, **settings)
    return path


def needs(target):
    """Skip a test where the packages of an export are not installed."""
    if target == "onnx":
        pytest.importorskip("onnxruntime")


def shipped(model, target, folder, X=ROWS, **settings):
    if reason := missing(*TOOLS.get(target, ())):
        pytest.skip(reason)
    needs(target)
    return RUNNERS[target](exported(model, target, folder, **settings), artefact_of(model), X)


def clear_rows(model, X, outputs_within):
    """The rows whose prediction does not hang on the last digits of an output."""
    svc = model[-1] if hasattr(model, "steps") else model
    rows = model[:-1].transform(X) if hasattr(model, "steps") else X
    outputs = svc.model_(rows)
    slack = outputs_within * np.abs(outputs).max()
    if svc.goal_.name == "ovr" and outputs.shape[1] > 1:
        first, second = np.sort(outputs, axis=1)[:, ::-1][:, :2].T
        return first - second > slack
    return (np.abs(outputs) > slack).all(axis=1)


def no_ties(units):
    """The rows none of whose numbers is so close to half a step that float32 may round it to either side."""
    return (np.abs(units % 1 - 0.5) > 0.01).all(axis=1)


def assert_agrees(model, outcome, X=ROWS, within=1e-5):
    """Scores and values within a share of the largest, labels identical but for ties."""
    if not hasattr(model, "decision_function"):
        expected = model.predict(X)
        np.testing.assert_allclose(outcome.labels, expected, rtol=0, atol=within * np.abs(expected).max())
        assert outcome.scores is None
        return
    clear = clear_rows(model, X, within)
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(outcome.labels[clear], model.predict(X)[clear])
    if outcome.scores is not None:
        expected = model.decision_function(X).reshape(len(X), -1)
        slack = within * np.abs(expected).max()
        np.testing.assert_allclose(outcome.scores[clear], expected[clear], rtol=0, atol=slack)
