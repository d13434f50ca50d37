"""scikit-learn's kernel SVMs as expansions. Its signs and its one-against-one layout are known here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from ..goals import Goal, OneVsOne
from ..kernels import Array, Chi2, Kernel, Laplacian, Matrix, make_kernel
from ..model import Expansion
from .pairs import pair_columns


@dataclass(frozen=True)
class Imported:
    """A fitted model from elsewhere: the function, its classes, and the parameters it was made with."""

    model: Expansion
    goal: Goal
    classes: Array
    n_features: int
    params: dict[str, Any]


def import_svc(svc: Any) -> Imported:
    """The expansion inside a fitted SVC or NuSVC."""
    if not isinstance(svc, SVC | NuSVC):
        raise ValueError(
            f"cannot shrink a {type(svc).__name__}; give a fitted sklearn.svm.SVC or NuSVC, a SlimSVC, or a Pipeline "
            "that ends in one"
        )
    check_is_fitted(svc)
    kernel = _kernel(svc)
    coef, bias = _columns(svc)
    params = {"kernel": svc.kernel, "degree": svc.degree, "coef0": svc.coef0, "gamma": float(svc._gamma) or "scale"}
    # a NuSVC has a C of 0
    params |= {"C": svc.C or 1.0, "class_weight": svc.class_weight, "tol": svc.tol}
    params |= {"break_ties": svc.break_ties, "decision_function_shape": svc.decision_function_shape}
    if isinstance(kernel, Laplacian | Chi2):
        params |= {"kernel": kernel.name, "gamma": kernel.gamma}
    model = Expansion(kernel, _points(svc), coef, bias)
    goal = OneVsOne(svc.classes_.size, break_ties=svc.break_ties)
    return Imported(model, goal, svc.classes_, svc.shape_fit_[1], params)


def _kernel(svc: Any) -> Kernel:
    if svc.kernel is laplacian_kernel:
        return Laplacian(1.0 / svc.shape_fit_[1])
    if svc.kernel is chi2_kernel:
        return Chi2(1.0)
    return make_kernel(svc.kernel, gamma=svc._gamma, degree=svc.degree, coef0=svc.coef0)


def _points(svc: Any) -> Matrix:
    if callable(svc.kernel):  # SVC keeps the rows for such a kernel under a private name
        return svc._BaseLibSVM__Xfit[svc.support_]
    if svc.kernel == "precomputed":
        return svc.support_[:, None]
    return csr_array(svc.support_vectors_) if issparse(svc.support_vectors_) else svc.support_vectors_


def _columns(svc: Any) -> tuple[Array, Array]:
    """Coefficients (m, q) and bias (q,) of every pair of classes.

    SVC keeps LIBSVM's layout; for two classes that is one column, positive for class 1.
    """
    dual = svc.dual_coef_.toarray() if issparse(svc.dual_coef_) else np.asarray(svc.dual_coef_)
    return pair_columns(dual, svc.n_support_), np.array(svc.intercept_, dtype=np.float64)
