"""What holds for any data: results or clear errors, and the same function however rows, labels and weights are written."""

import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SlimSVC, export, load, runtime, save
from slimsvm.kernels import KERNELS
from slimsvm.ship.json import read_json
from slimsvm.ship.runtime import Runtime

NAMED = [name for name in KERNELS if name != "precomputed"]
DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]
SPARSE = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}",
    "ignore:budget=3 is not below",
    "ignore:.*(too few rows|validation).*",
)


@st.composite
def problems(draw, classes=3):
    """Rows without negative entries, labels of two or more classes, and weights."""
    n, d = draw(st.integers(6, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(2, classes))
    y = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    X = np.abs(rng.normal(size=(n, d)) + 0.7 * y[:, None])
    if draw(st.booleans()):  # rows that are there twice, and a feature that is constant
        X[n // 2] = X[0]
        X[:, 0] = 1.0
    weights = rng.integers(1, 4, size=n).astype(float) if draw(st.booleans()) else np.ones(n)
    return X, y, weights


KERNEL = st.sampled_from(NAMED)
#: kernels without negative eigenvalues: there is one optimum
DEFINITE = st.sampled_from([name for name in NAMED if name != "sigmoid"])


def scores(model, X):
    """The scores, one column per class or one for two classes."""
    return np.asarray(model.decision_function(X)).reshape(len(X), -1)


def exact(kernel="rbf", **settings):
    return SlimSVC(kernel=kernel, **{"gamma": 0.5, "degree": 2, "coef0": 0.5, "tol": 1e-6, "max_iter": 20_000} | settings)


def answer(work):
    """What the work gives, or None where it is refused with an error that says something."""
    try:
        return work()
    except (TypeError, ValueError) as error:
        if len(str(error)) < 20:
            raise
        return None


# Every form of rows and labels.


def in_memory_order(X, order, folder):
    """The same numbers with other strides, read-only, or in a file."""
    if order == "F":
        return np.asfortranarray(X)
    if order == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    if order == "backwards":
        return X[::-1, ::-1].copy()[::-1, ::-1]
    if order == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if order == "memory-mapped":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    return X


ORDERS = ["C", "F", "strided", "backwards", "read-only", "memory-mapped"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=4)
@given(problem=problems(), kernel=KERNEL)
def test_the_type_and_the_order_of_rows_do_not_matter(dtype, order, tmp_path_factory, problem, kernel):
    X, y, weights = problem
    X = (2 * X).astype(dtype)
    given = in_memory_order(X, order, tmp_path_factory.mktemp("rows"))
    before = np.array(given)
    model = exact(kernel).fit(given, y, weights)
    plain = exact(kernel).fit(X.astype(np.float32 if dtype == "float32" else np.float64), y, weights)
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(scores(model, given), scores(plain, X))


@pytest.mark.parametrize("form", SPARSE)
@settings(max_examples=4)
@given(problem=problems(), kernel=KERNEL, dtype=st.sampled_from(["float32", "float64", "int64", "bool"]), new=st.booleans())
def test_every_sparse_format_gives_the_function_of_the_dense_rows(form, problem, kernel, dtype, new):
    X, y, weights = problem
    X = (X * (X > 0.5)).astype(dtype)
    rows = getattr(sparse, f"{form}_{'array' if new else 'matrix'}")(X)
    model = exact(kernel).fit(rows, y, weights)
    dense = exact(kernel).fit(X, y, weights)
    np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(X), rtol=1e-3, atol=1e-3)


HOSTILE = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e30, 1e300, np.inf, -np.inf, np.nan])


@settings(max_examples=30)
@given(
    problem=problems(),
    kernel=KERNEL,
    entries=st.lists(HOSTILE, max_size=4),
    gamma=st.sampled_from([0.5, "scale", "auto", 1e-12, 1e12]),
    C=st.sampled_from([1e-8, 1.0, 1e12]),
    weight=HOSTILE,
    budget=st.sampled_from([None, 1, 3, 0.5]),
    as_sparse=st.booleans(),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_numbers_give_a_model_or_a_clear_error(problem, kernel, entries, gamma, C, weight, budget, as_sparse):
    X, y, weights = problem
    for place, entry in enumerate(entries):
        X[place % len(X), place % X.shape[1]] = entry
    weights[0] = weight
    rows = sparse.csr_array(X) if as_sparse else X
    model = SlimSVC(budget, kernel=kernel, gamma=gamma, C=C, max_iter=500, reducer="spsvm", random_state=0)
    labels = answer(lambda: model.fit(rows, y, weights).predict(rows))
    assert labels is None or (labels.shape == y.shape and np.isin(labels, y).all())


@pytest.mark.filterwarnings("ignore:Support for labels represented as bytes:FutureWarning")  # of scikit-learn 1.6
@settings(max_examples=30)
@given(problem=problems(), kernel=KERNEL, data=st.data())
def test_labels_and_weights_of_every_type_are_taken_or_refused(problem, kernel, data):
    X, y, weights = problem
    label = data.draw(st.sampled_from(["int8", "uint16", "float32", "bool", "U", "O", "S", "datetime64[s]", "complex128"]))
    weight = data.draw(st.sampled_from(["float16", "int8", "bool", "O", "U"]))
    labels = answer(lambda: exact(kernel).fit(X, y.astype(label), weights.astype(weight)).predict(X))
    assert labels is None or labels.shape == y.shape


# Changes that change nothing.


@settings(max_examples=12)
@given(problem=problems(), kernel=DEFINITE, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(problem, kernel, seed):
    X, y, weights = problem
    order = np.random.default_rng(seed).permutation(len(y))
    one, other = exact(kernel).fit(X, y, weights), exact(kernel).fit(X[order], y[order], weights[order])
    np.testing.assert_allclose(scores(one, X), scores(other, X), atol=1e-4, rtol=1e-4)


@settings(max_examples=12)
@given(problem=problems(), kernel=KERNEL, names=st.sampled_from(["words", "numbers", "bytes"]))
def test_the_names_of_labels_do_not_matter(problem, kernel, names):
    X, y, weights = problem
    table = {
        "words": np.array(["a", "bb", "ccc"]),
        "numbers": np.array([-7.0, 2.0, 1e9]),
        "bytes": np.array([3, 9, 250], "u1"),
    }
    named = table[names][y]
    one, other = exact(kernel).fit(X, y, weights), exact(kernel).fit(X, named, weights)
    np.testing.assert_array_equal(scores(one, X), scores(other, X))
    np.testing.assert_array_equal(table[names][one.predict(X)], other.predict(X))


@settings(max_examples=12)
@given(problem=problems(), kernel=DEFINITE)
def test_a_row_twice_is_a_row_of_weight_two(problem, kernel):
    X, y, weights = problem
    times = weights.astype(int)
    one = exact(kernel).fit(X, y, weights)
    other = exact(kernel).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(scores(one, X), scores(other, X), atol=1e-4, rtol=1e-4)


@settings(max_examples=12)
@given(problem=problems(), kernel=st.sampled_from(["rbf", "laplacian"]), value=st.sampled_from([0.0, 1.0, -3.5, 1e3]))
def test_a_constant_feature_does_not_matter_to_a_distance(problem, kernel, value):
    X, y, weights = problem
    wide = np.hstack([X, np.full((len(X), 1), value)])
    one, other = exact(kernel).fit(X, y, weights), exact(kernel).fit(wide, y, weights)
    np.testing.assert_allclose(scores(one, X), scores(other, wide), atol=1e-4, rtol=1e-4)


# Threads.

TRAIN = """
import hashlib
import numpy as np
from sklearn.datasets import make_classification
from slimsvm import SlimSVC
from slimsvm.reducers import Slim
X, y = make_classification(2000, 12, n_informative=6, n_classes=3, random_state=0)
for budget in (None, 6):
    model = SlimSVC(budget, reducer=Slim(steps=10), random_state=3, tol=1e-2).fit(X[:800], y[:800])
    found = [model.model_.points, model.model_.coef, model.model_.bias, model.predict(X)]
    print(hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in found)).hexdigest())
"""


def test_one_thread_or_many_give_the_same_models_of_smo_and_slim():
    """Scores of large batches may differ in their last digits: the height of a strip depends on the number of threads."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", TRAIN],
            env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "LOKY_MAX_CPU_COUNT": "4"},
            capture_output=True,
            check=True,
            text=True,
            timeout=200,
        ).stdout
        for threads in ("1", "4")
    }
    assert len(digests) == 1


# Files.


def by_pickle(model, folder):  # noqa: ARG001
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib", mmap_mode="r")


def by_file(model, folder):
    save(model, folder / "model.slim")
    return load(folder / "model.slim")


@pytest.mark.parametrize("copied", [by_pickle, by_joblib, by_file], ids=["pickle", "joblib", "slim"])
@settings(max_examples=12)
@given(
    problem=problems(),
    kernel=KERNEL,
    budget=st.sampled_from([None, 3]),
    dtype=st.sampled_from(["float32", "float64"]),
    as_sparse=st.booleans(),
)
def test_a_copy_gives_the_same_bytes(copied, tmp_path_factory, problem, kernel, budget, dtype, as_sparse):
    X, y, weights = problem
    rows = sparse.csr_array(X.astype(dtype)) if as_sparse else X.astype(dtype)
    model = SlimSVC(budget, kernel=kernel, reducer="spsvm", max_iter=2000, random_state=0).fit(rows, y, weights)
    copy = copied(model, tmp_path_factory.mktemp("model"))
    assert copy.decision_function(rows).tobytes() == model.decision_function(rows).tobytes()
    np.testing.assert_array_equal(copy.predict(rows), model.predict(rows))


@settings(max_examples=20)
@given(problem=problems(), kernel=KERNEL, budget=st.sampled_from([None, 3]))
def test_a_model_from_json_gives_the_bytes_of_the_model_itself(tmp_path_factory, problem, kernel, budget):
    X, y, weights = problem
    model = SlimSVC(budget, kernel=kernel, reducer="spsvm", max_iter=2000, random_state=0).fit(X, y, weights)
    path = tmp_path_factory.mktemp("model") / "model.json"
    export(model, path)
    assert Runtime(read_json(path)).scores(X).tobytes() == runtime(model).scores(X).tobytes()
