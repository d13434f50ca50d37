"""Pegasos, SDCA and the perceptron: against textbook loops over the whole kernel matrix, and against their theorems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC
from slimsvm.kernels import RBF, Laplacian, Linear, Precomputed, Sigmoid
from slimsvm.model import Status, Task
from slimsvm.papers import one_row_at_a_time
from slimsvm.papers.one_row_at_a_time import SDCA, Pegasos, Perceptron, block_size
from slimsvm.rows.host import HostRows
from slimsvm.run import Run

KERNEL = RBF(0.3)


def signed_rows(K, y):
    """Q_ij = y_i y_j K_ij."""
    return K * np.outer(y, y)


def draws(trainer, weights, passes):
    """The rows that a trainer looks at on the task of `make_task`, whose seed is 0."""
    rng, n = np.random.default_rng(0).spawn(1)[0], weights.size
    if isinstance(trainer, Perceptron) and not trainer.shuffle:
        return np.tile(np.arange(n), passes)
    if not getattr(trainer, "replace", False):
        return np.concatenate([rng.permutation(n) for _ in range(passes)])
    if isinstance(trainer, Pegasos):
        return np.concatenate([rng.choice(n, n, p=weights / weights.sum()) for _ in range(passes)])
    return np.concatenate([rng.integers(n, size=n) for _ in range(passes)])


def textbook_pegasos(trainer, Q, weights, rows):
    """The recursion of w itself, in the coordinates of the rows, and the average of t w_(t+1)."""
    lam, n = 1 / (trainer.C * weights.sum()), weights.size
    worth = np.ones(n) if trainer.replace else n * weights / weights.sum()
    w, sums, moved = np.zeros(n), np.zeros(n), []
    for t, i in enumerate(rows, start=1):
        moved.append(Q[i] @ w < 1)
        w = (1 - 1 / t) * w
        if moved[-1]:
            w[i] += worth[i] / (lam * t)
        sums += t * w
    return sums / (np.arange(rows.size) + 1).sum() if trainer.averaged else w, moved


def textbook_sdca(trainer, Q, weights, rows):
    alpha, cap, moved = np.zeros(weights.size), trainer.C * weights, []
    for i in rows:
        before = alpha[i]
        alpha[i] = np.clip(before + (1 - Q[i] @ alpha) / Q[i, i], 0, cap[i])
        moved.append(abs(alpha[i] - before) > 1e-11)
    return alpha, moved


def textbook_perceptron(trainer, Q, weights, rows):
    alpha, iterates, moved = np.zeros(weights.size), [], []
    for i in rows:
        moved.append(Q[i] @ alpha <= 0)
        alpha[i] += moved[-1]
        iterates.append(alpha.copy())
    return np.mean(iterates, axis=0) if trainer.averaged else alpha, moved


TEXTBOOK = {Pegasos: textbook_pegasos, SDCA: textbook_sdca, Perceptron: textbook_perceptron}
TRAINERS = [
    Pegasos(averaged=False, replace=True, passes=4, gap=0.0),
    Pegasos(averaged=False, passes=4, gap=0.0),
    Pegasos(3.0, averaged=True, replace=True, passes=4, gap=0.0),
    Pegasos(passes=4, gap=0.0),
    SDCA(1.0, 1e-9, passes=4),
    SDCA(2.0, 1e-9, passes=4, replace=True),
    Perceptron(4),
    Perceptron(4, averaged=False),
    Perceptron(4, shuffle=False),
]


def label(trainer):
    return repr(trainer).replace(", max_iter=-1", "").replace(", time_limit=None", "")


@pytest.fixture(params=[1, 7, 60])
def block(request, monkeypatch):
    """Blocks of so many rows."""
    monkeypatch.setattr(one_row_at_a_time, "block_size", lambda n: request.param)  # noqa: ARG005
    return request.param


# Step by step the textbook's


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("trainer", TRAINERS, ids=label)
def test_blocks_give_what_the_plain_loop_gives(trainer, make_blobs, make_task):
    X, y = make_blobs(60)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 60) if trainer.weighted else np.ones(60)
    fit = trainer.fit(make_task(KERNEL, X, y, weights))
    assert fit.status is Status.PASSED
    assert fit.n_iter == 240
    expected, _ = TEXTBOOK[type(trainer)](trainer, signed_rows(KERNEL(X, X), y), weights, draws(trainer, weights, 4))
    np.testing.assert_allclose(fit.dual[:, 0], y * expected, rtol=1e-9, atol=1e-12)
    assert not fit.model.bias.any()


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("steps", [0, 1, 5, 60, 97])
@pytest.mark.parametrize("trainer", TRAINERS[::2], ids=label)
def test_max_iter_ends_after_so_many_steps(trainer, steps, make_blobs, make_task):
    X, y = make_blobs(60)
    weights = np.ones(60)
    limited = replace(trainer, max_iter=steps)
    fit = limited.fit(make_task(KERNEL, X, y))
    assert fit.status is Status.MAX_ITER
    assert fit.n_iter == steps
    rows = draws(trainer, weights, 4)[:steps]
    expected = TEXTBOOK[type(trainer)](trainer, signed_rows(KERNEL(X, X), y), weights, rows)[0] if steps else np.zeros(60)
    np.testing.assert_allclose(fit.dual[:, 0], y * expected, rtol=1e-9, atol=1e-12)


@given(n=st.integers(2, 12), seed=st.integers(0, 10**6), trainer=st.sampled_from(TRAINERS))
@settings(max_examples=60)
def test_blocks_in_which_rows_repeat_give_what_the_plain_loop_gives(n, seed, trainer):
    """Draws from few rows, and rows that are equal (with equal labels: margins of exactly 0 are decided by rounding)."""
    rng = np.random.default_rng(seed)
    same = rng.integers(n // 2 + 1, size=n)
    X, y = rng.normal(size=(n, 2))[same], np.where(same % 2, 1.0, -1.0)
    fit = trainer.fit(Task(HostRows(RBF(0.37), X), y[:, None], np.ones(n), np.random.default_rng(0)))
    rows = draws(trainer, np.ones(n), 4)[: fit.n_iter]
    expected, _ = TEXTBOOK[type(trainer)](trainer, signed_rows(RBF(0.37)(X, X), y), np.ones(n), rows)
    np.testing.assert_allclose(fit.dual[:, 0], y * expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("trainer", TRAINERS, ids=label)
def test_evaluations_are_all_rows_for_each_that_moved_and_the_squares_of_the_blocks(trainer, block, make_blobs, make_task):
    X, y = make_blobs(60)
    task, rows = make_task(KERNEL, X, y), draws(trainer, np.ones(60), 4)
    trainer.fit(task)
    _, moved = TEXTBOOK[type(trainer)](trainer, signed_rows(KERNEL(X, X), y), np.ones(60), rows)
    here = np.where(moved, rows, -1).reshape(4, 60)
    parts = [part[start : start + block] for part in here for start in range(0, 60, block)]
    promised = sum(60 * np.unique(part[part >= 0]).size + part.size**2 for part in parts)
    assert task.rows.meter.evaluations == promised


# The SVM without a bias


def two_classes(name):
    if name == "moons":
        X, y = make_moons(150, noise=0.3, random_state=0)
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X, y = StandardScaler().fit_transform(X)[:200], y[:200]
    return X, np.where(y == 1, 1.0, -1.0)


def optimum(Q, cap):
    """The best dual objective by a general solver of problems with bounds; its line search may give up from one start."""
    solved = [
        minimize(
            lambda a: 0.5 * a @ Q @ a - a.sum(),
            start,
            jac=lambda a: Q @ a - 1,
            bounds=[(0, c) for c in cap],
            method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-8},
        ).fun
        for start in (np.zeros(cap.size), cap / 2, cap)
    ]
    return -min(solved)


def dual_objective(Q, alpha):
    return alpha.sum() - 0.5 * alpha @ Q @ alpha


def primal_objective(Q, alpha, cap):
    return 0.5 * alpha @ Q @ alpha + cap @ np.maximum(0, 1 - Q @ alpha)


def violation(Q, alpha, cap):
    """The largest projected gradient, row by row."""
    worst = 0.0
    for a, c, gradient in zip(alpha, cap, 1 - Q @ alpha, strict=True):
        if a < c:
            worst = max(worst, gradient)
        if a > 0:
            worst = max(worst, -gradient)
    return worst


def some_weights(n, *, weighted):
    return np.random.default_rng(3).uniform(0.2, 3.0, n) if weighted else np.ones(n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("data", ["moons", "breast_cancer"])
def test_sdca_ends_at_the_optimum(data, C, weighted, make_task):
    X, y = two_classes(data)
    weights = some_weights(y.size, weighted=weighted)
    Q, cap = signed_rows(RBF(0.1)(X, X), y), C * weights
    fit = SDCA(C).fit(make_task(RBF(0.1), X, y, weights))
    alpha = fit.dual[:, 0] * y
    assert fit.status is Status.CONVERGED
    assert ((alpha >= 0) & (alpha <= cap)).all()
    assert violation(Q, alpha, cap) <= 1e-3 + 1e-9
    assert fit.gap == pytest.approx(violation(Q, alpha, cap), abs=1e-9)
    assert dual_objective(Q, alpha) == pytest.approx(optimum(Q, cap), rel=1e-4)


@pytest.mark.parametrize("trainer", [SDCA(replace=True), SDCA(tol=1e-5)], ids=label)
def test_other_settings_of_sdca_end_there_too(trainer, make_task):
    X, y = two_classes("moons")
    Q, cap = signed_rows(KERNEL(X, X), y), np.ones(y.size)
    fit = trainer.fit(make_task(KERNEL, X, y))
    assert fit.status is Status.CONVERGED
    assert violation(Q, fit.dual[:, 0] * y, cap) <= trainer.tol + 1e-9


def test_float32_tiles_reach_the_optimum_too(make_task, float32_always):
    X, y = two_classes("moons")
    task = make_task(KERNEL, X, y, precision=float32_always)
    assert task.rows.dtype == np.float32
    fit = SDCA().fit(task)
    assert violation(signed_rows(KERNEL(X, X), y), fit.dual[:, 0] * y, np.ones(y.size)) <= 1.2e-3


@given(n=st.integers(2, 9), seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=30)
def test_tiny_problems_have_the_solution_of_a_general_solver(n, seed, C):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1.0, -1.0)
    weights = rng.uniform(0.5, 2.0, n)
    Q = signed_rows(RBF(0.5)(X, X), y)
    fit = SDCA(C, 1e-6, passes=100_000).fit(Task(HostRows(RBF(0.5), X), y[:, None], weights))
    assert fit.status is Status.CONVERGED
    assert dual_objective(Q, fit.dual[:, 0] * y) == pytest.approx(optimum(Q, C * weights), rel=1e-4)


def test_sdca_takes_rows_without_length_to_their_cap(make_task):
    """K_ii = 0: more of such a row costs nothing and gains what the loss says."""
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.5]]), np.array([1.0, 1.0, -1.0])
    fit = SDCA(0.7).fit(make_task(Linear(), X, y))
    assert fit.status is Status.CONVERGED
    assert fit.dual[0, 0] == 0.7


def test_sdca_comes_to_an_end_where_the_kernel_is_not_positive(make_blobs, make_task):
    X, y = make_blobs(60, 5)
    kernel = Sigmoid(1.0, -2.0)
    assert (np.diag(kernel(X, X)) < 0).any()
    fit = SDCA(10.0).fit(make_task(kernel, X, y))
    assert fit.status in (Status.CONVERGED, Status.PASSED)
    if fit.status is Status.CONVERGED:
        assert violation(signed_rows(kernel(X, X), y), fit.dual[:, 0] * y, np.full(60, 10.0)) <= 1e-3 + 1e-9


def test_a_start_from_the_solution_has_nothing_to_do(make_blobs, make_task):
    X, y = make_blobs(100)
    task = make_task(KERNEL, X, y)
    cold = SDCA().fit(task)
    warm = SDCA().fit(task, cold.dual)
    assert warm.status is Status.CONVERGED
    assert warm.n_iter == 0
    np.testing.assert_array_equal(warm.dual, cold.dual)


def test_a_start_of_any_numbers_is_moved_into_the_box(make_blobs, make_task):
    X, y = make_blobs(50)
    start = np.random.default_rng(2).normal(size=(50, 1)) * 5
    task = make_task(KERNEL, X, y)
    begun = SDCA(0.5, max_iter=0).fit(task, start).dual[:, 0] * y
    np.testing.assert_array_equal(begun, np.clip(start[:, 0] * y, 0, 0.5))
    alpha = SDCA(0.5).fit(task, start).dual[:, 0] * y
    assert violation(signed_rows(KERNEL(X, X), y), alpha, np.full(50, 0.5)) <= 1e-3 + 1e-9


PEGASOS = [Pegasos(averaged=averaged, replace=replace) for averaged in (False, True) for replace in (False, True)]


@pytest.mark.parametrize(("trainer", "weighted"), [*zip(PEGASOS, [False, True, True, False], strict=True)], ids=str)
def test_pegasos_comes_within_a_hundredth_of_the_optimum(trainer, weighted, make_task):
    X, y = two_classes("moons")
    weights = some_weights(y.size, weighted=weighted)
    Q = signed_rows(KERNEL(X, X), y)
    many = replace(trainer, passes=400, gap=1e-4)
    alpha = many.fit(make_task(KERNEL, X, y, weights)).dual[:, 0] * y
    assert primal_objective(Q, alpha, weights) == pytest.approx(optimum(Q, weights), rel=1e-2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_the_gap_of_pegasos_bounds_what_is_missing(C, averaged, weighted, make_task):
    X, y = two_classes("moons")
    weights = some_weights(y.size, weighted=weighted)
    Q, cap = signed_rows(KERNEL(X, X), y), C * weights
    task = make_task(KERNEL, X, y, weights)
    for passes in (1, 3, 10):
        fit = Pegasos(C, passes=passes, averaged=averaged, gap=0.0).fit(task)
        primal = primal_objective(Q, fit.dual[:, 0] * y, cap)
        assert fit.status is Status.PASSED
        assert (primal - optimum(Q, cap)) / primal <= fit.gap + 1e-9
        assert fit.gap < np.inf


def test_the_gap_of_the_last_weights_is_that_of_their_own_dual_point(make_task):
    X, y = two_classes("moons")
    Q, cap = signed_rows(KERNEL(X, X), y), np.full(y.size, 2.0)
    fit = Pegasos(2.0, passes=7, averaged=False, gap=0.0).fit(make_task(KERNEL, X, y))
    alpha = fit.dual[:, 0] * y
    assert (alpha <= cap * (1 + 1e-12)).all()
    primal = primal_objective(Q, alpha, cap)
    assert fit.gap == pytest.approx((primal - dual_objective(Q, alpha)) / primal, rel=1e-9)


def test_pegasos_ends_where_the_gap_is_small_enough(make_task):
    X, y = two_classes("breast_cancer")
    task = make_task(RBF(0.03), X, y)
    fits = [Pegasos(gap=gap, passes=500).fit(task) for gap in (0.2, 0.05)]
    assert [fit.status for fit in fits] == [Status.CONVERGED] * 2
    assert [fit.gap <= gap for fit, gap in zip(fits, (0.2, 0.05), strict=True)] == [True] * 2
    assert fits[0].n_iter < fits[1].n_iter < 500 * y.size
    assert fits[0].n_iter % y.size == 0


# The perceptron


@pytest.mark.parametrize("seed", range(5))
def test_mistakes_on_separable_rows_are_as_few_as_novikoff_says(seed, make_blobs, make_task):
    X, y = make_blobs(120, 2, seed, distance=9.0)
    X = np.column_stack([X, np.ones(120)])
    fit = Perceptron(10_000, averaged=False).fit(make_task(Linear(), X, y))
    assert fit.status is Status.CONVERGED
    assert fit.gap == 0
    assert (y * fit.model(X).ravel() > 0).all()
    alpha = SDCA(1e6, 1e-3, passes=20_000).fit(make_task(Linear(), X, y)).dual[:, 0]
    w = X.T @ alpha
    margin = (y * (X @ w)).min() / np.linalg.norm(w)  # of some weights: a lower bound of the largest
    assert margin > 0
    mistakes = np.abs(fit.dual).sum()
    assert mistakes <= (np.linalg.norm(X, axis=1).max() / margin) ** 2


def test_one_pass_of_the_perceptron_is_the_default(make_blobs, make_task):
    X, y = make_blobs(80, distance=0.5)
    fit = Perceptron().fit(make_task(KERNEL, X, y))
    assert fit.status is Status.PASSED
    assert fit.n_iter == 80


def test_the_average_is_steadier_than_the_last_weights():
    X, y = make_moons(600, noise=0.35, random_state=1)

    def outputs(averaged):
        slims = (SlimSVC(trainer=Perceptron(averaged=averaged), gamma=1.0, random_state=seed) for seed in range(5))
        f = np.stack([slim.fit(X[:300], y[:300]).decision_function(X[300:]) for slim in slims])
        return f / np.sqrt(np.square(f).mean(axis=1, keepdims=True))

    # the spread over five orders of the rows, of outputs of mean square 1
    averaged, last = (outputs(averaged).std(axis=0).mean() for averaged in (True, False))
    assert averaged < 0.5 * last


def test_the_perceptron_has_no_weights(make_blobs):
    X, y = make_blobs(40)
    with pytest.raises(ValueError, match=r"Perceptron takes no sample_weight.*pegasos.*sdca"):
        SlimSVC(trainer="perceptron").fit(X, y, sample_weight=np.arange(1, 41))


# What all of them share

KINDS = [Pegasos, Perceptron, SDCA]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_makes_results_repeatable(kind):
    X, y = two_classes("moons")
    first, again, other = (SlimSVC(trainer=kind(), random_state=seed).fit(X, y).decision_function(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_and_a_precomputed_kernel_give_the_same_model(kind, make_blobs, make_task):
    X, y = make_blobs(90, 8)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.15)
    forms = [(KERNEL, X), (KERNEL, csr_array(X)), (Precomputed(), KERNEL(X, X))]
    dense, sparse, precomputed = (kind().fit(make_task(kernel, rows, y)).dual for kernel, rows in forms)
    assert dense.any()
    np.testing.assert_allclose(sparse, dense, atol=1e-9)
    np.testing.assert_allclose(precomputed, dense, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_wait_in_the_cache_are_not_evaluated_again(kind, make_blobs, make_task):
    """Rows of a kernel that is dear to compute are kept; the model is the same without them."""
    X, y = make_blobs(60)
    kept, again = (make_task(Laplacian(0.3), X, y, cache_mb=megabytes) for megabytes in (1.0, 1e-9))
    trainer = replace(kind(), passes=5, max_iter=-1)
    np.testing.assert_allclose(trainer.fit(kept).dual, trainer.fit(again).dual, rtol=1e-12, atol=1e-12)
    assert kept.rows.meter.evaluations < again.rows.meter.evaluations


@pytest.mark.parametrize("kind", KINDS)
def test_each_output_is_its_own_problem(kind):
    X, y = load_iris(return_X_y=True)
    slim = SlimSVC(trainer=kind(), gamma=0.5, random_state=0).fit(X, y)
    assert slim.dual_coef_.shape[0] == 3
    assert not slim.intercept_.any()
    assert slim.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [Pegasos, SDCA])
def test_a_time_limit_ends_the_run_with_what_there_is(kind, make_blobs, make_task):
    X, y = make_blobs(300)
    fit = kind(time_limit=1e-9).fit(make_task(KERNEL, X, y))
    assert fit.status is Status.TIME_LIMIT
    assert fit.n_iter == block_size(300) < 300
    assert fit.dual.any()


@pytest.mark.parametrize("kind", KINDS)
def test_progress_is_reported_from_nothing_to_all(kind, make_blobs, make_task):
    X, y = make_blobs(300)
    task, shares = make_task(KERNEL, X, y), []
    kind().fit(Task(task.rows, task.targets, task.weights, run=Run(lambda phase, done: shares.append(done))))  # noqa: ARG005
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert len(set(shares)) > 2


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        *((kind, {"passes": 0}, "passes must be 1 at least, not 0") for kind in KINDS),
        *((kind, {"time_limit": 0.0}, "time_limit must be a number of seconds above 0") for kind in (Pegasos, SDCA)),
        (Pegasos, {"gap": -0.1}, "gap must be 0 or a share of the primal"),
    ],
)
def test_settings_out_of_range_are_refused(kind, given, words):
    with pytest.raises(ValueError, match=words):
        kind(**given)
