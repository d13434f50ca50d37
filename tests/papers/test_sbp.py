"""The stochastic batch perceptron against the exact optimum, its own problem, and its endings."""

import numpy as np
import pytest
from conftest import naive_level
from scipy.optimize import LinearConstraint, minimize
from sklearn.datasets import load_breast_cancer, load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC
from slimsvm.kernels import RBF, Linear
from slimsvm.model import Status
from slimsvm.papers import sbp
from slimsvm.papers.batch_perceptron import BatchPerceptron, fewest_errors
from slimsvm.papers.water import CostWater, DrawnWater, fill
from slimsvm.trainers import SBP, SMO


def two_classes(X, y):
    return StandardScaler().fit_transform(X), np.where(y == y[0], 1.0, -1.0)


DATA = {
    "breast_cancer": lambda: two_classes(*load_breast_cancer(return_X_y=True)),
    "iris": lambda: two_classes(load_iris().data[50:], load_iris().target[50:]),
    "moons": lambda: two_classes(*make_moons(300, noise=0.3, random_state=0)),
    "noise": lambda: two_classes(*make_classification(400, 10, flip_y=0.2, random_state=1)),
}


def primal(K, y, cap, fit):
    """1/2 |w|^2 + sum of cap times loss."""
    signed, bias = fit.dual[:, 0], fit.model.bias[0]
    outputs = K @ signed
    return 0.5 * signed @ outputs + cap @ np.maximum(0, 1 - y * (outputs + bias))


def exact_without_bias(K, y, cap):
    """The optimum of the same without a bias, by a general solver on the dual."""
    Q = K * np.outer(y, y)
    found = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1), np.zeros(y.size), jac=True, bounds=[(0, c) for c in cap]
    )
    return -found.fun


@pytest.mark.parametrize(
    ("data", "C"), [("breast_cancer", 1.0), ("iris", 0.1), ("iris", 10.0), ("moons", 0.1), ("moons", 10.0), ("noise", 1.0)]
)
def test_objective_is_within_two_percent_of_the_exact_one(make_task, data, C):
    X, y = DATA[data]()
    K, cap = RBF(0.1)(X, X), np.full(y.size, C)
    exact = primal(K, y, cap, SMO(C, 1e-5).fit(make_task(RBF(0.1), X, y)))
    fit = SBP(C).fit(make_task(RBF(0.1), X, y))
    assert fit.status is Status.CONVERGED
    assert exact * (1 - 1e-3) <= primal(K, y, cap, fit) <= 1.02 * exact


@pytest.mark.parametrize("data", ["moons", "noise"])
def test_objective_without_bias(make_task, data):
    X, y = DATA[data]()
    K, cap = RBF(0.1)(X, X), np.ones(y.size)
    fit = SBP(1.0, bias=False).fit(make_task(RBF(0.1), X, y))
    assert fit.model.bias == 0
    assert primal(K, y, cap, fit) == pytest.approx(exact_without_bias(K, y, cap), rel=0.02)


def test_one_row_at_a_time_gets_there_too(make_task):
    X, y = DATA["moons"]()
    K, cap = RBF(0.1)(X, X), np.ones(y.size)
    exact = primal(K, y, cap, SMO(1.0, 1e-5).fit(make_task(RBF(0.1), X, y)))
    assert primal(K, y, cap, SBP(1.0, batch=1, max_iter=4000).fit(make_task(RBF(0.1), X, y))) <= 1.05 * exact


def rounds_of(task, y, **settings):
    """A run of the batch perceptron, all rows learned from."""
    common = {"validation": np.array([], dtype=int), "bias": True, "batch": 8, "C": 2.0, "root": False, "nu": None}
    return BatchPerceptron(task.rows, y, np.ones(y.size), np.random.default_rng(0), **common | settings)


def test_draws_have_the_slack_of_the_cost_by_the_length_of_their_mean(make_task):
    """The two waters agree in the end, where the mean over the rows under water is the mean over the rows drawn."""
    X, y = DATA["noise"]()
    run = rounds_of(make_task(RBF(0.1), X, y), y)
    for _ in range(1000):
        run.round()
        length = np.sqrt(run.last.coef @ run.values) / run.drawn
        mass = run.last.surface.covered.mass  # a row of each class may be at the level, and count in part
        assert mass - 2 <= 1 / (2.0 * length * run.last.surface.level) <= mass * (1 + 1e-9)
    basins = [(h, basin.weights) for h, basin in zip(run.last.heights, run.basins, strict=True)]
    waters = [fill(basins, water).volume for water in (DrawnWater(2.0, length), CostWater(2.0))]
    assert waters[0] == pytest.approx(waters[1], rel=0.1)


def test_the_first_results_have_the_bias_of_the_fewest_errors(make_task):
    X, y = DATA["noise"]()
    run = rounds_of(make_task(RBF(0.1), X, y), y)
    for _ in range(4):
        run.round()
    found = run.result()
    outputs = found.values / np.sqrt(found.coef @ found.values)
    best = min(np.mean(np.where(outputs > cut, 1, -1) != y) for cut in outputs)
    cut = fewest_errors(run.basins, found.heights)
    assert np.mean(np.where(outputs > cut, 1, -1) != y) == best
    share = run.drawn / y.size
    assert found.cut == pytest.approx((1 - share) * cut + share * found.threshold)
    while run.drawn < y.size:
        run.round()
    assert run.result().cut is None


def test_a_level_that_is_no_margin_yet_leaves_the_direction(make_task):
    """The paper predicts with the sign of w, for any level."""
    X, y = DATA["noise"]()
    run = rounds_of(make_task(RBF(0.1), X, y), y, bias=False, root=True, batch=1, nu=1e-4)
    run.round()
    run.round()
    found = run.result()
    assert found.surface.level <= 0
    scale, bias = found.predictor
    assert bias == 0
    assert scale == pytest.approx(1 / np.sqrt(found.coef @ found.values))


def test_weights_are_costs(make_task):
    X, y = DATA["noise"]()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, y.size)
    K = RBF(0.1)(X, X)
    exact = primal(K, y, weights, SMO(1.0, 1e-5).fit(make_task(RBF(0.1), X, y, weights)))
    for settings in (SBP(1.0), SBP(1.0, batch=64, steps="root", max_iter=3000)):
        assert primal(K, y, weights, settings.fit(make_task(RBF(0.1), X, y, weights))) <= 1.03 * exact


@pytest.mark.parametrize("ratio", [3.0, 25.0, 400.0])
@pytest.mark.parametrize("bias", [True, False])
def test_one_class_may_weigh_much_more(make_task, ratio, bias):
    X, y = DATA["moons"]()
    weights = np.where(y > 0, ratio, 1.0) / np.sqrt(ratio)
    K = RBF(0.5)(X, X)
    fit = SBP(0.1, bias=bias).fit(make_task(RBF(0.5), X, y, weights))
    if bias:
        exact = primal(K, y, 0.1 * weights, SMO(0.1, 1e-6).fit(make_task(RBF(0.5), X, y, weights)))
    else:
        exact = exact_without_bias(K, y, 0.1 * weights)
    assert primal(K, y, 0.1 * weights, fit) <= 1.03 * exact


def test_one_row_at_a_time_is_the_papers_loop(make_task):
    X, y = DATA["iris"]()
    K, nu, rounds = RBF(0.05)(X, X), 0.1, 60
    fit = SBP(nu=nu, bias=False, batch=1, max_iter=rounds).fit(make_task(RBF(0.05), X, y))
    rng = np.random.default_rng(0).spawn(1)[0]
    sides = [np.flatnonzero(y == sign) for sign in (1, -1)]
    for rows in (*sides, y.size):  # a run shuffles before it begins
        rng.permutation(rows)
    order = np.concatenate(sides)
    w, total, c, level = np.zeros(y.size), np.zeros(y.size), np.zeros(y.size), np.inf
    for t in range(1, rounds + 1):
        rng.multinomial(1, [1.0])
        row = order[rng.choice(np.flatnonzero(c[order] <= level))]
        w[row] += y[row] / np.sqrt(t)
        w /= max(np.sqrt(w @ K @ w), 1.0)
        total += t * w
        c = y * (K @ w) / np.sqrt(w @ K @ w)
        level = naive_level(c, np.ones(y.size), nu * y.size)
    np.testing.assert_allclose(fit.dual[:, 0] / np.abs(fit.dual).sum(), total / np.abs(total).sum(), rtol=0, atol=1e-9)


def test_slack_constrained_optimum(make_task):
    """sup over |w| <= 1 of the level is the least |sum p y phi| + n nu max p over distributions p."""
    X, y = DATA["iris"]()
    K, nu, n = RBF(0.3)(X, X), 0.05, y.size
    Q = K * np.outer(y, y)

    def bound(v):
        p, q = v[:-1], v[-1]
        length = np.sqrt(p @ Q @ p)
        return length + n * nu * q, np.append(Q @ p / length, n * nu)

    start = np.append(np.full(n, 1 / n), 1 / n)
    constraints = [
        LinearConstraint(np.append(np.ones(n), 0.0), 1, 1),
        LinearConstraint(np.hstack([-np.eye(n), np.ones((n, 1))]), 0, np.inf),
    ]
    best = minimize(bound, start, jac=True, bounds=[(0, 1)] * (n + 1), constraints=constraints, method="SLSQP").fun
    fit = SBP(nu=nu, bias=False, tol=5e-4).fit(make_task(RBF(0.3), X, y))
    signed = fit.dual[:, 0]
    level = 1 / np.sqrt(signed @ K @ signed)
    assert level == pytest.approx(best, rel=0.02)
    assert level <= best * (1 + 1e-6)


def test_rounds_cost_the_rows_drawn(make_task):
    X, y = DATA["noise"]()
    task = make_task(RBF(0.1), X, y)
    SBP(1.0, batch=12, max_iter=5).fit(task)
    assert task.rows.meter.evaluations <= 5 * 12 * y.size
    task = make_task(RBF(0.1), X, y)
    SBP(1.0, batch=1, max_iter=7).fit(task)
    assert task.rows.meter.evaluations == 7 * y.size


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"max_iter": 3}, Status.MAX_ITER),
        ({"max_iter": 0}, Status.MAX_ITER),
        ({"time_limit": 1e-9}, Status.TIME_LIMIT),
        ({"early_stopping": True, "tol": 1e-9}, Status.STABLE),
        ({}, Status.CONVERGED),
    ],
)
def test_endings(make_task, settings, status):
    X, y = DATA["moons"]()
    assert SBP(1.0, **settings).fit(make_task(RBF(0.1), X, y)).status is status


def test_rows_held_out_are_not_learned_from(make_task):
    X, y = DATA["noise"]()
    fit = SBP(1.0, early_stopping=True, validation_fraction=0.5, tol=1e-9).fit(make_task(RBF(0.1), X, y))
    assert fit.model.size <= y.size / 2 + 1


def test_chance_is_the_seed_alone(make_task):
    X, y = DATA["moons"]()
    first, second = (SBP(1.0, max_iter=40).fit(make_task(RBF(0.1), X, y)).dual for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "batch must be 1 row at least, not 0"),
        ({"nu": -0.1}, "nu must be a number from 0 up, or None for the one that belongs to C, not -0.1"),
        ({"steps": "big"}, r"unknown steps 'big'; there are \['mean', 'root'\]"),
        ({"time_limit": 0}, "time_limit must be a number of seconds above 0, or None, not 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must lie between 0 and 1, not 1.0"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be 1 at least, not 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SBP(**settings)


def test_slack_out_of_range_says_the_range(make_task):
    X, y = DATA["moons"]()
    with pytest.raises(ValueError, match=r"nu=5 is so much slack .* must be between 0 and 0\.\d+"):
        SBP(nu=5.0).fit(make_task(RBF(0.1), X, y))
    with pytest.raises(ValueError, match=r"nu=0 is too little slack to separate these rows; it must be above 0\.\d+"):
        SBP(nu=0.0).fit(make_task(Linear(), X, y))


def test_many_classes_and_estimator():
    X, y = load_iris(return_X_y=True)
    model = SlimSVC(trainer="sbp", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.status_ is Status.CONVERGED


def test_a_run_without_a_limit_ends_for_overlapping_classes_and_a_large_cost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80) > 0
    with pytest.warns(ConvergenceWarning, match="SBP stopped at max_iter"):
        svc = SlimSVC(C=1e12, trainer="sbp", random_state=0).fit(X, y)
    assert svc.n_iter_ == sbp.MOST_ROUNDS
    assert np.isfinite(svc.decision_function(X)).all()


def test_the_first_rounds_draw_few_rows(make_task):
    """A batch is at most a 256th of the rows drawn so far, so that each round sees what the rows before it did."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4096, 3)), rng.choice([-1.0, 1.0], size=4096)
    task = make_task(RBF(0.1), X, y)
    SBP(max_iter=20).fit(task)
    assert task.rows.meter.evaluations == 20 * 2 * y.size  # a row of each class


def test_the_result_is_an_average_of_iterates(make_task):
    X, y = DATA["noise"]()
    problem = make_task(RBF(0.1), X, y)
    run = BatchPerceptron(
        problem.rows,
        y,
        np.ones(y.size),
        np.random.default_rng(0),
        validation=np.empty(0, dtype=int),
        bias=True,
        batch=8,
        root=False,
        C=1.0,
        nu=None,
    )
    iterates, drawn = [], []
    for _ in range(60):
        run.round()
        iterates.append(run.last.coef / np.sqrt(run.last.coef @ run.values))
        drawn.append(run.drawn)
    shares = [min(4 * count / total, 1) for count, total in zip(np.diff([0, *drawn]), drawn, strict=True)]
    weights = [share * np.prod([1 - later for later in shares[place + 1 :]]) for place, share in enumerate(shares)]
    assert sum(weights) == pytest.approx(1)
    np.testing.assert_allclose(run.sums[0], np.array(weights) @ np.array(iterates), atol=1e-12)
    np.testing.assert_array_equal(run.result().coef, run.sums[0])
