"""Any-norm SVMs against a general solver, their optimality conditions by a linear program, and the paper's theorems."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris

from slimsvm import SlimSVC, load, save
from slimsvm.kernels import RBF, Linear, Precomputed
from slimsvm.model import Status, Task
from slimsvm.papers.budget_svm import NORMS, Mahalanobis, One, OneInf, OneTwo, Two, TwoInf
from slimsvm.papers.budget_svm_steps import LimitedState, MultiplierSearch
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.trainers import SMO, AnyNorm, BudgetL1, BudgetL2

pytestmark = pytest.mark.usefixtures("quick_slim")

KERNEL = RBF(0.5)
N = 50


def made_matrix(n, seed=1):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + 0.5 * np.eye(n)


def matrix_norm(n):
    return Mahalanobis(made_matrix(n))


NORM_CASES = {
    "1": lambda _: One(),
    "2": lambda _: Two(),
    "1-inf, 5": lambda _: OneInf(5),
    "1-inf, 20": lambda _: OneInf(20),
    "2-inf, 5": lambda _: TwoInf(5),
    "2-inf, 30": lambda _: TwoInf(30),
    "1-2, 0.5": lambda _: OneTwo(0.5),
    "1-2, 3": lambda _: OneTwo(3.0),
    "1-2, 20": lambda _: OneTwo(20.0),
    "mahalanobis": matrix_norm,
    "mahalanobis diagonal": lambda n: Mahalanobis(np.linspace(0.1, 2.0, n)),
}


@pytest.fixture(params=NORM_CASES)
def make_norm(request):
    return NORM_CASES[request.param]


@pytest.fixture
def rows(make_blobs):
    return make_blobs(N)


def task_of(X, y, kernel=KERNEL, **options):
    return Task(HostRows(kernel, X, **options), y[:, None], np.ones(y.size))


def inverse_matrix(feasible):
    P = feasible.ellipsoid.P
    return P if P.ndim == 2 else np.diag(np.broadcast_to(P, feasible.cap.shape))


def objective(K, signed):
    return np.abs(signed).sum() - 0.5 * signed @ K @ signed


def general_solution(K, y, feasible):
    """The optimum by a solver that knows nothing of pairs or multipliers."""
    Q, P = K * np.outer(y, y), inverse_matrix(feasible)
    constraints = [{"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y}]  # noqa: ARG005
    if np.isfinite(feasible.total):
        constraints.append({"type": "ineq", "fun": lambda a: feasible.total - a.sum(), "jac": lambda a: -np.ones(a.size)})
    if np.isfinite(feasible.ellipsoid.radius):
        square = feasible.ellipsoid.radius**2
        constraints.append({"type": "ineq", "fun": lambda a: square - a @ P @ a, "jac": lambda a: -2 * P @ a})
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.full(y.size, 1e-4),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, c) for c in feasible.cap],
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return -found.fun


def assert_feasible(alpha, y, feasible):
    assert ((alpha >= 0) & (alpha <= feasible.cap * (1 + 1e-12))).all()
    assert abs(alpha @ y) <= 1e-9 * alpha.sum()
    assert alpha.sum() <= feasible.total * (1 + 1e-9)
    assert alpha @ inverse_matrix(feasible) @ alpha <= feasible.ellipsoid.radius**2 * (1 + 1e-9)


def violation(K, y, alpha, feasible, tol, bias=None):
    """The least e with multipliers mu, theta >= 0 for which all rows meet the optimality conditions to within e / 2.

    y_i (v_i - b) - theta - mu (Pa)_i <= e/2 where a_i can rise and >= -e/2 where it can fall; theta is for a sum at its
    limit, mu for an ellipsoid whose part in the duality gap, relative to the sum, is within tol.
    """
    pull, gain = inverse_matrix(feasible) @ alpha, y * (y - K @ (alpha * y))
    columns = np.column_stack([-y, -np.ones(y.size), -pull])  # of b, theta and mu
    rise, fall = alpha < feasible.cap, alpha > 0
    A = np.vstack([np.c_[columns, -np.ones(y.size)][rise], np.c_[-columns, -np.ones(y.size)][fall]])
    bounded = alpha.sum() > feasible.total * (1 - 1e-8)
    depth = feasible.ellipsoid.radius**2 - alpha @ pull
    most = tol * alpha.sum() / max(depth, 1e-300) if np.isfinite(depth) else 0.0
    bounds = [(bias, bias), (0, None if bounded else 0), (0, most), (0, None)]
    found = linprog([0, 0, 0, 1], A, np.concatenate([-gain[rise], gain[fall]]), bounds=bounds)
    assert found.success
    return 2 * found.fun


# The optimum


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # of SciPy 1.11's solver
@pytest.mark.parametrize("C", [0.05, 1.0, 50])
def test_the_objective_is_that_of_a_general_solver(make_norm, C, make_blobs):
    X, y = make_blobs(30)
    norm, K = make_norm(30), KERNEL(X, X)
    feasible = norm.feasible_set(C, np.arange(30))
    fit = AnyNorm(C, norm=norm).fit(task_of(X, y))
    assert fit.status is Status.CONVERGED
    assert_feasible(fit.dual[:, 0] * y, y, feasible)
    assert objective(K, fit.dual[:, 0]) == pytest.approx(general_solution(K, y, feasible), rel=1e-3)


@pytest.mark.parametrize("working_set", [16, 2048])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_the_optimality_conditions_hold_to_tol(make_norm, tol, working_set, make_blobs):
    X, y = make_blobs(120)
    norm, K = make_norm(120), KERNEL(X, X)
    fit = AnyNorm(0.7, tol, norm=norm, working_set=working_set).fit(task_of(X, y))
    feasible, alpha = norm.feasible_set(0.7, np.arange(120)), fit.dual[:, 0] * y
    assert fit.status is Status.CONVERGED
    assert fit.gap <= tol
    assert_feasible(alpha, y, feasible)
    assert violation(K, y, alpha, feasible, tol) <= tol + 1e-8


@pytest.mark.parametrize("kind", [BudgetL1, BudgetL2])
@pytest.mark.parametrize("budget", [2, 7, 40, 200])
def test_budget_machines_meet_their_conditions_with_the_bias_they_return(kind, budget, make_blobs):
    X, y = make_blobs(120)
    fit = kind(2.0, 1e-4, budget=budget).fit(task_of(X, y))
    feasible = kind.norm(budget).feasible_set(2.0, np.arange(120))
    alpha, bias = fit.dual[:, 0] * y, float(fit.model.bias[0])
    assert_feasible(alpha, y, feasible)
    assert violation(KERNEL(X, X), y, alpha, feasible, 1e-4, bias) <= 2e-4


@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("budget", [4, 30])
def test_budget_l1_has_the_value_of_its_primal_problem(C, budget, make_blobs):
    """1/2 |w|^2 + C (sum of the B largest slacks) with the bias of the model: no duality gap beyond the tolerance."""
    X, y = make_blobs(100)
    fit = BudgetL1(C, 1e-5, budget=budget).fit(task_of(X, y))
    signed, K = fit.dual[:, 0], KERNEL(X, X)
    slack = np.maximum(0.0, 1 - y * fit.model(X).ravel())
    primal = 0.5 * signed @ K @ signed + C * np.sort(slack)[-budget:].sum()
    assert primal == pytest.approx(objective(K, signed), rel=1e-4)


@given(
    n=st.integers(2, 9),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 1.0, 20.0]),
    case=st.sampled_from(sorted(NORM_CASES)),
)
@settings(max_examples=40)
def test_tiny_problems_have_the_solution_of_a_general_solver(n, seed, C, case):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1.0, -1.0)
    norm, K = NORM_CASES[case](n), KERNEL(X, X)
    feasible = norm.feasible_set(C, np.arange(n))
    fit = AnyNorm(C, 1e-5, norm=norm).fit(task_of(X, y))
    assert_feasible(fit.dual[:, 0] * y, y, feasible)
    assert objective(K, fit.dual[:, 0]) == pytest.approx(general_solution(K, y, feasible), rel=1e-4, abs=1e-6)


# Theorems


@given(v=st.lists(st.floats(-5, 5), min_size=3, max_size=8), budget=st.integers(2, 3))
def test_theorem_1_the_1_inf_norm_is_the_sum_of_the_largest(v, budget):
    """Its dual limits, by the definition of the dual norm: max a'|v| over them."""
    v = np.abs(v)
    feasible = OneInf(budget).feasible_set(1.0, np.arange(v.size))
    found = linprog(-v, np.ones((1, v.size)), [feasible.total], bounds=[(0, c) for c in feasible.cap])
    assert -found.fun == pytest.approx(np.sort(v)[-budget:].sum(), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("budget", [2, 5, 20, 60])
def test_theorem_2_rows_better_than_the_b_th_worst_are_no_support_vectors(seed, budget, make_blobs):
    X, y = make_blobs(120, seed=seed)
    fit = BudgetL1(1.0, 1e-6, budget=budget).fit(task_of(X, y))
    margin = y * fit.model(X).ravel()
    better = margin > np.sort(margin)[budget - 1] + 1e-5
    assert better.any()
    assert not fit.dual[better].any()


@pytest.mark.parametrize("budget", [2, 4, 10])
def test_theorem_2_without_ties_there_are_no_more_support_vectors_than_the_budget(budget):
    """On a line the worst rows are the innermost of each label, and no two rows are equally bad."""
    x = np.sort(np.random.default_rng(0).uniform(1, 3, 20))
    X, y = np.concatenate([-x, x])[:, None], np.repeat([-1.0, 1.0], 20)
    fit = BudgetL1(0.01, 1e-8, budget=budget).fit(task_of(X, y, Linear()))
    margin = np.sort(y * fit.model(X).ravel())
    assert margin[budget - 2] == pytest.approx(margin[budget - 1])  # one of each label
    assert margin[budget] > margin[budget - 1] + 1e-6
    assert fit.model.size == budget
    np.testing.assert_array_equal(np.flatnonzero(fit.dual), np.flatnonzero(np.abs(X[:, 0]) <= x[budget // 2 - 1]))


def test_where_the_sum_is_at_its_limit_the_labels_have_levels_of_their_own(rows):
    X, y = rows
    fit = BudgetL1(1.0, 1e-8, budget=6).fit(task_of(X, y))
    alpha, f = fit.dual[:, 0] * y, fit.model(X).ravel()
    assert alpha.sum() == pytest.approx(6.0)
    free = (alpha > 1e-6) & (alpha < 1 - 1e-6)
    slack = (1 - y * f)[free]
    np.testing.assert_allclose(slack, slack[0], atol=1e-6)
    assert slack[0] == pytest.approx(np.sort(1 - y * f)[-6], abs=1e-6)  # theta is the B-th largest slack


# Norms that are each other's special cases


@pytest.mark.parametrize(
    ("special", "general"),
    [
        (SMO(0.8), AnyNorm(0.8, norm=One())),
        (SMO(0.8), AnyNorm(0.8, norm=OneInf(N))),
        (SMO(0.8), AnyNorm(0.8, norm=OneTwo(np.sqrt(N)))),
        (AnyNorm(0.8, norm=Two()), AnyNorm(1.6, norm=OneTwo(0.5))),
        (AnyNorm(0.8, norm=Two()), AnyNorm(0.8, norm=TwoInf(N))),
        (AnyNorm(0.8, norm=Two()), AnyNorm(0.8, norm=Mahalanobis())),
        (AnyNorm(0.8, norm=Two()), AnyNorm(0.4, norm=Mahalanobis(4 * np.eye(N)))),
        (AnyNorm(0.8, norm=OneInf(7)), BudgetL1(0.8, budget=7)),
        (AnyNorm(0.8, norm=TwoInf(7)), BudgetL2(0.8, budget=7)),
    ],
    ids=lambda trainer: str(trainer)[:60],
)
def test_special_cases_agree(special, general, rows):
    X, y = rows
    one, other = (dataclasses.replace(trainer, tol=1e-6).fit(task_of(X, y)) for trainer in (special, general))
    np.testing.assert_allclose(one.model(X), other.model(X), atol=2e-4)


def test_a_diagonal_matrix_may_be_given_as_its_diagonal(rows):
    X, y = rows
    diagonal = np.linspace(0.2, 3.0, N)
    one, other = (AnyNorm(norm=Mahalanobis(M), tol=1e-6).fit(task_of(X, y)) for M in (diagonal, np.diag(diagonal)))
    np.testing.assert_allclose(one.model(X), other.model(X), atol=1e-4)


def test_a_problem_of_some_rows_has_these_rows_and_columns_of_the_matrix():
    X, y = load_iris(return_X_y=True)
    M = made_matrix(150)
    slim = SlimSVC(trainer=AnyNorm(norm=Mahalanobis(M)), gamma=0.5, tol=1e-5).fit(X, y)
    first = np.flatnonzero(y < 2)
    alone = AnyNorm(tol=1e-5, norm=Mahalanobis(M[np.ix_(first, first)])).fit(
        task_of(X[first], np.where(y[first] == 0, 1.0, -1.0))
    )
    np.testing.assert_allclose(slim.model_(X)[:, 0], alone.model(X).ravel(), atol=1e-3)


# The paper's own steps


def pair_gains(K, y, alpha, feasible, tol, step):
    """Whether any pair can move by `step` within the limits and gain, by trying all of them."""
    best = objective(K, alpha * y)
    P = inverse_matrix(feasible)
    for i in range(y.size):
        for j in range(y.size):
            moved = alpha.copy()
            moved[i] += step * y[i]
            moved[j] -= step * y[j]
            inside = (moved >= 0).all() and (moved <= feasible.cap).all() and moved.sum() <= feasible.total
            if i != j and inside and moved @ P @ moved <= feasible.ellipsoid.radius**2:
                yield objective(K, moved * y) - best - tol * step


@pytest.mark.parametrize("norm", [Two(), TwoInf(30), OneTwo(3.0), matrix_norm(N)], ids=lambda norm: norm.name)
def test_steps_clipped_to_the_ellipsoid_get_stuck_short_of_the_optimum(norm, rows):
    """At the surface no pair gains, and still the objective is far from the optimum: why steps="exact" is the default."""
    X, y = rows
    K, feasible = KERNEL(X, X), norm.feasible_set(0.3, np.arange(N))
    exact, paper = (AnyNorm(0.3, norm=norm, steps=steps).fit(task_of(X, y)) for steps in ("exact", "paper"))
    alpha = paper.dual[:, 0] * y
    assert_feasible(alpha, y, feasible)
    assert paper.status is Status.EXHAUSTED
    assert paper.gap > 0.1
    assert objective(K, paper.dual[:, 0]) < 0.9 * objective(K, exact.dual[:, 0])
    assert max(pair_gains(K, y, alpha, feasible, 1e-3, 1e-4)) <= 0


def test_the_smallest_case_of_steps_that_are_stuck():
    """Two rows of each label, K diagonal, all a equal: the first pair gains from what the second gives up, but a step t
    changes |a|^2 by 2 t^2, outwards. The optimum has (1 + mu) a_1 = (2 + mu) a_2.
    """
    K, y = np.diag([1.0, 1.0, 2.0, 2.0]), np.array([1.0, -1.0, 1.0, -1.0])
    task, start = task_of(K, y, Precomputed()), 0.5 * y[:, None]
    exact, paper = (AnyNorm(norm=Two(), steps=steps, tol=1e-6).fit(task, start) for steps in ("exact", "paper"))
    np.testing.assert_array_equal(paper.dual, start)
    assert objective(K, paper.dual[:, 0]) == pytest.approx(1.25)
    assert objective(K, exact.dual[:, 0]) == pytest.approx(1.3075, abs=1e-3)


@pytest.mark.parametrize("norm", [TwoInf(4), OneTwo(20.0)], ids=lambda norm: norm.name)
@pytest.mark.parametrize("working_set", [16, 2048])
def test_the_papers_steps_are_exact_where_the_surface_is_out_of_reach(norm, working_set, rows):
    X, y = rows
    K = KERNEL(X, X)
    settings = {"norm": norm, "tol": 1e-4, "working_set": working_set}
    exact, paper = (AnyNorm(steps=steps, **settings).fit(task_of(X, y)) for steps in ("exact", "paper"))
    assert paper.status is Status.CONVERGED
    assert objective(K, paper.dual[:, 0]) == pytest.approx(objective(K, exact.dual[:, 0]), rel=1e-4)


@given(seed=st.integers(0, 10**6), case=st.sampled_from(["2", "2-inf, 5", "1-2, 3", "mahalanobis", "mahalanobis diagonal"]))
@settings(max_examples=25)
def test_the_papers_steps_never_leave_the_limits_nor_lower_the_objective(seed, case):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 2)), np.where(np.arange(12) % 2, 1.0, -1.0)
    norm, K, best = NORM_CASES[case](12), KERNEL(X, X), 0.0
    for steps in (1, 3, 10, 30):
        fit = AnyNorm(0.5, norm=norm, steps="paper", max_iter=steps).fit(task_of(X, y))
        assert_feasible(fit.dual[:, 0] * y, y, norm.feasible_set(0.5, np.arange(12)))
        assert objective(K, fit.dual[:, 0]) >= best - 1e-12
        best = objective(K, fit.dual[:, 0])


# The search for the multiplier


@given(goal=st.floats(-3, 3), shift=st.floats(-3, 3), floor=st.floats(0, 0.9), start=st.floats(-6, 6))
def test_the_search_finds_the_multiplier_of_a_length_in_few_steps(goal, shift, floor, start):
    """Lengths that fall like 1 / (mu + shift) and then stay, as with a limited sum."""
    root, shift = np.exp(goal), np.exp(shift)

    def length(mu):
        return floor + (1 - floor) * (root + shift) / (mu + shift)

    search, mu = MultiplierSearch(np.exp(7.0)), np.exp(start)
    for _ in range(25):
        if 1 - 1e-3 <= length(mu) <= 1:
            break
        mu = search.next(mu, length(mu), 1.0, 1e-3, shift)
    assert 1 - 1e-3 <= length(mu) <= 1


@pytest.mark.parametrize("norm", [Two(), TwoInf(30), OneTwo(3.0)], ids=lambda norm: norm.name)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_few_multipliers_are_tried(norm, C, rows, monkeypatch):
    solves, solve = [], LimitedState.solve
    monkeypatch.setattr(LimitedState, "solve", lambda self, *given: solves.append(self.mu) or solve(self, *given))
    AnyNorm(C, norm=norm).fit(task_of(*rows))
    assert len(solves) <= 10


# Rounds, precision, starts


@pytest.mark.parametrize("trainer", [BudgetL1(budget=40), BudgetL2(10.0, budget=40), AnyNorm(norm=OneTwo(5.0))], ids=str)
def test_many_small_rounds_end_at_the_same_optimum(trainer, make_blobs):
    X, y = make_blobs(600)
    K = KERNEL(X, X)
    whole = trainer.fit(task_of(X, y))
    rounds = dataclasses.replace(trainer, working_set=32).fit(task_of(X, y))  # rows rest on the way
    assert rounds.status is Status.CONVERGED
    assert objective(K, rounds.dual[:, 0]) == pytest.approx(objective(K, whole.dual[:, 0]), rel=2e-3)


@pytest.mark.parametrize("trainer", [BudgetL1(budget=40), BudgetL2(10.0, budget=40)], ids=str)
def test_float32_tiles_reach_the_optimum_too(trainer, make_blobs, float32_always):
    X, y = make_blobs(400)
    task, K = task_of(X, y, precision=float32_always), KERNEL(X, X)
    assert task.rows.dtype == np.float32
    exact = dataclasses.replace(trainer, tol=1e-5).fit(task_of(X, y, error=0.0))
    for working_set in (64, 2048):
        fit = dataclasses.replace(trainer, working_set=working_set).fit(task)
        assert fit.status is Status.CONVERGED
        assert objective(K, fit.dual[:, 0]) == pytest.approx(objective(K, exact.dual[:, 0]), rel=2e-3)


@pytest.mark.parametrize("kind", [BudgetL1, BudgetL2])
@pytest.mark.parametrize("budgets", [[5, 20, 60], [60, 20, 5]])
def test_a_path_of_budgets_from_start_to_start_has_the_optimum_of_each(kind, budgets, make_blobs):
    X, y = make_blobs(200)
    K, task, start = KERNEL(X, X), task_of(X, y), None
    for budget in budgets:
        cold, warm = (kind(1.0, 1e-4, budget=budget).fit(task, given) for given in (None, start))
        assert objective(K, warm.dual[:, 0]) == pytest.approx(objective(K, cold.dual[:, 0]), rel=2e-4)
        again = kind(1.0, 1e-4, budget=budget).fit(task, warm.dual)
        assert again.n_iter <= cold.n_iter / 2
        start = warm.dual


def test_a_start_of_any_numbers_is_made_feasible_before_the_first_step(make_norm, rows):
    X, y = rows
    start = np.random.default_rng(2).normal(size=(N, 1)) * 5
    norm = make_norm(N)
    fit = AnyNorm(0.5, max_iter=0, norm=norm).fit(task_of(X, y), start)
    assert fit.n_iter == 0
    assert fit.dual.any()
    assert_feasible(fit.dual[:, 0] * y, y, norm.feasible_set(0.5, np.arange(N)))


@pytest.mark.parametrize("max_iter", [0, 1, 10])
@pytest.mark.parametrize("steps", ["exact", "paper"])
def test_max_iter_limits_the_pair_steps_of_each_output(max_iter, steps, make_norm, rows):
    X, y = rows
    task = Task(HostRows(KERNEL, X), np.column_stack([y, -y]), np.ones(N))
    fit = AnyNorm(max_iter=max_iter, norm=make_norm(N), steps=steps).fit(task)
    assert fit.status is Status.MAX_ITER
    assert fit.n_iter == 2 * max_iter


@pytest.mark.parametrize("trainer", [BudgetL1(budget=5), BudgetL2(budget=5), AnyNorm()], ids=str)
def test_progress_is_reported_from_nothing_to_all(trainer, rows):
    X, y = rows
    seen = []
    report = Task(HostRows(KERNEL, X), y[:, None], np.ones(N), run=Run(lambda phase, done: seen.append(done)))  # noqa: ARG005
    trainer.fit(report)
    assert seen[-1] == 1.0
    assert all(0 <= share <= 1 for share in seen)


@pytest.mark.parametrize("trainer", [BudgetL1(budget=9), BudgetL2(budget=9), AnyNorm(norm=OneTwo(3.0))], ids=str)
def test_sparse_rows_and_a_precomputed_kernel_give_the_same_model(trainer, rows):
    X, y = rows
    dense, sparse = (trainer.fit(task_of(form, y)) for form in (X, csr_array(X)))
    given_values = trainer.fit(task_of(KERNEL(X, X), y, Precomputed()))
    for other in (sparse, given_values):
        np.testing.assert_allclose(dense.dual, other.dual, atol=1e-6)
        np.testing.assert_allclose(dense.model.bias, other.model.bias, atol=1e-6)


# Odd data


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()], ids=lambda kernel: kernel.name)
def test_constant_features_come_to_an_end(kernel, make_norm):
    X, y = np.full((N, 2), 3.0), np.where(np.arange(N) < 20, 1.0, -1.0)
    fit = AnyNorm(norm=make_norm(N)).fit(task_of(X, y, kernel))
    assert fit.status is Status.CONVERGED
    f = fit.model(X).ravel()
    np.testing.assert_allclose(f, f[0], atol=1e-6)


def test_equal_rows_with_opposite_labels_cancel(make_norm, rows):
    X, y = rows
    X, y = np.vstack([X, X]), np.concatenate([y, -y])
    fit = AnyNorm(norm=make_norm(2 * N)).fit(task_of(X, y))
    assert fit.status is Status.CONVERGED


@pytest.mark.parametrize("tol", [1.0, 5.0])
def test_a_very_large_tol_ends_at_once(make_norm, tol, rows):
    fit = AnyNorm(tol=tol, norm=make_norm(N)).fit(task_of(*rows))
    assert fit.status is Status.CONVERGED
    assert np.isfinite(fit.dual).all()


# Pruning, the estimator and files


@pytest.mark.parametrize("kind", [BudgetL1, BudgetL2])
def test_prune_keeps_the_largest_weights_and_the_bias(kind, rows):
    X, y = rows
    whole, few = (kind(budget=6, prune=prune).fit(task_of(X, y)) for prune in (False, True))
    assert whole.model.size > 6
    assert few.model.size == 6
    kept = few.dual != 0
    np.testing.assert_array_equal(few.dual[kept], whole.dual[kept])
    assert np.abs(few.dual[kept]).min() >= np.abs(whole.dual[~kept]).max()
    np.testing.assert_array_equal(few.model.bias, whole.model.bias)


@pytest.mark.parametrize("name", ["budget-l1", "budget-l2"])
def test_the_estimator_fills_in_the_budget(name):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kind = {"budget-l1": BudgetL1, "budget-l2": BudgetL2}[name]
    pruned = SlimSVC(60, trainer=kind(prune=True), C=1.0).fit(X, y)
    assert pruned.model_.size == 60
    assert pruned.path_ is None
    named = SlimSVC(60, trainer=name, random_state=0).fit(X, y)
    assert named.model_.size <= 60
    assert named.score(X, y) > 0.93


def test_runs_repeat_themselves(rows):
    X, y = rows
    for trainer in (BudgetL1(budget=9), BudgetL2(budget=9), AnyNorm(norm=matrix_norm(N))):
        np.testing.assert_array_equal(trainer.fit(task_of(X, y)).dual, trainer.fit(task_of(X, y)).dual)


@pytest.mark.parametrize("norm", [*(kind() for kind in NORMS.values()), matrix_norm(100)], ids=lambda norm: norm.name)
def test_norms_are_saved_with_the_model(norm, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SlimSVC(trainer=AnyNorm(norm=norm)).fit(X[:100], y[:100])
    save(model, tmp_path / "model.slim")
    loaded = load(tmp_path / "model.slim")
    assert type(loaded.trainer.norm) is type(norm)
    for field in dataclasses.fields(norm):
        np.testing.assert_array_equal(getattr(loaded.trainer.norm, field.name), getattr(norm, field.name))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BudgetL1(budget=1), "2 at least, not 1"),
        (lambda: BudgetL2(budget=0), "not 0"),
        (lambda: BudgetL1(budget=2.5), "not 2.5"),
        (lambda: BudgetL1(budget=True), "not True"),
        (lambda: TwoInf("many"), "not 'many'"),
        (lambda: AnyNorm(prune=1), "not 1"),
        (lambda: AnyNorm(norm="2"), "OneTwo.*not '2'"),
        (lambda: AnyNorm(steps="fast"), "'exact' or 'paper', not 'fast'"),
        (lambda: BudgetL2(budget=5, steps="fast"), "not 'fast'"),
        (lambda: AnyNorm(working_set=1), "2 rows at least"),
        (lambda: OneTwo(0.0), "above 0, not 0.0"),
        (lambda: OneTwo("a"), "not 'a'"),
        (lambda: Mahalanobis(np.ones((2, 3))), r"\(2, 3\)"),
        (lambda: Mahalanobis([1.0, 0.0]), "positive definite"),
        (lambda: Mahalanobis([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: Mahalanobis([np.nan]), "finite"),
        (lambda: SlimSVC(trainer=AnyNorm(norm=Mahalanobis(np.ones(5)))).fit(np.eye(6), [0, 1] * 3), "M is for 5 rows"),
        (lambda: SlimSVC(1, trainer="budget-l1").fit(np.eye(6), [0, 1] * 3), "2 at least, not 1"),
        (lambda: SlimSVC(trainer="budget-l2").fit(np.eye(6), [0, 1] * 3), "2 at least, not None"),
        (lambda: SlimSVC(4, trainer="budget-l2", class_weight={0: 2}).fit(np.eye(6), [0, 1] * 3), "takes no sample_weight"),
        (lambda: BudgetL1().fit(task_of(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))), "not None"),
    ],
)
def test_bad_settings_are_answered_with_what_is_possible(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# As printed


@pytest.mark.parametrize("kind", [BudgetL1, BudgetL2])
def test_the_printed_form_is_a_plain_loop(kind, rows):
    """Pairs by violation and gain, the step (9) within all constraints (10) to (13), then the B largest weights.

    After a step that no limit cuts, its two rows have the same violation, so rounding decides which of them is next.
    """
    X, y = rows
    B, C, iterations = 8, 0.4, 40
    K, a = KERNEL(X, X), np.zeros(y.size)
    for number in range(1, iterations + 1):
        printed = dataclasses.replace(kind.paper(B=B, C=C, iterations=number), prune=False)
        following = y * printed.fit(task_of(X, y)).dual[:, 0]
        steps = best_steps(K, y, a, C, C * (np.sqrt(B) if kind is BudgetL2 else B), ball=kind is BudgetL2)
        assert min((np.abs(step - following).max() for step in steps), default=np.inf) < 1e-9 or not steps
        assert steps or (following == a).all()
        a = following
    kept = np.argsort(-a, kind="stable")[:B]
    np.testing.assert_array_equal(
        kind.paper(B=B, C=C, iterations=iterations).fit(task_of(X, y)).dual[kept, 0], (a * y)[kept]
    )


def best_steps(K, y, a, C, total, *, ball, tol=1e-3, equal=1e-9):
    """What a may be after the next step: of the rows of the largest violation that can gain, each with its best partner."""
    v = y - K @ (a * y)
    can_rise, can_fall = a < (np.inf if ball else C), a > 0
    grow = np.where(np.where(y > 0, can_rise, can_fall), v, -np.inf)
    shrink = np.where(np.where(y > 0, can_fall, can_rise), v, np.inf)
    found = []
    for i in np.argsort(-grow):
        if found and grow[i] < found[0][0] - equal:
            break
        gains = []
        for j in np.flatnonzero(grow[i] - shrink > tol):
            curve = K[i, i] + K[j, j] - 2 * K[i, j]
            t = min((grow[i] - shrink[j]) / max(curve, 1e-12), longest(a, y, i, j, C, total, ball))
            gains.append((t * (grow[i] - shrink[j] - 0.5 * t * curve), j, t))
        found += [(grow[i], i, j, t) for gain, j, t in gains if gain > equal and gain >= max(gains)[0] - equal]
    out = []
    for _, i, j, t in found:
        out.append(a.copy())
        out[-1][i] += t * y[i]
        out[-1][j] -= t * y[j]
    return out


def longest(a, y, i, j, C, total, ball):
    """The largest t with a + t (y_i e_i - y_j e_j) in the box (10), under the sum (12), and in the ball (13)."""
    t = min(np.inf if y[i] > 0 else a[i], a[j] if y[j] > 0 else np.inf)
    if not ball:
        t = min(t, C - a[i] if y[i] > 0 else np.inf, C - a[j] if y[j] < 0 else np.inf)
    if y[i] > y[j]:
        t = min(t, max(total - a.sum(), 0.0) / 2)
    if ball:
        half = a[i] * y[i] - a[j] * y[j]
        t = min(t, (-half + np.sqrt(half**2 - 2 * min(a @ a - C**2, 0.0))) / 2)
    return t


@pytest.mark.parametrize("B", [1, 3, 10])
def test_the_interpolation_norm_is_near_the_norm_of_the_largest_entries(B):
    """Theorem 1 for p = 2: (sum of the B largest squares)^(1/2) <= K(2, inf, sqrt B) <= that + sqrt(B) v_(B)."""
    rng = np.random.default_rng(B)
    for _ in range(20):
        v = np.sort(np.abs(rng.normal(size=12)))[::-1]
        largest = np.sqrt(np.square(v[:B]).sum())
        value = min(np.linalg.norm(np.maximum(v - z, 0)) + np.sqrt(B) * z for z in np.linspace(0, v[0], 4001))
        assert largest <= value + 1e-3
        assert value <= largest + np.sqrt(B) * v[B - 1] + 1e-9
