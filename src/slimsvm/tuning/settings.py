"""One choice of the settings that are tuned: kernel width, C, scaling, the tube of a regression, and slim's metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

#: makers of the scalers by name, for dense rows; "none" does not change rows
DENSE_SCALERS: dict[str, Any] = {
    "none": None,
    "standard": StandardScaler,
    "minmax": MinMaxScaler,
    "robust": RobustScaler,
}
#: the same for sparse rows, whose zeros stay zero
SPARSE_SCALERS: dict[str, Any] = {
    "none": None,
    "standard": lambda: StandardScaler(with_mean=False),
    "maxabs": MaxAbsScaler,
}


@dataclass(frozen=True, order=True)
class Settings:
    """The settings of a trial. `epsilon` is None for classes."""

    gamma: float
    C: float
    scaling: str
    epsilon: float | None = None
    metric: str = "fixed"

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings by name, without those that the estimator does not have."""
        values = {"gamma": self.gamma, "C": self.C, "scaling": self.scaling, "epsilon": self.epsilon, "metric": self.metric}
        return {name: value for name, value in values.items() if value is not None}

    def estimator(self, template: Any, size: int, reducer: Any, seed: int) -> Any:
        """Return an estimator for a model of at most `size` support vectors; the metric is that of the reducer."""
        tuned = {name: value for name, value in self.parameters.items() if name not in ("scaling", "metric")}
        return clone(template).set_params(
            budget=size, tolerance=None, trainer=None, reducer=reducer, random_state=seed, **tuned
        )

    def pipeline(self, estimator: Any, *, sparse: bool) -> Pipeline:
        """Return the estimator after its scaler, neither fitted."""
        scaler = scaler_of(self.scaling, sparse=sparse)
        return make_pipeline(estimator) if scaler is None else make_pipeline(scaler, estimator)


def scaler_of(name: str, *, sparse: bool) -> Any:
    """Return a scaler that is not fitted; None for no scaling."""
    make = (SPARSE_SCALERS if sparse else DENSE_SCALERS)[name]
    return None if make is None else make()
