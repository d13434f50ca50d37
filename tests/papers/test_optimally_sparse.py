"""The slant reducers against plain loops that compute everything anew, and against the paper's guarantee."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, make_moons

from slimsvm import SlimSVC
from slimsvm.goals import OneVsOne, OneVsRest
from slimsvm.goals.margin_targets import MarginTargets
from slimsvm.kernels import RBF, Linear, Poly, Sigmoid
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Holdout, Status, Task
from slimsvm.papers.optimally_sparse import BIASES, EPSILONS, ETAS, AggressiveSlant, Slant, SlantRun, least_margins
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.selection.path import Made
from slimsvm.solvers.basis import REFIT_VALUES
from slimsvm.trainers import SBP, SMO

SLANTS = [Slant, AggressiveSlant]


def full_model(task, C=1.0):
    return SMO(C).fit(task).model


def moons(n=200, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return X, y


# Paths of each bias


@pytest.fixture(params=["two classes", "one against the rest", "one against one"])
def problem(request):
    """A task with rows held out, and the full model for it."""
    if request.param == "two classes":
        X, labels = moons()
        coding = OneVsRest(2)
    else:
        X, labels = load_iris(return_X_y=True)
        coding = OneVsRest(3) if request.param == "one against the rest" else OneVsOne(3)
    order = np.random.default_rng(0).permutation(labels.size)
    learn, judge = order[: labels.size * 3 // 4], order[labels.size * 3 // 4 :]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, judge.size)
    holdout = Holdout(HostRows(RBF(0.5), X[judge]), labels[judge], weights, coding)
    task = Task(HostRows(RBF(0.5), X[learn]), coding.encode(labels[learn]), np.ones(learn.size), holdout=holdout)
    return task, full_model(task)


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("sizes", [[1], [2, 5, 9], [20]], ids=["1", "2-5-9", "20"])
def test_no_model_on_a_path_is_larger_than_asked(kind, bias, sizes, problem):
    task, full = problem
    for refit in (True, False):
        path = kind(bias=bias, refit=refit).path(task, sizes, full)
        assert len(path) > 0
        assert max(path.sizes) <= max(sizes)
        assert path.sizes == sorted(set(path.sizes))
        for step in path:
            assert step.size == step.model.coef.shape[0] == step.model.points.shape[0]
            assert step.model.coef.shape[1] == task.targets.shape[1]
            assert np.isfinite(step.model.coef).all()
            assert np.isfinite(step.model.bias).all()
            assert step.settings


# The plain loops


def naive(K, targets, margin_targets, bias, eta, eps, limit, *, aggressive, learned):
    """Sections 4, 6 and 6.1 of the paper word for word, for any number of outputs: everything is computed anew in each
    step. Returns the support set in order, its coefficients and how it ended."""
    support, coef = [], np.zeros(targets.shape)
    while True:
        unmet = margin_targets - targets * (K @ coef + (0 if learned else bias))
        if aggressive and support:
            here = np.full_like(unmet, -np.inf)
            here[support] = unmet[support]
            value, rows, column = worst(here, targets, learned)
            if value > eps:
                coef[rows, column] += eta / len(rows) * targets[rows, column]
                continue
        value, rows, column = worst(unmet, targets, learned)
        new = [row for row in rows if row not in support]
        if value <= eps:
            return support, coef, Status.CONVERGED
        if len(support) + len(new) > limit:
            return support, coef, Status.BUDGET
        support += new
        if not aggressive:
            coef[rows, column] += eta / len(rows) * targets[rows, column]


def worst(unmet, targets, learned):
    """The largest unmet margin target, or half the sum of the worst of each side: value, rows, column."""
    if not learned:
        row, column = np.argwhere(unmet == unmet.max())[0]
        return unmet.max(), [row], column
    above, below = np.where(targets > 0, unmet, -np.inf), np.where(targets < 0, unmet, -np.inf)
    values = (above.max(axis=0) + below.max(axis=0)) / 2
    column = values.argmax()
    return values[column], sorted({above[:, column].argmax(), below[:, column].argmax()}), column


def generic_problem(q, seed, kernel, n=60):
    """Random rows, and a full model of random coefficients, so that no two margin targets are equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    labels = (X + 0.5 * rng.normal(size=(n, 3)))[:, : max(q, 2)].argmax(axis=1)
    targets = OneVsRest(max(q, 2)).encode(labels)
    share = np.where(targets > 0, (targets < 0).mean(axis=0), (targets > 0).mean(axis=0))
    coef = 0.2 * share * targets * rng.random(targets.shape)
    model = Expansion(kernel, X, coef, 0.02 * rng.normal(size=q))
    right = targets * model(X) > 0
    assert (right & (targets > 0)).any(axis=0).all()
    assert (right & (targets < 0)).any(axis=0).all()
    assert not right.all()
    return X, targets, model


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(
    ("q", "limit", "kernel"),
    [(1, 1, RBF(0.3)), (3, 60, RBF(0.3)), (3, 7, Linear()), (1, 7, Poly(0.5, 1.0, 2))],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_a_run_is_that_of_the_plain_loop(kind, bias, q, limit, kernel):
    X, targets, model = generic_problem(q, seed=3, kernel=kernel)
    K = kernel(X, X)
    margins = targets * (K @ model.coef + model.bias)
    margin_targets = np.where(margins > 0, np.minimum(margins, 1), -np.inf)
    eta, eps = 0.05, 0.1
    support, coef, status = naive(
        K, targets, margin_targets, model.bias, eta / K.diagonal().max(), eps, limit,
        aggressive=kind is AggressiveSlant, learned=bias == "learned",
    )  # fmt: skip
    task = Task(HostRows(kernel, X), targets, np.ones(X.shape[0]))
    path = kind(eta=eta, eps=eps, bias=bias, refit=False).path(task, [limit], model)
    small = path.models[-1]
    assert path.status is status
    assert small.size == len(support)
    rows = [int(np.abs(X - point).sum(axis=1).argmin()) for point in small.points]
    assert sorted(rows) == sorted(support)
    np.testing.assert_allclose(small.coef, coef[rows], rtol=0, atol=1e-9)
    if bias == "kept":
        np.testing.assert_array_equal(small.bias, model.bias)
    else:
        unmet = margin_targets - targets * (K @ coef)
        balanced = unmet - targets * small.bias
        above, below = (np.where(targets == sign, balanced, -np.inf).max(axis=0) for sign in (1, -1))
        np.testing.assert_allclose(above, below, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize("bias", BIASES)
def test_models_of_smaller_sizes_are_those_of_shorter_runs(kind, bias):
    """A path to 30 passes through what a path to 10 ends with."""
    X, targets, model = generic_problem(1, seed=4, kernel=RBF(0.3))
    task = Task(HostRows(RBF(0.3), X), targets, np.ones(X.shape[0]))
    reducer = kind(eta=0.1, eps=0.05, bias=bias, refit=False)
    long, short = reducer.path(task, [10, 30], model), reducer.path(task, [10], model)
    same = [step.model for step in long if step.size == short.sizes[-1]]
    assert len(same) == 1
    np.testing.assert_allclose(same[0](X), short.models[-1](X), atol=1e-12)


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize("bias", BIASES)
def test_a_run_that_converged_meets_every_demand_to_eps(kind, bias):
    X, labels = moons()
    task = Task(HostRows(RBF(1.0), X), OneVsRest(2).encode(labels), np.ones(labels.size))
    full = full_model(task)
    path = kind(eta=0.1, eps=0.3, bias=bias, refit=False).path(task, [labels.size], full)
    assert path.status is Status.CONVERGED
    margins, small = task.targets * full(X), task.targets * path.models[-1](X)
    right = margins > 0
    assert (np.minimum(margins, 1) - small)[right].max() <= 0.3 + 1e-9


# The guarantee


def slant_loss(z):
    return np.minimum(1, np.maximum(0, 0.5 - z))


def hinge_loss(z):
    return np.maximum(0, 1 - z)


@given(
    n=st.integers(4, 60),
    d=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    gamma=st.sampled_from([0.05, 0.5, 5.0]),
    C=st.sampled_from([0.1, 1.0, 100.0]),
    flips=st.sampled_from([0.0, 0.2, 0.5]),
)
@settings(max_examples=60)
def test_the_guarantee_of_the_paper(n, d, seed, gamma, C, flips):
    """Lemmas 4.1 and 4.2: with eta = eps = 1/2 and k(x, x) = 1, at most 4 |w|^2 steps, and slant loss <= hinge loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where((X[:, 0] > 0) ^ (rng.random(n) < flips), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    task = Task(HostRows(RBF(gamma), X), y[:, None], np.ones(n))
    fit = SMO(C).fit(task)
    margins = y * fit.model(X).ravel()
    if not (margins > 0).any():
        return  # the full model is right nowhere: there is nothing to follow
    path = Slant(eta=0.5, eps=0.5, bias="kept", refit=False).path(task, [n], fit.model)
    small = path.models[-1]
    squared_norm = fit.dual[:, 0] @ RBF(gamma)(X, X) @ fit.dual[:, 0]
    steps = np.abs(small.coef).sum() / 0.5  # every step adds 1/2 with the sign of the row's label
    assert path.status is Status.CONVERGED
    assert steps == pytest.approx(round(steps), abs=1e-9)
    assert small.size <= round(steps) <= 4 * squared_norm + 1e-6
    assert slant_loss(y * small(X).ravel()).mean() <= hinge_loss(margins).mean() + 1e-9


def test_the_aggressive_variant_needs_fewer_support_vectors():
    X, labels = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    task = Task(HostRows(RBF(0.03), X), OneVsRest(2).encode(labels), np.ones(labels.size))
    full = full_model(task)
    for bias in BIASES:
        basic, aggressive = (
            kind(eta=0.1, eps=0.5, bias=bias, refit=False).path(task, [labels.size], full) for kind in SLANTS
        )
        assert basic.status is aggressive.status is Status.CONVERGED
        assert aggressive.sizes[-1] <= basic.sizes[-1]


def test_the_expected_error_of_the_randomised_rule_is_the_slant_loss():
    X, labels = moons(150)
    slim = SlimSVC(budget=12, random_state=0).fit(X, labels)
    z = np.where(labels == 1, 1, -1) * slim.decision_function(X)
    draws = 400
    added = np.random.default_rng(0).uniform(-0.5, 0.5, (draws, 1, labels.size))
    wrong = ((slim.decision_function(X) + added[:, 0] > 0) != (labels == 1)).astype(float)
    loss = slant_loss(z)
    deviation = np.sqrt((loss * (1 - loss)).sum() / draws) / labels.size
    assert abs(wrong.mean() - loss.mean()) <= 5 * deviation
    np.testing.assert_allclose(wrong.mean(axis=0), loss, atol=5 * 0.5 / np.sqrt(draws))


# Settings and ends


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eta": 0.0}, "eta must be"),
        ({"eta": -1.0}, "eta must be"),
        ({"eta": float("nan")}, "eta must be"),
        ({"eps": 0.0}, "eps must be"),
        ({"eps": -0.5}, "eps must be"),
        ({"bias": "none"}, "kept.*learned"),
    ],
    ids=["eta 0", "eta below 0", "eta nan", "eps 0", "eps below 0", "bias"],
)
def test_settings_without_a_meaning_are_refused(kind, settings, words):
    with pytest.raises(ValueError, match=words):
        kind(**settings)


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize("bias", BIASES)
def test_max_steps_ends_a_run(kind, bias):
    X, targets, model = generic_problem(1, seed=5, kernel=RBF(0.3))
    task = Task(HostRows(RBF(0.3), X), targets, np.ones(X.shape[0]))
    path = kind(eta=0.01, eps=0.01, bias=bias, max_steps=20, refit=False).path(task, [60], model)
    assert path.status is Status.MAX_ITER
    assert np.abs(path.models[-1].coef).sum() <= 20 * 0.01 + 1e-12


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
def test_without_settings_each_size_takes_the_best_of_a_grid(kind, problem):
    task, full = problem
    sizes = [4, 8]
    chosen = kind(refit=False).path(task, sizes, full)
    scale = min(1.0, (task.targets * full.on(task.rows)).max())
    grid = [kind(eta=scale * eta, eps=scale * eps, refit=False) for eta in ETAS[1:5] for eps in EPSILONS[1:4]]
    runs = [run.path(task, sizes, full) for run in grid]
    for step in chosen:
        rivals = [rival.error for run in runs for rival in run if rival.size == step.size]
        assert step.error <= min(rivals, default=np.inf) + 1e-12


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
def test_labels_that_the_full_model_gets_wrong_throughout_are_refused(kind):
    X, labels = moons()
    task = Task(HostRows(RBF(1.0), X), OneVsRest(2).encode(labels), np.ones(labels.size))
    full = full_model(task)
    right = labels == (full(X).ravel() > 0)
    wrong = Task(HostRows(RBF(1.0), X[right]), -task.targets[right], np.ones(right.sum()))
    with pytest.raises(ValueError, match="a small model cannot follow it"):
        kind().path(wrong, [5], full)


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
def test_a_learned_bias_is_finite_where_an_output_is_right_on_one_side_only(kind):
    """A rare class that the full model never names: its column has no positive row to balance."""
    X, labels = moons(240)
    labels = np.where(np.random.default_rng(2).random(240) < 0.04, 2, labels)
    task = Task(HostRows(RBF(0.5), X), OneVsRest(3).encode(labels), np.ones(240))
    full = full_model(task, C=0.1)
    assert not (full(X)[labels == 2, 2] > 0).any()
    for step in kind(bias="learned").path(task, [1, 10], full):
        assert np.isfinite(step.model.bias).all()


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
def test_a_learned_bias_is_kept_where_the_full_model_is_right_on_one_side_only(kind):
    X, labels = moons(200)
    labels[labels == 1] = np.random.default_rng(6).random((labels == 1).sum()) < 0.05
    task = Task(HostRows(RBF(0.5), X), OneVsRest(2).encode(labels), np.ones(200))
    full = full_model(task, C=0.1)
    assert not (full(X)[labels == 1] > 0).any()
    for step in kind(bias="learned").path(task, [10], full):
        assert np.isfinite(step.model.bias).all()


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
def test_steps_go_the_way_of_the_labels_where_a_kernel_is_negative(kind, make_blobs):
    X, y = make_blobs()
    kernel = Sigmoid(0.05, -1.0)
    assert kernel.diagonal(X, np.arange(y.size)).max() < 0
    task = Task(HostRows(kernel, X), y[:, None], np.ones(y.size))
    model = kind(max_steps=200, refit=False).path(task, [4], full_model(task)).models[-1]
    assert model.size > 0
    labels = [y[np.abs(X - point).sum(axis=1).argmin()] for point in model.points]
    assert (model.coef.ravel() * labels > 0).all()


def test_progress_is_reported_from_little_to_all(problem):
    task, full = problem
    seen = []
    reporting = Task(task.rows, task.targets, task.weights, run=Run(lambda phase, done: seen.append((phase, done))))
    AggressiveSlant().path(reporting, [2, 4, 8], full)
    assert {phase for phase, _ in seen} == {"shrink"}
    assert all(0 <= share <= 1 for _, share in seen)
    assert [share for _, share in seen] == sorted(share for _, share in seen)


class Clock(Deadline):
    """A deadline that is over when the test says so."""

    over = False


@pytest.mark.parametrize("kind", SLANTS, ids=["basic", "aggressive"])
@pytest.mark.parametrize(("after", "sizes"), [(3, [8]), (4, [2, 8]), (5, [2, 4, 8])])
def test_when_time_is_over_only_the_largest_model_is_refitted_still(kind, after, sizes, problem):
    """The paper's three models come first; the time is over `after` so many models."""
    task, full = problem
    clock, made = Clock(), []
    for model, words in kind(eta=0.1, eps=0.05).models(replace(task, run=Run(deadline=clock)), [2, 4, 8], full):
        made.append((model.size, Made.of(words).refit))
        clock.over = len(made) >= after
    assert made == [(2, False), (4, False), (8, False), *((size, True) for size in sizes)]


def test_kernel_values_of_nested_models_are_evaluated_once(problem):
    """A refit costs one row of kernel values for each point of the largest model."""
    task, full = problem
    counts = []
    for refit in (False, False, True):  # the first path fills the cache of kernel rows
        before = task.rows.meter.evaluations
        path = Slant(eta=0.1, eps=0.05, refit=refit).path(replace(task, holdout=None), [2, 4, 8], full)
        counts.append(task.rows.meter.evaluations - before)
    assert path.sizes == [2, 4, 8]
    assert counts[2] - counts[1] == 8 * task.rows.n


# The rules of a run, one by one

TARGETS = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
MARGINS = np.array([[0.9, 0.2], [0.4, -np.inf], [0.7, 0.6], [-np.inf, 0.5]])


def small_run(bias="kept", columns=2, margins=MARGINS, largest=2.0, clock=None, **settings):
    """A run on four rows whose kernel matrix is diag(1, 2, 3, 4), with given margin targets."""
    targets, margins = TARGETS[:, :columns], margins[:, :columns]
    X = np.diag(np.sqrt([1.0, 2.0, 3.0, 4.0]))
    task = Task(HostRows(Linear(), X), targets, np.ones(4))
    model = Expansion(Linear(), X, np.zeros((4, columns)), np.array([0.25, -0.5])[:columns])
    chosen = Slant(**({"eta": 0.5, "eps": 0.125} | settings), bias=bias)
    return SlantRun(
        replace(task, run=Run(deadline=clock or Clock())), MarginTargets.beyond(targets, margins), model, chosen, largest
    )


def nothing(share):
    pass


def test_margin_targets_are_those_of_the_demands():
    np.testing.assert_array_equal(least_margins(small_run().task, MarginTargets.beyond(TARGETS, MARGINS)), MARGINS)


@pytest.mark.parametrize("bias", BIASES)
def test_a_run_starts_with_no_point_and_a_step_size_by_the_largest_kernel_value(bias):
    run = small_run(bias)
    assert (run.eta, run.eps, run.steps) == (0.25, 0.125, 0)
    assert (run.index.size, run.coef.shape, run.found) == (0, (0, 2), [])
    assert run.words == f"eta=0.5, eps=0.125, bias={bias}"
    assert run.learned == (bias == "learned")


def test_a_bias_is_learned_only_where_every_output_has_margin_targets_on_both_sides():
    for row, column in ((0, 1), (3, 0)):
        margins = MARGINS.copy()
        side = TARGETS[:, column] == TARGETS[row, column]
        margins[side, column] = -np.inf
        assert not small_run("learned", margins=margins).learned


def test_the_shortfall_is_what_a_margin_lacks_with_no_bias_while_it_is_learned():
    values = np.array([[0.5, 0.5], [0.0, 0.0], [1.0, -1.0], [0.0, 0.0]])
    kept = MARGINS - TARGETS * (values + np.array([0.25, -0.5]))
    np.testing.assert_array_equal(small_run().shortfall(slice(None), values), kept)
    np.testing.assert_array_equal(small_run().shortfall(np.array([2]), values[2:3]), kept[2:3])
    np.testing.assert_array_equal(small_run("learned").shortfall(slice(None), values), MARGINS - TARGETS * values)


def test_the_worst_row_is_that_of_the_largest_shortfall_or_the_worst_of_each_side():
    shortfall = np.array([[0.1, 0.2], [0.3, 0.8], [0.6, 0.1], [0.4, 0.3]])
    sides = small_run().sides
    value, rows, column = small_run().worst(shortfall, sides)
    assert (value, rows.tolist(), column) == (0.8, [1], 1)
    value, rows, column = small_run("learned").worst(shortfall, sides)
    assert (value, rows.tolist(), column) == (pytest.approx(0.55), [3, 1], 1)  # of column 0: (0.3 + 0.6) / 2
    shortfall[2, 0] = 0.9
    value, rows, column = small_run("learned").worst(shortfall, sides)
    assert (value, rows.tolist(), column) == (pytest.approx(0.6), [1, 2], 0)


def test_a_step_moves_the_coefficients_and_the_responses_of_its_output():
    run = small_run()
    run.admit(np.array([1, 3]))
    run.step(np.array([3]), 1)
    run.step(np.array([3, 1]), 1)  # a step is shared by its rows
    run.step(np.array([1]), 0)
    np.testing.assert_allclose(run.coef, [[0.25, -0.125], [0.0, 0.375]])
    assert run.steps == 3
    np.testing.assert_allclose(run.responses.values, [[0, 0], [0.5, -0.25], [0, 0], [0, 1.5]], atol=1e-7)
    run.admit(np.array([0]))
    assert run.index.tolist() == [1, 3, 0]
    np.testing.assert_allclose(run.coef, [[0.25, -0.125], [0.0, 0.375], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("value", "size", "new", "steps", "over", "status"),
    [
        (0.125, 0, 1, 0, False, Status.CONVERGED),
        (np.nan, 0, 1, 0, False, Status.CONVERGED),
        (0.126, 2, 1, 0, False, None),
        (0.126, 3, 1, 0, False, Status.BUDGET),
        (0.126, 3, 0, 0, False, None),
        (0.126, 2, 1, 9, False, None),
        (0.126, 2, 1, 10, False, Status.MAX_ITER),
        (0.126, 0, 1, 0, True, None),
        (0.126, 1, 1, 0, True, Status.TIME_LIMIT),
    ],
)
def test_a_run_ends_at_eps_at_its_budget_or_at_a_limit(value, size, new, steps, over, status):
    clock = Clock()
    clock.over = over
    run = small_run(max_steps=10, clock=clock)
    run.index, run.steps = np.arange(size), steps
    assert run.ending(value, new, limit=3) is status


def test_a_learned_bias_makes_both_sides_equal():
    run = small_run("learned")
    shortfall = np.array([[0.1, 0.2], [0.3, 0.8], [0.6, 0.1], [0.4, 0.3]])
    np.testing.assert_allclose(run.model(shortfall).bias, [0.5 * (0.3 - 0.6), 0.5 * (0.3 - 0.8)])
    np.testing.assert_array_equal(small_run().model(shortfall).bias, [0.25, -0.5])


def test_a_model_is_not_changed_by_later_steps():
    run = small_run()
    run.admit(np.array([1]))
    run.step(np.array([1]), 0)
    model = run.model(run.shortfall(slice(None), run.responses.values))
    run.step(np.array([1]), 0)
    np.testing.assert_allclose(model.coef, [[0.25, 0.0]])


@pytest.mark.parametrize(
    ("bias", "sizes", "made"),
    [
        ("kept", [1, 3], [1, 3]),
        ("kept", [2], [2]),
        ("learned", [1, 4], [4]),
        ("learned", [3], [2]),
        ("learned", [3, 4], [2, 4]),
    ],
    ids=["kept 1 3", "kept 2", "learned 1 4", "learned 3", "learned 3 4"],
)
def test_models_come_at_the_sizes_asked_for_or_one_below_where_two_rows_come_at_once(bias, sizes, made):
    margins = np.array([[0.9], [0.8], [0.7], [0.6]])
    run, shares = small_run(bias, 1, margins, eps=1e-3), []
    assert [model.size for model, _ in run.models(sizes, shares.append)] == made
    assert [model.size for model in run.found] == made
    assert shares == [size / max(sizes) for size in made]


# The settings that are tried


def test_the_grids_are_those_of_the_paper_scaled_to_the_largest_margin_target():
    def tried(reducer, scale):
        return [(run.eta, run.eps) for run in reducer._grid(scale)]

    assert tried(Slant(), 1.0) == [(1 / 4, 1 / 8)]
    assert tried(Slant.paper(None, None), 0.5) == [(0.5 * 4.0**power, 1 / 32) for power in range(-4, 3)]
    assert tried(AggressiveSlant(), 1.0) == [(1 / 4, 1 / 8), (1 / 4, 1 / 4), (1 / 4, 1 / 2)]
    grid = [(4.0**one, 2.0**other) for one in range(-4, 3) for other in range(-4, 1)]
    assert tried(AggressiveSlant.paper(None, None), 1.0) == grid
    assert tried(Slant.paper(), 1.0) == [(1 / 2, 1 / 2)]
    assert tried(Slant(eta=0.3, eps=0.2), 0.5) == [(0.3, 0.2)]


class RecordedRun(SlantRun):
    """A run that yields its model of no points, and ends as its step size says."""

    made: list = []  # noqa: RUF012
    endings = {eta: Status.MAX_ITER if eta < 1 / 4 else Status.BUDGET for eta in ETAS}  # noqa: RUF012

    def models(self, sizes, report):  # noqa: ARG002
        self.made.append(self)
        yield self.model(self.shortfall(slice(None), self.responses.values)), self.words
        report(1.0)
        return self.endings[self.settings.eta]


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(RecordedRun, "made", [])
    monkeypatch.setattr(Slant, "run_type", RecordedRun)
    return RecordedRun.made


def wide_problem(scale=3.0):
    """Rows whose margins go beyond 1, and whose largest k(x, x) is 4."""
    X = np.diag([1.0, -2.0])
    shares = []
    task = Task(
        HostRows(Linear(), X), np.array([[1.0], [-1.0]]), np.ones(2), run=Run(lambda _, share: shares.append(share))
    )
    return task, Expansion(Linear(), X, scale * np.array([[1.0], [-1.0]]), np.zeros(1)), shares


def test_a_path_ends_as_the_first_run_that_steps_did_not_end(recorded):
    task, model, shares = wide_problem()
    path = Slant(refit=False).path(task, [1, 2], model)
    assert path.status is Status.BUDGET
    assert [run.settings.eta for run in recorded] == list(ETAS)
    assert [run.eta for run in recorded] == [eta / 4 for eta in ETAS]  # by the largest k(x, x)
    assert shares == pytest.approx([number / 7 for number in range(1, 8)])


def test_grids_shrink_with_margin_targets_below_1(recorded, monkeypatch):
    monkeypatch.setattr(RecordedRun, "endings", dict.fromkeys([0.5 * eta for eta in ETAS], Status.MAX_ITER))
    task, model, _ = wide_problem(0.125)
    path = Slant(refit=False).path(task, [1, 2], model)
    assert path.status is Status.MAX_ITER
    assert [run.settings.eta for run in recorded] == [0.5 * eta for eta in ETAS]


def test_no_other_setting_is_tried_when_time_is_over(recorded):
    task, model, _ = wide_problem()
    clock = Clock()
    clock.over = True
    assert len(list(Slant(refit=False).models(replace(task, run=Run(deadline=clock)), [1, 2], model))) == 1
    assert len(recorded) == 1


def test_rows_of_zeros_keep_the_step_size(recorded):
    task = Task(HostRows(Linear(), np.zeros((2, 2))), np.array([[1.0], [-1.0]]), np.ones(2))
    list(
        Slant(eta=1 / 4, refit=False).models(task, [1], Expansion(Linear(), np.zeros((0, 2)), np.zeros((0, 1)), np.ones(1)))
    )
    assert recorded[0].eta == 1 / 4


def test_a_refit_takes_a_sample_of_rows_for_the_values_that_fit(monkeypatch, problem):
    task, full = problem
    asked = []
    monkeypatch.setattr(Task, "sample", lambda task, most: asked.append(most) or np.arange(min(most, task.rows.n)))
    path = Slant(eta=0.1, eps=0.05).path(task, [2, 8], full)
    assert path.sizes[-1] == 8
    assert asked == [REFIT_VALUES // 9]


def test_the_default_number_of_steps_is_the_documented_one():
    assert Slant().max_steps == 30_000
    assert Slant.reports
    assert Slant().refit


# The papers' theorems


def test_no_predictor_of_few_vectors_is_right_on_an_orthonormal_basis():
    """Lemma 3.1: rows uniform over R^2 orthonormal vectors; u of norm R has no hinge loss; m vectors leave R^2 - m at 0."""
    R2 = 16
    X, y = np.eye(R2), np.where(np.arange(R2) % 2, 1.0, -1.0)
    task = Task(HostRows(Linear(), X), y[:, None], np.ones(R2))
    u = Expansion(Linear(), X, y[:, None], np.zeros(1))
    assert np.sqrt(y @ y) == np.sqrt(R2)
    for step in Slant.paper(0.5, 0.25).path(task, range(1, R2 + 1), u):
        wrong = np.mean(y * step.model(X)[:, 0] <= 0)
        assert wrong == 1 - step.size / R2  # at most 1/4 needs more than R^2 / 2 vectors


def test_sbp_and_then_slant_need_no_more_vectors_than_four_times_the_squared_norm():
    """Corollary 1 end to end: w from the SBP, steps of 1/2 to a shortfall of 1/2; slant loss at most hinge loss."""
    X, labels = moons(300)
    y = np.where(labels == 1, 1.0, -1.0)
    task = Task(HostRows(RBF(1.0), X), y[:, None], np.ones(y.size), np.random.default_rng(0))
    full = SBP.paper(nu=0.02, T=2000).fit(task).model
    squared_norm = float(full.coef[:, 0] @ full.on(HostRows(RBF(1.0), full.points))[:, 0])
    path = Slant.paper(0.5, 0.5).path(task, [y.size], full)
    small = path.models[-1]
    assert path.status is Status.CONVERGED
    assert small.size <= 4 * squared_norm
    hinge = np.maximum(0, 1 - y * full(X)[:, 0]).mean()
    slant = np.clip(0.5 - y * small(X)[:, 0], 0, 1).mean()
    assert slant <= hinge


def test_a_path_tells_norms_and_losses_of_its_models():
    X, labels = moons(200)
    svc = SlimSVC(8, reducer="slant-aggressive", gamma=1.0, random_state=0).fit(X, labels)
    found, y = svc.path_.losses(X, labels), np.where(labels == svc.classes_[1], 1.0, -1.0)
    for place, step in enumerate(svc.path_):
        w, f = step.model.coef[:, 0], step.model(X)[:, 0]
        norm = w @ RBF(1.0)(step.model.points, step.model.points) @ w
        assert found["squared_norm"][place] == pytest.approx(norm)
        assert found["vectors_bound"][place] == pytest.approx(4 * norm)
        assert found["hinge_loss"][place] == pytest.approx(np.maximum(0, 1 - y * f).mean())
        assert found["slant_loss"][place] == pytest.approx(np.clip(0.5 - y * f, 0, 1).mean())
    assert found["size"] == svc.path_.sizes
