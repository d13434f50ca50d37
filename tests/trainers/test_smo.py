"""The exact trainer against its optimality conditions, scikit-learn's SVC and a general solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Linear, Poly, Sigmoid
from slimsvm.model import Status, Task
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.trainers import smo as smo_module
from slimsvm.trainers.smo import SMO

EXACT = 1e-6


def two_classes(load, first=0):
    """Scaled rows and labels -1, +1: class `first` against the rest."""
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:400], np.where(y == first, 1.0, -1.0)[:400]


DATA = {
    "breast_cancer": lambda: two_classes(load_breast_cancer),
    "digits": lambda: two_classes(load_digits, 8),
    "iris": lambda: two_classes(load_iris, 1),
    "wine": lambda: two_classes(load_wine, 1),
    "moons": lambda: two_classes(lambda **_: make_moons(250, noise=0.3, random_state=0)),
    "noise": lambda: two_classes(lambda **_: make_classification(200, 10, flip_y=0.3, random_state=1)),
}


def dual_objective(K, signed):
    """sum a - 1/2 a'Qa for signed coefficients y a."""
    return np.abs(signed).sum() - 0.5 * signed @ K @ signed


def violation(K, y, cap, signed):
    """The largest violation of the optimality conditions, from their definition."""
    alpha, v = signed * y, y - K @ signed
    up = ((y > 0) & (alpha < cap)) | ((y < 0) & (alpha > 0))
    down = ((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < cap))
    return v[up].max(initial=-np.inf) - v[down].min(initial=np.inf)


def assert_optimal(K, y, cap, fit, tol):
    signed = fit.dual[:, 0]
    assert ((signed * y >= 0) & (signed * y <= cap * (1 + 1e-12))).all()
    assert abs(signed.sum()) <= 1e-9 * max(1.0, np.abs(signed).sum())
    assert violation(K, y, cap, signed) <= tol + 1e-9


# The optimum is SVC's


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_rbf_model_is_that_of_svc(data, C):
    X, y = DATA[data]()
    svc = SVC(C=C, gamma=0.1, tol=EXACT).fit(X, y)
    slim = SlimSVC(C=C, gamma=0.1, tol=EXACT).fit(X, y)
    K = RBF(0.1)(X, X)
    theirs = np.zeros(y.size)
    theirs[svc.support_] = svc.dual_coef_[0]
    ours = SMO(C, EXACT).fit(Task(HostRows(RBF(0.1), X), y[:, None], np.ones(y.size))).dual[:, 0]
    assert dual_objective(K, ours) == pytest.approx(dual_objective(K, theirs), rel=1e-6)
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), rtol=0, atol=1e-4)
    np.testing.assert_allclose(slim.intercept_, svc.intercept_, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(slim.predict(X), svc.predict(X))


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "linear", "C": 0.05},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.05},
        {"kernel": "poly", "degree": 3, "gamma": "scale"},
        {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1, "C": 0.5},
        {"kernel": "rbf", "gamma": "auto"},
    ],
    ids=lambda settings: f"{settings['kernel']}-{len(settings)}",
)
@pytest.mark.parametrize("data", ["breast_cancer", "noise"])
def test_models_of_every_kernel_of_svc_are_the_same(settings, data):
    X, y = DATA[data]()
    svc, slim = (kind(tol=EXACT, **settings).fit(X, y) for kind in (SVC, SlimSVC))
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), rtol=0, atol=1e-3)


@pytest.mark.parametrize("class_weight", [None, "balanced", {-1.0: 5.0, 1.0: 0.3}])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_and_sample_weights_mean_what_they_mean_in_svc(class_weight, weighted):
    X, y = DATA["noise"]()
    weights = np.random.default_rng(0).random(y.size) * 3 if weighted else None
    settings = {"class_weight": class_weight, "gamma": 0.1, "tol": EXACT}
    svc, slim = (kind(**settings).fit(X, y, sample_weight=weights) for kind in (SVC, SlimSVC))
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), rtol=0, atol=1e-4)


def test_each_class_against_the_rest_is_its_own_problem(make_task):
    X, y = load_iris(return_X_y=True)
    rows = make_task(RBF(0.2), X, np.where(y == 0, 1.0, -1.0)).rows
    fit = SMO(tol=EXACT).fit(Task(rows, OneVsRest(3).encode(y), np.ones(y.size)))
    for number in range(3):
        svc = SVC(tol=EXACT, gamma=0.2).fit(X, y == number)
        np.testing.assert_allclose(fit.model(X)[:, number], svc.decision_function(X), atol=1e-4)


def test_the_full_model_of_many_classes_is_that_of_svc():
    X, y = load_iris(return_X_y=True)
    slim, svc = SlimSVC(tol=EXACT, gamma=0.2).fit(X, y), SVC(tol=EXACT, gamma=0.2).fit(X, y)
    np.testing.assert_allclose(slim.decision_function(X), svc.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(slim.predict(X), svc.predict(X))
    np.testing.assert_array_equal(slim.n_support_, svc.n_support_)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_rest_do_not_change_the_optimum(seed, make_blobs, make_task, monkeypatch):
    """Few active rows among many: the run solves the problem of these first, again and again."""
    rested, solve_active = [], smo_module.SmoState.solve_active
    monkeypatch.setattr(
        smo_module.SmoState,
        "solve_active",
        lambda self, rows, *more: rested.append(rows) or solve_active(self, rows, *more),
    )
    X, y = make_blobs(600, seed=seed)
    fit = SMO(working_set=32).fit(make_task(RBF(0.3), X, y))
    assert rested
    assert_optimal(RBF(0.3)(X, X), y, np.ones(600), fit, 1e-3)


# Optimality


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), Poly(0.2, 1.0, 2)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("working_set", [8, 32, 100])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_many_small_rounds_end_at_the_optimum(kernel, working_set, tol, make_blobs, make_task):
    X, y = make_blobs(300, 4)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, y.size)
    fit = SMO(2.0, tol, working_set=working_set).fit(make_task(kernel, X, y, weights))
    assert fit.status is Status.CONVERGED
    assert fit.gap <= tol
    assert_optimal(kernel(X, X), y, 2.0 * weights, fit, tol)


@pytest.mark.parametrize("working_set", [32, 400])
def test_float32_tiles_reach_the_optimum_too(working_set, make_blobs, make_task, float32_always):
    X, y = make_blobs(400, 4)
    task = make_task(RBF(0.3), X, y, precision=float32_always)
    assert task.rows.dtype == np.float32
    fit = SMO(working_set=working_set).fit(task)
    K, exact = RBF(0.3)(X, X), SMO(tol=EXACT).fit(make_task(RBF(0.3), X, y, error=0.0))
    assert_optimal(K, y, np.ones(400), fit, 1.5e-3)
    assert dual_objective(K, fit.dual[:, 0]) == pytest.approx(dual_objective(K, exact.dual[:, 0]), rel=1e-4)


@pytest.mark.parametrize(
    "working_set",
    [2, 3, 4],
)
def test_the_smallest_working_sets_end_at_the_optimum(working_set, make_blobs, make_task):
    X, y = make_blobs(40)
    fit = SMO(working_set=working_set).fit(make_task(RBF(0.3), X, y))
    assert_optimal(RBF(0.3)(X, X), y, np.ones(40), fit, 1e-3)


@given(n=st.integers(2, 9), seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=30)
def test_tiny_problems_have_the_solution_of_a_general_solver(n, seed, C):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1.0, -1.0)
    cap = C * rng.uniform(0.5, 2.0, n)
    K = RBF(0.5)(X, X)
    Q = K * np.outer(y, y)
    slsqp = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(n),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, c) for c in cap],
        constraints={"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y},  # noqa: ARG005
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    fit = SMO(C, EXACT).fit(Task(HostRows(RBF(0.5), X), y[:, None], cap / C))
    assert_optimal(K, y, cap, fit, EXACT)
    assert dual_objective(K, fit.dual[:, 0]) == pytest.approx(-slsqp.fun, rel=1e-5, abs=1e-6)


def test_the_model_holds_the_support_vectors_and_nothing_else(make_blobs, make_task):
    X, y = make_blobs()
    fit = SMO().fit(make_task(RBF(0.3), X, y))
    support = np.flatnonzero(fit.dual[:, 0])
    assert 0 < support.size < y.size
    np.testing.assert_array_equal(np.sort(fit.support), support)
    np.testing.assert_array_equal(fit.model.points, X[fit.support])
    np.testing.assert_array_equal(fit.model.coef, fit.dual[fit.support])
    assert fit.n_iter > 0


def test_the_bias_puts_free_support_vectors_on_the_margin(make_blobs, make_task):
    X, y = make_blobs()
    fit = SMO(tol=EXACT).fit(make_task(RBF(0.3), X, y))
    alpha = fit.dual[:, 0] * y
    free = (alpha > 1e-8) & (alpha < 1 - 1e-8)
    assert free.any()
    np.testing.assert_allclose((y * fit.model(X).ravel())[free], 1.0, atol=1e-5)


def test_the_bias_is_the_middle_of_its_bounds_where_no_support_vector_is_free(make_task):
    """Two rows far apart with a small cap: both at the cap, f = C y + b, and any b with |b| <= 1 - C is optimal."""
    fit = SMO(0.25).fit(make_task(RBF(1.0), np.array([[0.0], [100.0]]), [-1.0, 1.0]))
    np.testing.assert_allclose(fit.dual[:, 0], [-0.25, 0.25])
    np.testing.assert_allclose(fit.model.bias, [0.0], atol=1e-12)


# Starts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("working_set", [32, 2048])
def test_a_start_from_the_solution_has_next_to_nothing_to_do(working_set, seed, make_blobs, make_task):
    X, y = make_blobs(200, seed=seed)
    task = make_task(RBF(0.3), X, y)
    cold = SMO(working_set=working_set).fit(task)
    warm = SMO(working_set=working_set).fit(task, cold.dual)
    assert warm.status is Status.CONVERGED
    assert warm.n_iter <= 2


@pytest.mark.parametrize(("C_before", "C"), [(10.0, 0.5), (0.5, 10.0)])
@pytest.mark.parametrize("working_set", [32, 2048])
def test_a_start_from_another_c_ends_at_the_same_optimum(C_before, C, working_set, make_blobs, make_task):
    X, y = make_blobs(200)
    task, K = make_task(RBF(0.3), X, y), RBF(0.3)(X, X)
    before = SMO(C_before, EXACT).fit(task)
    cold, warm = (SMO(C, EXACT, working_set=working_set).fit(task, start) for start in (None, before.dual))
    assert_optimal(K, y, np.full(200, C), warm, EXACT)
    assert dual_objective(K, warm.dual[:, 0]) == pytest.approx(dual_objective(K, cold.dual[:, 0]), rel=1e-7)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_a_start_of_any_numbers_is_made_feasible_before_the_first_step(C, make_blobs, make_task):
    X, y = make_blobs(50)
    start = np.random.default_rng(2).normal(size=(50, 1)) * 5
    fit = SMO(C, max_iter=0).fit(make_task(RBF(0.3), X, y), start)
    alpha = fit.dual[:, 0] * y
    assert fit.n_iter == 0
    assert alpha.any()
    assert ((alpha >= 0) & (alpha <= C)).all()
    assert abs(fit.dual.sum()) <= 1e-12 * max(1.0, alpha.sum())
    full = SMO(C).fit(make_task(RBF(0.3), X, y), start)
    assert_optimal(RBF(0.3)(X, X), y, np.full(50, C), full, 1e-3)


# Where it ends


@pytest.mark.parametrize("working_set", [32, 2048])
@pytest.mark.parametrize("max_iter", [0, 1, 10])
def test_max_iter_limits_the_pair_steps_of_each_output(working_set, max_iter, make_blobs, make_task):
    X, y = make_blobs(200)
    fit = SMO(max_iter=max_iter, working_set=working_set).fit(make_task(RBF(0.3), X, np.column_stack([y, -y])))
    assert fit.status is Status.MAX_ITER
    assert fit.n_iter == 2 * max_iter
    assert fit.gap > 1e-3


def test_a_stop_at_max_iter_is_a_warning_that_says_what_to_do(make_blobs):
    X, y = make_blobs(200)
    with pytest.warns(ConvergenceWarning, match=r"max_iter.*raise max_iter, scale the features, or lower C"):
        slim = SlimSVC(max_iter=3).fit(X, y)
    assert slim.status_ is Status.MAX_ITER
    assert slim.n_iter_ == 3
    assert slim.predict(X).shape == (200,)


def test_a_non_psd_kernel_comes_to_an_end(make_blobs, make_task):
    X, y = make_blobs(150, 5)
    kernel = Sigmoid(1.0, -2.0)
    K = kernel(X, X)
    assert np.linalg.eigvalsh(K).min() < -1e-3
    for working_set in (32, 2048):
        fit = SMO(10.0, working_set=working_set).fit(make_task(kernel, X, y))
        assert fit.status in (Status.CONVERGED, Status.STALLED)
        if fit.status is Status.CONVERGED:
            assert_optimal(K, y, np.full(150, 10.0), fit, 1e-3)


@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("separable", [True, False])
def test_a_very_large_c_comes_to_an_end(C, separable, make_blobs, make_task):
    X, y = make_blobs(100, 2, distance=12.0 if separable else 1.0)
    fit = SMO(C).fit(make_task(RBF(0.5), X, y))
    assert fit.status in (Status.CONVERGED, Status.STALLED)
    if separable:
        assert (y * fit.model(X).ravel() >= 1 - 2e-3).all()


# Odd rows


def test_a_row_of_weight_zero_counts_as_absent(make_blobs):
    X, y = make_blobs(100)
    weights = np.where(np.arange(100) % 3, 1.0, 0.0)
    here = weights > 0
    some = SlimSVC(tol=EXACT).fit(X[here], y[here])
    weighted = SlimSVC(tol=EXACT).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.decision_function(X), some.decision_function(X), rtol=0, atol=1e-9)


def test_a_row_of_weight_two_counts_as_two_rows(make_blobs):
    X, y = make_blobs(60)
    weights = 1 + np.arange(60) % 3
    repeated = SlimSVC(tol=EXACT).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    weighted = SlimSVC(tol=EXACT).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("working_set", [32, 2048])
def test_equal_rows_with_opposite_labels_cancel(working_set, make_blobs, make_task):
    """Any constant within [-1, 1] is optimal."""
    X, y = make_blobs(100)
    X, y = np.vstack([X, X]), np.concatenate([y, -y])
    fit = SMO(working_set=working_set).fit(make_task(RBF(0.3), X, y))
    assert fit.status is Status.CONVERGED
    assert_optimal(RBF(0.3)(X, X), y, np.ones(200), fit, 1e-3)
    np.testing.assert_allclose(fit.model(X), fit.model.bias[0], atol=2e-3)
    assert abs(fit.model.bias[0]) <= 1 + 1e-3


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize("positives", [30, 50])
def test_constant_features_give_a_constant_model(kernel, value, positives, make_task):
    """The larger class wins: f = +1 or -1 on all rows; for equal classes any constant within [-1, 1] is optimal."""
    X, y = np.full((100, 2), value), np.where(np.arange(100) < positives, 1.0, -1.0)
    fit = SMO().fit(make_task(kernel, X, y))
    assert fit.status is Status.CONVERGED
    f = fit.model(X).ravel()
    np.testing.assert_allclose(f, f[0], atol=1e-9)
    if positives < 50:
        np.testing.assert_allclose(f, -1.0, atol=1e-3)
    assert abs(f[0]) <= 1 + 1e-3


@pytest.mark.parametrize("data", ["iris", "noise"])
def test_the_order_of_rows_does_not_matter(data):
    X, y = DATA[data]()
    order = np.random.default_rng(3).permutation(y.size)
    here, there = SlimSVC(gamma=0.1).fit(X, y), SlimSVC(gamma=0.1).fit(X[order], y[order])
    np.testing.assert_allclose(here.decision_function(X), there.decision_function(X), rtol=0, atol=1e-6)


def test_rows_without_a_part_in_an_output_stay_out_of_it(make_blobs, make_task):
    """Targets of 0, as one against one has them."""
    X, y = make_blobs(90)
    targets = np.where(np.arange(90) < 30, 0.0, y)
    fit = SMO(tol=EXACT).fit(make_task(RBF(0.3), X, targets))
    alone = SMO(tol=EXACT).fit(make_task(RBF(0.3), X[30:], y[30:]))
    assert not fit.dual[:30].any()
    np.testing.assert_allclose(fit.model(X), alone.model(X), rtol=0, atol=1e-5)


def test_progress_is_reported_from_nothing_to_all(make_blobs, make_task):
    X, y = make_blobs(300)
    seen = []
    task = make_task(RBF(0.3), X, np.column_stack([y, -y]))
    reporting = Task(task.rows, task.targets, task.weights, run=Run(lambda phase, done: seen.append((phase, done))))
    SMO(working_set=32).fit(reporting)
    assert {phase for phase, _ in seen} == {"train"}
    shares = [share for _, share in seen]
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)
