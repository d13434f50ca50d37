"""Importers: the function inside a fitted model gives the model's own predictions."""

import io
import os
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, SVR, NuSVR, OneClassSVM

from slimsvm import SlimOneClassSVM, SlimSVR
from slimsvm.estimators import imported, machine_of
from slimsvm.files.models import load, read_libsvm
from slimsvm.importers.models import IMPORTERS, KINDS, import_model
from slimsvm.pairs import PairCoefficients
from slimsvm.ship.source import artefact_of

X, Y = load_diabetes(return_X_y=True)
X, Y = MinMaxScaler().fit_transform(X)[:150], Y[:150]
NEW = X[::3] * 0.9 + 0.05


def own_kernel(A, B):
    return rbf_kernel(A, B, gamma=0.3) + 0.1


def of_two_rows(a, b, scale=1.0):
    return float(np.exp(-scale * np.abs(a - b).sum()))


KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": "scale"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.1, "coef0": 0.1},
    "laplacian": {"kernel": laplacian_kernel},
    "chi2": {"kernel": chi2_kernel},
    "callable": {"kernel": own_kernel},
    "precomputed": {"kernel": "precomputed"},
}
REAL = {"SVR": SVR(C=100.0, epsilon=5.0), "NuSVR": NuSVR(C=100.0), "OneClassSVM": OneClassSVM(nu=0.2)}


# scikit-learn's SVMs


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_svms_of_scikit_learn(kind, kernel, sparse):
    if sparse and kernel in ("chi2", "precomputed"):
        pytest.skip("scikit-learn takes dense rows only")
    rows, new = (own_kernel(X, X), own_kernel(NEW, X)) if kernel == "precomputed" else (X, NEW)
    rows = csr_array(rows) if sparse else rows
    model = type(REAL[kind])(**(REAL[kind].get_params() | KERNELS[kernel])).fit(rows, Y)
    ours = machine_of(import_model(model))
    assert type(ours) is (SlimOneClassSVM if kind == "OneClassSVM" else SlimSVR)
    assert ours.n_features_in_ == rows.shape[1]
    scores = model.decision_function if kind == "OneClassSVM" else model.predict
    np.testing.assert_allclose(ours.model_(new).ravel(), scores(csr_array(new) if sparse else new), rtol=1e-8, atol=1e-8)
    if kind == "OneClassSVM":
        np.testing.assert_allclose(ours.offset_, model.offset_)
        assert ours.nu == 0.2
    else:
        assert (ours.C, ours.epsilon) == (100.0, 5.0 if kind == "SVR" else 0.0)


def test_many_classes_are_not_written_out():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(120, 3)), np.arange(120) % 40
    model = SVC().fit(rows, labels)
    source = import_model(model)
    assert isinstance(source.model.coef, PairCoefficients)
    np.testing.assert_array_equal(machine_of(source).predict(rows), model.predict(rows))


@pytest.mark.parametrize("model", [SVC(), NuSVR(), OneClassSVM(), KernelRidge(), GaussianProcessRegressor()], ids=str)
def test_a_model_that_is_not_fitted_is_refused(model):
    with pytest.raises(NotFittedError):
        import_model(model)


def test_every_kind_is_in_the_table_and_others_are_refused_with_what_there_is():
    with pytest.raises(ValueError, match="cannot shrink a dict") as caught:
        import_model({})
    assert all(words in str(caught.value) for words in IMPORTERS)
    assert {kind.__name__ for kind in KINDS} == {"SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"}


@pytest.mark.parametrize("kind", ["SVC", "NuSVC", "SVR", "NuSVR"])
def test_the_svms_of_scikit_learn_intelex(kind):
    patched = getattr(pytest.importorskip("sklearnex.svm"), kind)()
    rows, labels = load_iris(return_X_y=True)
    model = patched.fit(rows, labels if kind.endswith("SVC") else labels.astype(float))
    np.testing.assert_allclose(machine_of(import_model(model)).predict(rows), model.predict(rows), atol=1e-4)


# KernelRidge


RIDGES = {
    "linear": KernelRidge(),
    "rbf": KernelRidge(kernel="rbf"),
    "rbf with gamma": KernelRidge(kernel="rbf", gamma=2.0, alpha=0.1),
    "laplacian": KernelRidge(kernel="laplacian"),
    "poly": KernelRidge(kernel="poly", degree=2),
    "polynomial": KernelRidge(kernel="polynomial", degree=2.0, coef0=2),
    "sigmoid": KernelRidge(kernel="sigmoid", gamma=0.01),
    "chi2": KernelRidge(kernel="chi2", gamma=0.5),
    "callable": KernelRidge(kernel=of_two_rows, kernel_params={"scale": 0.5}),
    "precomputed": KernelRidge(kernel="precomputed"),
    "sparse": KernelRidge(kernel="rbf"),
    "a column of targets": KernelRidge(kernel="rbf"),
}


@pytest.mark.parametrize("name", RIDGES)
def test_kernel_ridge(name):
    rows, new = (own_kernel(X, X), own_kernel(NEW, X)) if name == "precomputed" else (X, NEW)
    targets = Y[:, None] if name == "a column of targets" else Y
    model = RIDGES[name].fit(csr_array(rows) if name == "sparse" else rows, targets)
    ours = machine_of(import_model(model))
    np.testing.assert_allclose(ours.predict(new), model.predict(new).ravel(), rtol=1e-7)
    np.testing.assert_allclose(ours.C, 1 / model.alpha)
    assert ours.epsilon == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelRidge(kernel="cosine"), r"kernel='cosine'; the kernels are \['chi2', 'laplacian', 'linear'"),
        (KernelRidge(kernel="poly", degree=2.5), "degree=2.5"),
    ],
    ids=["cosine", "broken degree"],
)
def test_a_kernel_ridge_that_we_cannot_compute_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        import_model(model.fit(X, Y))


def test_no_regularisation_is_a_large_c():
    assert import_model(KernelRidge(kernel="rbf", alpha=1e-14).fit(X, Y)).params["C"] == 1e12


# GaussianProcessRegressor


PROCESSES = {
    "default": None,
    "rbf": RBF(0.7),
    "constant * rbf": ConstantKernel(4.0) * RBF(0.5),
    "rbf * constant": RBF(0.5) * ConstantKernel(4.0),
    "number * rbf": 3.0 * RBF(0.5),
    "with noise": 4.0 * RBF(0.5) + WhiteKernel(0.3),
    "noise first": WhiteKernel(0.3) + 2.0 * (3.0 * RBF([0.5])),
}


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("normalize", [False, True], ids=["as it is", "normalize_y"])
def test_the_mean_of_a_gaussian_process(name, normalize):
    model = GaussianProcessRegressor(PROCESSES[name], alpha=0.1, normalize_y=normalize, optimizer=None).fit(X, Y)
    ours = machine_of(import_model(model))
    np.testing.assert_allclose(ours.predict(NEW), model.predict(NEW), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [Matern(), RBF(np.full(10, 0.5)), RBF() + RBF(2.0), 2.0 * (RBF() + WhiteKernel()), RBF() ** 2.0],
    ids=["Matern", "a length for each feature", "sum", "noise in a product", "power"],
)
def test_other_covariances_are_refused_with_those_that_work(kernel):
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X, Y)
    with pytest.raises(ValueError, match=r"the kernels are RBF with one length scale, ConstantKernel \* RBF"):
        import_model(model)


@pytest.mark.parametrize(
    "model", [*REAL.values(), RIDGES["rbf"], GaussianProcessRegressor(alpha=0.1, optimizer=None)], ids=str
)
def test_what_is_imported_can_be_shipped(model):
    artefact, source = artefact_of(model.fit(X, Y)), import_model(model)
    assert artefact.goal == source.goal
    np.testing.assert_array_equal(artefact.coef, source.model.coef)
    np.testing.assert_array_equal(artefact.points, source.model.points)


# cuML: stand-ins with its attributes, made of scikit-learn's models


class OnDevice:
    """An array on a GPU: it comes to the host by get()."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float32)

    def get(self):
        return self.values


def stand_in(kind, model, **attributes):
    """A class of another library with the attributes of a scikit-learn model."""
    names = ("kernel", "gamma", "degree", "coef0", "C", "nu", "epsilon", "class_weight", "_gamma", "predict")
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    found |= {name: getattr(model, name) for name in ("support_vectors_", "dual_coef_", "intercept_", "n_support_")}
    stranger = type(kind, (), {})()
    vars(stranger).update(found | attributes)
    return stranger


def test_a_model_of_cuml():
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[labels > 0], labels[labels > 0]
    model = SVC(class_weight="balanced").fit(rows, labels)
    arrays = {name: OnDevice(getattr(model, name)) for name in ("support_vectors_", "dual_coef_", "classes_")}
    stranger = stand_in("SVC", model, **arrays, intercept_=OnDevice(model.intercept_[0]), n_support_=model.support_.size)
    ours = machine_of(import_model(stranger))
    np.testing.assert_allclose(ours.decision_function(rows), model.decision_function(rows), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(rows), model.predict(rows))
    assert (ours.C, ours.class_weight) == (1.0, "balanced")


@pytest.mark.parametrize("kind", ["SVR", "NuSVR", "OneClassSVM"])
def test_regressors_and_detectors_with_the_attributes_of_scikit_learns(kind):
    model = REAL[kind].fit(csr_array(X), Y)
    ours = machine_of(import_model(stand_in(kind, model, dual_coef_=model.dual_coef_.toarray())))
    np.testing.assert_allclose(ours.predict(NEW), model.predict(csr_array(NEW)), rtol=1e-8)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"support_vectors_": None}, "no support vectors of its own"),
        ({"dual_coef_": np.ones((1, 150))}, "do not give the predictions that it makes itself"),
        ({"_gamma": None, "gamma": "scale"}, "which number gamma='scale' became"),
    ],
    ids=["one model for each pair", "another function", "unknown gamma"],
)
def test_a_lookalike_that_cannot_be_read_is_refused(changes, words):
    model = SVR(C=100.0, epsilon=0.0).fit(X, Y)
    assert model.dual_coef_.shape == (1, 150)
    with pytest.raises(ValueError, match=words):
        import_model(stand_in("SVR", model, **changes))


def test_what_only_has_the_name_is_refused():
    with pytest.raises(ValueError, match="cannot shrink a SimpleNamespace"):
        import_model(SimpleNamespace(support_vectors_=X))


# LIBSVM files of one output


def written(model, kind):
    """A LIBSVM file of a fitted scikit-learn model with one output."""
    lines = [f"svm_type {kind}", "kernel_type rbf", f"gamma {float(model._gamma)!r}", "nr_class 2"]
    lines += [f"total_sv {model.support_.size}", f"rho {-float(model.intercept_[0])!r}", "SV"]
    for coef, row in zip(model.dual_coef_.ravel(), model.support_vectors_, strict=True):
        lines.append(f"{float(coef)!r} " + " ".join(f"{f}:{float(v)!r}" for f, v in enumerate(row, 1) if v))
    return "\n".join(lines) + "\n"


FILES = {"epsilon_svr": REAL["SVR"], "nu_svr": REAL["NuSVR"], "one_class": REAL["OneClassSVM"]}


@pytest.mark.parametrize("kind", FILES)
def test_libsvm_files_of_regressors_and_novelty_detectors(kind, tmp_path):
    model = FILES[kind].fit(X, Y)
    (tmp_path / "m").write_text(written(model, kind).replace("\nSV\n", "\nprobA 5.7\nSV\n"))
    for ours in (load(tmp_path / "m"), read_libsvm(io.StringIO(written(model, kind)))):
        np.testing.assert_allclose(ours.predict(NEW), model.predict(NEW), rtol=1e-10)
        assert type(ours) is (SlimOneClassSVM if kind == "one_class" else SlimSVR)
        assert imported(ours).model is ours.model_
    if kind != "one_class":
        assert np.abs(model.dual_coef_).max() == ours.C


CHANGES = {
    "a point is missing": ("total_sv 2", "total_sv 3", "total_sv"),
    "no total": ("total_sv 2\n", "", "total_sv"),
    "two rho": ("rho 1", "rho 1 2", "rho"),
    "coefficient of nan": ("\n2 1:1", "\nnan 1:1", "coefficients"),
    "no coefficient": ("\n2 1:1", "\n1:1", "coefficients"),
    "another type": ("epsilon_svr", "svdd", "svm_type 'svdd'; there are"),
    "gamma of 0": ("gamma 0.5", "gamma 0", "gamma"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_file_of_a_regressor_is_refused(name, tmp_path):
    good = "svm_type epsilon_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 1\nSV\n2 1:1 2:3\n-2 1:2\n"
    read_libsvm(io.StringIO(good))
    old, new, words = CHANGES[name]
    assert old in good
    (tmp_path / "m").write_text(good.replace(old, new))
    with pytest.raises(ValueError, match="as a LIBSVM model") as caught:
        load(tmp_path / "m")
    assert words in str(caught.value)
    assert os.fspath(tmp_path / "m") in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="cannot load the text"):
        read_libsvm(io.StringIO(good.replace(old, new)))
