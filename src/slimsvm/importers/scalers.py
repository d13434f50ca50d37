"""scikit-learn's scalers, made by name and read as a `Scaling`."""

from __future__ import annotations

from typing import Any

from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from .scaler_kinds import SCALER_KINDS, Scaler

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
