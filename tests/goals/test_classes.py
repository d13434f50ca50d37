"""Codings: labels to targets and outputs back to labels."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import SVC

from slimsvm import SlimSVC, compress
from slimsvm.goals import CLASSIFIERS, OneVsOne, OneVsRest
from slimsvm.importers.models import import_svm


@pytest.mark.parametrize("name", CLASSIFIERS)
@given(k=st.integers(2, 7), seed=st.integers(0, 1000))
def test_targets_decode_to_the_labels_they_encode(name, k, seed):
    coding = CLASSIFIERS[name](k)
    labels = np.random.default_rng(seed).integers(0, k, 30)
    targets = coding.encode(labels)
    assert targets.shape == (30, coding.outputs)
    assert np.isin(targets, [-1.0, 0.0, 1.0]).all()
    np.testing.assert_array_equal(coding.decode(targets), labels)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_output_has_rows_for_and_against_it(name, k):
    targets = CLASSIFIERS[name](k).encode(np.arange(k))
    assert (targets == 1).any(axis=0).all()
    assert (targets == -1).any(axis=0).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_classes_are_one_output_that_is_positive_for_class_one(name):
    coding = CLASSIFIERS[name](2)
    assert coding.outputs == 1
    np.testing.assert_array_equal(coding.encode(np.array([0, 1, 1])), [[-1.0], [1.0], [1.0]])
    outputs = np.array([[-0.5], [2.0]])
    np.testing.assert_array_equal(coding.scores(outputs), [-0.5, 2.0])
    np.testing.assert_array_equal(coding.decode(outputs), [0, 1])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_codings_of_two_classes_agree(name):
    outputs = np.random.default_rng(0).normal(size=(50, 1))
    for coding in (CLASSIFIERS[name](2), OneVsRest(2)):
        np.testing.assert_array_equal(coding.decode(outputs), outputs.ravel() > 0)
        np.testing.assert_array_equal(coding.owner(outputs), outputs.ravel() > 0)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("k", [3, 6])
def test_the_largest_score_names_the_class(name, k):
    """For votes: where no two classes have equally many, since scores part equals by the sum of outputs."""
    coding = CLASSIFIERS[name](k)
    outputs = np.random.default_rng(k).normal(size=(400, coding.outputs))
    scores, labels = coding.scores(outputs), coding.decode(outputs)
    assert scores.shape == (400, k)
    if name == "ovo":
        votes = np.sort(coding.votes(outputs), axis=1)
        clear = votes[:, -1] > votes[:, -2]
        assert 0 < clear.sum() < 400
        scores, labels = scores[clear], labels[clear]
    np.testing.assert_array_equal(scores.argmax(axis=1), labels)


@pytest.mark.parametrize("multiclass", ["ovo", "dag"])
def test_small_models_of_the_pairs_of_a_thousand_classes_are_refused(multiclass):
    X = np.random.default_rng(0).normal(size=(2000, 2))
    with pytest.raises(ValueError, match=r"each pair of 1,000 classes need 499,500 targets.*give multiclass='ovr'"):
        SlimSVC(4, trainer=None, multiclass=multiclass).fit(X, np.repeat(np.arange(1000), 2))


@pytest.mark.parametrize("k", [3, 4, 7])
def test_a_dag_asks_for_one_pair_less_than_classes(k):
    dag = CLASSIFIERS["dag"](k)
    outputs = np.random.default_rng(k).normal(size=(60, dag.outputs))
    pairs, asked = {pair: column for column, pair in enumerate(combinations(range(k), 2))}, np.zeros(60, dtype=int)

    def output(rows, column):
        asked[rows] += 1
        return outputs[rows, column]

    found = dag.walk(60, output)
    assert (asked == k - 1).all()
    np.testing.assert_array_equal(dag.decode(outputs), found)
    for row, label in zip(outputs, found, strict=True):
        left = list(range(k))
        while len(left) > 1:
            left.pop(-1 if row[pairs[left[0], left[-1]]] > 0 else 0)
        assert left == [label]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_point_that_speaks_for_one_class_belongs_to_it(name, k):
    coding = CLASSIFIERS[name](k)
    owners = np.arange(k).repeat(2)
    coef = coding.encode(owners) * np.random.default_rng(0).uniform(0.5, 1.5, (owners.size, 1))
    np.testing.assert_array_equal(coding.owner(coef), owners)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_votes_are_pairs_won(k):
    coding = OneVsOne(k)
    outputs = np.random.default_rng(k).normal(size=(100, coding.outputs))
    votes = np.zeros((100, k))
    for row in range(100):
        column = 0
        for i in range(k):
            for j in range(i + 1, k):
                for_first = outputs[row, column] > 0 if k > 2 else outputs[row, column] <= 0
                votes[row, i if for_first else j] += 1
                column += 1
    np.testing.assert_allclose(coding.votes(outputs), votes, atol=1e-12)
    np.testing.assert_array_equal(coding.decode(outputs), votes.argmax(axis=1))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_columns_are_pairs_in_the_order_of_libsvm(k):
    signs = np.zeros((k, k * (k - 1) // 2))
    for column, (i, j) in enumerate(combinations(range(k), 2)):
        signs[i, column], signs[j, column] = (1.0, -1.0) if k > 2 else (-1.0, 1.0)
    np.testing.assert_array_equal(OneVsOne(k).signs, signs)
    outputs = np.random.default_rng(k).normal(size=(50, signs.shape[1]))
    np.testing.assert_array_equal(OneVsOne(k).owner(outputs), (outputs @ signs.T).argmax(axis=1))


def test_five_hundred_classes_need_no_table_of_classes_and_pairs():
    """The memory is that of the outputs, and some copies of one class's columns."""
    coding = OneVsOne(500, break_ties=True)
    labels = np.array([3, 499, 0, 250])
    table = 500 * coding.outputs * 8
    tracemalloc.start()
    outputs = coding.encode(labels)
    np.testing.assert_array_equal(coding.decode(outputs), labels)
    np.testing.assert_array_equal(coding.owner(outputs), labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < table / 50


@pytest.mark.parametrize("load", [load_digits, load_iris], ids=["digits", "iris"])
def test_one_against_one_is_svcs(load):
    X, y = load(return_X_y=True)
    learn, test = slice(0, None, 3), slice(1, None, 3)
    svc = SVC(gamma="scale", decision_function_shape="ovo").fit(X[learn], y[learn])
    imported = import_svm(svc)
    outputs = imported.model.written_out()(X[test])
    np.testing.assert_allclose(outputs, svc.decision_function(X[test]), atol=1e-9)
    np.testing.assert_array_equal(svc.classes_[imported.goal.decode(outputs)], svc.predict(X[test]))
    svc.set_params(decision_function_shape="ovr")
    np.testing.assert_allclose(imported.goal.scores(outputs), svc.decision_function(X[test]), atol=1e-9)
    owners = imported.goal.owner(imported.model.coef)
    assert (owners == np.repeat(np.arange(svc.classes_.size), svc.n_support_)).mean() > 0.9


def test_ties_of_votes_go_to_the_first_class_as_in_svc():
    """Three classes that each win one pair."""
    outputs = np.array([[0.1, -0.9, 0.2]])
    coding = OneVsOne(3)
    np.testing.assert_allclose(coding.votes(outputs), [[1, 1, 1]])
    assert coding.decode(outputs) == [0]
    assert coding.scores(outputs).argmax() == 2


def test_estimators_hold_the_coding_they_decode_by():
    X, y = load_iris(return_X_y=True)
    assert isinstance(SlimSVC().fit(X, y).goal_, OneVsOne)
    assert isinstance(SlimSVC(budget=10, random_state=0).fit(X, y).goal_, OneVsRest)
    assert isinstance(compress(SVC().fit(X, y), X, y).goal_, OneVsOne)
