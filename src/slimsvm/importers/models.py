"""Fitted models of other libraries. A new kind is two functions and a line in `IMPORTERS`.

The kernel SVMs of scikit-learn and its relatives, KernelRidge and GaussianProcessRegressor; every training row of the last
two is a point. SVMs of other libraries that have the attributes of scikit-learn's (such as cuML's) may differ from it in
details, so their expansion is compared with their own predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product, Sum, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, pairwise_kernels
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from ..calibration import Calibration
from ..goals import Goal, Novelty, OneVsOne, Regression
from ..kernels import KERNELS, Array, Chi2, Kernel, Laplacian, Matrix, make_kernel
from ..model import Expansion
from ..pairs import PairCoefficients
from ..text import short

KINDS = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
#: the warning for a model with probabilities
UNCALIBRATED = (
    "probability=True is not kept, and the small model has no predict_proba; give compress calibration='sigmoid', and rows "
    "that the model was not trained on, for honest probabilities"
)


def is_svm(model: Any) -> bool:
    """Return whether this is an SVM of scikit-learn."""
    return isinstance(model, KINDS)


def import_svm(svm: Any) -> Imported:
    """Return the expansion inside a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM."""
    check_is_fitted(svm)
    kernel = _kernel(svm)
    coef, bias = _columns(svm)
    params = {"kernel": svm.kernel, "degree": svm.degree, "coef0": svm.coef0, "tol": svm.tol}
    params["gamma"] = float(svm._gamma) or "scale"
    if isinstance(kernel, Laplacian | Chi2):
        params |= {"kernel": kernel.name, "gamma": kernel.gamma}
    model = Expansion(kernel, _expansion_points(svm), coef, bias)
    lost = (UNCALIBRATED,) if svm.probability is True and hasattr(svm, "classes_") else ()
    classes = svm.classes_ if isinstance(svm, SVC | NuSVC) else NO_CLASSES
    return Imported(model, _goal_of(svm), classes, svm.shape_fit_[1], params | _costs(svm), lost)


def _goal_of(svm: Any) -> Goal:
    if isinstance(svm, OneClassSVM):
        return Novelty(nu=float(svm.nu))
    if isinstance(svm, SVR | NuSVR):
        return Regression(_epsilon(svm))
    return OneVsOne(svm.classes_.size, break_ties=svm.break_ties)


def _costs(svm: Any) -> dict[str, Any]:
    if isinstance(svm, OneClassSVM):
        return {"nu": float(svm.nu)}
    if isinstance(svm, SVR | NuSVR):
        return {"C": svm.C, "epsilon": _epsilon(svm)}
    # a NuSVC has a C of 0
    settings = {name: getattr(svm, name) for name in ("class_weight", "break_ties", "decision_function_shape")}
    return {"C": svm.C or 1.0} | settings


def _epsilon(svr: Any) -> float:
    """Return the radius of the tube; a NuSVR finds it in training and does not store it."""
    return float(svr.epsilon) if isinstance(svr, SVR) else 0.0


def _kernel(svm: Any) -> Kernel:
    if svm.kernel is laplacian_kernel:
        return Laplacian(1.0 / svm.shape_fit_[1])
    if svm.kernel is chi2_kernel:
        return Chi2(1.0)
    return make_kernel(svm.kernel, gamma=svm._gamma, degree=svm.degree, coef0=svm.coef0)


def _expansion_points(svm: Any) -> Matrix:
    if callable(svm.kernel):  # scikit-learn keeps the rows for such a kernel under a private name
        return svm._BaseLibSVM__Xfit[svm.support_]
    if svm.kernel == "precomputed":
        return svm.support_[:, None]
    return csr_array(svm.support_vectors_) if issparse(svm.support_vectors_) else svm.support_vectors_


def _columns(svm: Any) -> tuple[Any, Array]:
    """Return coefficients (m, q) and bias (q,) of every pair of classes, or of the one output.

    An SVC keeps LIBSVM's layout; for two classes that is one column, positive for class 1.
    """
    dual = svm.dual_coef_.toarray() if issparse(svm.dual_coef_) else np.asarray(svm.dual_coef_)
    coef, bias = dual.T.copy(), np.array(svm.intercept_, dtype=np.float64)
    return (PairCoefficients(coef, np.asarray(svm.n_support_)) if bias.size > 1 else coef), bias


#: for models whose predictions are values
NO_CLASSES = np.empty(0)


@dataclass(frozen=True)
class Imported:
    """A fitted model of another library: the function, its classes and its parameters."""

    model: Expansion
    goal: Goal
    classes: Array  # empty if predictions are values
    n_features: int
    params: dict[str, Any]  # of the estimator of this goal: SlimSVC, SlimSVR or SlimOneClassSVM
    lost: tuple[str, ...] = ()  # sentences: what a small model cannot keep, and what to do instead
    calibration: Calibration | None = None  # from scores to probabilities
    squared: bool = False  # whether C = params["C"] belongs to squared errors; otherwise to absolute ones, as SVR's does


#: attributes of such a model; the name of its class ends in one of LOOKALIKES
ATTRIBUTES = ("support_vectors_", "dual_coef_", "intercept_", "kernel", "gamma", "degree", "coef0", "predict")
LOOKALIKES = ("SVC", "SVR", "OneClassSVM")
#: support vectors for which predictions are compared
COMPARED = 100
#: the largest difference of predictions: these libraries compute in float32
AGREEMENT = 1e-3


def is_lookalike(model: Any) -> bool:
    """Return whether this has the attributes of an SVM."""
    name = type(model).__name__
    wanted = (*ATTRIBUTES, "classes_") if name.endswith("SVC") else ATTRIBUTES
    return (
        name.endswith(LOOKALIKES) and not isinstance(model, type) and all(hasattr(model, attribute) for attribute in wanted)
    )


def import_lookalike(svm: Any) -> Imported:
    """Return the expansion of an SVM's attributes; raise ValueError if it does not agree with its predictions."""
    name = type(svm).__name__
    if svm.support_vectors_ is None or svm.dual_coef_ is None:
        raise ValueError(
            f"this {name} has no support vectors of its own: it is not fitted, or it holds one model for each pair of "
            "classes. Train a SlimSVC, or shrink two-class models"
        )
    points, dual = _rows(svm.support_vectors_), np.atleast_2d(_host(svm.dual_coef_)).astype(np.float64)
    bias = np.ravel(_host(svm.intercept_)).astype(np.float64)
    goal, classes = _goal(svm, name)
    params = _parameters(svm, points.shape[1])
    kernel = make_kernel(params["kernel"], gamma=params["gamma"], degree=params["degree"], coef0=params["coef0"])
    params |= _goal_parameters(svm, goal)
    source = Imported(Expansion(kernel, points, dual.T.copy(), bias), goal, classes, points.shape[1], params)
    if dual.shape[0] == 1 and _agrees(source, svm):
        return source
    raise ValueError(
        f"cannot read this {name} of {type(svm).__module__.partition('.')[0]}: its attributes do not give the predictions "
        "that it makes itself. Save it as a LIBSVM file, if it can do that, and load that file"
    )


def _goal(svm: Any, name: str) -> tuple[Goal, Array]:
    if name.endswith("OneClassSVM"):
        return Novelty(nu=float(svm.nu)), NO_CLASSES
    if name.endswith("SVR"):
        return Regression(float(getattr(svm, "epsilon", 0.0) or 0.0)), NO_CLASSES
    classes = np.asarray(_host(svm.classes_))
    return OneVsOne(classes.size, break_ties=bool(getattr(svm, "break_ties", False))), classes


def _parameters(svm: Any, n_features: int) -> dict[str, Any]:
    """Return the kernel and its parameters; `_gamma` is the number that "scale" or "auto" became."""
    gamma = getattr(svm, "_gamma", None)
    if gamma is None:
        gamma = svm.gamma
    if isinstance(gamma, str):
        if gamma != "auto":
            raise ValueError(f"this model does not say which number gamma={gamma!r} became; fit it with a number")
        gamma = 1.0 / n_features
    return {"kernel": svm.kernel, "gamma": float(gamma), "degree": int(svm.degree), "coef0": float(svm.coef0)}


def _goal_parameters(svm: Any, goal: Goal) -> dict[str, Any]:
    if isinstance(goal, Novelty):
        return {"nu": goal.nu}
    C = {"C": float(getattr(svm, "C", 1.0) or 1.0)}
    if isinstance(goal, Regression):
        return C | {"epsilon": goal.epsilon}
    return C | {"class_weight": getattr(svm, "class_weight", None) or None}


def _agrees(source: Imported, svm: Any) -> bool:
    """Return whether the function gives the model's own predictions for some of its support vectors."""
    rows = source.model.points[:COMPARED]
    outputs = source.model(rows)
    theirs = np.ravel(_host(svm.predict(rows)))
    if not source.goal.real:
        return bool(np.mean(source.classes[source.goal.decode(outputs)] == theirs) >= 1 - 2 / COMPARED)
    ours = source.goal.decode(outputs)
    if isinstance(source.goal, Novelty):  # some support vectors lie on the boundary
        clear = np.abs(outputs.ravel()) > AGREEMENT * np.abs(outputs).max()
        return bool((ours[clear] == theirs[clear]).all())
    return bool(np.abs(ours - theirs).max(initial=0.0) <= AGREEMENT * max(float(np.abs(theirs).max(initial=0.0)), 1e-300))


def _host(values: Any) -> Any:
    """Return an array in host memory, also from a GPU."""
    if hasattr(values, "to_numpy"):  # a data frame's column
        return values.to_numpy()
    return values.get() if hasattr(values, "get") else np.asarray(values)


def _rows(values: Any) -> Matrix:
    rows = values if issparse(values) else _host(values)
    return csr_array(rows) if issparse(rows) else np.asarray(rows, dtype=np.float64)


#: the C for alpha = 0, no regularisation
LARGEST_C = 1e12


def is_kernel_ridge(model: Any) -> bool:
    """Return whether this is a KernelRidge."""
    return isinstance(model, KernelRidge)


def import_kernel_ridge(ridge: Any) -> Imported:
    """Return the expansion inside a fitted KernelRidge.

    KernelRidge minimises sum_i (y_i - f(x_i))^2 + alpha |f|^2, which is slim's loss for C = 1 / alpha and no tube.
    """
    check_is_fitted(ridge)
    dual = np.asarray(ridge.dual_coef_, dtype=np.float64).reshape(ridge.X_fit_.shape[0], -1)
    n_features = ridge.X_fit_.shape[1]
    params = {"kernel": _name(ridge), "gamma": 1.0 / n_features if ridge.gamma is None else float(ridge.gamma)}
    params |= {"degree": _degree(ridge), "coef0": float(ridge.coef0)}
    kernel = make_kernel(params["kernel"], gamma=params["gamma"], degree=params["degree"], coef0=params["coef0"])
    alpha = float(np.max(ridge.alpha))
    params |= {"C": 1.0 / alpha if alpha * LARGEST_C > 1 else LARGEST_C, "epsilon": 0.0}
    model = Expansion(kernel, _points(ridge), dual, np.zeros(dual.shape[1]))
    return Imported(model, Regression(outputs=dual.shape[1]), NO_CLASSES, n_features, params, squared=True)


def _name(ridge: Any) -> Any:
    if callable(ridge.kernel):  # a function of two rows
        return partial(pairwise_kernels, metric=ridge.kernel, **(ridge.kernel_params or {}))
    name = {"polynomial": "poly"}.get(ridge.kernel, ridge.kernel)
    if name not in KERNELS:
        raise ValueError(f"cannot shrink a KernelRidge with kernel={ridge.kernel!r}; the kernels are {sorted(KERNELS)}")
    return name


def _degree(ridge: Any) -> int:
    """Return the degree, which must be a whole number for polynomial kernels."""
    if ridge.kernel in ("poly", "polynomial") and (ridge.degree != int(ridge.degree) or ridge.degree < 1):
        raise ValueError(
            f"cannot shrink a KernelRidge with degree={ridge.degree!r}; polynomial kernels here have a whole degree of at "
            "least 1"
        )
    return int(ridge.degree)


def _points(ridge: Any) -> Matrix:
    if ridge.kernel == "precomputed":
        return np.arange(ridge.X_fit_.shape[0])[:, None]
    return csr_array(ridge.X_fit_) if issparse(ridge.X_fit_) else ridge.X_fit_


def is_gaussian_process(model: Any) -> bool:
    """Return whether this is a GaussianProcessRegressor."""
    return isinstance(model, GaussianProcessRegressor)


def import_gaussian_process(process: Any) -> Imported:
    """Return the expansion of the mean of a fitted GaussianProcessRegressor; normalize_y is folded in.

    The mean is the f that minimises sum_i (y_i - f(x_i))^2 / alpha + |f|^2. The small model has no standard deviations.
    """
    check_is_fitted(process, "alpha_")
    dual = np.asarray(process.alpha_, dtype=np.float64).reshape(process.X_train_.shape[0], -1)
    amplitude, length, noise = _parts(process.kernel_)
    rows = np.asarray(process.X_train_, dtype=np.float64)
    gamma = 0.5 / length**2
    # |f|^2 with the kernel amplitude * k is |f|^2 with k, divided by the amplitude
    C = amplitude / max(float(np.mean(process.alpha)) + noise, 1e-12)
    params = {"kernel": "rbf", "gamma": gamma, "C": C, "epsilon": 0.0}
    of_targets = process._y_train_std, process._y_train_mean
    deviation, mean = (np.broadcast_to(np.ravel(part), dual.shape[1:]) for part in of_targets)
    kernel = make_kernel("rbf", gamma=gamma, degree=1, coef0=0.0)
    model = Expansion(kernel, rows, dual * amplitude * deviation, mean.astype(np.float64))
    return Imported(model, Regression(outputs=dual.shape[1]), NO_CLASSES, rows.shape[1], params, squared=True)


def _parts(kernel: Any) -> tuple[float, float, float]:
    """Return the amplitude, the length scale and the white noise of amplitude * RBF(length) + noise."""
    if isinstance(kernel, Sum):
        for white, rest in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(white, WhiteKernel):
                amplitude, length, noise = _parts(rest)
                return amplitude, length, noise + float(white.noise_level)
    if isinstance(kernel, Product):
        for constant, rest in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel) and not isinstance(rest, Sum):
                amplitude, length, noise = _parts(rest)
                return amplitude * float(constant.constant_value), length, noise
    if type(kernel) is RBF and np.size(kernel.length_scale) == 1:  # a Matern kernel is a subclass
        return 1.0, float(np.ravel(kernel.length_scale)[0]), 0.0
    raise ValueError(
        f"cannot shrink a GaussianProcessRegressor with the kernel {short(kernel)}; the kernels are RBF with one length "
        "scale, ConstantKernel * RBF, and either of them + WhiteKernel. For a length scale of each feature, divide the "
        "features by them and fit again"
    )


def is_several(model: Any) -> bool:
    """Return whether this is a MultiOutputRegressor."""
    return isinstance(model, MultiOutputRegressor)


def import_several(model: Any) -> Imported:
    """Return the expansion of several targets inside a MultiOutputRegressor: the points of all its regressors."""
    check_is_fitted(model)
    parts = [import_model(estimator) for estimator in model.estimators_]
    first, kernels = parts[0], [part.model.kernel for part in parts]
    if any(part.goal.n_classes or part.squared != first.squared for part in parts) or kernels != kernels[:1] * len(parts):
        raise ValueError(
            "cannot join the regressors of a MultiOutputRegressor whose kernels differ, "
            f"{', '.join(sorted({repr(kernel) for kernel in kernels}))}; fit them with one gamma, or shrink each of them"
        )
    stacked: Any = [part.model.points for part in parts]
    if any(map(issparse, stacked)):
        points = sparse_vstack(stacked, format="csr")
        place = np.arange(points.shape[0])
    else:  # a row that several of them have is one point
        points, place = np.unique(np.vstack(stacked), axis=0, return_inverse=True)
    coef, begin = np.zeros((points.shape[0], len(parts))), 0
    for column, part in enumerate(parts):
        np.add.at(coef[:, column], place.ravel()[begin : begin + part.model.size], part.model.coef[:, 0])
        begin += part.model.size
    bias = np.concatenate([part.model.bias for part in parts])
    costs = {"C": float(np.mean([part.params["C"] for part in parts]))}
    goal = Regression(float(first.params["epsilon"]), outputs=len(parts))
    joined = replace(first.model, points=points, coef=coef, bias=bias)
    return replace(first, model=joined, goal=goal, params=first.params | costs)


#: description -> (whether a model is of this kind, its importer); the first that matches is used
IMPORTERS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Imported]]] = {
    "an SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn": (is_svm, import_svm),
    "a KernelRidge": (is_kernel_ridge, import_kernel_ridge),
    "a GaussianProcessRegressor": (is_gaussian_process, import_gaussian_process),
    "a MultiOutputRegressor of them": (is_several, import_several),
    "an SVM with the attributes of scikit-learn's": (is_lookalike, import_lookalike),
}


def is_known(model: Any) -> bool:
    """Return whether there is an importer for a model."""
    return any(known(model) for known, _ in IMPORTERS.values())


def import_model(model: Any) -> Imported:
    """Return the expansion inside a fitted kernel machine of another library."""
    for known, read in IMPORTERS.values():
        if known(model):
            return read(model)
    raise ValueError(
        f"cannot shrink a {type(model).__name__}; give a fitted SlimSVC, SlimSVR or SlimOneClassSVM, "
        f"{', '.join(IMPORTERS)}, or a Pipeline, search or TransformedTargetRegressor around one of them. "
        "slimsvm.distill makes a small model of any other classifier or regressor"
    )
