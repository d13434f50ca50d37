"""Merged points against plain searches: the best point on a line, the pair chosen, the distances, the bookkeeping."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from slimsvm.kernels import RBF, Linear
from slimsvm.papers.merging import SCORES, Merging, PairTable, losses, merge_pair
from slimsvm.rows.host import HostRows

KERNEL = RBF(0.4)


def pair_loss(points, coef, z, c):
    """|sum_i coef_i Phi(x_i) - c Phi(z)|^2 from the kernel matrix."""
    points, coef = np.vstack([points, z]), np.vstack([coef, -c])
    return float((coef * (KERNEL(points, points) @ coef)).sum())


def problem(seed, m=30, q=1, classes=2):
    rng = np.random.default_rng(seed)
    groups = np.arange(m) % classes
    signs = np.where(groups[:, None] == np.arange(q), 1.0, -1.0)
    return rng.normal(size=(m, 2)), signs * rng.uniform(0.1, 2.0, (m, q)), groups


def merging(points, coef, groups, pairs="nearest", **settings):
    return Merging(HostRows(KERNEL, points), points, coef, groups, np.random.default_rng(0), pairs, **settings)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_merged_point_is_the_best_on_the_line(q, seed):
    rng = np.random.default_rng(seed)
    points, coef = rng.normal(size=(2, 2)), rng.uniform(0.1, 2.0, (2, q))
    coef = coef[np.argsort(np.square(coef).sum(axis=1))]
    far = 0.4 * np.square(points[0] - points[1]).sum()
    h, c, loss = merge_pair(*coef, far)

    def lost(share):
        z = share * points[:1] + (1 - share) * points[1:]
        return pair_loss(points, coef, z, (KERNEL(z, points) @ coef))

    best = min((minimize_scalar(lost, bounds=ends, method="bounded") for ends in ((0, 0.5), (0.5, 1))), key=lambda r: r.fun)
    assert loss == pytest.approx(best.fun, abs=1e-6)
    z = h * points[:1] + (1 - h) * points[1:]
    assert loss == pytest.approx(pair_loss(points, coef, z, c[None]), abs=1e-9)
    np.testing.assert_allclose(c, (KERNEL(z, points) @ coef).ravel(), rtol=1e-9)


@pytest.mark.parametrize("q", [1, 3])
def test_the_score_is_nearly_the_loss(q):
    points, coef, _ = problem(3, q=q, classes=1)
    far = -np.log(KERNEL(points, points))
    np.fill_diagonal(far, np.inf)
    squares = np.square(coef).sum(axis=1)
    for p in range(coef.shape[0]):
        scores = losses(far[p], coef[p], coef)
        assert scores[p] == np.inf
        for j in set(range(coef.shape[0])) - {p}:
            light, heavy = (p, j) if squares[p] <= squares[j] else (j, p)
            exact = merge_pair(coef[light], coef[heavy], far[p, j])[2]
            assert exact <= scores[j] + 1e-9
            assert scores[j] <= 2 * exact + 1e-6


def naive_merges(points, coef, groups, steps, score):
    """All pairs looked at anew in each step."""
    points, coef, groups = list(points), list(coef), list(groups)
    for _ in range(steps):
        same = len(set(groups)) < len(groups)
        pairs = [(i, j) for i in range(len(points)) for j in range(i) if not same or groups[i] == groups[j]]

        def value(pair):
            far = 0.4 * np.square(points[pair[0]] - points[pair[1]]).sum()
            return score(np.array([far]), coef[pair[0]], coef[pair[1]][None])[0]

        p, j = sorted(min(pairs, key=value), key=lambda i: coef[i] @ coef[i])
        h, coef[j], _ = merge_pair(coef[p], coef[j], 0.4 * np.square(points[p] - points[j]).sum())
        points[j] = h * points[p] + (1 - h) * points[j]
        for table in (points, coef, groups):
            del table[p]
    return np.array(points), np.array(coef)


@pytest.mark.parametrize("pairs", SCORES)
@pytest.mark.parametrize(("q", "classes"), [(1, 2), (3, 3), (1, 1)])
@pytest.mark.parametrize("left", [29, 20, 8, 3, 1])
def test_merges_are_those_of_a_search_through_all_pairs(pairs, q, classes, left):
    points, coef, groups = problem(7, q=q, classes=classes)
    run = merging(points, coef, groups, pairs)
    for size in range(29, left - 1, -1):
        run.merge()
        assert run.size == size
    points, coef = naive_merges(points, coef, groups, 30 - left, SCORES[pairs])
    order, theirs = np.lexsort(run.points().T), np.lexsort(points.T)
    np.testing.assert_allclose(run.points()[order], points[theirs], atol=1e-7)
    np.testing.assert_allclose(run.coef[run.places][order], coef[theirs], atol=1e-7)


@pytest.mark.parametrize("pairs", SCORES)
def test_what_was_lost_bounds_the_distance(pairs):
    points, coef, groups = problem(2, q=2)
    run = merging(points, coef, groups, pairs)
    for _ in range(29):
        run.merge()
        everything, signed = np.vstack([points, run.points()]), np.vstack([coef, -run.coef[run.places]])
        distance = np.sqrt((signed * (KERNEL(everything, everything) @ signed)).sum())
        assert distance <= run.lost + 1e-6
        np.testing.assert_allclose(np.bincount(run.merged_into, run.shares)[run.places], 1.0)


def test_distances_after_a_merge_are_those_of_the_merged_point():
    points, coef, _ = problem(5, m=10, classes=1)
    table = PairTable(np.arange(10), KERNEL(points, points), coef.copy(), SCORES["nearest"])
    _, p, j = table.best_pair()
    h, _ = table.merge(p, j)
    points[j] = h * points[p] + (1 - h) * points[j]
    others = np.setdiff1d(np.arange(10), [p, j])
    np.testing.assert_allclose(table.far[j, others], 0.4 * np.square(points[j] - points[others]).sum(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(table.far[p], np.inf)


def test_a_large_class_is_merged_in_parts():
    points, coef, groups = problem(4, m=100, q=1)
    run = merging(points, coef, groups, largest_table=16)
    assert [table.places.size for table in run.tables] == [13, 13, 12, 12] * 2  # two classes of 50, in four parts each
    for table in run.tables:
        assert np.unique(groups[table.places]).size == 1
    assert sorted(np.concatenate([table.places for table in run.tables])) == list(range(100))
    for size in range(99, 0, -1):
        run.merge()
        assert run.size == size
    assert np.isfinite(run.points()).all()


def test_sparse_points_are_merged_as_dense_ones(form):
    points, coef, groups = problem(6)
    points = points * (np.abs(points) > 0.5)
    ours, dense = merging(form(points), coef, groups), merging(points, coef, groups)
    for _ in range(20):
        ours.merge()
        dense.merge()
    result = ours.points()
    np.testing.assert_allclose(result.toarray() if isinstance(result, csr_array) else result, dense.points(), atol=1e-12)


def test_equal_points_and_points_out_of_reach_are_merged():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [1e3, 0.0], [-1e3, 5.0]])
    run = merging(points, np.array([[1.0], [2.0], [0.5], [4.0]]), np.zeros(4))
    run.merge()
    np.testing.assert_allclose(run.coef[run.places].ravel(), [3.0, 0.5, 4.0])
    run.merge()
    run.merge()
    np.testing.assert_allclose(run.points(), [[-1e3, 5.0]])


def test_kernel_values_are_evaluated_and_counted_only_when_points_are_compared():
    """All pairs of each class at first, and again when half of the points are left."""
    points, coef, groups = problem(8, m=20)
    rows = HostRows(KERNEL, points)
    run = Merging(rows, points, coef, groups, np.random.default_rng(0))
    assert rows.meter.evaluations == 2 * 10**2
    for _ in range(10):
        run.merge()
    assert rows.meter.evaluations == 2 * 10**2
    left = np.bincount(groups[run.places])
    run.merge()
    assert rows.meter.evaluations == 2 * 10**2 + int(np.square(left).sum())


def test_other_kernels_are_refused():
    points, coef, groups = problem(0)
    with pytest.raises(ValueError, match="rbf kernel only, and the kernel is 'linear'"):
        Merging(HostRows(Linear(), points), points, coef, groups, np.random.default_rng(0))
