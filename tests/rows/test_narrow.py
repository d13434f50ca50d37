"""Sparse rows for points that have some of the features alone."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from slimsvm import SlimSVC, load, save
from slimsvm.kernels import KERNELS, RBF, InnerKernel, make_kernel
from slimsvm.reducers import Slim
from slimsvm.rows.host import VERY_MANY_FEATURES, HostRows

INNER = [name for name in KERNELS if issubclass(KERNELS[name], InnerKernel)]


def made(n=60, d=40, density=0.1):
    rng = np.random.default_rng(0)
    X = rng.random((n, d)) * (rng.random((n, d)) < density)
    X[:, 3] += 1.0
    return X


@pytest.mark.parametrize("name", INNER)
def test_kernel_values_and_gradients_are_those_with_all_features(name):
    X, features = made(), np.array([1, 3, 8, 30])
    kernel = make_kernel(name, gamma=0.3, degree=3, coef0=0.5)
    whole = HostRows(kernel, csr_array(X))
    rows = whole.on_features(features)
    Z = np.random.default_rng(1).normal(size=(5, 4))
    points = rows.from_coordinates(Z)
    assert issparse(points)
    assert points.shape == (5, 40)
    np.testing.assert_array_equal(rows.to_coordinates(points), Z)
    V, W = np.random.default_rng(2).normal(size=(5, 2)), np.random.default_rng(3).normal(size=(60, 2))
    narrow, wide = rows.moving(Z), whole.moving(points.toarray())
    np.testing.assert_allclose(narrow.times(V), wide.times(V), atol=1e-12)
    np.testing.assert_allclose(narrow.pullback(W, V), wide.pullback(W, V)[:, features], atol=1e-10)
    some = np.arange(0, 60, 7)
    np.testing.assert_allclose(rows.subset(some).moving(Z).times(V), wide.times(V)[some], atol=1e-12)
    np.testing.assert_allclose(rows.mean(some), whole.mean(some)[:, features])


def test_main_features_have_most_of_the_squared_length():
    X = made()
    rows = HostRows(RBF(0.3), csr_array(X))
    lengths = (X**2).sum(axis=0)
    found = rows.main_features(7)
    assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(np.sort(lengths[found]), np.sort(lengths)[-7:])
    assert rows.main_features(40) is None
    dense = HostRows(RBF(0.3), made(density=1.0))
    assert dense.main_features(7) is None
    with pytest.raises(ValueError, match="need sparse rows"):
        dense.on_features(np.arange(3))


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_points_have_no_features_that_no_row_has(share):
    """As after hashing of words to very many columns."""
    d = 2 * VERY_MANY_FEATURES
    columns = np.random.default_rng(0).choice(d, int(share * d), replace=False)
    rows = HostRows(RBF(0.3), csr_array((np.ones(columns.size), (columns % 60, columns)), shape=(60, d)))
    found = rows.main_features(d)
    assert (found is None) == (share > 0.5)
    if found is not None:
        np.testing.assert_array_equal(found, np.sort(columns))


def test_a_small_model_of_hashed_words_is_as_good_and_as_small_as_that_of_the_words(tmp_path):
    d = 1 << 20
    words = np.hstack([made(150, 60)[:, 4:], np.zeros((150, 4944))])
    hashed = csr_array(words)
    hashed.resize(150, d)
    hashed.indices = (hashed.indices * 7919) % d
    hashed.sort_indices()
    y = words[:, :8].sum(axis=1) > words[:, 8:16].sum(axis=1)
    settings = {"trainer": None, "gamma": 1.0, "reducer": Slim(steps=10), "random_state": 0}
    few, many = (SlimSVC(4, **settings).fit(X, y) for X in (csr_array(words), hashed))
    assert issparse(many.model_.points)
    assert many.score(hashed, y) > few.score(words, y) - 0.03
    save(many, tmp_path / "m.slim")
    assert (tmp_path / "m.slim").stat().st_size < 20_000
    np.testing.assert_array_equal(load(tmp_path / "m.slim").predict(hashed), many.predict(hashed))


def test_dense_points_of_very_many_features_have_kernel_values():
    """A strip of kernel values is that of the kernel."""
    d = (1 << 17) + 1
    X = csr_array(([1.0, 2.0, 0.5], ([0, 1, 2], [0, d - 1, 7])), shape=(3, d))
    Z = np.zeros((2, d))
    Z[0, 0], Z[1, 7] = 1.0, 1.0
    rows = HostRows(RBF(0.5), X)
    V = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(rows.moving(Z).times(V), RBF(0.5)(X.toarray(), Z) @ V, rtol=1e-6)
