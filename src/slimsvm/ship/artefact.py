"""What is shipped: one function of raw rows with its scaling and its classes, as plain arrays.

Exporters and the runtime take an `Artefact` and know nothing of estimators. This file needs NumPy only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ..multiclass import OneVsOne, OneVsRest

Array = np.ndarray

#: the shift of a feature, in units of its scale, that float32 sums can take in without losing more than four bits
HARMLESS_SHIFT = 16.0


@dataclass(frozen=True)
class Scaling:
    """What rows go through before the kernel: clip((x - centre) * scale, low, high), feature by feature."""

    centre: Array
    scale: Array  # above 0
    low: Array  # -inf for no clipping
    high: Array

    @classmethod
    def affine(cls, centre: Array, scale: Array) -> Scaling:
        """(x - centre) * scale."""
        return cls(centre, scale, np.full(scale.shape, -np.inf), np.full(scale.shape, np.inf))

    def __call__(self, X: Array) -> Array:
        """The rows X as the kernel takes them."""
        scaled = (X - self.centre) * self.scale
        return np.clip(scaled, self.low, self.high) if self.clips else scaled

    @property
    def clips(self) -> bool:
        """Whether any feature has an end."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    @property
    def idle(self) -> bool:
        """Whether rows pass unchanged."""
        return not self.clips and not self.centre.any() and bool((self.scale == 1).all())

    def then(self, after: Scaling) -> Scaling:
        """One scaling for this one followed by another."""
        low, high = (np.clip((end - after.centre) * after.scale, after.low, after.high) for end in (self.low, self.high))
        return Scaling(self.centre + after.centre / self.scale, self.scale * after.scale, low, high)


@dataclass(frozen=True)
class Artefact:
    """f(x) = sum_j k(scaling(x), z_j) coef_j + bias, and how its outputs name a class."""

    kernel: str
    parameters: Mapping[str, float]  # gamma, coef0, degree: those that the kernel has
    points: Array  # (m, d)
    coef: Array  # (m, q)
    bias: Array  # (q,)
    coding: OneVsRest | OneVsOne
    classes: Array
    scaling: Scaling | None = None

    @property
    def size(self) -> int:
        """The number of points."""
        return self.points.shape[0]

    @property
    def features(self) -> int:
        """The length of a row."""
        return self.points.shape[1]

    @property
    def outputs(self) -> int:
        """The number of outputs: one for two classes, else one per class or per pair of classes."""
        return self.bias.size

    @property
    def votes(self) -> bool:
        """Whether outputs are of pairs of classes, which vote."""
        return isinstance(self.coding, OneVsOne) and self.classes.size > 2

    def compact(self) -> Artefact:
        """The same function with as much of the scaling as possible in the points, and linear kernels as weights."""
        steps = _fold_shift, _fold_scale, _fold_centre, _round_centre, _drop_idle_scaling, _as_weights, _not_empty
        return reduce(lambda artefact, step: step(artefact), steps, self)


def _fold_scale(a: Artefact) -> Artefact:
    """Scales of the features in the points: any for inner products, one for all for distances."""
    if a.scaling is None or a.scaling.clips:
        return a
    scale = a.scaling.scale
    unscaled = replace(a.scaling, scale=np.ones_like(scale))
    if a.kernel in ("linear", "poly", "sigmoid"):
        return replace(a, points=a.points * scale, scaling=unscaled)
    # gamma takes the factor of |s x - s z|^power
    power = {"rbf": 2, "laplacian": 1, "chi2": 1}.get(a.kernel)
    if power is None or np.ptp(scale):
        return a
    parameters = dict(a.parameters) | {"gamma": a.parameters["gamma"] * float(scale[0]) ** power}
    return replace(a, points=a.points / scale, parameters=parameters, scaling=unscaled)


def _fold_shift(a: Artefact) -> Artefact:
    """Shifts of the features in the bias of a linear function, where no digits are lost by it."""
    if a.scaling is None or a.kernel != "linear":
        return a
    harmless = np.abs(a.scaling.centre * a.scaling.scale).max(initial=0.0) <= HARMLESS_SHIFT
    return _moved_centre(a, np.zeros_like(a.scaling.centre)) if harmless else a


def _round_centre(a: Artefact) -> Artefact:
    """A centre that float32 holds exactly: far from 0, its rounding would shift all rows."""
    if a.scaling is None:
        return a
    with np.errstate(over="ignore"):
        centre = a.scaling.centre.astype(np.float32).astype(np.float64)
    return _moved_centre(a, centre) if np.isfinite(centre).all() else a


def _moved_centre(a: Artefact, centre: Array) -> Artefact:
    """The same function with another centre, where the kernel allows: the rest goes into the points or the bias."""
    if a.scaling is None or a.scaling.clips or a.kernel not in ("rbf", "laplacian", "linear"):
        return a
    rest = (a.scaling.centre - centre) * a.scaling.scale
    scaling = replace(a.scaling, centre=centre)
    if a.kernel == "linear":
        return replace(a, bias=a.bias - (a.points @ rest) @ a.coef, scaling=scaling)
    return replace(a, points=a.points + rest, scaling=scaling)


def _fold_centre(a: Artefact) -> Artefact:
    """Shifts of the features in the points of a distance."""
    if a.scaling is None or a.kernel == "linear" or (a.scaling.scale != 1).any():
        return a
    return _moved_centre(a, np.zeros_like(a.scaling.centre))


def _drop_idle_scaling(a: Artefact) -> Artefact:
    return replace(a, scaling=None) if a.scaling is not None and a.scaling.idle else a


def _as_weights(a: Artefact) -> Artefact:
    """A linear function needs one point per output: its weights."""
    if a.kernel != "linear" or a.size <= a.outputs:
        return a
    return replace(a, points=a.coef.T @ a.points, coef=np.eye(a.outputs))


def _not_empty(a: Artefact) -> Artefact:
    """A constant function has a point too, with coefficients of 0: languages have no empty tables."""
    if a.size:
        return a
    return replace(a, points=np.zeros((1, a.features)), coef=np.zeros((1, a.outputs)))
