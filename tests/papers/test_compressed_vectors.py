"""CVM: the loss of gradient support vectors falls from that of LARS, and where it ends is a place of no slope."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons

from slimsvm import SlimSVC, compress
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Linear
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Status, Task
from slimsvm.papers.compressed_vectors import CVM, OPTIMIZERS, ROWS, Lars, OutputLoss, moved
from slimsvm.rows.host import HostRows
from slimsvm.trainers import SMO

SIZES = [1, 2, 5, 10]


def problem(kernel, classes=2, form=np.asarray, weights=None):
    X, labels = make_moons(120, noise=0.25, random_state=0) if classes == 2 else load_iris(return_X_y=True)
    X = X if form is np.asarray else np.where(np.abs(X) > np.quantile(np.abs(X), 0.9), X, 0.0)
    weights = np.ones(labels.size) if weights is None else weights(labels.size)
    task = Task(HostRows(kernel, form(X)), OneVsRest(classes).encode(labels), weights)
    return task, SMO(1.0).fit(task).model


def loss(model, full, X, weights=1.0):
    """(10) as the paper writes it."""
    return float((weights * (model(X) - full(X)) ** 2).sum())


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid", "linear", "laplacian"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_loss_is_never_above_that_of_the_lars_start(name, optimizer, make_case):
    task, full = problem(make_case(name).kernel)
    starts = Lars(refit=False).path(task, SIZES, full)
    path = CVM(optimizer, refit=False, max_steps=40).path(task, SIZES, full)
    assert path.sizes == starts.sizes
    for start, step in zip(starts.models, path.models, strict=True):
        before, after = (loss(model, full, full.points) for model in (start, step))
        assert after <= before * (1 + 1e-9)
        np.testing.assert_array_equal(step.bias, full.bias)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("classes", [2, 3])
def test_it_ends_well_below_its_start_and_where_the_loss_is_flat(rows, classes):
    task, full = problem(RBF(0.5), classes, weights=np.random.default_rng(0).random)
    followed = task.rows if rows == "all" else HostRows(full.kernel, full.points)
    X, weights = (task.rows.given.rows(), task.output_weights) if rows == "all" else (full.points, full.coef != 0)
    start = Lars(refit=False).path(task, [4], full).models[0]
    end = CVM(rows=rows, refit=False, max_steps=3000).path(task, [4], full).models[0]
    assert loss(end, full, X, weights) < 0.2 * loss(start, full, X, weights)
    moving = OutputLoss(followed, full, weights)
    steepest = [max(np.abs(slope).max() for slope in slopes(moving, model)) for model in (start, end)]
    assert steepest[1] < 0.02 * steepest[0]


def slopes(loss, model):
    """The derivatives of the loss by points and coefficients."""
    return loss(loss.rows.to_coordinates(model.points), model.coef)[1:]


def test_the_loss_is_a_share_of_what_the_bias_alone_has():
    task, full = problem(RBF(1.0), 3)
    moving = OutputLoss(task.rows, full, np.full(task.targets.shape, 3.0))
    nothing, _, _ = moving(task.rows.to_coordinates(full.points[:1]), np.zeros((1, 3)))
    assert nothing == pytest.approx(1.0)
    everything, _, _ = moving(task.rows.to_coordinates(full.points), full.coef)
    assert everything == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_gradient_is_that_of_finite_differences(classes):
    task, full = problem(RBF(0.5), classes, weights=np.random.default_rng(0).random)
    moving = OutputLoss(task.rows, full, task.output_weights)
    Z, coef = task.rows.to_coordinates(full.points[:3]), full.coef[:3] + 0.1
    _, by_points, by_coef = moving(Z, coef)
    for place in [(0, 0), (2, 1)]:
        step = np.zeros_like(Z)
        step[place] = 1e-6
        difference = (moving(Z + step, coef)[0] - moving(Z - step, coef)[0]) / 2e-6
        assert by_points[place] == pytest.approx(difference, rel=1e-4, abs=1e-7)
    step = np.zeros_like(coef)
    step[1, 0] = 1e-6
    difference = (moving(Z, coef + step)[0] - moving(Z, coef - step)[0]) / 2e-6
    assert by_coef[1, 0] == pytest.approx(difference, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_rows_give_what_dense_rows_give(refit, classes):
    """Points of sparse rows become dense when they move."""
    dense_task, full = problem(RBF(1.0), classes, csr_array)
    sparse = CVM(refit=refit, max_steps=5).path(dense_task, [1, 3], full).models
    X = dense_task.rows.given.rows().toarray()
    task = Task(HostRows(RBF(1.0), X), dense_task.targets, dense_task.weights)
    dense = CVM(refit=refit, max_steps=5).path(
        task, [1, 3], Expansion(full.kernel, full.points.toarray(), full.coef, full.bias)
    )
    for one, other in zip(sparse, dense.models, strict=True):
        np.testing.assert_allclose(one.points, other.points, atol=1e-6)
        np.testing.assert_allclose(one.coef, other.coef, atol=1e-5)


def test_the_same_each_time():
    task, full = problem(RBF(1.0), 3)
    first, again = (CVM(max_steps=30).path(task, [6], full).models[0] for _ in range(2))
    np.testing.assert_array_equal(first.points, again.points)
    np.testing.assert_array_equal(first.coef, again.coef)


def test_a_full_model_of_one_point_is_found_again():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    task = Task(HostRows(RBF(1.0), X), np.ones((3, 1)), np.ones(3))
    full = Expansion(RBF(1.0), X[:1], np.array([[2.0]]), np.zeros(1))
    path = CVM(refit=False, rows="all").path(task, [1, 4], full)
    assert path.sizes == [1]
    np.testing.assert_allclose(path.models[0](X), full(X), atol=1e-3)


def test_a_time_limit_ends_the_steps():
    task, full = problem(RBF(1.0))
    path = CVM(time_limit=1e-9, refit=False).path(task, [4, 8], full)
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [1]
    rows = HostRows(full.kernel, full.points)
    start = Lars(refit=False).path(task, [4], full).models[0]
    _, steps = moved(start, OutputLoss(rows, full, np.ones((rows.n, 1))), OPTIMIZERS["lbfgs"], Deadline(1e-9))
    assert steps <= 1


def test_a_loss_that_would_rise_leaves_the_start():
    """A slope that points uphill: no step gains anything."""
    task, full = problem(RBF(1.0))

    class Uphill(OutputLoss):
        def __call__(self, points, coef):
            value, *slopes = super().__call__(points, coef)
            return value, *(-slope for slope in slopes)

    start = Lars(refit=False).path(task, [4], full).models[0]
    for optimizer in OPTIMIZERS.values():
        end, _ = moved(
            start, Uphill(task.rows, full, np.ones(task.targets.shape)), replace(optimizer, steps=10), Deadline()
        )
        assert loss(end, full, task.rows.given.rows()) <= loss(start, full, task.rows.given.rows()) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"optimizer": "adam"}, "cg.*lbfgs"),
        ({"rows": "some"}, "support.*all"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"time_limit": -1.0}, "time_limit must be"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        CVM(**settings)


def test_kernels_without_gradients_are_not_taken(make_case):
    assert not CVM.takes(make_case("precomputed").kernel)
    assert CVM.takes(Linear())


def test_by_its_name():
    X, y = make_moons(300, noise=0.2, random_state=0)
    small = SlimSVC(budget=4, reducer="cvm", gamma=1.0, C=10.0, random_state=0).fit(X, y)
    assert small.model_.size <= 4
    assert small.score(X, y) > 0.95


def test_the_printed_form_follows_plain_conjugate_gradients():
    """CVM.paper: from LARS-SVM's points and coefficients, (10) and its gradient by hand, into SciPy's CG."""
    task, full = problem(RBF(0.5))
    start = Lars.paper().path(task, [4], full).models[0]
    X, f = full.points, full(full.points)[:, 0] - full.bias
    unit = np.square(f).sum()

    def loss_and_slopes(both):
        Z, a = both[:8].reshape(4, 2), both[8:]
        K = np.exp(-0.5 * np.square(X[:, None] - Z).sum(axis=2))
        off = K @ a - f
        slopes = 2 * off[:, None] * K * a
        by_points = np.einsum("im,imd->md", slopes, X[:, None] - Z)
        return off @ off / unit, np.concatenate([by_points.ravel(), 2 * K.T @ off]) / unit

    for steps in (1, 5, 40):
        small = CVM.paper(steps).path(task, [4], full).models[0]
        begin = np.concatenate([start.points.ravel(), start.coef[:, 0]])
        theirs = minimize(loss_and_slopes, begin, jac=True, method="CG", options={"maxiter": steps, "gtol": 1e-7})
        np.testing.assert_allclose(small.points.ravel(), theirs.x[:8], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(small.coef[:, 0], theirs.x[8:], rtol=1e-3, atol=1e-3)


def test_a_kernel_of_histograms_is_compressed_with_points_that_are_histograms():
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(6), 150)
    y = (X[:, 0] > X[:, 1]).astype(int)
    full = SlimSVC(C=10.0, kernel="chi2", gamma=2.0).fit(X, y)
    for reducer in ("cvm", "slim", "reduced-set"):
        small = compress(full, X, y, budget=6, reducer=reducer, random_state=0)
        assert small.model_.points.min() >= 0
        assert small.score(X, y) > 0.95
