"""Pairs of many classes: the same as written out, in little memory, and the same optimum as pair by pair."""

import pickle
import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from slimsvm import SlimSVC, load, save
from slimsvm._core import core
from slimsvm.estimators.base import MOST_OUTPUTS
from slimsvm.goals import OneVsOne
from slimsvm.kernels import RBF
from slimsvm.model import MANY_CLASSES, Expansion, Status, Task
from slimsvm.pairs import PairCoefficients, PairTargets, pairs_of
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Precision
from slimsvm.rows.prediction import pair_outputs
from slimsvm.rows.protocol import Meter
from slimsvm.solvers.class_pairs import ClassPairs
from slimsvm.trainers.smo import SMO


def clusters(n_classes, each, features=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_classes), each))
    return rng.normal(size=(n_classes, features))[labels] + 0.7 * rng.normal(size=(labels.size, features)), labels


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_targets_are_those_of_one_against_one(n_classes):
    _, labels = clusters(n_classes, 3)
    pairs, written = PairTargets(labels, n_classes), OneVsOne(n_classes).encode(labels)
    assert pairs.shape == written.shape
    for column in range(written.shape[1]):
        rows, y = pairs.column(column)
        assert_array_equal(np.sort(rows), np.flatnonzero(written[:, column]))
        assert_array_equal(y, written[rows, column])


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_pairs_of_a_class(n_classes):
    pairs = list(combinations(range(n_classes), 2))
    for group in range(n_classes):
        assert_array_equal(pairs_of(group, n_classes), [number for number, pair in enumerate(pairs) if group in pair])


def test_coefficients_give_the_outputs_of_those_written_out():
    rng = np.random.default_rng(0)
    counts = np.array([3, 0, 2, 4])  # a class may have no support vector
    coef = PairCoefficients(rng.normal(size=(9, 3)), counts)
    X, points = rng.normal(size=(5, 2)), rng.normal(size=(9, 2))
    model = Expansion(RBF(1.0), points, coef, rng.normal(size=6))
    written = model.written_out()
    assert_allclose(model(X), written(X), atol=1e-12)
    assert_allclose(model.on(HostRows(RBF(1.0), X)), written(X), atol=1e-12)
    assert_array_equal(OneVsOne(4).owner(coef), np.repeat(np.arange(4), counts))
    assert_array_equal(coef.T, written.coef.T)


def tasks(labels, X, weights):
    n_classes, rows = labels.max() + 1, HostRows(RBF(0.5), X)
    goal = OneVsOne(n_classes)
    written = Task(rows, goal.encode(labels), weights, np.random.default_rng(0), goal=goal)
    return replace(written, targets=PairTargets(labels, n_classes)), written


@pytest.mark.parametrize("counts", [[2, 3], [1, 0, 2, 0], [0, 3, 1, 2, 4], [2] * 9])
def test_compiled_outputs_are_those_written_out(counts):
    rng = np.random.default_rng(0)
    counts = np.array(counts)
    coef = PairCoefficients(rng.normal(size=(counts.sum(), counts.size - 1)), counts)
    X, points, bias = rng.normal(size=(21, 3)), rng.normal(size=(counts.sum(), 3)), rng.normal(size=coef.shape[1])
    outputs = pair_outputs(RBF(0.5), X, points, coef, bias, Meter())
    assert_allclose(outputs, RBF(0.5)(X, points) @ np.asarray(coef) + bias, rtol=1e-4, atol=1e-4)


def test_compiled_outputs_need_points_of_all_classes():
    K, against, out, space = np.zeros((2, 4)), np.zeros((4, 2)), np.zeros((2, 3)), np.zeros(3)
    with pytest.raises(ValueError, match="arrays of 5 and 4"):
        core.pair_outputs(K, against, np.array([2, 2, 1]), out, space)
    with pytest.raises(ValueError, match="class 1 has -1 points"):
        core.pair_outputs(K, against, np.array([2, -1, 3]), out, space)


def test_many_classes_have_the_outputs_of_products_for_each_class():
    X, labels = clusters(MANY_CLASSES, 4, features=8)
    model = SlimSVC(C=10.0).fit(X, labels).model_
    assert_allclose(model(X), model.on(HostRows(model.kernel, X)), atol=1e-4)


@pytest.mark.parametrize("max_iter", [-1, 3], ids=["to the end", "few steps"])
def test_small_pairs_have_the_optimum_of_pair_by_pair(max_iter):
    X, labels = clusters(6, 12)
    together, alone = (
        SMO(C=5.0, max_iter=max_iter).fit(task) for task in tasks(labels, X, np.linspace(0.5, 2.0, labels.size))
    )
    assert together.status is alone.status is (Status.CONVERGED if max_iter < 0 else Status.MAX_ITER)
    if max_iter < 0:
        assert_allclose(together.model(X), alone.model(X), atol=1e-6)
    assert together.n_iter > 0


def test_a_class_with_many_others_is_solved_in_parts():
    X, labels = clusters(6, 12)
    groups, ones = PairTargets(labels, 6).groups, np.ones(labels.size)
    whole, parts = (ClassPairs(HostRows(RBF(0.3), X), groups, ones, None, values) for values in (10**6, 300))
    assert [first for first, _ in whole.tasks] == [0, 1, 2, 3, 4]
    assert [first for first, _ in parts.tasks[:4]] == [0, 0, 0, 1]  # 12 rows against 60
    expected = whole.solve(*whole.tasks[0], 1e-3, np.inf)
    found = [parts.solve(*task, 1e-3, np.inf) for task in parts.tasks[:3]]
    for name in ("others", "dual", "bias", "gap", "steps"):
        assert_allclose(np.concatenate([getattr(part, name) for part in found]), getattr(expected, name), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_larger_classes_have_the_optimum_of_pair_by_pair(dtype):
    """Float32 rows are solved by kernel rows on demand, many pairs in one call; float64 rows one pair after the other."""
    X, labels = clusters(4, 260)
    together, alone = tasks(labels, X, np.ones(labels.size))
    rows = HostRows(together.rows.kernel, X, precision=Precision(0 if dtype == "float32" else np.inf))
    pairs = ClassPairs.of(rows, PairTargets(labels, 4).groups, np.ones(labels.size), 1e-3, None)
    assert (pairs is None) is (dtype == "float64")
    together = SMO().fit(replace(together, rows=rows))
    assert_allclose(together.model(X), SMO().fit(alone).model(X), atol=2e-3)
    assert together.status is Status.CONVERGED
    assert 0 < rows.meter.evaluations < 8 * 260**2 * 6


def test_the_estimator_agrees_with_svc():
    X, labels = clusters(5, 30)
    ours, theirs = SlimSVC(C=3.0, gamma=0.5, tol=1e-6).fit(X, labels), SVC(C=3.0, gamma=0.5, tol=1e-6).fit(X, labels)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert_array_equal(ours.n_support_, theirs.n_support_)
    assert_allclose(ours.support_vectors_, theirs.support_vectors_)
    assert ours.dual_coef_.shape == (10, theirs.support_.size)


def test_many_classes_take_little_memory():
    X, labels = clusters(200, 4, features=8)
    tracemalloc.start()
    model = SlimSVC(C=10.0).fit(X, labels)
    model.predict(X[:20])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    written_out = labels.size * 200 * 199 // 2 * 8
    assert peak < written_out / 4


def test_outputs_are_read_for_some_rows_at_a_time():
    X, labels = clusters(200, 4, features=8)
    model = SlimSVC().fit(X, labels)
    several = np.tile(X, (2, 1))  # more rows than outputs of 19,900 pairs are read of at a time
    assert several.shape[0] > MOST_OUTPUTS // model.model_.bias.size
    assert_array_equal(model.predict(several), np.tile(model.predict(X), 2))


def test_files_keep_the_pairs(tmp_path):
    X, labels = clusters(5, 10)
    model = SlimSVC().fit(X, labels)
    save(model, tmp_path / "model.slim")
    loaded = load(tmp_path / "model.slim")
    assert isinstance(loaded.model_.coef, PairCoefficients)
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "damage",
    [
        lambda coef: replace(coef, counts=coef.counts[:-1]),
        lambda coef: replace(coef, counts=coef.counts + 1),
        lambda coef: replace(
            coef, counts=np.concatenate([[-1], coef.counts[1:-1], [coef.counts[-1] + coef.counts[0] + 1]])
        ),
        lambda coef: replace(coef, counts=coef.counts.astype(float)),
        lambda coef: replace(coef, against=coef.against[:, :-1]),
        lambda coef: replace(coef, against=coef.against[:-1]),
    ],
    ids=["a class less", "too many", "negative", "no integers", "a coefficient less", "a point less"],
)
def test_damaged_pairs_in_a_file_are_refused(tmp_path, damage):
    X, labels = clusters(4, 10)
    model = SlimSVC().fit(X, labels)
    model.model_ = replace(model.model_, coef=damage(model.model_.coef))
    save(model, tmp_path / "model.slim")
    with pytest.raises(ValueError, match="cannot load"):
        load(tmp_path / "model.slim")


def test_a_few_rows_and_many_have_the_same_outputs_and_pickles_hold_the_fields_alone():
    X, y = load_iris(return_X_y=True)
    model = SlimSVC().fit(X, y).model_
    np.testing.assert_allclose(model(X[:2]), model(X)[:2], atol=1e-9)
    assert "written" in vars(model.coef)
    assert vars(pickle.loads(pickle.dumps(model.coef))).keys() == {"against", "counts"}
