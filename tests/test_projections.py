"""Models behind a learned projection: f(x) is the model of x P, on every device, in files and in the costs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm import SlimSVC, load, save
from slimsvm.c_bytes import Shape, total
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Chi2, Laplacian, Linear, Poly
from slimsvm.metric import Metric
from slimsvm.model import Expansion
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows

RNG = np.random.default_rng(0)
X, PROJECTION = RNG.normal(size=(400, 9)), RNG.normal(size=(9, 3))
Z, COEF, WIDTHS = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2)), np.geomspace(0.5, 2.0, 6)
KERNELS = [RBF(0.3), Laplacian(0.2), Linear(), Poly(0.1, 2, 1.0)]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name for kernel in KERNELS])


def model_of(kernel, projection=PROJECTION):
    widths = WIDTHS if isinstance(kernel, RBF | Laplacian) else None
    return Expansion(kernel, Z, COEF, np.array([0.1, -0.2]), Metric(widths=widths, projection=projection))


def plain(kernel):
    """The model of projected rows."""
    model = model_of(kernel)
    return replace(model, metric=model.metric.within)


@each_kernel
def test_a_model_takes_the_rows_through_its_projection(kernel):
    model, expected = model_of(kernel), plain(kernel)(X @ PROJECTION)
    np.testing.assert_allclose(model(X), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model(csr_array(X)), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        model.part(np.array([4, 0]))(X), replace(plain(kernel).part(np.array([4, 0])))(X @ PROJECTION)
    )
    assert model.features == 9


@each_kernel
@pytest.mark.parametrize("device", ["cpu", pytest.param("array_api_strict", marks=pytest.mark.strict_arrays)])
def test_devices_project_rows(kernel, device):
    rows = open_rows(kernel, X, device=device)
    np.testing.assert_allclose(model_of(kernel).on(rows), plain(kernel)(X @ PROJECTION), rtol=1e-5, atol=1e-5)


def test_some_rows_are_projected_alone():
    rows = HostRows(RBF(0.3), X).subset(np.array([5, 2, 9]))
    np.testing.assert_allclose(model_of(RBF(0.3)).on(rows), plain(RBF(0.3))(X[[5, 2, 9]] @ PROJECTION))


def fitted(kernel):
    """An estimator that holds a model with a projection."""
    svc = SlimSVC(kernel=kernel.name, gamma=0.3).fit(X, (X[:, 0] > 0).astype(int))
    model = Expansion(svc.model_.kernel, Z, COEF[:, :1], np.zeros(1), Metric(projection=PROJECTION))
    other = svc._with_model(model, svc.goal_)
    other._support = None
    return other


def test_files_hold_projections(tmp_path):
    svc = fitted(RBF(0.3))
    save(svc, tmp_path / "m.slim")
    again = load(tmp_path / "m.slim")
    np.testing.assert_array_equal(again.model_.projection, PROJECTION)
    np.testing.assert_array_equal(again.decision_function(X), svc.decision_function(X))


def test_linear_models_have_weights_of_the_features():
    svc = fitted(Linear())
    np.testing.assert_allclose(X @ svc.coef_.T, svc.decision_function(X)[:, None], atol=1e-9)


def test_projections_count_as_bytes():
    model, projected = plain(RBF(0.3)), model_of(RBF(0.3))
    tables = [
        total(Shape.of("rbf", each.features, OneVsRest(2)).of_model(each)._numbers(each.size, "float32"))
        for each in (model, projected)
    ]
    assert tables[1] - tables[0] == 4 * (PROJECTION.size + projected.points.size - model.points.size)


WRONG = {
    "two axes": PROJECTION.ravel(),
    "float64": PROJECTION.astype(np.float32),
    "from 9 features to more": RNG.normal(size=(9, 10)),
    "finite": np.where(PROJECTION > 0, PROJECTION, np.nan),
}


@pytest.mark.parametrize("words", WRONG)
def test_projections_are_checked(words):
    with pytest.raises(ValueError, match=words):
        Metric(projection=WRONG[words])


def test_projections_fit_their_models():
    with pytest.raises(ValueError, match="factors or a projection"):
        Metric(factors=np.ones(9), projection=PROJECTION)
    with pytest.raises(ValueError, match="3 columns of points"):
        model_of(RBF(0.3), RNG.normal(size=(9, 2)))
    with pytest.raises(ValueError, match="chi2 kernel takes no projection"):
        Expansion(Chi2(0.3), Z, COEF, np.zeros(2), Metric(projection=PROJECTION))
    with pytest.raises(ValueError, match="8 features, but the model's points have 9"):
        model_of(RBF(0.3))(X[:, :8])
