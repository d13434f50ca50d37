"""The settings that are tuned: kernel width, C, scaling, the tube of a regression and slim's metric; and which are tried.

First guesses are tried, then points spread over the ranges, then neighbours of good settings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from scipy.stats import qmc
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler

from ...importers.around import make_scaler
from ...kernels import Array, Matrix, resolve_gamma, squared_norms
from ...kernels.spec import SPECS

#: the scalings to try for dense rows, and for sparse rows, whose zeros stay zero
DENSE_SCALERS = ("none", "standard", "minmax", "robust")
SPARSE_SCALERS = ("none", "standard", "maxabs")
#: the least and the largest kernel width, as multiples of one over the median squared distance of two rows (rbf), or of
#: "scale"; a wider range finds unusual widths, and has fewer trials in the usual ones
WIDTHS = (1 / 16, 16.0)
#: the multiple that is tried first; a small model needs wider kernels than a full one
FIRST_WIDTH = 1.0
#: the same for C
COSTS = (0.1, 1e4)
FIRST_COST = 10.0
#: radii of the tube of a regression, as shares of the targets' standard deviation
TUBES = (0.0, 0.05, 0.2)
#: neighbours differ by these factors; larger ones reach farther, smaller ones come closer to the best settings
WIDTH_STEP = 1.6
COST_STEP = 5.0
#: pairs of rows whose median distance is the unit of gamma; more: less chance in the unit
PAIRS = 4096


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

    def estimator(self, template: Any, budget: Any, reducer: Any, seed: int) -> Any:
        """Return an estimator for a model within a budget; the metric is that of the reducer."""
        tuned = {name: value for name, value in self.parameters.items() if name not in ("scaling", "metric")}
        return clone(template).set_params(
            budget=budget, tolerance=None, trainer=None, reducer=reducer, random_state=seed, **tuned
        )

    def pipeline(self, estimator: Any, *, sparse: bool) -> Pipeline:
        """Return the estimator after its scaler, neither fitted."""
        scaler = make_scaler(self.scaling, sparse)
        return make_pipeline(estimator) if scaler is None else make_pipeline(scaler, estimator)


@dataclass(frozen=True)
class Space:
    """Ranges of the settings: a unit of gamma for each scaling, the radii of the tube for a regression, and metrics.

    The first metric is that of the first stage. The others are added with the neighbours: they take longer, and a width and
    C that suit one metric suit the others.
    """

    units: dict[str, float]
    tubes: tuple[float | None, ...]
    #: whether the kernel has a gamma
    has_width: bool = True
    metrics: tuple[str, ...] = ("fixed",)

    def settings(self, n: int, seed: int) -> list[Settings]:
        """Return n settings: a guess for each scaling, then a spread over all ranges."""
        guesses = [
            Settings(unit * (FIRST_WIDTH if self.has_width else 1.0), FIRST_COST, scaling, self.tubes[0], self.metrics[0])
            for scaling, unit in self.units.items()
        ]
        spread = _halton(4, seed).random(max(n - len(guesses), 0))
        return [*guesses, *(self._at(place) for place in spread)][:n]

    def neighbours(self, of: Settings) -> list[Settings]:
        """Return the settings with another metric, and those one step away in gamma or C, within the ranges."""
        low, high = (self.units[of.scaling] * end for end in WIDTHS)
        widths = [of.gamma * WIDTH_STEP, of.gamma / WIDTH_STEP] if self.has_width else []
        costs = [of.C * COST_STEP, of.C / COST_STEP]
        return [
            *(replace(of, metric=metric) for metric in self.metrics if metric != of.metric),
            *(replace(of, gamma=gamma) for gamma in widths if low <= gamma <= high),
            *(replace(of, C=C) for C in costs if COSTS[0] <= C <= COSTS[1]),
        ]

    def _at(self, place: Array) -> Settings:
        """Return the settings at a place in the unit cube."""
        scaling = _pick(tuple(self.units), place[0])
        width = _between(WIDTHS, place[1]) if self.has_width else 1.0
        cost, tube = _between(COSTS, place[2]), _pick(self.tubes, place[3])
        return Settings(self.units[scaling] * width, cost, scaling, tube, self.metrics[0])


def make_space(
    kernel: Any,
    X: Matrix,
    values: Array | None,
    scalers: dict[str, Any],
    rng: np.random.Generator,
    metrics: tuple[str, ...] = ("fixed",),
) -> Space:
    """Return the ranges for rows with fitted scalers before the kernel; `values` are the targets of a regression."""
    units = {name: _unit_of_gamma(kernel, X, scaler, rng) for name, scaler in scalers.items()}
    tubes = (None,) if values is None else tuple(share * float(np.std(values)) for share in TUBES)
    return Space(units, tubes, has_width=kernel != "linear", metrics=metrics)


def different_scalers(kernel: Any, X: Matrix, *, sparse: bool) -> dict[str, Any]:
    """Return fitted scalers by name; only one of those that give the same kernel values up to gamma."""
    different: dict[str, Any] = {}
    stretches: list[Array] = []
    for name in SPARSE_SCALERS if sparse else DENSE_SCALERS:
        scaler = make_scaler(name, sparse)
        if scaler is not None:
            scaler.fit(X)
        stretch = _stretch(scaler, X.shape[1])
        if _ignores_shifts(kernel) and any(np.allclose(stretch, other) for other in stretches):
            continue
        different[name] = scaler
        stretches.append(stretch)
    return different


def _ignores_shifts(kernel: Any) -> bool:
    """Return whether a shift of the rows changes no kernel values; a common factor is then another gamma."""
    return kernel in SPECS and SPECS[kernel].total.shift_invariant


def _stretch(scaler: Any, n_features: int) -> Array:
    """Return the factor of each feature in a scaler, relative to the mean of all."""
    if scaler is None:
        return np.ones(n_features)
    stretch = scaler.scale_ if isinstance(scaler, MinMaxScaler) else 1 / scaler.scale_
    return stretch / stretch.mean()


def _unit_of_gamma(kernel: Any, X: Matrix, scaler: Any, rng: np.random.Generator) -> float:
    pairs = rng.integers(X.shape[0], size=(2, PAIRS))
    first, second = (X[rows] if scaler is None else scaler.transform(X[rows]) for rows in pairs)
    if kernel != "rbf":
        return float(resolve_gamma("scale", first))
    distances = squared_norms(first - second)
    return 1 / float(np.median(distances[distances > 0])) if distances.any() else 1.0


def _halton(dimensions: int, seed: int) -> qmc.Halton:
    """Return a sequence that spreads over the unit cube; the generator has another name before SciPy 1.15."""
    name = "rng" if "rng" in signature(qmc.Halton).parameters else "seed"
    return qmc.Halton(dimensions, **{name: np.random.default_rng(seed)})


def _between(ends: tuple[float, float], share: float) -> float:
    """Return the number at a share of the way between two ends, on a logarithmic scale."""
    return float(ends[0] * (ends[1] / ends[0]) ** share)


def _pick(options: tuple[Any, ...], share: float) -> Any:
    return options[min(int(share * len(options)), len(options) - 1)]
