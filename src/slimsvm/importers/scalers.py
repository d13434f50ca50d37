"""scikit-learn's scalers: what fit leaves in them, and the `Scaling` they apply. A new scaler is a line in `SCALERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..scaling import Array, Scaling

#: steps of a Pipeline that do nothing
NOTHING = ("passthrough", None)


@dataclass(frozen=True)
class Scaler:
    """One kind of scaler: attributes that fit leaves besides `scale_`, and a function (scaler, n_features) -> Scaling."""

    fitted: tuple[str, ...]
    scaling: Callable[[Any, int], Scaling]


def scaling_of(scalers: list[Any], n_features: int) -> Scaling | None:
    """Return one scaling for fitted scalers in a row, None where there are none."""
    if not scalers:
        return None
    whole = Scaling.affine(np.zeros(n_features), np.ones(n_features))
    for scaler in scalers:
        if type(scaler) not in SCALERS:
            known = ", ".join(kind.__name__ for kind in SCALERS)
            raise ValueError(
                f"cannot export a Pipeline with a {type(scaler).__name__}; there are {known}. Transform the rows before, "
                "or convert the whole Pipeline by skl2onnx (slimsvm.ship.converter.register)"
            )
        check_is_fitted(scaler)
        whole = whole.then(SCALERS[type(scaler)].scaling(scaler, n_features))
    return whole


def _inverse(scale: Any, n_features: int) -> Array:
    return np.ones(n_features) if scale is None else 1.0 / np.asarray(scale)


def _standard(scaler: Any, n: int) -> Scaling:
    centre = np.zeros(n) if not scaler.with_mean else scaler.mean_
    return Scaling.affine(centre, _inverse(scaler.scale_, n))


def _min_max(scaler: Any, n: int) -> Scaling:
    ends = scaler.feature_range if scaler.clip else (-np.inf, np.inf)
    low, high = (np.full(n, float(end)) for end in ends)
    return Scaling(-scaler.min_ / scaler.scale_, scaler.scale_, low, high)


def _max_abs(scaler: Any, n: int) -> Scaling:
    end = np.full(n, 1.0 if getattr(scaler, "clip", False) else np.inf)
    return Scaling(np.zeros(n), _inverse(scaler.scale_, n), -end, end)


def _robust(scaler: Any, n: int) -> Scaling:
    centre = np.zeros(n) if scaler.center_ is None else scaler.center_
    return Scaling.affine(centre, _inverse(scaler.scale_, n))


SCALERS: dict[Any, Scaler] = {
    StandardScaler: Scaler(("mean_", "var_", "n_samples_seen_"), _standard),
    MinMaxScaler: Scaler(("min_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"), _min_max),
    MaxAbsScaler: Scaler(("max_abs_", "n_samples_seen_"), _max_abs),
    RobustScaler: Scaler(("center_",), _robust),
}
