"""The ramp-loss SVM against its own objective, plain CCCP with a general solver, and the SVM it starts from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

from slimsvm import SlimSVC
from slimsvm.kernels import RBF
from slimsvm.model import Status, Task
from slimsvm.papers import ramp_loss as module
from slimsvm.papers.ramp_loss import Ramp, into_box, share_of_each_class
from slimsvm.run import Run
from slimsvm.trainers.smo import SMO

EXACT = 1e-6


@pytest.fixture
def noisy(make_blobs):
    """Two clouds with one label in seven flipped."""

    def make(n=200, seed=0):
        X, y = make_blobs(n, seed=seed, distance=3.0)
        flipped = np.random.default_rng(seed).random(n) < 1 / 7
        return X, np.where(flipped, -y, y)

    return make


def objective(K, y, cap, signed, bias, s):
    """The ramp objective from its definition, row by row."""
    f = K @ signed + bias
    losses = [c * min(max(1 - z, 0), 1 - s) for c, z in zip(cap, y * f, strict=True)]
    return 0.5 * signed @ K @ signed + sum(losses)


def tangent_step(K, y, cap, beta):
    """One CCCP step by a general solver: the coefficients and the bias."""
    n = y.size
    slsqp = minimize(
        lambda d: 0.5 * d @ K @ d - y @ d,
        np.zeros(n),
        jac=lambda d: K @ d - y,
        bounds=[tuple(sorted((t * -b, t * (c - b)))) for t, b, c in zip(y, beta, cap, strict=True)],
        constraints={"type": "eq", "fun": lambda d: d.sum(), "jac": lambda d: np.ones(n)},  # noqa: ARG005
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    d = slsqp.x
    a = y * d + beta
    free = (a > 1e-5 * cap) & (a < (1 - 1e-5) * cap)
    return d, np.median((y - K @ d)[free])


def plain_cccp(K, y, cap, s):
    """Collobert et al.'s loop, to the letter, from the SVM of all rows."""
    beta = np.zeros(y.size)
    while True:
        signed, bias = tangent_step(K, y, cap, beta)
        before, beta = beta, np.where(y * (K @ signed + bias) < s, cap, 0.0)
        if (beta == before).all():
            return signed, bias


@pytest.mark.parametrize("s", [-1.0, -0.5, 0.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_result_is_that_of_plain_cccp_with_a_general_solver(s, seed, noisy, make_task):
    X, y = noisy(28, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 28)
    K = RBF(0.3)(X, X)
    signed, bias = plain_cccp(K, y, 2.0 * weights, s)
    fit = Ramp(2.0, EXACT, s=s).fit(make_task(RBF(0.3), X, y, weights))
    ours = objective(K, y, 2.0 * weights, fit.dual[:, 0], fit.model.bias[0], s)
    assert ours == pytest.approx(objective(K, y, 2.0 * weights, signed, bias, s), rel=1e-4)
    np.testing.assert_allclose(fit.model(X).ravel(), K @ signed + bias, atol=1e-3)


@pytest.mark.parametrize("s", [-1.0, -0.2, 0.0, 0.5])
@pytest.mark.parametrize("working_set", [32, 2048])
def test_the_result_is_a_fixed_point(s, working_set, noisy, make_task):
    """The optimum of the problem whose tangents are taken at that optimum."""
    X, y = noisy()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, y.size)
    fit = Ramp(2.0, 1e-4, s=s, working_set=working_set).fit(make_task(RBF(0.3), X, y, weights))
    assert fit.status is Status.CONVERGED
    cap, signed, z = 2.0 * weights, fit.dual[:, 0], y * fit.model(X).ravel()
    ignored = z < s
    assert 0 < ignored.sum() < y.size / 2
    assert (signed[ignored] == 0).all()
    low, high = np.where(ignored, -cap, 0.0), np.where(ignored, 0.0, cap)
    assert ((y * signed >= low) & (y * signed <= high)).all()
    assert signed.sum() == pytest.approx(0.0, abs=1e-9)
    assert (z[y * signed < high] >= 1 - 2e-4).all()
    assert (z[y * signed > low] <= 1 + 2e-4).all()
    assert fit.gap <= 1e-4


@pytest.mark.parametrize("s", [-1.0, -0.5, 0.0])
def test_no_step_raises_the_objective(s, noisy, make_task, monkeypatch):
    X, y = noisy(300)
    K, seen = RBF(0.3)(X, X), []

    def tangents(column, *rest, real=module.tangents):
        seen.append(objective(K, y, np.ones(300), column.signed, column.bias(), s))
        assert module.ramp_objective(column, s) == pytest.approx(seen[-1], rel=1e-9)
        return real(column, *rest)

    monkeypatch.setattr(module, "tangents", tangents)
    Ramp(tol=EXACT, s=s).fit(make_task(RBF(0.3), X, y))
    assert len(seen) >= 2
    assert (np.diff(seen) <= EXACT * seen[0]).all()
    assert seen[-1] < 0.999 * seen[0]


def test_flipped_labels_cost_far_fewer_support_vectors_than_in_the_svm(noisy):
    X, y = noisy(600)
    clean_X, clean_y = noisy(600, seed=1)
    svm = SlimSVC(gamma=0.3).fit(X, y)
    sizes = [SlimSVC(gamma=0.3, trainer=Ramp(s=s)).fit(X, y).model_.size for s in (-1.0, -0.5, 0.0)]
    assert sizes[0] < 0.8 * svm.model_.size
    assert sizes[2] < 0.5 * svm.model_.size
    assert sizes == sorted(sizes, reverse=True)
    ramp = SlimSVC(gamma=0.3, trainer="ramp").fit(X, y)
    assert ramp.score(clean_X, clean_y) >= svm.score(clean_X, clean_y) - 0.02


@pytest.mark.parametrize("s", [-np.inf, -50.0])
def test_a_ramp_that_never_levels_off_is_the_svm(s, noisy, make_task):
    X, y = noisy()
    task = make_task(RBF(0.3), X, y)
    ramp, svm = Ramp(s=s).fit(task), SMO().fit(task)
    np.testing.assert_array_equal(ramp.dual, svm.dual)
    assert ramp.n_iter == svm.n_iter


def test_a_start_on_some_rows_ends_at_a_fixed_point_as_well(noisy, make_task):
    X, y = noisy(400)
    K = RBF(0.3)(X, X)
    values = []
    for subset in (1.0, 0.2):
        fit = Ramp(tol=EXACT, subset=subset).fit(make_task(RBF(0.3), X, y))
        assert fit.status is Status.CONVERGED
        assert not fit.dual[y * fit.model(X).ravel() < -0.5].any()
        values.append(objective(K, y, np.ones(400), fit.dual[:, 0], fit.model.bias[0], -0.5))
    assert values[1] == pytest.approx(values[0], rel=0.05)


def test_a_start_on_some_rows_is_the_same_for_the_same_seed(noisy):
    X, y = noisy()
    same = [SlimSVC(trainer=Ramp(subset=0.1), random_state=3).fit(X, y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_some_rows_are_some_of_each_class():
    y = np.where(np.arange(100) < 4, 1.0, -1.0)
    rows = share_of_each_class(y, 0.1, np.random.default_rng(0))
    assert (y[rows] > 0).sum() == 1
    assert (y[rows] < 0).sum() == 10


@given(n=st.integers(2, 30), seed=st.integers(0, 10**6))
@settings(max_examples=50)
def test_any_coefficients_are_brought_into_the_box_and_onto_the_hyperplane(n, seed):
    rng = np.random.default_rng(seed)
    y, cap = rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 2.0, n)
    beta = np.where(rng.random(n) < 0.5, cap, 0.0)
    d = into_box(rng.normal(size=n) * 2, y, -beta, cap - beta, rng.normal(size=n))
    assert d.sum() == pytest.approx(0.0, abs=1e-9)
    assert ((y * d >= -beta) & (y * d <= cap - beta)).all()
    np.testing.assert_allclose(into_box(d, y, -beta, cap - beta, rng.normal(size=n)), d, atol=1e-9)


def test_what_is_too_much_is_taken_from_the_widest_margins():
    d = into_box(np.array([1.0, 1.0, 1.0, -1.0]), np.array([1.0, 1.0, 1.0, -1.0]), np.zeros(4), np.ones(4), np.arange(4.0))
    np.testing.assert_array_equal(d, [1.0, 0.0, 0.0, -1.0])


def test_a_row_of_weight_two_counts_as_two_rows(noisy):
    X, y = noisy(80)
    weights = 1 + np.arange(80) % 3
    settings = {"trainer": "ramp", "gamma": 0.3, "tol": EXACT}
    repeated = SlimSVC(**settings).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    weighted = SlimSVC(**settings).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=0, atol=1e-5)


def test_sparse_rows_and_a_precomputed_kernel_give_the_same_model(noisy):
    X, y = noisy()
    X = np.where(np.abs(X) < 0.8, 0.0, X)
    dense, sparse = (SlimSVC(trainer="ramp", gamma=0.3, tol=EXACT).fit(rows, y) for rows in (X, csr_array(X)))
    K = RBF(0.3)(X, X)
    given = SlimSVC(trainer="ramp", kernel="precomputed", tol=EXACT).fit(K, y)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(given.decision_function(K), dense.decision_function(X), atol=1e-5)


def test_many_classes_are_pairs_of_them():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(y.size) < 0.1, (y + 1) % 3, y)
    slim = SlimSVC(trainer="ramp", gamma=0.2).fit(X, y)
    assert slim.score(X, y) > 0.85
    assert slim.model_.size < 0.8 * SlimSVC(gamma=0.2).fit(X, y).model_.size


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("subset", [0.2, 1.0])
def test_max_iter_limits_the_pair_steps_of_all_cccp_steps(share, subset, noisy, make_task):
    X, y = noisy()
    whole = Ramp(subset=subset).fit(make_task(RBF(0.3), X, y))
    limit = int(share * whole.n_iter)
    cut = Ramp(max_iter=limit, subset=subset).fit(make_task(RBF(0.3), X, y))
    assert cut.status is Status.MAX_ITER
    assert cut.n_iter <= limit
    assert abs(cut.dual.sum()) <= 1e-9


def test_a_run_that_lowers_nothing_comes_to_an_end(noisy, make_task, monkeypatch):
    """Rows that keep changing sides: what rounding may do, done on purpose."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "tangents", lambda column, *_: np.where(rng.random(column.y.size) < 0.1, column.cap, 0.0))
    X, y = noisy()
    assert Ramp().fit(make_task(RBF(0.3), X, y)).status is Status.STALLED


def test_progress_goes_up_to_all(noisy, make_task):
    X, y = noisy()
    task, seen = make_task(RBF(0.3), X, y), []
    Ramp().fit(Task(task.rows, task.targets, task.weights, run=Run(lambda _, done: seen.append(done))))
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
    assert all(0 <= done <= 1 for done in seen)


@pytest.mark.parametrize(
    ("settings", "words"), [({"s": 1.0}, "below 1"), ({"subset": 0.0}, "share"), ({"working_set": 1}, "2 rows")]
)
def test_settings_that_no_data_could_make_right_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Ramp(**settings)
