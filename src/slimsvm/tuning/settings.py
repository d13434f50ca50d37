"""One choice of the settings that are tuned: kernel width, C, scaling, the tube of a regression, and slim's metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from ..importers.scalers import make_scaler

#: the scalings to try for dense rows, and for sparse rows, whose zeros stay zero
DENSE_SCALERS = ("none", "standard", "minmax", "robust")
SPARSE_SCALERS = ("none", "standard", "maxabs")


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
        scaler = make_scaler(self.scaling, sparse)
        return make_pipeline(estimator) if scaler is None else make_pipeline(scaler, estimator)
