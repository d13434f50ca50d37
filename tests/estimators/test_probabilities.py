"""Small models that are fitted to probabilities of classes in place of labels."""

import numpy as np
import pytest

from slimsvm import SlimSVC
from slimsvm.goals import OneVsRest
from slimsvm.goals.margin_targets import CrossEntropy


def three_classes(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = np.exp(np.c_[X[:, 0], np.sin(2 * X[:, 1]), np.zeros(n)])
    P = scores / scores.sum(axis=1, keepdims=True)
    return X, P, (rng.uniform(size=(n, 1)) > P.cumsum(axis=1)).sum(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_0_and_1_give_the_model_of_the_labels_to_the_last_bit(classes):
    X, _, y = three_classes()
    X, y = X[y < classes], y[y < classes]
    small = SlimSVC(4, trainer=None, random_state=0)
    plain = small.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(small.fit(X, y, probabilities=np.eye(classes)[y]).decision_function(X), plain)


@pytest.mark.parametrize("classes", [2, 3])
def test_cross_entropy_of_probabilities_is_the_mean_over_classes(classes):
    rng = np.random.default_rng(0)
    P, goal = rng.dirichlet(np.ones(classes), 5), OneVsRest(classes)
    outputs = rng.normal(size=(5, goal.outputs))
    found, slopes = CrossEntropy(goal.targets_of(P)).measured(outputs)
    each = [CrossEntropy(goal.encode(np.full(5, k))).measured(outputs) for k in range(classes)]
    np.testing.assert_allclose(found, sum(P[:, k] * each[k][0] for k in range(classes)))
    np.testing.assert_allclose(slopes, sum(P[:, [k]] * each[k][1] for k in range(classes)), atol=1e-12)


def test_a_model_of_the_true_probabilities_is_nearer_to_them_than_one_of_drawn_labels():
    X, P, y = three_classes()
    new, truth, _ = three_classes(2000, seed=1)
    small = SlimSVC(8, trainer=None, random_state=0)
    agreement = [np.mean(small.fit(X, y, probabilities=given).predict(new) == truth.argmax(axis=1)) for given in (None, P)]
    assert agreement[1] > agreement[0] + 0.02


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (lambda P: P[:, :2], {}, "a column for each class"),
        (lambda P: 2 * P, {}, "the sum 1"),
        (lambda P: P - np.array([0.5, 0, -0.5]), {}, "0 or more"),
        (lambda P: P * np.nan, {}, "NaN"),
        (lambda P: P, {"trainer": "smo"}, "trainer=None"),
        (lambda P: P, {"reducer": "spsvm"}, "reducer='slim'"),
        (lambda P: P, {"multiclass": "ovo"}, "multiclass='ovr'"),
    ],
)
def test_probabilities_that_cannot_be_used_are_refused(change, settings, words):
    X, P, y = three_classes(60)
    with pytest.raises(ValueError, match=words):
        SlimSVC(**{"budget": 4, "trainer": None} | settings).fit(X, y, probabilities=change(P))
