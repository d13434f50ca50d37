"""LIBSVM's model files: what svm-train writes is read, what is written comes back exactly, svm-predict agrees."""

import subprocess

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from shipped import LAYOUTS, ROWS, model_of
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm import SlimSVC, compress, export
from slimsvm.files.models import read_libsvm
from slimsvm.goals import OneVsOne
from slimsvm.ship.libsvm import LIBSVM_KERNELS
from tools.targets import missing

needs_libsvm = pytest.mark.skipif(bool(missing("svm-train", "svm-predict")), reason="libsvm-tools are not installed")


def svm_train(folder, X, y, *options):
    dump_svmlight_file(X, y, str(folder / "rows"), zero_based=False)
    subprocess.run(["svm-train", "-q", *options, folder / "rows", folder / "trained.model"], check=True)
    return folder / "trained.model"


def svm_predict(folder, model, X):
    dump_svmlight_file(X, np.zeros(X.shape[0]), str(folder / "rows"), zero_based=False)
    command = ["svm-predict", folder / "rows", model, folder / "labels"]
    subprocess.run(command, check=True, capture_output=True)
    return np.loadtxt(folder / "labels")


@needs_libsvm
@pytest.mark.parametrize(("number", "kernel"), [(0, "linear"), (1, "poly"), (2, "rbf"), (3, "sigmoid")])
@pytest.mark.parametrize("order", [1, -1])
def test_what_svm_train_writes_predicts_as_svm_predict_does(number, kernel, order, tmp_path):
    """Labels come in the order of the data, which is not ours."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::order] / 8, 7 - y[::order]
    path = svm_train(tmp_path, X, y, "-t", str(number), "-g", "0.5", "-r", "0.1")
    model = slimsvm.load(path)
    assert isinstance(model, SlimSVC)
    assert model.model_.kernel.name == kernel
    np.testing.assert_array_equal(model.predict(X), svm_predict(tmp_path, path, X))


@needs_libsvm
@pytest.mark.parametrize("labels", [(1, -1), (-1, 1), (3, 9)])
def test_two_classes_in_either_order(labels, tmp_path):
    X, y = load_iris(return_X_y=True)
    y = np.where(y > 0, *labels)
    path = svm_train(tmp_path, X, y)
    model = slimsvm.load(path)
    np.testing.assert_array_equal(model.predict(X), svm_predict(tmp_path, path, X))
    svc = SVC(gamma=0.25).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=2e-3)


@needs_libsvm
@pytest.mark.parametrize("kind", ["budget", "full", "compressed", "svc"])
def test_svm_predict_gives_the_labels_of_python_on_digits(kind, tmp_path):
    X, y = load_digits(return_X_y=True)
    svc = SVC(C=10).fit(X[:600], y[:600])
    model = {
        "budget": lambda: SlimSVC(60, C=10, random_state=0).fit(X[:600], y[:600]),
        "full": lambda: compress(svc, X[:600], y[:600]),
        "compressed": lambda: compress(svc, X[:600], y[:600], budget=60, random_state=0),
        "svc": lambda: svc,
    }[kind]()
    (path,) = export(model, tmp_path / "digits.libsvm")
    np.testing.assert_array_equal(svm_predict(tmp_path, path, X), model.predict(X))


@needs_libsvm
def test_svm_scale_does_the_scaling(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), SlimSVC(12, random_state=0)).fit(X, y)
    path, ranges = export(model, tmp_path / "iris.libsvm")
    dump_svmlight_file(X, y, str(tmp_path / "raw"), zero_based=False)
    scaled = subprocess.run(["svm-scale", "-r", ranges, tmp_path / "raw"], check=True, capture_output=True)
    (tmp_path / "scaled").write_bytes(scaled.stdout)
    command = ["svm-predict", tmp_path / "scaled", path, tmp_path / "labels"]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "labels"), model.predict(X))


@pytest.mark.parametrize("kernel", LIBSVM_KERNELS)
@pytest.mark.parametrize("layout", ["two", "pairs", "votes"])
def test_pairs_of_classes_come_back_exactly(kernel, layout, tmp_path):
    model = model_of(kernel, layout)
    classes, _ = LAYOUTS[layout]
    loaded = slimsvm.load(export(model, tmp_path / "made.libsvm")[0])
    if kernel == "linear":  # written as its weights
        np.testing.assert_allclose(loaded.model_(ROWS), model.model_(ROWS), rtol=1e-9, atol=1e-12)
        return
    before, after = (np.argsort(m.model_.points[:, 0]) for m in (model, loaded))
    np.testing.assert_array_equal(loaded.support_vectors_[after], model.support_vectors_[before])
    np.testing.assert_array_equal(loaded.model_.coef[after], model.model_.coef[before])
    np.testing.assert_array_equal(loaded.intercept_, model.intercept_)
    np.testing.assert_array_equal(loaded.classes_, classes)
    assert loaded.goal_ == OneVsOne(classes.size)
    assert vars(loaded.model_.kernel) == vars(model.model_.kernel)


def test_shared_points_come_back_once_and_a_second_trip_changes_nothing(tmp_path):
    model = model_of(layout="rest")
    (first,) = export(model, tmp_path / "first.libsvm")
    loaded = slimsvm.load(first)
    assert loaded.support_vectors_.shape == model.support_vectors_.shape
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    (second,) = export(loaded, tmp_path / "second.libsvm")
    (third,) = export(slimsvm.load(second), tmp_path / "third.libsvm")
    assert sorted(second.read_text().splitlines()) == sorted(third.read_text().splitlines())


def test_sparse_points_stay_sparse_and_rows_may_be_wider(tmp_path):
    text = (
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\n"
        "SV\n1 3:1 \n-1 20:2 \n"
    )
    (tmp_path / "m").write_text(text)
    assert slimsvm.load(tmp_path / "m").n_features_in_ == 20
    model = read_libsvm(tmp_path / "m", 30)
    assert issparse(model.support_vectors_)
    row = np.zeros((1, 30))
    row[0, [2, 29]] = 1
    expected = np.exp(-0.5) - np.exp(-0.5 * (1 + 1 + 4)) - 0.25
    for rows in (row, csr_array(row)):
        np.testing.assert_allclose(model.decision_function(rows), [expected])
    with pytest.raises(ValueError, match="beyond the 5"):
        read_libsvm(tmp_path / "m", 5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("c_svc", "c_svr"), "c_svr"),
        (("kernel_type rbf", "kernel_type precomputed"), "precomputed"),
        (("nr_sv 1 1", "nr_sv 1 2"), "nr_sv"),
        (("label 1 -1\n", ""), "no 'label'"),
        (("rho 0.25", "rho 0.25 1"), "rho"),
        (("SV\n", "VS\n"), "no line SV"),
        (("3:1", "0:1"), "0:1"),
        (("3:1", "x:1"), "x:1"),
        (("3:1", "3:one"), "one"),
        (("rho 0.25", "rho a"), "a"),
    ],
)
def test_broken_files_are_told_from_good_ones(change, words, tmp_path):
    text = (
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\n"
        "SV\n1 3:1\n-1 20:2\n"
    )
    (tmp_path / "m").write_text(text.replace(*change))
    with pytest.raises(ValueError, match="as a LIBSVM model") as caught:
        slimsvm.load(tmp_path / "m")
    assert words in str(caught.value)
