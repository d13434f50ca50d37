"""The problem of tuning, checked: the estimator, rows and labels, and the limits on the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from ...budget import AUTO, Budget, check_precision
from ...c_bytes import ScalerTables, Shape
from ...checks import check_unmasked
from ...clock import microseconds
from ...estimators import SlimOneClassSVM, SlimSVC, SlimSVR
from ...estimators.validation import checked_range, weighted_rows
from ...goals import Goal, Regression
from ...kernels import KERNELS, Array, Matrix, make_kernel
from ...metric import takes_factors, takes_widths
from ...model import Expansion
from ...reducers import Slim
from ...selection.limits import room_for, size_limit
from .result import Constraint

#: the least number of rows: every fold needs some for training and some for validation
LEAST_ROWS = 10
#: the most support vectors if only the error is limited; more: lower errors can be met, in longer trials
LARGEST = 256
#: metrics are tried with at most MOST_FEATURES features, since each takes time, and at least LEAST_FOR_METRIC rows, since
#: a metric learned from fewer fits them too closely
MOST_FEATURES, LEAST_FOR_METRIC = 1000, 1000
NO_LABELS = (
    "tuning compares models by their errors, and novelty detection has no labels to count errors on; choose gamma and nu "
    "of SlimOneClassSVM by what is known of the rows"
)


@dataclass(frozen=True)
class Problem:
    """Rows, labels and weights, the estimator to tune, and the support vectors that it may have."""

    template: Any
    X: Matrix
    y: Array
    weights: Array
    size: int
    shape: Shape  # what exports take bytes for, without scaler and metric
    metrics: tuple[str, ...] = ("fixed",)  # the metrics to try

    @property
    def real(self) -> bool:
        """Whether labels are values."""
        return isinstance(self.template, SlimSVR)

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return bool(issparse(self.X))


def make_problem(
    estimator: Any, X: Any, y: Any, sample_weight: Any, constraint: Constraint, precision: str = AUTO
) -> Problem:
    """Return the problem; raise ValueError for an estimator or rows that cannot be tuned."""
    check_precision(precision)
    template = template_for(estimator, y)
    if precision != AUTO:
        template = clone(template).set_params(precision=precision)
    X, y, weights = checked_rows(template, X, y, sample_weight)
    goal: Goal = Regression() if isinstance(template, SlimSVR) else template._coding(np.unique(y).size, whole=False)
    calibration = template.calibration if goal.n_classes else None
    shape = Shape.of(template.kernel, X.shape[1], goal, map=calibration or "")
    size = largest_size(template, constraint.budget, shape, X)
    return Problem(template, X, y, weights, min(size, y.size // 2), shape, _metrics(template, X, constraint))


def _metrics(template: Any, X: Matrix, constraint: Constraint) -> tuple[str, ...]:
    """Return the metrics to try: a reducer's own, or the fixed one and the most that can be learned with the kernel.

    A metric takes bytes, which under a limit are left to support vectors, and time for each feature.
    """
    if isinstance(template.reducer, Slim):
        return (template.reducer.metric,)
    kernel = make_kernel(template.kernel, gamma=1.0, degree=template.degree, coef0=template.coef0)
    n, d = X.shape
    if constraint.budget.bytes is not None or d > MOST_FEATURES or n < LEAST_FOR_METRIC or not takes_factors(kernel.name):
        return ("fixed",)
    return "fixed", "both" if takes_widths(kernel.name) else "scales"


def template_for(estimator: Any, y: Any) -> Any:
    """Return the estimator to tune: the given one, or one for the classes or values of y."""
    if y is None or isinstance(estimator, SlimOneClassSVM):
        raise ValueError(NO_LABELS)
    if estimator is None:
        return SlimSVR() if type_of_target(y).startswith("continuous") else SlimSVC()
    if not isinstance(estimator, SlimSVC | SlimSVR):
        raise ValueError(f"estimator must be a SlimSVC or SlimSVR, whose other settings are kept, not {estimator!r}")
    if estimator.reducer != "slim" and not isinstance(estimator.reducer, Slim):
        raise ValueError(f"trials are small models by the reducer 'slim' or a Slim(...), not {estimator.reducer!r}")
    _check_kernel(estimator)
    return estimator


def _check_kernel(estimator: Any) -> None:
    """Raise ValueError for a kernel without gradients, which slim cannot use."""
    kernel = make_kernel(estimator.kernel, gamma=1.0, degree=estimator.degree, coef0=estimator.coef0)
    if not Slim.takes(kernel):
        raise ValueError(
            f"trials move support vectors along the gradient of the kernel, and {estimator.kernel!r} has none; the kernels "
            f"with gradients are {[name for name, kind in KERNELS.items() if kind.differentiable]}"
        )


def checked_rows(template: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Array, Array]:
    """Return rows, labels and weights of the rows that have weight."""
    real = isinstance(template, SlimSVR)
    check_unmasked("X", X)
    check_unmasked("y", y)
    X, y = check_X_y(
        X, y, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=real, ensure_min_samples=LEAST_ROWS
    )
    if not real:
        check_classification_targets(y)
        if np.unique(y).size < 2:
            raise ValueError(f"all rows have the label {y[0]!r}; a classifier needs rows of two classes at least")
    return weighted_rows(checked_range(X, finite=True), y, sample_weight)[:3]


def constraint_of(budget: Any, max_error: Any) -> Constraint:
    """Return the limits on the model; without any, it is a full one."""
    limits = Budget.of(budget)
    if limits.fraction is not None:
        raise ValueError(
            f"budget={limits.fraction} is a fraction of a full model's support vectors, and tuning trains none; give a "
            "number of support vectors, bytes such as '8 KB', or a time such as '20 us'"
        )
    return Constraint(limits, max_error)


def largest_size(template: Any, budget: Budget, shape: Shape, X: Matrix) -> int:
    """Return the support vectors that the limits allow, with a scaler before them; raise ValueError if they allow none."""
    features = X.shape[1]
    room = room_for(budget, template.precision, replace(shape, scaler=ScalerTables(features)))
    bounded = room is not None or budget.microseconds is not None
    largest = budget.count or (X.shape[0] if bounded else LARGEST)

    def time(size: int) -> float:
        points = X[np.arange(size) % X.shape[0]]
        scaler = StandardScaler(with_mean=False).fit(points)
        coef = np.ones((size, shape.outputs))
        kernel = make_kernel(template.kernel, gamma=1.0, degree=template.degree, coef0=template.coef0)
        model = Expansion(kernel, points, coef, np.zeros(shape.outputs))
        return microseconds(lambda: model(scaler.transform(points[:1])))

    return size_limit(budget, room, time, largest, full=False) or largest
