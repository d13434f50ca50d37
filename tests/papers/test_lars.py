"""LARS-SVM against scikit-learn's LARS, against LARS written out, and against what defines it."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import lars_path_gram

from slimsvm import SlimSVC
from slimsvm.goals import OneVsOne, OneVsRest
from slimsvm.kernels import RBF, Linear, Poly, Precomputed
from slimsvm.model import Expansion, Status, Task
from slimsvm.papers.lars import Lars, Support, _ties, lars
from slimsvm.rows.host import HostRows
from slimsvm.trainers import SMO

#: with so many steps as the kernel has dimensions to spare
KERNELS = [
    pytest.param(RBF(1.0), 12, id="rbf-1"),
    pytest.param(RBF(20.0), 12, id="rbf-20"),
    pytest.param(Poly(0.5, 1.0, 4), 8, id="poly"),
]


def two_classes(kernel, n=150):
    X, labels = make_moons(n, noise=0.25, random_state=0)
    task = Task(HostRows(kernel, X), OneVsRest(2).encode(labels), np.ones(n))
    return task, SMO(1.0).fit(task).model


def three_classes(coding, kernel=None, form=np.asarray):
    X, labels = load_iris(return_X_y=True)
    task = Task(HostRows(kernel or RBF(0.5), form(X)), coding.encode(labels), np.ones(labels.size))
    return task, SMO(1.0).fit(task).model


def explicit(model):
    """G and the correlations of each output as the paper writes them, for the support vectors of each output."""
    K = model.kernel(model.points, model.points)
    problems = []
    for alpha, b in zip(model.coef.T, model.bias, strict=True):
        own = alpha != 0
        y = np.sign(alpha[own])
        K_hat = y[:, None] * K[own]
        problems.append((K_hat.T @ K_hat + K, K_hat.T @ (1 - y * b)))
    return problems


def whole(stop, size):
    coef = np.zeros((size, stop.coef.shape[1]))
    coef[stop.index] = stop.coef
    return coef


def naive_lars(G, c, steps):
    """Efron, Hastie, Johnstone & Tibshirani 2004, (2.8) to (2.13), for one output. Returns coefficients after each step."""
    beta, active, path = np.zeros(c.size), [int(np.abs(c).argmax())], []
    for _ in range(steps):
        left = c - G @ beta
        C = np.abs(left[active]).max()
        s = np.sign(left[active])
        w = np.zeros(c.size)
        w[active] = np.linalg.solve(G[np.ix_(active, active)], s)
        a = G @ w
        step, entering = C, None  # to the least-squares solution, where nothing is left to enter
        for j in set(range(c.size)) - set(active):
            for length in ((C - left[j]) / (1 - a[j]), (C + left[j]) / (1 + a[j])):
                if 1e-12 < length < step:
                    step, entering = length, j
        beta = beta + step * w
        path.append(beta)
        active.append(entering)
    return path, active


@pytest.mark.parametrize("kept_values", [10**6, 0], ids=["kept", "evaluated"])
@pytest.mark.parametrize(("kernel", "steps"), KERNELS)
def test_stops_are_those_of_lars_written_out(kernel, steps, kept_values):
    task, model = two_classes(kernel)
    ((G, c),) = explicit(model)
    path, active = naive_lars(G, c, steps)
    support = Support.of(task, model, kept_values)
    assert (support.kept is None) == (kept_values == 0)
    stops = list(lars(support, steps))
    assert [stop.index.size for stop in stops] == list(range(1, steps + 1))
    assert stops[-1].index.tolist() == active[:steps]
    for stop, beta in zip(stops, path, strict=True):
        np.testing.assert_allclose(whole(stop, c.size)[:, 0], beta, rtol=0, atol=1e-6 * np.abs(beta).max())


def test_stops_are_those_of_scikit_learn_until_a_coefficient_changes_its_sign():
    """There scikit-learn turns the point's correlation around too, which makes it no longer that of LARS."""
    task, model = two_classes(RBF(100.0))
    ((G, c),) = explicit(model)
    stops = list(lars(Support.of(task, model), 40))
    signs = [np.sign(whole(stop, c.size)[:, 0]) for stop in stops]
    turns = [m for m in range(1, 40) if (signs[m - 1] * signs[m] < 0).any()]
    steps = min(turns, default=39)
    assert steps >= 20
    _, active, path = lars_path_gram(c, G, n_samples=c.size, method="lar", max_iter=steps)
    assert stops[steps - 1].index.tolist() == list(active)
    for m in range(1, steps + 1):
        np.testing.assert_allclose(whole(stops[m - 1], c.size)[:, 0], path[:, m], rtol=0, atol=1e-6)


@pytest.mark.parametrize("coding", [OneVsRest(3), OneVsOne(3)], ids=["rest", "one"])
def test_chosen_points_are_equally_correlated_and_the_others_less(coding):
    """What defines (group) LARS, with a group's correlation the length of those of its outputs."""
    task, model = three_classes(coding)
    problems = explicit(model)
    level = np.inf
    for stop in lars(Support.of(task, model), 15):
        coef = whole(stop, model.size)
        left = np.column_stack([c - G @ alpha for (G, c), alpha in zip(problems, coef.T, strict=True)])
        lengths = np.linalg.norm(left, axis=1)
        np.testing.assert_allclose(lengths[stop.index], lengths[stop.index].max(), rtol=1e-6)
        assert lengths.max() <= lengths[stop.index].max() * (1 + 1e-6)
        assert lengths[stop.index].max() < level
        level = lengths[stop.index].max()


def test_the_last_stop_is_the_least_squares_solution():
    task, model = two_classes(RBF(20.0), n=40)
    ((G, c),) = explicit(model)
    last = list(lars(Support.of(task, model), 1000))[-1]
    assert last.last
    assert last.index.size == model.size
    np.testing.assert_allclose(whole(last, c.size)[:, 0], np.linalg.solve(G, c), atol=1e-6)


@pytest.mark.parametrize("q", [1, 3])
def test_ties_are_the_roots_of_their_equation(q):
    rng = np.random.default_rng(0)
    c, falls = rng.normal(size=(2, 200, q))
    level = np.linalg.norm(c, axis=1).max()
    t = _ties(c, falls, level)
    assert ((t >= 0) & (t < 1)).all()
    lengths = np.linalg.norm(c - t[:, None] * falls, axis=1)
    np.testing.assert_allclose(lengths, (1 - t) * level, atol=1e-6 * level)
    before = np.linspace(0, 1, 50)[:, None] * t  # no tie before that
    early = np.linalg.norm(c - before[..., None] * falls, axis=2)
    assert (early <= (1 - before) * level * (1 + 1e-6) + 1e-9).all()


def test_copies_of_a_point_do_not_enter():
    task, model = two_classes(RBF(1.0))
    twice = Expansion(model.kernel, np.vstack([model.points] * 2), np.vstack([model.coef] * 2) / 2, model.bias)
    stops = list(lars(Support.of(task, twice), 10))
    assert np.unique(stops[-1].index % model.size).size == 10


def test_no_more_points_than_the_kernel_has_dimensions():
    task, model = two_classes(Linear())
    path = Lars(refit=False).path(task, [1, 2, 5, 10], model)
    assert path.sizes == [1, 2]
    assert path.status is Status.EXHAUSTED


@pytest.mark.parametrize("refit", [True, False])
def test_all_support_vectors_are_the_most_there_are(refit):
    task, model = two_classes(RBF(20.0), n=30)
    path = Lars(refit=refit).path(task, [3, 1000], model)
    assert path.sizes == [3, model.size]
    assert path.status is Status.EXHAUSTED


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("coding", [OneVsRest(3), OneVsOne(3)], ids=["rest", "one"])
def test_sparse_rows_give_what_dense_rows_give(coding, refit):
    paths = []
    for form in (np.asarray, csr_array):
        task, model = three_classes(coding, form=form)
        paths.append(Lars(refit=refit).path(task, [2, 6], model))
    for dense, sparse in zip(*paths, strict=True):
        np.testing.assert_allclose(sparse.model.points.toarray(), dense.model.points)
        np.testing.assert_allclose(sparse.model.coef, dense.model.coef, atol=1e-5)


def test_the_paper_keeps_the_bias_and_a_refit_does_not():
    task, model = two_classes(RBF(1.0))
    kept, fitted = (Lars(refit=refit).path(task, [8], model).models[0] for refit in (False, True))
    np.testing.assert_array_equal(kept.bias, model.bias)
    np.testing.assert_array_equal(kept.points, fitted.points)
    assert not np.allclose(fitted.bias, model.bias)


def test_a_precomputed_kernel_chooses_the_same_rows_among_those_it_has():
    task, model = two_classes(RBF(1.0))
    K = RBF(1.0)(task.rows.given.rows(), task.rows.given.rows())
    rows = np.array([int((point == task.rows.given.rows()).all(axis=1).argmax()) for point in model.points])
    whole_task = Task(HostRows(Precomputed(), K), task.targets, task.weights)
    numbers = Expansion(Precomputed(), rows[:, None], model.coef, model.bias)
    expected = Lars(refit=False).path(task, [10], model).models[0]
    found = Lars(refit=False).path(whole_task, [10], numbers).models[0]
    np.testing.assert_array_equal(task.rows.given.rows()[found.points.ravel()], expected.points)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9)
    others = np.setdiff1d(np.arange(K.shape[0]), rows)
    alone = Task(HostRows(Precomputed(), K[others], ids=others), task.targets[others], task.weights[others])
    with pytest.raises(ValueError, match="none of the full model's support vectors"):
        Lars().path(alone, [10], numbers)


@pytest.mark.parametrize(("points", "coef"), [(1, 0.0), (1, 1.0), (3, 0.0), (3, 1.0)])
@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()], ids=["rbf", "linear"])
def test_the_smallest_full_models_shrink_too(points, coef, kernel):
    X = np.zeros((6, 2))
    task = Task(HostRows(kernel, X), np.ones((6, 1)), np.ones(6))
    model = Expansion(kernel, X[:points], np.full((points, 1), coef), np.ones(1))
    path = Lars().path(task, [1, 2], model)
    assert path.sizes == [1]
    assert (path.models[0](X) > 0).all()


def test_a_time_limit_ends_the_walk():
    task, model = two_classes(RBF(1.0))
    path = Lars(time_limit=1e-9).path(task, [5, 20], model)
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [1]


def test_by_its_name():
    X, y = make_moons(300, noise=0.2, random_state=0)
    small = SlimSVC(budget=12, reducer="lars", gamma=1.0, C=10.0, random_state=0).fit(X, y)
    assert small.model_.size <= 12
    assert small.score(X, y) > 0.9
