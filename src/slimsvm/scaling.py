"""One affine map with clipping for all the scalers in front of a model. Needs NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Scaling:
    """A map of rows before the kernel: clip((x - centre) * scale, low, high), feature by feature."""

    centre: Array
    scale: Array  # above 0
    low: Array  # -inf for no clipping
    high: Array

    @classmethod
    def affine(cls, centre: Array, scale: Array) -> Scaling:
        """Return (x - centre) * scale without clipping."""
        return cls(centre, scale, np.full(scale.shape, -np.inf), np.full(scale.shape, np.inf))

    def __call__(self, X: Array) -> Array:
        """Return the scaled rows."""
        scaled = (X - self.centre) * self.scale
        return np.clip(scaled, self.low, self.high) if self.clips else scaled

    @property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        """The arrays centre, scale, low and high."""
        return self.centre, self.scale, self.low, self.high

    def part(self, features: Array) -> Scaling:
        """Return the scaling of some features."""
        return Scaling(*(part[features] for part in self.parts))

    @property
    def clips(self) -> bool:
        """Whether any feature is clipped."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    @property
    def idle(self) -> bool:
        """Whether rows stay unchanged."""
        return not self.clips and not self.centre.any() and bool((self.scale == 1).all())

    def then(self, after: Scaling) -> Scaling:
        """Return one scaling that does the same as this one followed by another."""
        low, high = (np.clip((end - after.centre) * after.scale, after.low, after.high) for end in (self.low, self.high))
        return Scaling(self.centre + after.centre / self.scale, self.scale * after.scale, low, high)

    def check(self, n_features: int) -> None:
        """Raise ValueError unless this scales `n_features` features, with finite numbers and positive scales."""
        parts = {"centre": self.centre, "scale": self.scale, "low": self.low, "high": self.high}
        for name, values in parts.items():
            if values.shape != (n_features,):
                raise ValueError(f"the scaler's {name} has the shape {values.shape}, but there are {n_features} features")
        if not np.isfinite(self.centre).all() or not ((self.scale > 0) & np.isfinite(self.scale)).all():
            raise ValueError("the scaler's centre must be finite, and its scale finite and above 0")
        if not (self.low <= self.high).all():
            raise ValueError("the scaler clips to ranges whose low end is not below the high one")


def with_factors(scaling: Scaling | None, factors: Array) -> Scaling:
    """Return one scaling that multiplies features by the factors of a metric, after another scaling if there is one."""
    after = Scaling.affine(np.zeros_like(factors), factors)
    return after if scaling is None else scaling.then(after)
