"""slimsvm.runtime: the labels and scores of the estimator, from any thread, without scikit-learn."""

import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, SCALERS, model_of
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SlimSVC, export, runtime, save
from slimsvm.kernels.spec import SPECS
from slimsvm.papers.optimally_sparse import Slant
from slimsvm.ship.json import read_json

pytestmark = pytest.mark.usefixtures("quick_slim")


def assert_same(run, model, X=ROWS):
    scores = getattr(model, "decision_function", model.predict)
    if scores == model.predict:
        np.testing.assert_allclose(run(X), model.predict(X), rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(run(X), model.predict(X))
    assert run(X[3]) == run(X[3:4])[0]
    assert np.shape(run(X[3])) == ()
    np.testing.assert_allclose(run.scores(X), scores(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.scores(X[3].tolist()), scores(X[3:4])[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaler", SCALERS)
def test_rows_and_batches_are_those_of_the_estimator(layout, scaler):
    model = model_of(layout=layout, scaler=scaler)
    assert_same(runtime(model), model)


@pytest.mark.parametrize("kernel", SPECS)
def test_every_kernel_runs(kernel):
    model = model_of(kernel)
    assert_same(runtime(model), model)


@pytest.mark.parametrize(
    ("ending", "layout"),
    [(".libsvm", "votes"), *((ending, layout) for ending in (".json", ".slim") for layout in LAYOUTS)],
)
def test_files_run(ending, layout, tmp_path):
    model, path = model_of(layout=layout), tmp_path / f"m{ending}"
    if ending == ".slim":
        save(model, path)
    else:
        export(model, path)
    assert_same(runtime(path), model)
    assert_same(runtime(str(path)), model)


def test_threads_share_one_runtime():
    model = model_of(size=90)
    run = runtime(model)
    with ThreadPoolExecutor(8) as pool:
        labels = list(pool.map(run, np.repeat(ROWS, 5, axis=0)))
    np.testing.assert_array_equal(labels, np.repeat(model.predict(ROWS), 5))


@pytest.mark.parametrize("layout", ["words", "regression", "novelty"])
def test_a_json_file_runs_without_scikit_learn(layout, tmp_path):
    model = model_of(scaler="clipped", layout=layout)
    export(model, tmp_path / "m.json")
    code = f"""
    import sys
    for name in ("sklearn", "scipy", "joblib", "threadpoolctl"):
        sys.modules[name] = None
    import slimsvm
    print(slimsvm.runtime({str(tmp_path / "m.json")!r})({ROWS[0].tolist()}))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    found, expected = done.stdout.strip(), model.predict(ROWS[:1])[0]
    assert found == str(expected) if layout != "regression" else float(found) == pytest.approx(expected, rel=1e-9)


def test_a_kernel_that_does_not_run_is_named():
    X = np.random.default_rng(0).random((20, 3))
    model = SlimSVC(kernel="precomputed").fit(X @ X.T, np.arange(20) % 2)
    with pytest.raises(ValueError, match="no 'precomputed' kernel"):
        runtime(model)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "format"),
        ("{}", "format"),
        ("{", "cannot read"),
        ('{"format": "slimsvm", "version": 99}', "version 99"),
        ('{"format": "slimsvm", "version": 1}', "kernel"),
    ],
)
def test_strange_json_is_refused(text, words, tmp_path):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_json(tmp_path / "m.json")


def test_json_that_does_not_fit_together_is_refused(tmp_path):
    export(model_of(), tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    (tmp_path / "m.json").write_text(text.replace('"bias": [', '"bias": [1, '))
    with pytest.raises(ValueError, match="do not fit together"):
        read_json(tmp_path / "m.json")


def test_the_package_names_what_it_has():
    assert set(slimsvm.__all__) == set(dir(slimsvm))
    with pytest.raises(AttributeError, match="no attribute 'shrink'"):
        slimsvm.shrink  # noqa: B018


# Other ways to keep an estimator.


def small_model():
    X, y = load_iris(return_X_y=True)
    return make_pipeline(StandardScaler(), SlimSVC(9, reducer=Slant(eta=0.5), random_state=0)).fit(X, y), X


def test_estimators_pickle():
    model, X = small_model()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
