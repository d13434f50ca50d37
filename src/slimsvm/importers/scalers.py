"""scikit-learn's scalers, made by name and read as a `Scaling`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..scaling import Scaling
from .scaler_kinds import SCALER_KINDS, Scaler

#: the scalers that files hold and exporters fold in
SCALERS: dict[Any, Scaler] = {
    kind: SCALER_KINDS[kind.__name__] for kind in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
}


def make_scaler(name: str, sparse: bool) -> Any:
    """Return a new scaler by its short name, None for "none"; zeros in sparse rows stay zero."""
    if sparse and name == "minmax":
        raise ValueError("minmax would fill sparse rows; use maxabs")
    scalers = {"standard": StandardScaler(with_mean=not sparse), "minmax": MinMaxScaler(), "maxabs": MaxAbsScaler()}
    return scalers.get(name)


def scaling_of(scalers: list[Any], n_features: int) -> Scaling | None:
    """Return one scaling for fitted scalers in a row, None where there are none."""
    if not scalers:
        return None
    strange = [type(scaler).__name__ for scaler in scalers if type(scaler) not in SCALERS]
    if strange:
        known = ", ".join(kind.__name__ for kind in SCALERS)
        raise ValueError(
            f"cannot export a Pipeline with a {strange[0]}; there are {known}. Transform the rows before, "
            "or convert the whole Pipeline by skl2onnx (slimsvm.ship.converter.register)"
        )
    whole = Scaling.affine(np.zeros(n_features), np.ones(n_features))
    for scaler in scalers:
        check_is_fitted(scaler)
        whole = whole.then(SCALERS[type(scaler)].scaling(scaler, n_features))
    return whole
