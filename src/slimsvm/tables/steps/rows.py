"""All numbers of a row together: Normalizer, PCA and TruncatedSVD, PolynomialFeatures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..program import Array, Step
from ..tape import Tape

#: what a term of a norm is, and how the sum goes on with it
NORMS = {"l1": "size + ABS(IN)", "l2": "size + IN * IN", "max": "ABS(IN) > size ? ABS(IN) : size"}


@dataclass(frozen=True)
class Normalise(Step):
    """The row divided by its norm, unless that is 0."""

    kind: ClassVar[str] = "normalise"
    norm: str

    @property
    def source(self) -> str:
        """The code."""
        root = "    size = SQRT(size);\n" if self.norm == "l2" else ""
        return (
            f"{{\n    VAR size = 0;\n    for (INT i = 0; i < COUNT; i++)\n        size = {NORMS[self.norm]};\n{root}"
            "    for (INT i = 0; i < COUNT; i++)\n        OUT = size > 0 ? IN / size : IN;\n}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        order = {"l1": 1, "l2": 2, "max": np.inf}[self.norm]
        sizes = np.linalg.norm(values, ord=order, axis=1)
        return values / np.where(sizes == 0, 1.0, sizes)[:, None]

    def check(self) -> None:
        """Raise ValueError for an unknown norm."""
        if self.norm not in NORMS:
            raise ValueError(f"there is no norm {self.norm!r}; there are {sorted(NORMS)}")


@dataclass(frozen=True)
class Matrix(Step):
    """(x - mean) times a matrix."""

    kind: ClassVar[str] = "matrix"
    mean: Array
    weights: Array  # (outputs, inputs)

    @property
    def outputs(self) -> int:
        """The count of numbers written."""
        return int(self.weights.shape[0])

    @property
    def source(self) -> str:
        """The code."""
        return (
            "for (INT i = 0; i < ROWS; i++) {\n    VAR sum = 0;\n    for (INT j = 0; j < COUNT; j++)\n"
            "        sum += (IN_J - mean[j]) * weights[i * COUNT + j];\n    OUT = sum;\n}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return (values - self.mean) @ self.weights.T

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return {"mean": self.mean, "weights": self.weights.ravel(), "ROWS": self.outputs}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        if self.mean.shape != self.inputs.shape or self.weights.ndim != 2 or self.weights.shape[1:] != self.inputs.shape:
            raise ValueError("a matrix has a column for each input")
        if not np.isfinite(self.weights).all() or not np.isfinite(self.mean).all():
            raise ValueError("a matrix has numbers that are not finite")


@dataclass(frozen=True)
class Products(Step):
    """Products of numbers: those at starts[i] to before starts[i + 1] of `factors`, 1 for none."""

    kind: ClassVar[str] = "products"
    starts: Array
    factors: Array

    @property
    def outputs(self) -> int:
        """The count of numbers written."""
        return int(self.starts.size - 1)

    @property
    def source(self) -> str:
        """The code."""
        return (
            "for (INT i = 0; i < ROWS; i++) {\n    OUT = 1;\n    for (INT k = starts[i]; k < starts[i + 1]; k++)\n"
            "        OUT *= t[factors[k]];\n}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        padded = np.column_stack([values, np.ones(values.shape[0])])
        counts = np.diff(self.starts)
        places = np.full((self.outputs, int(counts.max(initial=0))), values.shape[1])
        places[np.arange(places.shape[1]) < counts[:, None]] = self.factors
        return padded[:, places].prod(axis=2)

    @property
    def words(self) -> dict[str, Any]:
        """The tables; factors are places of the tape."""
        return {"starts": self.starts, "factors": self.inputs[self.factors], "ROWS": self.outputs}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        rising = (
            self.starts.ndim == 1 and self.starts.size > 1 and self.starts[0] == 0 and (np.diff(self.starts) >= 0).all()
        )
        if not rising or self.starts[-1] != self.factors.size or self.starts.dtype.kind not in "iu":
            raise ValueError("products follow each other")
        if self.factors.dtype.kind not in "iu" or not ((self.factors >= 0) & (self.factors < self.inputs.size)).all():
            raise ValueError("a product has a factor beyond its inputs")


def read_normaliser(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a Normalizer."""
    return tape.add(Normalise(np.array(places), str(step.norm)))


def read_rotation(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a PCA, or a TruncatedSVD, which has no mean."""
    weights, n = np.asarray(step.components_, dtype=np.float64), len(places)
    mean = getattr(step, "mean_", None)
    if getattr(step, "whiten", False):
        weights = weights / np.sqrt(np.maximum(step.explained_variance_, np.finfo(np.float64).tiny))[:, None]
    return tape.add(Matrix(np.array(places), np.zeros(n) if mean is None else np.asarray(mean, dtype=np.float64), weights))


def read_polynomial(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add PolynomialFeatures."""
    from sklearn.preprocessing import PolynomialFeatures

    least, largest = getattr(step, "_min_degree", 0), getattr(step, "_max_degree", step.degree)
    products = PolynomialFeatures._combinations(len(places), least, largest, step.interaction_only, step.include_bias)
    lists = [list(product) for product in products]
    starts = np.cumsum([0, *map(len, lists)])
    return tape.add(Products(np.array(places), starts, np.array([f for factors in lists for f in factors], dtype=np.intp)))


READERS = {
    "Normalizer": read_normaliser,
    "PCA": read_rotation,
    "TruncatedSVD": read_rotation,
    "PolynomialFeatures": read_polynomial,
}
FITTED: dict[str, tuple[str, ...]] = {
    "Normalizer": (),
    "PCA": ("components_", "mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "n_components_",
            "noise_variance_", "n_samples_"),
    "TruncatedSVD": ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"),
    "PolynomialFeatures": ("_min_degree", "_max_degree", "n_output_features_", "_n_out_full"),
}  # fmt: skip
