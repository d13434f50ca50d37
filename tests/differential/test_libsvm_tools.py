"""LIBSVM's own tools on the same files: svm-train's models and svm-predict's answers are ours."""

import subprocess

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_iris, load_svmlight_file
from sklearn.preprocessing import minmax_scale

import slimsvm
from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from tools.targets import missing

pytestmark = pytest.mark.skipif(
    bool(missing("svm-train", "svm-predict")), reason="libsvm-tools are not installed (.ci/run says how)"
)

KERNELS = ["linear", "poly", "rbf", "sigmoid"]
#: kernel parameters, cost and tolerance, for both
SETTINGS = {"gamma": 0.25, "coef0": 0.5, "degree": 2, "tol": 1e-5}
OPTIONS = ["-g", "0.25", "-r", "0.5", "-d", "2", "-e", "1e-5"]


def libsvm(folder, X, y, *options):
    """Return what svm-predict answers on the rows that svm-train was given, and the model's file."""
    rows, model, answers = folder / "rows", folder / "model", folder / "answers"
    dump_svmlight_file(X, y, str(rows), zero_based=False)
    for command in (["svm-train", "-q", *OPTIONS, *options, rows, model], ["svm-predict", rows, model, answers]):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return np.loadtxt(answers), model


def ours(folder, estimator):
    """Return our answers for the same file, and the decision values where there are some."""
    X, y = load_svmlight_file(str(folder / "rows"))
    fitted = estimator.fit(X, y)
    return fitted.predict(X), fitted.decision_function(X) if hasattr(fitted, "decision_function") else None


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("data", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_classes_and_decision_values_are_libsvms(data, kernel, tmp_path):
    X, y = data(return_X_y=True)
    X = minmax_scale(X, (-1, 1))
    answers, model = libsvm(tmp_path, X, y, "-s", "0", "-t", str(KERNELS.index(kernel)), "-c", "2")
    labels, values = ours(tmp_path, SlimSVC(kernel=kernel, C=2, decision_function_shape="ovo", **SETTINGS))
    np.testing.assert_array_equal(labels.astype(float), answers)
    theirs = slimsvm.load(model).set_params(decision_function_shape="ovo").decision_function(X)
    np.testing.assert_allclose(values, theirs, atol=2e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_are_libsvms(kernel, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    X, y = minmax_scale(X, (-1, 1)), y / y.std()
    answers, _ = libsvm(tmp_path, X, y, "-s", "3", "-t", str(KERNELS.index(kernel)), "-c", "0.5", "-p", "0.1")
    values, _ = ours(tmp_path, SlimSVR(kernel=kernel, C=0.5, epsilon=0.1, **SETTINGS))
    np.testing.assert_allclose(values, answers, atol=2e-3)


@pytest.mark.parametrize("kernel", ["poly", "rbf"])
def test_novel_rows_are_libsvms(kernel, tmp_path):
    X = minmax_scale(load_iris().data, (-1, 1))
    answers, _ = libsvm(tmp_path, X, np.ones(len(X)), "-s", "2", "-t", str(KERNELS.index(kernel)), "-n", "0.2")
    novel, values = ours(tmp_path, SlimOneClassSVM(kernel=kernel, nu=0.2, **SETTINGS))
    clear = np.abs(values) > 1e-3  # support vectors lie on the boundary, on either side by rounding
    assert clear.mean() > 0.7
    np.testing.assert_array_equal(novel[clear], answers[clear])
