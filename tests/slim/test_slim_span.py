"""slim on rows of many features: points move in a span."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_classification

from slimsvm import SlimSVC
from slimsvm.goals.margin_targets import MarginTargets
from slimsvm.kernels import RBF
from slimsvm.reducers import Slim
from slimsvm.rows.host import HostRows
from slimsvm.slim.sparse_points import discriminating_span


def words(n=300, d=400, topics=2):
    """Return documents of a few words, more of them from the own topic's words, and their topics."""
    rng = np.random.default_rng(0)
    y = rng.integers(topics, size=n)
    own = rng.integers(d // topics, size=(n, 8)) * topics + y[:, None]
    X = np.zeros((n, d))
    for i, columns in enumerate(np.hstack([own, rng.integers(d, size=(n, 6))])):
        X[i, columns] += 1
    return csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), y


def fitted(X, y, budget=8, **settings):
    return SlimSVC(budget, gamma=1.0, C=10.0, reducer=Slim(steps=15), random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("topics", [2, 4])
def test_as_accurate_as_points_that_move_in_all_features(topics):
    """The same rows with features that no row has are wide."""
    X, y = words(600, topics=topics)
    wide = csr_array((X.data, X.indices, X.indptr), shape=(600, 5000))
    span, plain = (fitted(rows[:300], y[:300], trainer=None) for rows in (wide, X))
    assert span.model_.points.shape == (span.model_.size, 5000)
    assert span.score(wide[300:], y[300:]) >= plain.score(X[300:], y[300:]) - 0.03


def test_directions_are_those_of_partial_least_squares():
    X, y = words()
    rows, signs = HostRows(RBF(1.0), X).spanned(50, 50, 1.0), (2.0 * y - 1)[:, None]
    span = discriminating_span(rows, MarginTargets.beyond(signs, 1.0), np.ones(300), 0.1, rounds=1, most=64)
    first = X.T @ signs[:, 0]
    np.testing.assert_allclose(np.abs(span.basis[:, 0]), np.abs(first) / np.linalg.norm(first), atol=1e-6)
    several = discriminating_span(rows, MarginTargets.beyond(signs, 1.0), np.ones(300), 0.1, rounds=5, most=64)
    assert several.d == 5


def test_no_row_falls_short():
    X, _ = words()
    anything = MarginTargets(np.full((300, 1), -np.inf), np.full((300, 1), np.inf))
    assert (
        discriminating_span(HostRows(RBF(1.0), X).spanned(50, 50, 1.0), anything, np.ones(300), 0.1, rounds=3, most=9).d
        == 0
    )


def near_few_axes(classes=2):
    """Rows of 150 features that differ in eight directions, and their labels."""
    rng = np.random.default_rng(0)
    inner, y = make_classification(
        900, 8, n_informative=8, n_redundant=0, n_classes=classes, n_clusters_per_class=1, random_state=0
    )
    return inner @ rng.normal(size=(8, 150)) + 0.5 * rng.normal(size=(900, 150)), y


def test_a_learned_metric_moves_points_in_all_features():
    X, y = near_few_axes()
    reducer = Slim(metric="both", steps=5)
    small = SlimSVC(12, trainer=None, reducer=reducer, random_state=0).fit(X, y)
    assert small.model_.factors.shape == (150,)
    assert small.score(X, y) > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_dense_rows_near_few_axes(classes):
    X, y = near_few_axes(classes)
    span = SlimSVC(12, trainer=None, reducer=Slim(steps=15), random_state=0).fit(X[:500], y[:500])
    assert span.model_.points.shape == (12, 150)
    assert span.score(X[500:], y[500:]) >= 0.9


def test_rows_that_are_far_apart_for_the_kernel():
    X, y = near_few_axes()
    assert fitted(X, y, trainer=None).score(X, y) >= 0.4
