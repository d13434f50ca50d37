"""CPSP: the gap that it promises, by independent solvers of the problem restricted to its points; and what it takes."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.svm import SVC, LinearSVC

from slimsvm import SlimSVC
from slimsvm.goals import OneVsOne, OneVsRest
from slimsvm.kernels import RBF, Chi2, Custom, Linear, Precomputed, Sigmoid
from slimsvm.model import Status
from slimsvm.papers.cutting_planes import CPSP

PAPER = {"residual": "newest", "settle": False, "bias": 0.0}
FORMS = [
    pytest.param({}, id="preimages"),
    pytest.param({"basis": "rows"}, id="rows"),
    pytest.param(PAPER, id="paper"),
    pytest.param(PAPER | {"basis": "rows"}, id="paper-rows"),
]


def moons(n=200, seed=0):
    X, labels = make_moons(n, noise=0.25, random_state=seed)
    return X, np.where(labels, 1.0, -1.0)


def objective(model, task, C, bias):
    """1/2 |w|^2 + 1/2 v^2 + C sum_i w_i hinge_i of each output, from the model alone."""
    K = model.kernel(model.points, model.points)
    scale = bias * np.sqrt(task.rows.diagonal().mean())
    v = model.bias / scale if bias else 0 * model.bias
    hinge = np.maximum(1 - task.targets * model(task.rows.given.rows()), 0) * np.abs(task.targets)
    return np.einsum("jc,jk,kc->c", model.coef, K, model.coef) / 2 + v**2 / 2 + C * task.weights @ hinge


def restricted_optimum(model, task, C, bias, column):
    """The same for the best coefficients of its points, by scikit-learn on whitened features.

    SVC does not punish the bias: that is a bound from below and, with the cost of SVC's own bias, one from above.
    """
    part = task.targets[:, column] != 0
    y, caps = task.targets[part, column], C * task.weights[part]
    K = model.kernel(model.points, model.points)
    features = model.kernel(task.rows.given.rows()[part], model.points) @ np.linalg.inv(np.real(sqrtm(K)))
    if bias:
        svc = SVC(kernel="linear", C=1.0, tol=1e-6)
    else:
        svc = LinearSVC(loss="hinge", C=1.0, tol=1e-6, max_iter=10**6, fit_intercept=False, random_state=0)
    svc.fit(features, y, sample_weight=caps)
    below = np.square(svc.coef_).sum() / 2 + caps @ np.maximum(1 - y * svc.decision_function(features), 0)
    return below, below + (np.square(svc.intercept_[0] / bias) / 2 if bias else 0.0)


# The defining property


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("coding", [OneVsRest(3), OneVsOne(3)], ids=lambda coding: coding.name)
def test_each_model_is_within_the_gap_of_the_best_for_its_points(make_task, form, coding):
    X, labels = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, labels.size)
    task = make_task(RBF(0.5), X, coding.encode(labels), weights)
    reducer = CPSP(C=3.0, tol=1e-4, **form)
    path = reducer.path(task, [1, 3, 8])
    assert path.sizes == [1, 3, 8]
    for model in path.models:
        values = objective(model, task, 3.0, reducer.bias)
        for column, value in enumerate(values):
            gap = 1e-4 * 3.0 * weights @ np.abs(task.targets[:, column])
            below, above = restricted_optimum(model, task, 3.0, reducer.bias, column)
            assert below * (1 - 1e-5) <= value <= above * (1 + 1e-5) + gap


@pytest.mark.parametrize("form", FORMS)
def test_the_objective_never_rises_as_the_basis_grows(make_task, form):
    X, y = moons()
    task = make_task(RBF(1.0), X, y)
    reducer = CPSP(C=10.0, tol=1e-2, **form)
    values = [objective(model, task, 10.0, reducer.bias)[0] for model in reducer.path(task, range(1, 25)).models]
    assert len(values) == 24
    assert (np.diff(values) <= 1e-6 * values[0]).all()


@pytest.mark.parametrize("basis", ["rows", "preimages"])
def test_a_basis_that_holds_all_rows_gives_the_full_svm(make_task, basis):
    X, y = moons(40)
    task = make_task(RBF(2.0), X, y)
    path = CPSP(C=1.0, tol=1e-7, basis=basis, bias=1000.0).path(task, [300])
    svc = SVC(C=1.0, gamma=2.0, tol=1e-8).fit(X, y)
    assert path.status is Status.EXHAUSTED
    np.testing.assert_allclose(path.models[-1](X).ravel(), svc.decision_function(X), atol=5e-3)


def test_the_paper_s_rule_without_a_bias_is_an_svm_without_one(make_task):
    """SVC has a bias; the same problem for LinearSVC has none."""
    X, y = moons(40)
    task = make_task(RBF(2.0), X, y)
    model = CPSP(C=1.0, tol=1e-7, **PAPER | {"basis": "rows"}).path(task, [40]).models[-1]
    assert (model.bias == 0).all()
    features = np.real(sqrtm(RBF(2.0)(X, X)))
    svc = LinearSVC(loss="hinge", C=1.0, tol=1e-9, max_iter=10**6, fit_intercept=False, random_state=0).fit(features, y)
    np.testing.assert_allclose(model(X).ravel(), svc.decision_function(features), atol=5e-3)


def test_made_points_do_better_than_chosen_rows(make_task):
    X, labels = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    task = make_task(RBF(0.03), X, np.where(labels, 1.0, -1.0))
    made, rows = (CPSP(basis=basis).path(task, [4, 8]).models for basis in ("preimages", "rows"))
    for one, two in zip(made, rows, strict=True):
        assert objective(one, task, 1.0, 10.0)[0] < objective(two, task, 1.0, 10.0)[0]


# What it takes


@pytest.mark.parametrize("basis", ["rows", "preimages"])
def test_sparse_rows_make_the_same_models(make_task, basis):
    X, y = moons(80)
    X = X * (np.abs(X) > 0.3)
    dense, sparse = (
        CPSP(basis=basis).path(make_task(RBF(1.0), form(X), y), [2, 9]).models for form in (np.asarray, csr_array)
    )
    for one, two in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(one(X), two(csr_array(X)), atol=1e-6)


def test_a_precomputed_kernel_makes_the_same_models_as_its_formula(make_task):
    X, y = moons(80)
    K = RBF(1.0)(X, X)
    plain = CPSP(basis="rows").path(make_task(RBF(1.0), X, y), [2, 9]).models
    given = CPSP().path(make_task(Precomputed(), K, y), [2, 9]).models
    for one, two in zip(plain, given, strict=True):
        np.testing.assert_allclose(one(X), two(K), atol=1e-6)


def test_every_kernel_is_taken(make_task, kernel_name, make_case):
    case = make_case(kernel_name, n=40)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    assert CPSP.takes(case.kernel)
    model = CPSP(C=10.0).path(make_task(case.kernel, case.X, y), [4]).models[-1]
    np.testing.assert_allclose(model(case.X), case.kernel(case.X, model.points) @ model.coef + model.bias, atol=1e-9)


def test_kernels_without_gradients_have_a_basis_of_rows(make_task):
    X = np.random.default_rng(0).random((30, 4))
    model = CPSP().path(make_task(Custom(Chi2(1.0)), X, np.where(X[:, 0] > 0.5, 1.0, -1.0)), [5]).models[-1]
    assert all((point == X).all(axis=1).any() for point in model.points)


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_that_is_never_positive_leaves_the_bias_alone(make_task, make_blobs, form):
    X, y = make_blobs()
    y[: y.size // 4] = 1.0
    path = CPSP(**form).path(make_task(Sigmoid(0.05, -1.0), X, y), [1, 4])
    assert path.status is Status.EXHAUSTED
    assert path.sizes == [1]
    assert np.isfinite(path.models[0](X)).all()


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_one_side_are_no_trouble(make_task, form):
    X, _ = moons(50)
    path = CPSP(**form).path(make_task(RBF(1.0), X, np.ones(50)), [1, 5])
    assert path.sizes == [1, 5]
    assert (path.models[-1](X) > 0).all()


def test_equal_rows_are_one_basis_vector(make_task):
    X, y = moons(8)
    path = CPSP(basis="rows").path(make_task(RBF(1.0), np.repeat(X, 10, axis=0), np.repeat(y, 10)), [5, 20])
    assert path.sizes == [5, 8]
    assert path.status is Status.EXHAUSTED


def test_the_linear_kernel_has_no_more_points_than_features(make_task):
    X, y = moons(60)
    path = CPSP().path(make_task(Linear(), X, y), [1, 2, 3, 10])
    assert path.sizes == [1, 2]


@pytest.mark.parametrize("form", FORMS)
def test_a_weight_is_a_number_of_equal_rows(make_task, form):
    """Chance draws other rows for the basis; the problem on one and the same basis must be equal."""
    X, y = moons(60)
    times = np.random.default_rng(0).integers(1, 4, 60)
    weighted = make_task(RBF(1.0), X, y, times.astype(float))
    repeated = make_task(RBF(1.0), np.repeat(X, times, axis=0), np.repeat(y, times))
    reducer = CPSP(tol=1e-5, **form)
    model = reducer.path(weighted, [60]).models[-1]
    assert objective(model, weighted, 1.0, reducer.bias) == pytest.approx(objective(model, repeated, 1.0, reducer.bias))


# Runs


@pytest.mark.parametrize("form", FORMS)
def test_a_seed_makes_a_run_repeatable_and_sizes_share_a_run(make_task, form):
    X, y = moons(100)
    long, short = (CPSP(**form).path(make_task(RBF(1.0), X, y), sizes).models for sizes in ([3, 6, 12], [3, 6]))
    for one, two in zip(long, short, strict=False):
        np.testing.assert_array_equal(one.coef, two.coef)
        np.testing.assert_array_equal(one.points, two.points)


@pytest.mark.parametrize("form", FORMS)
def test_a_time_limit_ends_with_what_there_is(make_task, form):
    X, y = moons(100)
    path = CPSP(time_limit=1e-9, **form).path(make_task(RBF(1.0), X, y), [5, 50])
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [1]


def test_the_words_of_a_step_say_what_gap_is_left(make_task):
    X, y = moons()
    task = make_task(RBF(1.0), X, y)
    assert "gap" in CPSP(max_rounds=1).path(task, [8]).steps[-1].settings
    left = float(CPSP(tol=1e-3).path(task, [8]).steps[-1].settings.split()[-1])
    assert left <= 1e-3


def test_float32_features_give_the_same_accuracy(make_task, float32_always):
    X, y = moons(400)
    task = make_task(RBF(1.0), X, y, precision=float32_always)
    assert task.rows.dtype == np.float32
    for model in CPSP(C=10.0, tol=1e-3).path(task, [4, 32]).models:
        _, above = restricted_optimum(model, task, 10.0, 10.0, 0)
        assert objective(model, task, 10.0, 10.0)[0] <= above * 1.001 + 1e-3 * 10.0 * 400


def test_the_estimator_hands_over_its_c_and_tolerance():
    X, y = moons(300)
    slim = SlimSVC(budget=12, reducer="cpsp", gamma=1.0, C=5.0, random_state=0).fit(X, y)
    assert slim.support_vectors_.shape[0] <= 12
    assert slim.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"basis": "random"}, "preimages.*rows"),
        ({"residual": "last"}, "weighted.*newest"),
        ({"C": 0.0}, "C must be"),
        ({"tol": float("nan")}, "tol must be"),
        ({"bias": -1.0}, "bias must be"),
        ({"candidates": 0}, "candidates must be"),
        ({"starts": 0}, "starts must be"),
        ({"climb_steps": 0}, "climb_steps must be"),
        ({"max_rounds": 0}, "max_rounds must be"),
        ({"time_limit": -1}, "time_limit must be"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        CPSP(**settings)
