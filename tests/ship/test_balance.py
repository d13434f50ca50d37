"""Integer tables of inner products: rows and points are brought into one range before they are rounded."""

import warnings

import numpy as np
import pytest
from shipped import ROWS, model_of
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from slimsvm import SlimSVC, export
from slimsvm.ship.balance import balanced, typical_rows
from slimsvm.ship.c import CExporter
from slimsvm.ship.runtime import Runtime
from slimsvm.ship.source import artefact_of
from tools.targets import run_c

INNER = ["linear", "poly", "sigmoid"]
SCALERS = {"none": None, "standard": StandardScaler(), "clipped": MinMaxScaler(clip=True), "largest": MaxAbsScaler()}


def fitted(kernel, scaler, X, y, unit=1.0):
    """Return a model of features in other units, a Pipeline if there is a scaler."""
    svc = SlimSVC(kernel=kernel, degree=2, coef0=1.0, gamma="scale", random_state=0)
    return (svc if scaler is None else make_pipeline(scaler, svc)).fit(unit * X, y)


@pytest.mark.parametrize("scaler", ["none", "standard", "clipped"])
@pytest.mark.parametrize("kernel", [*INNER, "rbf"])
def test_a_balanced_model_is_the_same_function(kernel, scaler):
    artefact = artefact_of(model_of(kernel, "two", scaler))
    np.testing.assert_allclose(typical_rows(artefact).shape, artefact.points.shape)
    for rows in (ROWS, typical_rows(artefact)):
        same = balanced(artefact, rows)
        np.testing.assert_allclose(Runtime(same).scores(ROWS), Runtime(artefact).scores(ROWS), atol=1e-6)
        if kernel != "rbf":
            scaled = same.scaling(rows)
            assert np.abs(scaled).max() == pytest.approx(np.abs(same.points).max(), rel=1e-9)


def test_features_that_one_side_does_not_have_keep_the_range():
    artefact = artefact_of(model_of("linear", "two", "standard"))
    rows = ROWS.copy()
    rows[:, 2] = artefact.scaling.centre[2]  # 0 after scaling
    artefact.points[:, 4] = 0.0
    for each in (rows, np.zeros_like(rows)):
        same = balanced(artefact, each)
        assert np.isfinite(same.points).all()
        np.testing.assert_allclose(Runtime(same).scores(ROWS), Runtime(artefact).scores(ROWS), atol=1e-6)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("scaler", ["standard", "clipped", "largest"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("given", [True, False], ids=["rows", "no rows"])
def test_scaled_features_of_any_unit_keep_their_labels(given, kernel, scaler, unit, tmp_path):
    """Features of breast cancer differ by five powers of ten; a scaler makes them equal."""
    X, y = load_breast_cancer(return_X_y=True)
    model = fitted(kernel, SCALERS[scaler], X, y, unit)
    rows = (unit * X).astype(np.float32)
    settings = {"rows": unit * X} if given else {}
    for precision, least in (("int16", 0.995), ("int8", 0.98)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if precision == "int8" else "error")
            source = export(model, tmp_path / f"{precision}.c", precision=precision, **settings)[0]
        found = run_c(source, artefact_of(model), rows).labels
        assert (found == model.predict(rows)).mean() >= least


def test_weights_of_a_linear_model_are_not_rounded_to_nothing(tmp_path):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SlimSVC(kernel="linear", C=1e-4).fit(X, y)  # weights of some thousandths
    source = export(model, tmp_path / "m.c", precision="int8", rows=X)[0]
    assert (run_c(source, artefact_of(model), X).labels == model.predict(X)).mean() >= 0.98


def test_equal_features_need_no_table_of_scales():
    X, y = ROWS, (ROWS[:, 0] > np.median(ROWS[:, 0])).astype(int)
    plain, scaled = fitted("poly", None, X, y), fitted("poly", MaxAbsScaler(), X, y)
    points = [len(model.support_vectors_) for model in (plain, scaled[-1])]
    flash = [CExporter("int8").cost(artefact_of(model)).flash for model in (plain, scaled)]
    assert flash[1] - flash[0] == (points[1] - points[0]) * (X.shape[1] + 1)


def test_coarse_tables_of_unequal_features_are_told(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = SlimSVC(kernel="linear").fit(X * [300.0, 1.0], X.sum(axis=1) > 0)
    with pytest.warns(UserWarning, match="int8 tables change scores"):
        export(model, tmp_path / "m.c", precision="int8", rows=X * [300.0, 1.0])
