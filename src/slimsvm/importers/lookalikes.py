"""SVMs of other libraries with the attributes of scikit-learn's, such as cuML's.

They may differ from scikit-learn in details, so the expansion is compared with the model's own predictions for its support
vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ..goals import Goal, Novelty, OneVsOne, Regression
from ..kernels import Array, Matrix, make_kernel
from ..model import Expansion
from .imported import NO_CLASSES, Imported

#: attributes of such a model; the name of its class ends in one of KINDS
ATTRIBUTES = ("support_vectors_", "dual_coef_", "intercept_", "kernel", "gamma", "degree", "coef0", "predict")
KINDS = ("SVC", "SVR", "OneClassSVM")
#: support vectors for which predictions are compared
COMPARED = 100
#: the largest difference of predictions: these libraries compute in float32
AGREEMENT = 1e-3


def is_lookalike(model: Any) -> bool:
    """Return whether this has the attributes of an SVM."""
    name = type(model).__name__
    wanted = (*ATTRIBUTES, "classes_") if name.endswith("SVC") else ATTRIBUTES
    return name.endswith(KINDS) and not isinstance(model, type) and all(hasattr(model, each) for each in wanted)


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
