"""scikit-learn's kernel SVMs as expansions; scikit-learn-intelex's inherit from them.

Only this file knows its signs and its one-against-one layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from ..goals import Goal, Novelty, OneVsOne, Regression
from ..kernels import Array, Chi2, Kernel, Laplacian, Matrix, make_kernel
from ..model import Expansion
from ..pairs import PairCoefficients
from .imported import NO_CLASSES, Imported

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
    model = Expansion(kernel, _points(svm), coef, bias)
    lost = (UNCALIBRATED,) if svm.probability is True and hasattr(svm, "classes_") else ()
    classes = svm.classes_ if isinstance(svm, SVC | NuSVC) else NO_CLASSES
    return Imported(model, _goal(svm), classes, svm.shape_fit_[1], params | _costs(svm), lost)


def _goal(svm: Any) -> Goal:
    if isinstance(svm, OneClassSVM):
        return Novelty(nu=float(svm.nu))
    if isinstance(svm, SVR | NuSVR):
        return Regression(_epsilon(svm))
    return OneVsOne(svm.classes_.size, break_ties=svm.break_ties)


def _costs(svm: Any) -> dict[str, Any]:
    """Return the parameters that only some of the estimators have."""
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


def _points(svm: Any) -> Matrix:
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
