"""A metric of factors and widths: models have the values of its formula on every home, and wrong metrics are refused."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from slimsvm.kernels import KERNELS, RBF, InnerKernel, Poly, Precomputed, make_kernel
from slimsvm.metric import Metric, takes_factors, takes_widths
from slimsvm.model import Expansion
from slimsvm.pairs import PairCoefficients
from slimsvm.reducers import REDUCERS
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Given, Precision, prepare
from slimsvm.rows.prediction import TINY_WORK
from slimsvm.rows.protocol import Meter
from slimsvm.rows.threads import ThreadPool
from slimsvm.rows.tiles import tiles_against

N, M, D, Q = 40, 7, 5, 3
GAMMA, COEF0, DEGREE = 0.4, 0.5, 3

#: the kernel of factors f and a width w, written as in the textbook
FORMULAS = {
    "linear": lambda x, z, f, _: (f * x) @ (f * z),
    "poly": lambda x, z, f, _: (GAMMA * (f * x) @ (f * z) + COEF0) ** DEGREE,
    "sigmoid": lambda x, z, f, _: np.tanh(GAMMA * (f * x) @ (f * z) + COEF0),
    "rbf": lambda x, z, f, w: np.exp(-GAMMA * w * sum((f * (x - z)) ** 2)),
    "laplacian": lambda x, z, f, w: np.exp(-GAMMA * w * sum(f * abs(x - z))),
}
FACTORS = np.array([0.2, 1.0, 3.0, 0.7, 1.5])
WIDTHS = np.array([0.1, 0.5, 1.0, 2.0, 4.0, 1.2, 0.9])
PARTS = {"factors": Metric(FACTORS), "widths": Metric(None, WIDTHS), "both": Metric(FACTORS, WIDTHS)}
CASES = [(name, parts) for name in FORMULAS for parts in PARTS if parts == "factors" or takes_widths(name)]


def naive(name, X, model):
    """f(x) by a double loop."""
    formula = FORMULAS[name]
    K = np.array([[formula(x, z, model.factors, w) for z, w in zip(model.points, model.widths, strict=True)] for x in X])
    return K @ np.asarray(model.coef) + model.bias


@pytest.fixture(params=CASES, ids=["-".join(case) for case in CASES])
def case(request):
    """The kernel's name, rows with zeros, and a model with a metric."""
    name, parts = request.param
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    kernel = make_kernel(name, gamma=GAMMA, degree=DEGREE, coef0=COEF0)
    return name, X, Expansion(kernel, rng.normal(size=(M, D)), rng.normal(size=(M, Q)), rng.normal(size=Q), PARTS[parts])


@pytest.mark.parametrize("tiny", [True, False], ids=["one compiled pass", "tiles"])
def test_outputs_are_those_of_the_formula(case, form, tiny):
    name, X, model = case
    meter, times = Meter(), 1 if tiny else TINY_WORK // (N * D * M) + 1
    expected, X = np.tile(naive(name, X, model), (times, 1)), np.tile(X, (times, 1))
    found = model(form(X), meter)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    assert meter.evaluations == times * N * M
    assert_allclose(replace(model, points=csr_array(model.points))(form(X)), found, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("columns", [1, Q])
def test_float32_tiles(case, form, columns, float32_always):
    name, X, model = case
    model = replace(model, coef=model.coef[:, :columns], bias=model.bias[:columns])
    if isinstance(model.kernel, InnerKernel):
        rows = prepare(model.kernel, Given(form(X)), M, np.inf, precision=float32_always)
        settings = {"metric": model.metric, "precision": float32_always}
        tiles = tiles_against(model.kernel, rows, Given(form(X)), model.points, np.inf, ThreadPool(1), **settings)
        assert tiles.dtype == np.float32
    found = model.on(HostRows(model.kernel, form(X), error=np.inf, precision=float32_always))
    assert_allclose(found, naive(name, X, model), rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("device", ["cpu", "array_api_strict"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rows_in_their_home(case, form, device, precision, request):
    always, meter = request.getfixturevalue(f"{precision}_always"), Meter()
    name, X, model = case
    rows = open_rows(model.kernel, form(X + 3.0 * (X != 0)), meter=meter, error=np.inf, device=device, precision=always)
    found, tolerance = model.on(rows), 1e-10 if rows.dtype == np.float64 else 2e-3
    assert_allclose(found, naive(name, X + 3.0 * (X != 0), model), rtol=tolerance, atol=tolerance)
    assert meter.evaluations == N * M


def test_all_pairs_of_classes():
    rng = np.random.default_rng(1)
    coef = PairCoefficients(rng.normal(size=(M, 2)), np.array([3, 0, 4]))
    X, model = rng.normal(size=(N, D)), Expansion(RBF(GAMMA), rng.normal(size=(M, D)), coef, np.zeros(3), PARTS["both"])
    expected = naive("rbf", X, model)
    assert_allclose(model(X), expected, atol=1e-12)
    assert_allclose(model(X[:2]), expected[:2], atol=1e-12)
    assert_allclose(model.on(HostRows(model.kernel, X)), expected, atol=1e-12)


def test_ones_change_nothing(case):
    _, X, model = case
    plain = replace(model, metric=None)
    ones = replace(model, metric=Metric(np.ones(D), np.ones(M) if model.metric.widths is not None else None))
    assert_allclose(ones(X), plain(X), rtol=1e-12, atol=1e-13)
    assert_array_equal(plain.factors, np.ones(D))
    assert_array_equal(plain.widths, np.ones(M))


def test_a_part_of_the_points_keeps_its_widths(case):
    name, X, model = case
    some = np.array([5, 0, 3])
    part = model.part(some)
    assert_array_equal(part.widths, model.widths[some])
    assert_allclose(part(X), naive(name, X, part), rtol=1e-10, atol=1e-11)


@pytest.mark.strict_arrays
def test_float32_is_given_up_where_the_metric_spoils_it():
    """Rows that are harmless as they are may be far apart in the metric; widths that float32 has no numbers for too."""
    rng, always = np.random.default_rng(2), Precision(small_work=0)
    X, points, coef = rng.normal(size=(N, D)), rng.normal(size=(M, D)), rng.normal(size=(M, 1))
    for metric in (Metric(np.full(D, 100.0)), Metric(None, np.full(M, 500.0)), Metric(np.full(D, 1e-20))):
        model = Expansion(RBF(GAMMA), points, coef, np.zeros(1), metric)
        rows = HostRows(model.kernel, X, precision=always)
        assert rows.dtype == np.float32
        tiles = tiles_against(model.kernel, rows.prepared, rows.given, points, rows.error, rows.pool, metric=metric)
        assert tiles.A.values.dtype == np.float64
        there = open_rows(model.kernel, X, device="array_api_strict", precision=always)
        for found in (model.on(rows), model.on(there), model(X)):
            assert_allclose(found, naive("rbf", X, model), rtol=1e-6, atol=1e-6)


def test_values_of_a_polynomial_are_checked_in_the_metric():
    X, one = np.full((2, D), 10.0), np.ones((1, 1))
    model = Expansion(Poly(1.0, 0.0, 100), X[:1], one, np.zeros(1))
    with pytest.raises(ValueError, match="scale the features"):
        model(X)
    assert replace(model, metric=Metric(np.full(D, 0.1)))(X) == pytest.approx(5.0**100)


WRONG = {
    "zero": ([0.0, 1.0], "above 0"),
    "negative": ([1.0, -1.0], "number 1 is -1"),
    "nan": ([np.nan, 1.0], "above 0"),
    "infinite": ([np.inf, 1.0], "above 0"),
    "no squares": ([1e200, 1.0], "1e\\+100"),
    "whole numbers": (np.array([1, 2]), "array of float64"),
    "two axes": (np.ones((1, 2)), "one axis"),
}


@pytest.mark.parametrize("part", ["factors", "widths"])
@pytest.mark.parametrize("wrong", WRONG)
def test_numbers_that_are_no_metric(wrong, part):
    values, words = WRONG[wrong]
    with pytest.raises(ValueError, match=words) as caught:
        Metric(**{part: np.asarray(values)})
    assert part in str(caught.value)


def test_a_list_is_no_array():
    with pytest.raises(ValueError, match="array of float64 with one axis, not list"):
        Metric([1.0, 2.0])


@pytest.mark.parametrize(
    ("metric", "words"),
    [(Metric(np.ones(D + 1)), f"model has {D} features"), (Metric(None, np.ones(M - 1)), f"model has {M} points")],
    ids=["factors", "widths"],
)
def test_a_metric_of_another_model(metric, words):
    with pytest.raises(ValueError, match=words):
        Expansion(RBF(1.0), np.ones((M, D)), np.ones((M, 1)), np.zeros(1), metric)


def test_kernels_without_factors_or_widths():
    assert {name for name in KERNELS if takes_factors(name)} == set(FORMULAS)
    assert {name for name in KERNELS if takes_widths(name)} == {"rbf", "laplacian"}
    one = np.ones((1, 1))
    for kernel, metric, words in (
        (Poly(), Metric(None, np.ones(1)), "poly kernel takes no widths .* \\['rbf', 'laplacian'\\]"),
        (make_kernel("chi2", gamma=1.0, degree=1, coef0=0.0), Metric(np.ones(1)), "chi2 kernel takes no factors"),
        (Precomputed(), Metric(np.ones(1)), "precomputed kernel takes no factors"),
        (make_kernel(np.dot, gamma=1.0, degree=1, coef0=0.0), Metric(np.ones(1)), "callable kernel takes no factors"),
    ):
        with pytest.raises(ValueError, match=words):
            Expansion(kernel, one, one, np.zeros(1), metric)


def test_reducers_refuse_a_full_model_with_a_metric(make_task):
    X = np.random.default_rng(3).normal(size=(M, D))
    task = make_task(RBF(1.0), X, np.ones(M))
    model = Expansion(RBF(1.0), X, np.ones((M, 1)), np.zeros(1), PARTS["widths"])
    with pytest.raises(ValueError, match=r"Prune shrinks .* learned metric; shrink the model that it was made from"):
        REDUCERS["prune"]().path(task, [2], model)
