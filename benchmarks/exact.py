"""Compare the exact model with SVC and scikit-learn-intelex: optimum, seconds of fit and of prediction on all test rows."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.svm import SVC

from benchmarks.problems import Problem, problem
from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC
from slimsvm.rows.threads import thread_count


def intelex() -> Any:
    """Return scikit-learn-intelex's SVC, or None where it is not installed."""
    try:
        import sklearnex.svm
    except ImportError:
        return None
    return sklearnex.svm.SVC


def contenders(p: Problem) -> dict[str, Any]:
    """Return unfitted models with equal settings."""
    settings: dict[str, Any] = {"gamma": p.gamma, "C": p.C, "tol": 1e-3}
    models = {"slimsvm": SlimSVC(**settings), "svc": SVC(**settings, cache_size=2000)}
    if intelex() is not None:
        models["intelex"] = intelex()(**settings, cache_size=2000)
    return models


def dual_objective(p: Problem, X: Any, dual: np.ndarray) -> float:
    """Return sum a - 1/2 a'Qa of signed coefficients and their rows, with float64 kernel values."""
    X = X.toarray() if issparse(X) else np.asarray(X)
    norms = np.einsum("ij,ij->i", X, X)
    values = np.concatenate(
        [
            np.exp(-p.gamma * np.maximum(norms[part, None] + norms - 2 * X[part] @ X.T, 0)) @ dual
            for part in np.array_split(np.arange(X.shape[0]), 16)
        ]
    )
    return float(np.abs(dual).sum() - 0.5 * dual @ values)


def optimum(p: Problem, models: dict[str, Any]) -> None:
    """Compare objectives and decision values, also with an SVC solved to 1e-5, since SVC's own tol is 1e-3."""
    precise = SVC(gamma=p.gamma, C=p.C, tol=1e-5, cache_size=2000).fit(p.X, p.y)
    outputs = {name: model.decision_function(p.X_test) for name, model in (models | {"precise": precise}).items()}
    objectives = {}
    for name, model in {"slimsvm": models["slimsvm"], "svc": models["svc"]}.items():
        dual = model.dual_coef_.toarray() if issparse(model.dual_coef_) else model.dual_coef_
        objectives[name] = dual_objective(p, model.support_vectors_, dual.ravel())
    line(
        benchmark="optimum",
        data=p.name,
        objective_relative_difference=abs(objectives["slimsvm"] - objectives["svc"]) / abs(objectives["svc"]),
        target_below=1e-5,
        decision_difference_to_precise=float(np.abs(outputs["slimsvm"] - outputs["precise"]).max()),
        decision_difference_to_svc=float(np.abs(outputs["slimsvm"] - outputs["svc"]).max()),
        decision_difference_svc_to_precise=float(np.abs(outputs["svc"] - outputs["precise"]).max()),
        decision_target_below=2e-3,
    )


def compare(p: Problem, *, check_optimum: bool) -> None:
    """Print the lines of one problem."""
    models = contenders(p)
    repeats = {"slimsvm": 5, "svc": 2, "intelex": 2}
    repeats = {name: repeats[name] for name in models}
    fit, fitted = interleaved({name: partial(model.fit, p.X, p.y) for name, model in models.items()}, repeats)
    predict, _ = interleaved({name: partial(model.predict, p.X_test) for name, model in fitted.items()}, repeats)
    errors = {f"error_{k}": float(np.mean(m.predict(p.X_test) != p.y_test)) for k, m in fitted.items()}
    for what, seconds in (("training", fit), ("prediction", predict)):
        line(
            benchmark=what,
            data=p.name,
            threads=thread_count(),
            **{f"seconds_{k}": v for k, v in seconds.items()},
            **{f"times_faster_than_{k}": v / seconds["slimsvm"] for k, v in seconds.items() if k != "slimsvm"},
            **(errors | {"support_vectors": fitted["slimsvm"].model_.size} if what == "prediction" else {}),
        )
    if check_optimum:
        optimum(p, fitted)


def main() -> None:
    """Compare objectives on a8a and ijcnn1, and speed on these and letter."""
    warnings.simplefilter("ignore")
    for name in ("a8a", "ijcnn1", "letter"):
        compare(problem(name), check_optimum=name != "letter")


if __name__ == "__main__":
    main()
