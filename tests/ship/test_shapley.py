"""Exact Shapley values: against all subsets of features, the sum of a row, and what has none."""

import json
import re
import subprocess
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, model_of
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm.metric import Metric
from slimsvm.ship.json import JSONExporter
from slimsvm.ship.shapley import shapley
from slimsvm.ship.source import artefact_of
from slimsvm.studio.report.report import asset
from tools.targets import missing

#: shap, where it is installed, imports old names of matplotlib
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::DeprecationWarning")


def brute_force(model, row):
    """The Shapley values of a row by their definition: the mean gain of each feature over all orders."""
    a = artefact_of(model)
    x = row if a.scaling is None else a.scaling(row)
    power = 2 if a.kernel == "rbf" else 1
    widths = np.ones(a.size) if a.widths is None else a.widths
    d = a.features

    def worth(present):
        exponent = (np.abs(x - a.points)[:, list(present)] ** power).sum(axis=1)
        return np.exp(-a.parameters["gamma"] * widths * exponent) @ a.coef + a.bias

    values = np.zeros((d, a.outputs))
    for feature in range(d):
        others = [other for other in range(d) if other != feature]
        for size in range(d):
            share = factorial(size) * factorial(d - size - 1) / factorial(d)
            for subset in combinations(others, size):
                values[feature] += share * (worth((*subset, feature)) - worth(subset))
    return values, worth(())


def metric():
    rng = np.random.default_rng(3)
    return Metric(rng.random(ROWS.shape[1]) + 0.5, rng.random(9) + 0.5)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("layout", ["two", "rest", "regression"])
def test_values_are_those_of_all_subsets(kernel, layout):
    model = model_of(kernel, layout, "standard", metric=metric() if kernel == "rbf" else None)
    found = shapley(model, ROWS[:3])
    for values, base, row in zip(found.values, found.base_values, ROWS, strict=False):
        wanted, empty = brute_force(model, row)
        np.testing.assert_allclose(values.reshape(wanted.shape), wanted, atol=1e-12)
        np.testing.assert_allclose(np.reshape(base, empty.shape), empty, atol=1e-12)


@pytest.mark.parametrize("learned", [False, True])
def test_values_are_those_of_shapiq(learned):
    """A learned metric: factors scale rows and points, and points of one width are a model of their own."""
    shapiq = pytest.importorskip("shapiq.explainer.product_kernel")
    model = model_of("rbf", "two", metric=metric() if learned else None)
    a, row = artefact_of(model), ROWS[0]
    x = row if a.scaling is None else a.scaling(row)
    widths = np.ones(a.size) if a.widths is None else a.widths
    wanted = np.zeros(a.features)
    for point, coef, width in zip(a.points, a.coef[:, 0], widths, strict=True):
        parts = {"X_train": point[None], "alpha": np.array([coef]), "n": 1, "d": a.features}
        one = shapiq.base.ProductKernelModel(**parts, gamma=float(a.parameters["gamma"] * width))
        computer = shapiq.product_kernel.ProductKernelComputer(one)
        vectors = computer.compute_kernel_vectors(one.X_train, x)
        wanted += [computer.compute_shapley_value(vectors, feature) for feature in range(a.features)]
    np.testing.assert_allclose(shapley(model, row[None]).values[0], wanted, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"votes", "parted", "dag"}))
@pytest.mark.parametrize("scaler", ["none", "clipped", "two"])
def test_a_row_adds_up_to_its_score(kernel, layout, scaler):
    model, found = model_of(kernel, layout, scaler), shapley(model_of(kernel, layout, scaler), ROWS)
    scores = (model.predict if layout == "regression" else model.decision_function)(ROWS)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, scores, atol=1e-12)


def test_names_and_data_are_those_of_the_frame():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), slimsvm.SlimSVR(8, C=100, random_state=0)).fit(X, y)
    found = slimsvm.shapley(model, X[:5])
    assert list(found.feature_names) == list(X.columns)
    np.testing.assert_array_equal(found.data, X[:5])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X[:5]))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (model_of("poly"), "kernel='rbf', 'laplacian' or 'linear'"),
        (model_of("chi2"), "kernel='rbf', 'laplacian' or 'linear'"),
        (model_of(layout="votes"), "multiclass='ovr'"),
    ],
)
def test_models_without_such_values_say_what_to_change(model, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        shapley(model, ROWS[:1])


@pytest.mark.parametrize("rows", [ROWS[0], ROWS[:, :3], np.full((1, ROWS.shape[1]), np.nan)])
def test_rows_that_do_not_fit_are_refused(rows):
    with pytest.raises(ValueError, match="X has"):
        shapley(model_of(), rows)


@pytest.mark.skipif(bool(missing("node")), reason=missing("node"))
@pytest.mark.parametrize(("kernel", "layout"), [("rbf", "rest"), ("laplacian", "two")])
def test_the_page_computes_the_same_values(kernel, layout):
    model = model_of(kernel, layout, "clipped", metric=metric() if kernel == "rbf" else None)
    document = JSONExporter().render(artefact_of(model), "made")[".json"].decode()
    script = f"{asset('shapley.js')}\nconsole.log(JSON.stringify(shapley({document}, {ROWS[0].tolist()})))"
    out = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    found = json.loads(out)
    python = shapley(model, ROWS[:1])
    np.testing.assert_allclose(np.squeeze(found["values"]), python.values[0], atol=1e-12)
    np.testing.assert_allclose(np.squeeze(found["base"]), python.base_values[0], atol=1e-12)
