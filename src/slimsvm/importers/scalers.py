"""scikit-learn's scalers, made by name and read as a `Scaling`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from ..kernels import Matrix
from ..rows.memory import is_mapped
from .scaler_kinds import SCALER_KINDS, Scaler

#: the names that `make_scaler` takes, after `resolve_scale`
SCALES = ("auto", "none", "standard", "minmax", "maxabs", "robust")
#: "auto" standardises features if the largest standard deviation is more than this many times the median one; more: rarely
UNEVEN = 10.0
#: rows of which the standard deviations are taken, evenly spaced; more: more time
MEASURED_ROWS = 1 << 16

#: the scalers that files hold and exporters fold in
SCALERS: dict[Any, Scaler] = {
    kind: SCALER_KINDS[kind.__name__] for kind in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
}


def make_scaler(name: str, sparse: bool) -> Any:
    """Return a new scaler by its short name, None for "none"; zeros in sparse rows stay zero."""
    if sparse and name == "minmax":
        raise ValueError("minmax would fill sparse rows; use maxabs")
    scalers = {
        "standard": StandardScaler(with_mean=not sparse),
        "minmax": MinMaxScaler(),
        "maxabs": MaxAbsScaler(),
        "robust": RobustScaler(with_centering=not sparse),
    }
    return scalers.get(name)


def resolve_scale(scale: str, X: Matrix) -> str:
    """Return the scaling; "auto" is standard for dense rows in memory with widely differing deviations, else none."""
    if scale != "auto":
        return scale
    if issparse(X) or is_mapped(X):
        return "none"
    deviations = np.std(X[:: -(-X.shape[0] // MEASURED_ROWS)], axis=0)
    deviations = deviations[deviations > 0]
    return "standard" if deviations.size and deviations.max() > UNEVEN * np.median(deviations) else "none"
