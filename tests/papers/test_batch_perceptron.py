"""The stochastic batch perceptron: its own steps against the exact optimum, the printed ones against a plain loop."""

import numpy as np
import pytest
from conftest import naive_level
from scipy.optimize import LinearConstraint, minimize
from sklearn.datasets import load_breast_cancer, load_iris, make_classification, make_moons
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC
from slimsvm.kernels import RBF, Linear
from slimsvm.model import Status
from slimsvm.solvers.bias import fewest_errors
from slimsvm.trainers import SBP, SMO


def two_classes(X, y):
    return StandardScaler().fit_transform(X), np.where(y == y[0], 1.0, -1.0)


DATA = {
    "breast_cancer": lambda: two_classes(*load_breast_cancer(return_X_y=True)),
    "iris": lambda: two_classes(load_iris().data[50:], load_iris().target[50:]),
    "moons": lambda: two_classes(*make_moons(300, noise=0.3, random_state=0)),
    "noise": lambda: two_classes(*make_classification(400, 10, flip_y=0.2, random_state=1)),
}
FEW = 32


def primal(K, y, cap, fit):
    """1/2 |w|^2 + sum of cap times loss."""
    signed, bias = fit.dual[:, 0], fit.model.bias[0]
    outputs = K @ signed
    return 0.5 * signed @ outputs + cap @ np.maximum(0, 1 - y * (outputs + bias))


def least_primal(K, y, cap, fit):
    """The objective with the best bias, of all those at which a loss begins."""
    signed = fit.dual[:, 0]
    outputs = K @ signed
    losses = np.maximum(0, 1 - y * (outputs + (y - outputs)[:, None])) @ cap
    return 0.5 * signed @ outputs + losses.min()


def exact_without_bias(K, y, cap):
    """The optimum of the same without a bias, by a general solver on the dual."""
    Q = K * np.outer(y, y)
    found = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1), np.zeros(y.size), jac=True, bounds=[(0, c) for c in cap]
    )
    return -found.fun


@pytest.mark.parametrize("gap", [0.1, 0.01])
@pytest.mark.parametrize(
    ("data", "C"), [("breast_cancer", 1.0), ("iris", 0.1), ("iris", 10.0), ("moons", 0.1), ("moons", 10.0), ("noise", 1.0)]
)
def test_the_objective_is_within_the_gap_of_the_exact_one(make_task, data, C, gap):
    X, y = DATA[data]()
    K, cap = RBF(0.1)(X, X), np.full(y.size, C)
    exact = primal(K, y, cap, SMO(C, 1e-5).fit(make_task(RBF(0.1), X, y)))
    fit = SBP(C, gap=gap, working_set=FEW).fit(make_task(RBF(0.1), X, y))
    assert fit.status is Status.CONVERGED
    assert exact * (1 - 1e-3) <= least_primal(K, y, cap, fit) <= exact / (1 - gap)


@pytest.mark.parametrize("data", ["moons", "noise"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_without_a_bias(make_task, data, weighted):
    X, y = DATA[data]()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, y.size) if weighted else np.ones(y.size)
    K = RBF(0.1)(X, X)
    exact = exact_without_bias(K, y, weights)
    for trainer, off in ((SBP(1.0, gap=0.01, bias=False, working_set=FEW), 0.01), (SMO(1.0, 1e-5, bias=False), 1e-4)):
        fit = trainer.fit(make_task(RBF(0.1), X, y, weights))
        assert fit.model.bias == 0
        assert primal(K, y, weights, fit) == pytest.approx(exact, rel=off)


def test_one_row_at_a_time_without_a_bias_is_a_plain_loop(make_task):
    """SMO of a single coordinate: the one whose step gains most (Fan, Chen & Lin 2005)."""
    X, y = DATA["noise"]()
    kernel, steps = Linear(), 50
    K, a = kernel(X, X), np.zeros(y.size)
    fit = SMO(0.1, max_iter=steps, bias=False, working_set=1).fit(make_task(kernel, X, y))
    for _ in range(steps):
        slope = 1 - y * (K @ (a * y))
        able = np.where(slope > 0, a < 0.1, a > 0)
        row = np.argmax(able * slope**2 / K.diagonal())
        a[row] = np.clip(a[row] + slope[row] / K[row, row], 0, 0.1)
    np.testing.assert_allclose(fit.dual[:, 0], a * y, atol=1e-6)


def test_weights_are_costs(make_task):
    X, y = DATA["noise"]()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, y.size)
    K = RBF(0.1)(X, X)
    exact = primal(K, y, weights, SMO(1.0, 1e-5).fit(make_task(RBF(0.1), X, y, weights)))
    fit = SBP(1.0, gap=0.03, working_set=FEW).fit(make_task(RBF(0.1), X, y, weights))
    assert least_primal(K, y, weights, fit) <= exact / 0.97


@pytest.mark.parametrize("bias", [False, True])
def test_the_printed_form_is_a_plain_loop(make_task, bias):
    """Water over the responses c, one row under it, a step of 1 / sqrt(t), the unit ball, the mean of all iterates."""
    X, y = DATA["iris"]()
    kernel, nu, T = Linear(), 0.1, 40
    K = kernel(X, X)
    fit = SBP.paper(nu=nu, T=T, bias=bias).fit(make_task(kernel, X, y))
    rng, root = np.random.default_rng(0).spawn(1)[0], np.sqrt(K.diagonal().max())
    basins = [np.flatnonzero(y == sign) for sign in (1, -1)] if bias else [np.arange(y.size)]
    w, total = np.zeros(y.size), np.zeros(y.size)
    for t in range(1, T + 1):
        c = y * (K @ w)
        side = int(rng.integers(len(basins)))
        basin = basins[side]
        row = int(rng.choice(basin[c[basin] <= plain_levels(c, basins, nu * y.size)[side] + 1e-12]))
        w[row] += y[row] / np.sqrt(t) / root
        w /= max(np.sqrt(w @ K @ w), 1.0)
        total += w / T
    levels = plain_levels(y * (K @ total), basins, nu * y.size)
    scale = 1 / np.mean(levels) if np.mean(levels) > 0 else 1.0
    np.testing.assert_allclose(fit.dual[:, 0], scale * total, atol=1e-9)
    assert fit.model.bias[0] == pytest.approx(scale * (levels[-1] - levels[0]) / 2)


def plain_levels(c, basins, volume):
    """The levels of one or two basins: of two, the k lowest rows of each are under water, with sums as in one basin."""
    sides = [np.sort(c[basin]) for basin in basins]
    if len(sides) == 1:
        return [naive_level(sides[0], np.ones(sides[0].size), volume)]
    k = min(side.size for side in sides)
    pairs = sides[0][:k] + sides[1][:k]
    total = naive_level(pairs, np.ones(k), volume)
    wet = max(int((pairs < total).sum()), 1)
    least, most = [s[wet - 1] for s in sides], [s[wet] if s.size > wet else np.inf for s in sides]
    extra = max(total - sum(least), 0.0)
    first = min(max(extra / 2, extra - (most[1] - least[1])), most[0] - least[0])
    return [least[0] + first, least[1] + extra - first]


def bound_of_the_optimum(K, y, nu):
    """sup over |w| <= 1 of the level is the least |sum p y phi| + n nu max p over distributions p."""
    Q, n = K * np.outer(y, y), y.size

    def bound(v):
        p, q = v[:-1], v[-1]
        length = np.sqrt(p @ Q @ p)
        return length + n * nu * q, np.append(Q @ p / length, n * nu)

    start = np.append(np.full(n, 1 / n), 1 / n)
    constraints = [
        LinearConstraint(np.append(np.ones(n), 0.0), 1, 1),
        LinearConstraint(np.hstack([-np.eye(n), np.ones((n, 1))]), 0, np.inf),
    ]
    return minimize(bound, start, jac=True, bounds=[(0, 1)] * (n + 1), constraints=constraints, method="SLSQP").fun


def test_the_level_of_the_mean_comes_near_the_optimum_as_the_root_of_the_rounds(make_task):
    """Lemma 3.2: after T rounds the mean of the iterates is within O(1 / sqrt(T)) of the optimum."""
    X, y = DATA["iris"]()
    K, nu = RBF(0.3)(X, X), 0.05
    best = bound_of_the_optimum(K, y, nu)
    off = {}
    for T in (64, 256, 1024, 4096):
        signed = SBP.paper(nu=nu, T=T).fit(make_task(RBF(0.3), X, y)).dual[:, 0]
        direction = signed / np.sqrt(signed @ K @ signed)  # a mean of iterates is shorter than 1, and its level no higher
        off[T] = best - naive_level(y * (K @ direction), np.ones(y.size), nu * y.size)
        assert 0 <= off[T] <= 1.0 / np.sqrt(T)
    assert off[4096] < 0.5 * off[256]


def test_rounds_cost_the_rows_that_move(make_task):
    X, y = DATA["noise"]()
    task = make_task(RBF(0.1), X, y)
    SBP.paper(nu=0.1, T=7).fit(task)
    assert task.rows.meter.evaluations == (1 + 7) * y.size  # the diagonal, once
    task = make_task(RBF(0.1), X, y)
    SBP(1.0, working_set=12, max_iter=5).fit(task)
    assert task.rows.meter.evaluations <= 5 * (12 * y.size + 14**2)


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"max_iter": 3}, Status.MAX_ITER),
        ({"max_iter": 0}, Status.MAX_ITER),
        ({"time_limit": 1e-9}, Status.TIME_LIMIT),
        ({"early_stopping": True, "gap": 0, "tol": 0}, Status.STABLE),
        ({}, Status.CONVERGED),
    ],
)
def test_endings(make_task, settings, status):
    X, y = DATA["moons"]()
    assert SBP(1.0, working_set=16, **settings).fit(make_task(RBF(0.1), X, y)).status is status


def test_rows_held_out_are_not_learned_from(make_task):
    X, y = DATA["noise"]()
    fit = SBP(1.0, early_stopping=True, validation_fraction=0.5).fit(make_task(RBF(0.1), X, y))
    assert fit.model.size <= y.size / 2 + 1


def test_chance_is_the_seed_alone(make_task):
    X, y = DATA["moons"]()
    first, second = (SBP(1.0, working_set=FEW, max_iter=4).fit(make_task(RBF(0.1), X, y)).dual for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_model_of_few_rounds_has_the_bias_of_the_fewest_errors(make_task):
    X, y = DATA["noise"]()
    model = SBP(1.0, working_set=FEW, max_iter=2).fit(make_task(RBF(0.1), X, y)).model
    outputs = model(X)[:, 0] - model.bias[0]
    best = min(np.mean(np.where(outputs + cut > 0, 1, -1) != y) for cut in -outputs)
    assert np.mean(np.where(outputs + fewest_errors(outputs, y, np.ones(y.size)) > 0, 1, -1) != y) == best
    assert np.mean(np.where(model(X)[:, 0] > 0, 1, -1) != y) == best


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SBP(working_set=1), "working_set must be 2 rows at least, one of each class, not 1"),
        (lambda: SBP(gap=-0.1), r"gap must be 0 or a share .* not -0\.1"),
        (lambda: SBP(time_limit=0), "time_limit must be a number of seconds above 0, or None, not 0"),
        (lambda: SBP(validation_fraction=1.0), r"validation_fraction must lie between 0 and 1, not 1\.0"),
        (lambda: SBP(n_iter_no_change=0), "n_iter_no_change must be 1 at least, not 0"),
        (lambda: SBP.paper(nu=0), "nu, the slack for each row, must lie between 0 and 1, not 0"),
        (lambda: SBP.paper(nu=1.5), r"nu, the slack for each row, must lie between 0 and 1, not 1\.5"),
        (lambda: SBP.paper(nu=0.1, T=0), "not 0"),
        (lambda: SMO(bias=False, working_set=0), "working_set must be 1 row at least, not 0"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_slack_that_covers_a_class_is_refused(make_task):
    X, y = DATA["moons"]()
    with pytest.raises(ValueError, match=r"nu=0\.99 is so much slack that it covers a whole class"):
        SBP.paper(nu=0.99, T=500).fit(make_task(RBF(0.1), X, y))


def test_a_kernel_that_is_zero_at_some_rows(make_task):
    X, y = DATA["moons"]()
    X[:5] = 0.0
    for trainer in (SBP(bias=False, working_set=FEW), SBP(working_set=FEW), SBP.paper(nu=0.1, T=200), SMO(bias=False)):
        assert np.isfinite(trainer.fit(make_task(Linear(), X, y)).dual).all()


def test_many_classes_and_estimator():
    X, y = load_iris(return_X_y=True)
    for trainer in ("sbp", SBP.paper(nu=0.05, T=300)):
        assert SlimSVC(trainer=trainer, random_state=0).fit(X, y).score(X, y) > 0.9


def test_outputs_on_many_rows_are_known_to_what_shrinks_the_model(monkeypatch):
    """The trainer has them: a full model of many vectors on many rows takes longer than all the rest."""
    X, y = make_moons(600, noise=0.3, random_state=0)
    again = SlimSVC(8, trainer=SBP(early_stopping=False), random_state=0).fit(X, y)
    monkeypatch.setattr(SBP, "many", 100)
    known = SlimSVC(8, trainer=SBP(early_stopping=False), random_state=0).fit(X, y)
    np.testing.assert_allclose(known.decision_function(X), again.decision_function(X), atol=0.1)
    assert known.n_kernel_evals_ < again.n_kernel_evals_
