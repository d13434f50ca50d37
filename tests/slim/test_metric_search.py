"""The search for a metric: what it finds on made sets, what it keeps, and where it ends."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm.goals import OneVsRest
from slimsvm.goals.values import Regression
from slimsvm.kernels import RBF
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Holdout, Judgement, Task
from slimsvm.rows.homes import open_rows
from slimsvm.run import Run
from slimsvm.slim.metric_search import (
    Learning,
    LearningEffort,
    MetricSearch,
    spread,
)
from slimsvm.slim.mini_batches import MiniBatches
from slimsvm.slim.point_search import Objective, Schedule
from slimsvm.slim.watch import Watch

QUICK = Learning(passes=20, steps=20, way_batches=50, way_steps=5)


def two_rings(n=600, irrelevant=4, seed=0):
    """Two classes inside and outside a circle of the first two features; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 + irrelevant))
    return X, np.where((X[:, :2] ** 2).sum(axis=1) > 1.4, 1.0, -1.0)


def search_on(X, y, kind="both", learning=QUICK, kernel=None, weights=None, device="cpu", **settings):
    weights = np.ones(X.shape[0]) if weights is None else weights
    rows = open_rows(RBF(1 / X.shape[1]) if kernel is None else kernel, X, device=device)
    task = Task(rows, np.reshape(y, (X.shape[0], -1)), weights, np.random.default_rng(0), **settings)
    return MetricSearch(task, Objective("label", None, None), 0.1, Schedule(), learning, kind)


def error(search, X, y):
    return np.mean(np.sign(search.model(X)[:, 0]) != y)


def test_irrelevant_features_get_small_factors():
    X, y = two_rings()
    search = search_on(X, y, "scales")
    search.learn(8, last=True)
    factors = search.model.factors
    assert factors[:2].min() > 2 * factors[2:].max()
    assert search.model.metric.widths is None
    fixed = search_on(X, y, "scales", replace(QUICK, pull=1e9))  # so strong a pull leaves the factors at 1
    fixed.learn(8, last=True)
    np.testing.assert_allclose(fixed.model.factors, 1.0, atol=1e-3)
    fresh, labels = two_rings(seed=1)
    assert error(search, fresh, labels) < 0.7 * error(fixed, fresh, labels)


@pytest.mark.parametrize(("n", "batches"), [(60, 100), (600, 235), (3000, 1000)])
def test_smaller_sizes_pass_over_few_rows_a_hundred_times_at_most(n, batches):
    taken = []
    search = search_on(*two_rings(n), learning=Learning(way_batches=1000, way_steps=1))
    search._descend_in_metric = lambda _, effort, **__: taken.append(effort.batches)
    search.learn(4, last=False)
    assert taken == [batches]


def test_points_in_dense_places_get_narrow_widths():
    """A class made of a small spot and a wide ring around another: one width serves neither."""
    rng = np.random.default_rng(0)
    narrow, wide = 0.05 * rng.normal(size=(400, 2)), np.array([4.0, 0.0]) + rng.normal(size=(400, 2))
    around = 0.3 * rng.normal(size=(400, 2))
    X = np.vstack([narrow, wide, around[np.linalg.norm(around, axis=1) > 0.2]])
    y = np.where(np.arange(X.shape[0]) < 800, 1.0, -1.0)
    search = search_on(X, y, "widths", replace(QUICK, passes=60))
    search.learn(6, last=True)
    widths = search.model.widths
    assert widths.max() > 3 * widths.min()
    assert search.model.metric.factors is None


def test_the_loss_never_ends_above_its_start():
    X, y = two_rings(200)
    search = search_on(X, y)
    search.learn(4, last=True)
    before = search.parameters
    search._descend_in_metric(np.arange(200), LearningEffort(5, 1e6, 0, (1.0, 1.0)))  # a rate that leads astray
    np.testing.assert_array_equal(search.parameters.points, before.points)


def noise_with_holdout(n=300, seed=0):
    """Rows whose labels are noise but for one feature, and as many validation rows: long descents follow the noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 10))
    y = np.where(rng.random(2 * n) < 0.3, -1.0, 1.0) * np.sign(X[:, 0])
    holdout = Holdout(open_rows(RBF(0.1), X[n:]), (y[n:] > 0).astype(int), np.ones(n), OneVsRest(2))
    return X[:n], y[:n], holdout


def test_a_watched_descent_stops_where_the_validation_loss_rises():
    X, y, holdout = noise_with_holdout()
    watched = search_on(X, y, learning=replace(QUICK, passes=60), holdout=holdout)
    blind = search_on(X, y, learning=replace(QUICK, passes=60, watch=0.0), holdout=holdout)
    for search in (watched, blind):
        search.learn(20, last=True)
    early, late = (holdout.judge_shortfall(search.model).error for search in (watched, blind))
    assert early < 0.8 * late
    assert watched.stopped_early
    assert str(watched.made) == "target=label, metric=both, stopped early"
    assert not blind.stopped_early


def test_a_descent_that_helps_is_not_stopped():
    X, y = two_rings(800)
    holdout = Holdout(open_rows(RBF(1 / 6), X[400:]), (y[400:] > 0).astype(int), np.ones(400), OneVsRest(2))
    search = search_on(X[:400], y[:400], holdout=holdout)
    search.learn(4, last=True)
    assert not search.stopped_early
    smaller = search_on(X[:400], y[:400], holdout=holdout)
    smaller.learn(4, last=False)
    assert not smaller.stopped_early  # only the last size is watched


def test_a_watch_keeps_the_best_vector_and_says_if_the_end_is_clearly_worse():
    losses = {0.0: 3.0, 1.0: 1.0, 2.0: 2.0, 3.0: 1.05}
    watch = Watch(lambda x: Judgement(losses[float(x[0])], 0.1), 2.5, np.zeros(1))
    for place in (2.0, 1.0, 3.0):
        watch(np.array([place]))
    np.testing.assert_array_equal(watch.kept, [1.0])
    np.testing.assert_array_equal(watch.earlier_than(np.array([2.0])), [1.0])
    assert watch.earlier_than(np.array([3.0])) is None  # within a standard error
    assert [steps for steps in range(11) if watch.is_due(steps)] == [3, 5, 8, 10]
    nothing = Watch(None, np.inf, np.zeros(0))
    nothing(np.ones(1))
    assert nothing.kept is None
    assert not nothing.is_due(5)
    assert nothing.earlier_than(np.ones(1)) is None


def test_noise_gets_more_decay_before_the_last_size():
    X, y, holdout = noise_with_holdout()
    search = search_on(X, y, holdout=holdout)
    assert search.with_best_decay() is search  # no model to begin from
    search.learn(16, last=False)
    chosen = search.with_best_decay()
    assert chosen.objective.multiple == 100
    assert chosen.model.size == 16
    before, after = (holdout.judge_shortfall(each.model).error for each in (search, chosen))
    assert after < before


def test_larger_models_go_on_from_smaller_ones():
    X, y = two_rings(300)
    search = search_on(X, y)
    errors = []
    for size in (1, 2, 4, 8):
        search.learn(size, last=size == 8)
        assert search.model.size == size
        errors.append(error(search, X, y))
    assert errors[-1] < errors[0]


def test_sparse_rows_give_the_model_of_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30)) * (rng.random((300, 30)) < 0.1)
    y = np.where(X[:, 0] + X[:, 1] >= 0.0, 1.0, -1.0)
    found = []
    for form in (np.asarray, csr_array):
        search = search_on(form(X), y, learning=replace(QUICK, passes=3, steps=3))
        start = X[:3]
        search.adopt(replace(search.model, points=start, coef=np.ones((3, 1)), metric=None))
        search.learn(3, last=True)
        found.append(search.model(X))
    np.testing.assert_allclose(*found, atol=1e-6)


def test_constant_features_keep_a_factor_of_one():
    X, y = two_rings(200, irrelevant=1)
    X[:, 2] = 1e6 / 3
    search = search_on(X, y)
    search.learn(4, last=True)
    assert search.model.factors[2] == 1.0
    assert np.ptp(search.model.factors) > 0
    np.testing.assert_allclose(search.model.points[:, 2], 1e6 / 3)
    assert error(search, X, y) < 0.2


def test_a_feature_of_huge_scale_is_bounded():
    X, y = two_rings(300, irrelevant=0)
    X[:, 1] *= 1e8
    search = search_on(X, y, kernel=RBF(1.0))
    search.learn(4, last=True)
    factors = search.model.factors
    assert 1 / 1000 * (1 - 1e-9) <= factors.min() <= factors.max() <= 1000 * (1 + 1e-9)
    assert np.isfinite(search.model(X)).all()


def test_a_factor_at_its_bound_is_reported():
    X, y = two_rings(300)
    search = search_on(X, y, "scales", replace(QUICK, bound=1.05))
    search.learn(4, last=True)
    assert search.clamped
    assert search.model.factors.max() == pytest.approx(1.05)


def test_regression_does_not_depend_on_the_unit_of_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(2 * X[:, 0])
    fits = []
    for unit in (1.0, 1e5):
        search = search_on(X, unit * y + unit, goal=Regression())
        search.unit = 0.0  # decay is in the unit of coefficients
        search.learn(6, last=True)
        fits.append(search.model(X)[:, 0] / unit)
        assert np.mean((fits[-1] - y - 1) ** 2) < 0.2 * np.var(y)
    np.testing.assert_allclose(*fits, atol=1e-2)


def test_weight_makes_a_rare_class_count():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), 0.5 + 0.3 * rng.normal(size=(12, 2))])
    y = np.where(np.arange(412) < 400, -1.0, 1.0)
    recalls = []
    for weight in (1.0, 30.0):
        search = search_on(X, y, weights=np.where(y > 0, weight, 1.0))
        search.learn(4, last=True)
        recalls.append(np.mean(search.model(X)[y > 0] > 0))
    assert recalls[1] > recalls[0]
    assert recalls[1] > 0.8


def test_the_same_seed_gives_the_same_model():
    X, y = two_rings(200)
    models = []
    for _ in range(2):
        search = search_on(X, y)
        search.learn(4, last=True)
        models.append(search.model)
    np.testing.assert_array_equal(models[0].points, models[1].points)
    np.testing.assert_array_equal(models[0].widths, models[1].widths)


@pytest.mark.parametrize("q", [1, 3])
def test_a_device_finds_the_model_of_the_host(q):
    """The same batches in the same order: models differ by rounding alone."""
    pytest.importorskip("torch")
    X, y = two_rings(300)
    y = np.column_stack([y, -y, np.sign(X[:, 0])])[:, :q]
    models = []
    for device in ("cpu", "torch:cpu"):
        search = search_on(X, y, device=device, learning=replace(QUICK, passes=5, steps=3))
        start = Expansion(search.task.rows.kernel, X[:4].copy(), np.ones((4, q)), np.zeros(q))
        search.adopt(start)
        search.learn(4, last=True)
        models.append(search.model)
    for part in ("points", "coef", "bias", "factors", "widths"):
        np.testing.assert_allclose(*(getattr(model, part) for model in models), atol=1e-6)


@pytest.mark.parametrize("most", [0, 1024])
def test_steps_of_lbfgs_lower_the_loss_with_whitened_coefficients_and_without(most):
    X, y = two_rings(300)
    errors = []
    for steps in (0, 60):
        search = search_on(X, y, learning=replace(QUICK, passes=1, steps=steps, most_whitened=most))
        search.learn(6, last=True)
        errors.append(np.mean(np.maximum(0, 1 - y * search.model(X)[:, 0]) ** 2))
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize(("rows", "size", "sizes"), [(10, 4, [4, 4]), (10, 10, [10]), (3, 8, [3])])
def test_a_pass_has_each_row_at_most_once(rows, size, sizes):
    batches = MiniBatches(lambda rng: rng.permutation(rows), rows, size, np.random.default_rng(0))
    for _ in range(2):
        found = [next(batches) for _ in sizes]
        assert [batch.size for batch in found] == sizes
        assert np.unique(np.concatenate(found)).size == sum(sizes)


def test_another_objective_goes_on_from_the_same_model():
    X, y = two_rings(200)
    search = search_on(X, y)
    search.learn(2, last=False)
    other = search.under(Objective("slant", None, search.model))
    assert str(other.made) == "target=slant, metric=both"
    np.testing.assert_array_equal(other.model.points, search.model.points)
    assert search.under(search.objective) is search


def test_a_deadline_ends_the_search_in_time():
    X, y = two_rings(500)
    search = search_on(X, y, learning=Learning(passes=10**6, steps=10**6))
    search.run = Run(deadline=Deadline(0.5))
    search.learn(8, last=True)
    assert not search.run.over  # what is left is for the finish
    search.finish()
    assert error(search, X, y) < 0.3


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_spread_is_the_standard_deviation_and_0_of_constants(form):
    X = np.column_stack([np.arange(6.0), np.full(6, 0.1), np.zeros(6), [0, 0, 0, 0, 0, 3.0]])
    found = spread(form(X))
    np.testing.assert_allclose(found, X.std(axis=0), atol=1e-12)
    assert found[1] == found[2] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passes": -1}, "passes must be a number of at least 0, not -1"),
        ({"rate": float("nan")}, "rate must be a number of at least 0, not nan"),
        ({"pull": "strong"}, "pull must be a number of at least 0, not 'strong'"),
        ({"time_for_steps": 1.5}, "must be shares of at most 1, not 0.6 and 1.5"),
        ({"bound": 1.0}, r"bound must be a number above 1, not 1\.0"),
        ({"batches": 0}, "batches must be at least 1"),
        ({"smallest_batch": 9, "largest_batch": 8}, "smallest_batch a number from 1 to largest_batch"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        Learning(**settings)


def test_a_model_is_adopted_only_where_its_loss_is_lower():
    X, y = two_rings(300)
    search = search_on(X, y)
    search.learn(6, last=True)
    before, model = search.parameters, search.model
    search.adopt_if_better(replace(model, coef=np.zeros_like(model.coef), bias=model.bias))
    assert search.parameters is before
    fresh = search_on(X, y)
    fresh.adopt_if_better(model)
    np.testing.assert_allclose(fresh.model(X), model(X))


def test_a_time_too_short_for_l_bfgs_goes_to_mini_batches():
    X, y = two_rings(300)
    search = search_on(X, y)
    search.learn(4, last=False)
    loss, effort = search._metric_loss(np.arange(300)), LearningEffort(5, 0.05, 100, (0.5, 0.5))
    assert search.passes_left(4) == np.inf
    assert search._affordable(loss, effort) == effort
    search.run = Run(deadline=Deadline(1e3))
    assert 0 < search.passes_left(4) < np.inf
    assert search._affordable(loss, effort) == effort
    search.run = Run(deadline=Deadline(1e-9))
    assert search._affordable(loss, effort) == LearningEffort(5, 0.05, 0, (0.75, 0.0))


def test_after_the_deadline_there_is_no_pass_over_the_rows():
    X, y = two_rings(300)
    search = search_on(X, y)
    search.learn(4, last=False)
    before, evaluations = search.parameters, search.task.rows.meter.evaluations
    search.run = Run(deadline=Deadline(0.0))
    assert search.with_best_decay() is search
    search.learn(4, last=True)
    search.finish()
    assert search.parameters is before
    assert search.task.rows.meter.evaluations == evaluations


def test_a_pass_is_timed_once_for_a_size():
    X, y = two_rings(300)
    search = search_on(X, y)
    search.learn(4, last=False)
    search.run = Run(deadline=Deadline(1e3))
    search.passes_left(4)
    evaluations = search.task.rows.meter.evaluations
    assert search.passes_left(4) > 0
    assert search.copied(search.objective).passes_left(4) > 0
    assert search.task.rows.meter.evaluations == evaluations
