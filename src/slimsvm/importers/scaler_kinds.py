"""scikit-learn's scalers by name: their fitted attributes and the `Scaling` that they apply. Needs NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..scaling import Scaling

#: steps of a Pipeline that do nothing
NOTHING = ("passthrough", None)


@dataclass(frozen=True)
class Scaler:
    """One kind of scaler: its fitted attributes besides `scale_`, and a function (scaler, n_features) -> Scaling."""

    fitted: tuple[str, ...]
    scaling: Callable[[Any, int], Scaling]
    #: settings that, if all are False, switch the scaler off; it then has no fitted arrays
    switches: tuple[str, ...] = ()

    def is_off(self, scaler: Any) -> bool:
        """Return whether the settings of a scaler switch it off."""
        return bool(self.switches) and not any(getattr(scaler, name) for name in self.switches)


def _affine(n: int, centre: Any, scale: Any, *, centred: bool, scaled: bool) -> Scaling:
    """Return (x - centre) / scale with the parts that the settings switch on; None for a part becomes NaN."""
    return Scaling.affine(
        np.asarray(centre, dtype=np.float64) if centred else np.zeros(n),
        1.0 / np.asarray(scale, dtype=np.float64) if scaled else np.ones(n),
    )


def _standard(scaler: Any, n: int) -> Scaling:
    return _affine(n, scaler.mean_, scaler.scale_, centred=scaler.with_mean, scaled=scaler.with_std)


def _min_max(scaler: Any, n: int) -> Scaling:
    ends = scaler.feature_range if scaler.clip else (-np.inf, np.inf)
    low, high = (np.full(n, float(end)) for end in ends)
    return Scaling(-scaler.min_ / scaler.scale_, scaler.scale_, low, high)


def _max_abs(scaler: Any, n: int) -> Scaling:
    end = np.full(n, 1.0 if getattr(scaler, "clip", False) else np.inf)
    return Scaling(np.zeros(n), 1.0 / scaler.scale_, -end, end)


def _robust(scaler: Any, n: int) -> Scaling:
    return _affine(n, scaler.center_, scaler.scale_, centred=scaler.with_centering, scaled=scaler.with_scaling)


#: a new scaler is a line here and one in `scalers`
SCALER_KINDS: dict[str, Scaler] = {
    "StandardScaler": Scaler(("mean_", "var_", "n_samples_seen_"), _standard, ("with_mean", "with_std")),
    "MinMaxScaler": Scaler(("min_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"), _min_max),
    "MaxAbsScaler": Scaler(("max_abs_", "n_samples_seen_"), _max_abs),
    "RobustScaler": Scaler(("center_",), _robust, ("with_centering", "with_scaling")),
}
