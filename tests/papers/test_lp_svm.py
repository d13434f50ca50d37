"""The LP-SVM against a plain linear program of another form, its optimality conditions, and its own bounds."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

from slimsvm import SlimSVC
from slimsvm.clock import Deadline
from slimsvm.kernels import RBF, Linear
from slimsvm.limits import Limits
from slimsvm.model import Status, Task
from slimsvm.papers import lp_svm
from slimsvm.papers.lp_svm import LP, LpProblem, Newton, apart, balanced, corner, interior_point, lp_objective
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.trainers.smo import SMO

EXACT = 1e-6


class SmallGroups(LP):
    """Few rows alone, few split off: groups matter in the smallest problems."""

    alone, split_off = 20, 10


def optimum(K, y, cap):
    """The least objective, by the primal in positive and negative parts of c and b, with slacks."""
    n, k = K.shape
    cost = np.concatenate([np.ones(2 * k), [0, 0], cap])
    yK, one = y[:, None] * K, y[:, None]
    rows = np.hstack([-yK, yK, -one, one, -np.eye(n)])
    return linprog(cost, A_ub=rows, b_ub=-np.ones(n), method="highs").fun


def objective(K, y, cap, c, b):
    return np.abs(c).sum() + sum(w * max(0, 1 - z) for w, z in zip(cap, y * (K @ c + b), strict=True))


def objective_of(fit, K, y, cap):
    return objective(K, y, cap, fit.dual[:, 0], fit.model.bias[0])


# The optimum


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("direct", [0, 1000])
def test_the_objective_is_that_of_a_plain_linear_program(kernel, C, direct, make_blobs, make_task):
    X, y = make_blobs(120)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    K = kernel(X, X)
    fit = SmallGroups(C, EXACT, direct=direct, batch=10).fit(make_task(kernel, X, y, weights))
    best = optimum(K, y, C * weights)
    assert fit.status is Status.CONVERGED
    assert fit.gap <= EXACT
    assert objective_of(fit, K, y, C * weights) == pytest.approx(best, rel=2 * EXACT)


@given(
    n=st.integers(2, 12), seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 20.0]), direct=st.sampled_from([0, 99])
)
@settings(max_examples=40)
def test_tiny_problems_have_the_optimum_too(n, seed, C, direct):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1.0, -1.0)
    cap, K = C * rng.uniform(0.5, 2.0, n), RBF(0.5)(X, X)
    fit = LP(C, EXACT, direct=direct, batch=3).fit(Task(HostRows(RBF(0.5), X), y[:, None], cap / C))
    assert fit.status is Status.CONVERGED
    assert objective_of(fit, K, y, cap) == pytest.approx(optimum(K, y, cap), rel=2 * EXACT)


@pytest.mark.parametrize("generated", [False, True])
def test_the_corner_meets_the_optimality_conditions(generated, make_blobs):
    X, y = make_blobs(150)
    cap, K = np.random.default_rng(1).uniform(0.5, 2.0, 150), RBF(0.3)(X, X)
    lp = LpProblem(HostRows(RBF(0.3), X), y, cap)
    effort = Limits().start()
    lp.add(np.arange(20) if generated else np.arange(150))
    if generated:
        assert lp_svm.generate(lp, LP(batch=10), 1e-8, effort) is Status.CONVERGED
    assert corner(lp, 1e-7, effort) is Status.CONVERGED
    u, c, price, z = lp.u, lp.coef, K @ (y * lp.u), y * (K @ lp.coef + lp.bias)
    near = 1e-4 if generated else 1e-7
    assert ((u >= 0) & (u <= cap * (1 + 1e-12))).all()
    assert y @ u == pytest.approx(0.0, abs=1e-7)
    assert (np.abs(price) <= 1 + 1e-9).all()
    np.testing.assert_allclose(price[c != 0], np.sign(c[c != 0]), atol=near)
    assert (z[u < cap * (1 - near)] >= 1 - 100 * near).all()
    assert (z[u > cap * near] <= 1 + 100 * near).all()
    assert np.count_nonzero(c) <= ((u > 0) & (u < cap)).sum()


def test_the_bounds_hold_the_optimum_in_every_round(make_blobs, make_task, monkeypatch):
    X, y = make_blobs(300)
    best, seen = optimum(RBF(0.3)(X, X), y, np.ones(300)), []

    def take(self, *args, real=LpProblem.take, **settings):
        gap = real(self, *args, **settings)
        seen.append((self.u.sum(), self.upper))
        return gap

    monkeypatch.setattr(LpProblem, "take", take)
    SmallGroups(tol=EXACT, direct=0, batch=10).fit(make_task(RBF(0.3), X, y))
    lower, upper = np.transpose(seen)
    assert len(seen) > 5
    assert (lower <= best * (1 + 1e-9)).all()
    assert (upper >= best * (1 - 1e-9)).all()
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper[:-1]) <= 0).all()


def test_far_fewer_support_vectors_than_the_svm_on_noisy_rows(make_blobs, make_task):
    X, y = make_blobs(400)
    for direct in (0, 1000):
        sparse = LP(direct=direct).fit(make_task(RBF(0.3), X, y)).model
        dense = SMO().fit(make_task(RBF(0.3), X, y)).model
        assert 0 < sparse.size < 0.2 * dense.size
        errors = [np.mean(np.sign(model(X).ravel()) != y) for model in (sparse, dense)]
        assert errors[0] <= errors[1] + 0.03


@pytest.mark.parametrize("direct", [0, 1000])
def test_a_cost_too_small_for_any_coefficient_leaves_the_heavier_class(direct, make_blobs, make_task):
    X, y = make_blobs(90)
    y = np.where(np.arange(90) < 60, 1.0, -1.0)
    fit = LP(1e-4, direct=direct, batch=10).fit(make_task(RBF(0.3), X, y))
    assert fit.status is Status.CONVERGED
    assert fit.model.size == 0
    assert fit.model.bias[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("direct", [0, 1000])
def test_equal_rows_of_both_classes_come_to_an_end(direct, make_blobs, make_task):
    X, y = make_blobs(60)
    X, y = np.vstack([X, X, X]), np.concatenate([y, -y, y])
    fit = LP(direct=direct, batch=10).fit(make_task(RBF(0.3), X, y))
    assert fit.status is Status.CONVERGED
    K = RBF(0.3)(X, X)
    assert objective_of(fit, K, y, np.ones(180)) == pytest.approx(optimum(K, y, np.ones(180)), rel=1e-3)


# The parts


@pytest.mark.parametrize("eps", [1e-2, 1e-5, 1e-9])
def test_the_interior_point_method_ends_within_the_gap_asked_for(eps, make_blobs):
    X, y = make_blobs(150)
    cap = np.random.default_rng(2).uniform(0.1, 10.0, 150)
    K = RBF(0.3)(X, X)[:, :60]
    u, c, b = interior_point(K, y, cap, eps, Limits().start())
    best = optimum(K, y, cap)
    assert objective(K, y, cap, c, b) == pytest.approx(best, rel=2 * eps + 1e-9)
    assert u.sum() == pytest.approx(best, rel=2 * eps + 1e-9)
    assert ((u > 0) & (u < cap)).all()
    assert y @ u == pytest.approx(0.0, abs=1e-9 * cap.sum())
    assert np.abs(K.T @ (y * u)).max() <= 1 + 2 * eps + 1e-9


def test_newtons_direction_solves_the_linearised_equations(make_blobs):
    """The eliminated system against each of the equations it was made from."""
    X, y = make_blobs(30)
    rng, K = np.random.default_rng(3), RBF(0.3)(X, X)[:, :8]
    cap, t, x = rng.uniform(1, 2, 30), rng.uniform(-0.9, 0.9, 8), rng.normal(size=9)
    u, Z, target = cap * rng.uniform(0.1, 0.9, 30), rng.uniform(0.1, 2, 76), rng.normal(size=76)
    S = np.concatenate([u, cap - u, 1 + t, 1 - t])
    dx, du, dt, dS, dZ = Newton(K, y, cap, u, t, x, Z).direction(target)
    new_u, new_t, new_x, new_Z = u + du, t + dt, x + dx, Z + dZ
    z_low, z_high, v_low, v_high = np.split(new_Z, [30, 60, 68])
    np.testing.assert_allclose(K.T @ (y * new_u), new_t, atol=1e-9)
    assert y @ new_u == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(z_low - z_high, y * (K @ new_x[:8] + new_x[8]) - 1, atol=1e-9)
    np.testing.assert_allclose(v_high - v_low, new_x[:8], atol=1e-9)
    np.testing.assert_allclose(S * dZ + Z * dS, target, atol=1e-9)


def test_an_interior_point_without_a_factor_returns_what_it_has(make_blobs, monkeypatch):
    def broken(*_, **__):
        raise lp_svm.LinAlgError

    monkeypatch.setattr(lp_svm, "cho_factor", broken)
    X, y = make_blobs(30)
    u, c, _ = interior_point(RBF(0.3)(X, X), y, np.ones(30), EXACT, Limits().start())
    assert np.isfinite(u).all()
    assert not c.any()


@given(st.integers(0, 10**6))
def test_balanced_scales_the_heavier_side_down(seed):
    rng = np.random.default_rng(seed)
    u, y = rng.uniform(0.1, 1.0, 9), np.where(np.arange(9) < rng.integers(1, 9), 1.0, -1.0)
    v = balanced(u, y)
    assert y @ v == pytest.approx(0.0, abs=1e-12)
    assert (v <= u * (1 + 1e-12)).all()
    assert v.sum() == pytest.approx(2 * min(u[y > 0].sum(), u[y < 0].sum()))


@given(seed=st.integers(0, 10**6), alone=st.integers(0, 30))
@settings(max_examples=30)
def test_groups_bound_the_objective_and_are_exact_where_none_is_mixed(seed, alone):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 2)), np.where(np.arange(40) % 2, 1.0, -1.0)
    lp = LpProblem(HostRows(RBF(0.5), X), y, rng.uniform(0.5, 2.0, 40))
    lp.add(np.arange(6))
    lp.bundle(y * rng.normal(size=40), alone, lp.K.nearest())
    c, b = rng.normal(size=6), rng.normal()
    true = objective(RBF(0.5)(X, X[:6]), y, lp.cap, c, b)
    for _ in range(9):
        K, sides, cap = lp.grouped()
        assert set(sides) <= {-1.0, 1.0}
        assert cap.sum() == pytest.approx(lp.cap.sum())
        below = lp_objective(K, sides, cap, np.append(c, b))
        assert below <= true * (1 + 1e-12)
        if not lp.split(lp.margins(c, b)):
            break
    assert below == pytest.approx(true)
    u = rng.random(cap.size) * cap  # u of rows has the prices of u of groups
    K, sides, _ = lp.grouped()
    np.testing.assert_allclose(lp.K.back((y * lp.spread(u))[:, None]).ravel(), K.T @ (sides * u))


def test_columns_that_join_are_not_alike(make_blobs):
    X, _ = make_blobs(40)
    rows = HostRows(RBF(0.3), np.vstack([X, X]))
    chosen = apart(rows, np.arange(80), 80)
    block = rows.block(chosen)
    assert chosen[0] == 0
    assert (block[~np.eye(chosen.size, dtype=bool)] <= lp_svm.ALIKE).all()
    assert apart(rows, np.arange(80), 5).size == 5
    assert apart(rows, np.empty(0, dtype=np.intp), 5).size == 0


# What every trainer has


@pytest.mark.parametrize("direct", [0, 1000])
def test_a_row_of_weight_two_counts_as_two_rows(direct, make_blobs, make_task):
    """Equal rows are equal columns, so that optima are many: their value is one."""
    X, y = make_blobs(60)
    weights = 1 + np.arange(60) % 3
    K, values = RBF(0.3)(X, X), []
    weighted = LP(tol=EXACT, direct=direct, batch=10).fit(make_task(RBF(0.3), X, y, weights.astype(float)))
    repeated = LP(tol=EXACT, direct=direct, batch=10).fit(
        make_task(RBF(0.3), np.repeat(X, weights, axis=0), np.repeat(y, weights))
    )
    rows = np.repeat(np.arange(60), weights)
    for dual, bias in (
        (weighted.dual[:, 0], weighted.model.bias[0]),
        (np.bincount(rows, repeated.dual[:, 0]), repeated.model.bias[0]),
    ):
        values.append(objective(K, y, weights, dual, bias))
    assert values[1] == pytest.approx(values[0], rel=4 * EXACT)


@pytest.mark.parametrize("direct", [0, 1000])
def test_sparse_rows_and_a_precomputed_kernel_give_the_same_model(direct, make_blobs):
    X, y = make_blobs(200)
    X = np.where(np.abs(X) < 0.8, 0.0, X)
    settings = {"trainer": LP(direct=direct, batch=20), "tol": EXACT, "random_state": 0}
    dense, sparse = (SlimSVC(gamma=0.3, **settings).fit(rows, y) for rows in (X, csr_array(X)))
    K = RBF(0.3)(X, X)
    given = SlimSVC(kernel="precomputed", **settings).fit(K, y)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(given.decision_function(K), dense.decision_function(X), atol=1e-3)


def test_the_same_seed_gives_the_same_model(make_blobs):
    X, y = make_blobs(200)
    same = [SlimSVC(trainer=LP(direct=0, batch=20), random_state=1).fit(X, y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_many_classes_are_pairs_of_them():
    X, y = load_iris(return_X_y=True)
    slim = SlimSVC(trainer="lp", gamma=0.2).fit(X, y)
    assert slim.score(X, y) > 0.95
    assert slim.model_.size < 0.5 * SlimSVC(gamma=0.2).fit(X, y).model_.size


@pytest.mark.parametrize("max_iter", [0, 1, 30, 100])
@pytest.mark.parametrize("direct", [0, 1000])
def test_max_iter_limits_the_iterations_and_the_best_model_so_far_is_kept(max_iter, direct, make_blobs, make_task):
    X, y = make_blobs(200)
    K = RBF(0.3)(X, X)
    fit = LP(tol=EXACT, max_iter=max_iter, direct=direct, batch=5).fit(make_task(RBF(0.3), X, y))
    assert fit.status is Status.MAX_ITER
    assert fit.n_iter <= max_iter + 1
    assert objective_of(fit, K, y, np.ones(200)) <= 200.0 + 1e-9  # what the constant costs


@pytest.mark.parametrize("direct", [0, 1000])
def test_a_time_limit_keeps_the_best_model_so_far(direct, make_blobs, make_task):
    X, y = make_blobs(300)
    fit = LP(time_limit=1e-6, direct=direct).fit(make_task(RBF(0.3), X, y))
    assert fit.status is Status.TIME_LIMIT
    assert np.isfinite(fit.model(X)).all()


@pytest.mark.parametrize(("code", "status"), [(1, Status.TIME_LIMIT), (4, Status.STALLED)])
def test_what_stops_the_simplex_is_told(code, status, make_blobs, make_task, monkeypatch):
    monkeypatch.setattr(lp_svm, "linprog", lambda *_, **__: SimpleNamespace(status=code, nit=3))
    X, y = make_blobs(50)
    fit = LP().fit(make_task(RBF(0.3), X, y))
    assert fit.status is status
    assert fit.n_iter == 3
    assert fit.model.size == 0


def test_a_gap_that_rounding_hides_is_a_stall(make_blobs, make_task):
    X, y = make_blobs(50)
    for direct in (0, 1000):
        fit = LP(tol=1e-300, direct=direct, batch=10).fit(make_task(RBF(0.3), X, y))
        assert fit.status in (Status.STALLED, Status.CONVERGED)
        assert fit.gap < 1e-6


def test_nothing_is_printed_and_progress_goes_up_to_all(make_blobs, make_task, capfd):
    X, y = make_blobs(200)
    for direct in (0, 1000):
        task, seen = make_task(RBF(0.3), X, y), []
        LP(direct=direct, batch=10).fit(
            Task(task.rows, task.targets, task.weights, run=Run(lambda _, done, seen=seen: seen.append(done)))
        )
        assert seen[-1] == 1.0
        assert all(0 <= done <= 1 for done in seen)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("settings", "words"), [({"time_limit": 0.0}, "seconds above 0"), ({"batch": 0}, "1 column")])
def test_settings_that_no_data_could_make_right_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        LP(**settings)


def test_only_groups_of_rows_reach_the_solvers(make_blobs, make_task, monkeypatch):
    X, y = make_blobs(300)
    sizes, real = [], lp_svm.interior_point

    def watched(K, *args):
        sizes.append(K.shape[0])
        return real(K, *args)

    monkeypatch.setattr(lp_svm, "interior_point", watched)
    fit = SmallGroups(direct=50, batch=20).fit(make_task(RBF(0.5), X, y))
    assert fit.status is Status.CONVERGED
    assert sizes[0] <= 2 * SmallGroups.alone < max(sizes) < 300


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear()], ids=["rbf", "linear"])
def test_the_nearest_column_has_the_largest_kernel_value(kernel, make_blobs):
    X, _ = make_blobs(60)
    np.testing.assert_array_equal(HostRows(kernel, X).against(X[:7]).nearest(), kernel(X, X[:7]).argmax(axis=1))


def test_prices_are_summed_in_parts_and_end_at_the_deadline(make_blobs):
    X, y = make_blobs(150)
    rows, u = HostRows(RBF(0.3), X, cache_mb=0.0), np.random.default_rng(0).random(150)
    lp = LpProblem(rows, y, np.ones(150))
    lp.add(np.arange(5))
    evaluations = rows.meter.evaluations
    assert lp.price(u, Deadline(0.0)) is None
    assert rows.meter.evaluations == evaluations
    prices, _ = lp.price(u, Deadline(None))
    np.testing.assert_allclose(prices, RBF(0.3)(X, X) @ (y * u), rtol=1e-5)
