"""Points with few entries: the pursuit against a plain one, the change that is allowed, and slim on sparse rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse, random_array

from slimsvm import SlimSVC
from slimsvm.clock import Deadline
from slimsvm.kernels import RBF, Linear, Poly, Sigmoid
from slimsvm.model import Expansion
from slimsvm.rows.host import HostRows
from slimsvm.rows.span import in_no_span
from slimsvm.slim.sparse_points import STIFFNESS, Entries, occurring, pursue_all, with_few_entries

RNG = np.random.default_rng(0)
KERNELS = [RBF(0.5), Linear(), Poly(0.5, 1.0, 3), Sigmoid(0.3, 0.1)]


def text(n=300, d=6000, density=0.005, seed=0):
    """Rows of many features, and labels by a sum of some of them."""
    rng = np.random.default_rng(seed)
    X = random_array((n, d), density=density, rng=rng, format="csr")
    w = rng.normal(size=d)
    return X, X @ w > 0


def positive(m, seed=0):
    B = np.random.default_rng(seed).normal(size=(m, m))
    return B @ B.T / m


def plain_pursuit(z, H, count):
    """Greedy: the entry with the largest residual correlation joins, and all entries are fitted again."""
    kept, u = [], np.zeros_like(z)
    for _ in range(count):
        score = (H @ (z - u)) ** 2 / np.diag(H)
        score[kept] = -1
        kept.append(int(score.argmax()))
        u = np.zeros_like(z)
        u[kept] = np.linalg.solve(H[np.ix_(kept, kept)], (H @ z)[kept])
    return u


def test_one_entry_after_the_other_is_that_of_a_plain_pursuit():
    points, H = RNG.normal(size=(7, 40)), positive(7)
    stiff = H + STIFFNESS * np.trace(H) / 7 * np.eye(7)
    entries = Entries(np.arange(40), (7, 40))
    pursue_all(points, H, entries)
    for count in (1, 2, 3, 4):
        (stage,) = entries.stages[count]
        found = np.zeros((40, 7))
        np.put_along_axis(found, stage.points, stage.values, axis=1)
        for column, z in enumerate(points.T):
            np.testing.assert_allclose(found[column], plain_pursuit(z, stiff, count), atol=1e-9)


def test_losses_fall_by_the_gains():
    points, H = RNG.normal(size=(12, 30)), positive(12)
    stiff = H + STIFFNESS * np.trace(H) / 12 * np.eye(12)
    entries = Entries(np.arange(30), (12, 30))
    pursue_all(points, H, entries)
    loss, before = np.einsum("mc,mk,kc->c", points, stiff, points), 0
    for count, (stage,) in entries.stages.items():
        kept = np.zeros((stage.columns.size, 12))
        np.put_along_axis(kept, stage.points, stage.values, axis=1)
        rest = points.T[stage.columns] - kept
        after = np.einsum("cm,mk,ck->c", rest, stiff, rest)
        np.testing.assert_allclose(loss[stage.columns] - after, stage.gains * (count - before), atol=1e-8)
        loss[stage.columns], before = after, count
    assert loss[stage.columns].max() < 1e-8  # all 12 entries


def test_entries_of_the_largest_gain_are_kept():
    points, H = RNG.normal(size=(9, 50)) * RNG.random(50), positive(9)
    entries = Entries(np.arange(50), (9, 50))
    pursue_all(points, H, entries)
    least, counts = entries.ordered()
    assert (np.diff(least) <= 0).all()
    for place in (0, 10, 60, least.size - 1):
        found = entries.some(least[place])
        ties = np.searchsorted(-least, -least[place], side="right") - 1
        assert found.nnz == counts[ties]
    assert entries.some(0.0).shape == (9, 50)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_slopes_are_those_of_the_kernel(kernel):
    X, _ = text(40, 200, 0.1)
    rows = HostRows(kernel, X)
    points = csr_array(0.7 * X[:5])
    span = in_no_span(rows).including(points)
    placed = span.to_coordinates(points)
    inner, step = X.toarray() @ points.toarray().T, 1e-6
    a, b = (np.square(each.toarray()).sum(axis=1) for each in (X, points))
    high, low = (kernel.tail(inner + sign * step, a, b) for sign in (1, -1))
    slopes = (high - low) / (2 * step)
    np.testing.assert_allclose(span.slope_products(placed), slopes.T @ slopes, rtol=1e-3)


def model_on(X, m=8, kernel=None):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(m, 40)) @ np.asarray(X[:40].toarray())
    return Expansion(kernel or RBF(0.2), points, rng.normal(size=(m, 2)), np.zeros(2))


@pytest.mark.parametrize("change", [0.02, 0.1, 0.3])
def test_outputs_change_by_no_more_than_allowed(change):
    X, _ = text()
    rows, model = HostRows(RBF(0.2), X), model_on(X)
    outputs = model(X)
    span = in_no_span(rows).including(model.points)
    sums = span.slope_products(span.to_coordinates(model.points))
    found = with_few_entries(rows, model, sums, outputs, change, Deadline(None))
    assert issparse(found.points)
    assert found.points.nnz < np.count_nonzero(model.points)
    moved = np.sqrt(np.square(found(X) - outputs).mean())
    assert moved <= change * outputs.std(axis=0).mean() * (1 + 1e-4)


def test_a_change_that_nothing_allows_leaves_the_model():
    X, _ = text()
    rows, model = HostRows(RBF(0.2), X), model_on(X, m=40)
    outputs, sums = model(X), np.eye(40)
    assert with_few_entries(rows, model, sums, outputs, 1e-9, Deadline(None)) is model
    assert with_few_entries(rows, model, sums, outputs, 0.1, Deadline(0.0)) is model
    for empty in (np.zeros_like(model.points), csr_array(model.points.shape)):
        zero = Expansion(model.kernel, empty, model.coef, model.bias)
        assert with_few_entries(rows, zero, sums, outputs, 0.1, Deadline(None)) is zero
    still = Expansion(model.kernel, model.points, 0 * model.coef, model.bias)
    assert with_few_entries(rows, still, sums, outputs, 0.1, Deadline(None)) is still


def test_features_in_which_a_point_is_not_zero():
    points = np.array([[0, 1.0, 0, 0], [0, 0, 0, 2.0]])
    np.testing.assert_array_equal(occurring(points), [1, 3])
    np.testing.assert_array_equal(occurring(csr_array(points)), [1, 3])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_slim_on_sparse_rows_of_many_features_has_few_entries(kernel):
    X, y = text()
    settings = {"trainer": None, "random_state": 0, "kernel": kernel, "gamma": 0.5, "coef0": 1.0}
    sparse = SlimSVC(6, **settings).fit(X, y)
    assert issparse(sparse.model_.points)
    assert sparse.model_.points.nnz < 0.8 * sparse.model_.size * occurring(X).size
    again = SlimSVC(6, **settings).fit(X, y)
    np.testing.assert_array_equal(again.model_.points.toarray(), sparse.model_.points.toarray())


def test_slim_on_dense_rows_has_all_entries():
    X, y = text(100, 60, 0.3)
    assert not issparse(SlimSVC(4, trainer=None, random_state=0).fit(X.toarray(), y).model_.points)
    assert not issparse(SlimSVC(4, trainer=None, random_state=0).fit(X, y).model_.points)
