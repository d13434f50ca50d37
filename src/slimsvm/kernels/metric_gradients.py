"""Gradients of a model with a learned metric: the sums over rows that each kernel needs, and the gradient from them.

A model has the outputs F = K V with K_ij = k(f * x_i, f * z_j), where w_j multiplies gamma. The factors f belong to the
features and the widths w to the points. For a loss with derivatives W = dL/dF,

    dL/dz_j, dL/dlog f and dL/dlog w_j     follow from     P_ij = <W_i, V_j> dk/d(argument of k)

Each of them needs a few sums over rows only, which are small arrays. So no array of all rows and points is needed: `sums`
are added up over blocks of rows, and `gradient` is called once. Both work on arrays of the namespace of a home.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .functions import RBF, Array, InnerKernel, Kernel, Laplacian, Matrix, dense, transposed_product


@dataclass(frozen=True)
class MetricGradient:
    """The derivatives of a loss with respect to points, coefficients, and the logarithms of factors and widths."""

    points: Array  # (m, d)
    coef: Array  # (m, q)
    log_factors: Array  # (d,)
    log_widths: Array  # (m,)


class MetricSums:
    """The sums of one kernel. `send` copies an array to the home, in the precision of kernel values.

    `sums` takes rows A (b, d), their kernel values K (b, m), which are overwritten, and the derivatives W (b, q).
    """

    def __init__(
        self, kernel: Any, Z: Array, V: Array, factors: Array, widths: Array, send: Callable[[Array], Any], xp: Any = np
    ) -> None:
        self.kernel, self.Z, self.V, self.factors, self.widths, self.xp = kernel, Z, V, factors, widths, xp
        # with one output P_ij = W_i K_ij V_j, and `gradient` multiplies by V_j at the end
        self.scale = V[:, 0] if V.shape[1] == 1 else np.ones(V.shape[0])
        self.transposed = send(V.T)

    def sums(self, A: Matrix, K: Any, W: Any) -> tuple[Any, ...]:
        """Return the sums over a block of rows."""
        raise NotImplementedError

    def gradient(self, sums: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return the derivatives with respect to points, log factors and log widths, from host arrays."""
        raise NotImplementedError

    def _weighted(self, values: Any, W: Any) -> Any:
        """Return values (b, m) times <W_i, V_j>, or times W_i alone with one output."""
        if self.V.shape[1] > 1:
            W = W @ self.transposed
        values *= W
        return values


class GaussianSums(MetricSums):
    """Sums of k = exp(-gamma w_j D_ij) with D_ij = sum_f f^2 (x_if - z_jf)^2 = a_i + b_j - 2 <x_i, f^2 z_j>."""

    def __init__(self, kernel: RBF, Z: Array, V: Array, factors: Array, widths: Array, send: Any, xp: Any = np) -> None:
        super().__init__(kernel, Z, V, factors, widths, send, xp)
        self.squares, self.pulls = send(factors**2), send(widths * self.scale)

    def sums(self, A: Matrix, K: Any, W: Any) -> tuple[Any, ...]:
        """Return P' A, P' a, P' 1 and (A * A)' P w."""
        P, AA = self._weighted(K, W), A.multiply(A).tocsr() if issparse(A) else A * A
        norms = AA @ self.squares
        return transposed_product(P, A), P.T @ norms, self.xp.sum(P, axis=0), AA.T @ (P @ self.pulls)

    def gradient(self, sums: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return the derivatives."""
        return gaussian_gradient(self.kernel.gamma, self.Z, self.scale, self.factors, self.widths, sums)


def gaussian_gradient(gamma: float, Z: Any, scale: Any, factors: Any, widths: Any, sums: Sequence[Any]) -> tuple[Any, ...]:
    """Return the derivatives with respect to points, log factors and log widths from the sums of `GaussianSums`.

    All are arrays of one library.
    """
    T, norms, totals, spread = sums
    squares, pulls, totals = factors**2, widths * scale, scale * totals
    crossed, squared = Z * T, Z * Z
    by_features = spread + (widths * totals) @ squared - 2 * (pulls @ crossed)
    by_distance = scale * norms + totals * (squared @ squares) - 2 * scale * (crossed @ squares)
    by_points, reached = crossed, squared  # overwrites large arrays to save memory
    by_points[...] = T
    by_points *= pulls[:, None]
    reached[...] = Z
    reached *= (widths * totals)[:, None]
    by_points -= reached
    by_points *= 2 * gamma * squares
    return by_points, -2 * gamma * squares * by_features, -gamma * widths * by_distance


class InnerSums(MetricSums):
    """Sums of a kernel of the inner product <f x, f z>, which has no widths."""

    def __init__(
        self, kernel: InnerKernel, Z: Array, V: Array, factors: Array, widths: Array, send: Any, xp: Any = np
    ) -> None:
        super().__init__(kernel, Z, V, factors, widths, send, xp)
        self.folded = send((factors**2 * Z).T)

    def sums(self, A: Matrix, K: Any, W: Any) -> tuple[Any, ...]:
        """Return P' A, with P the slopes of the kernel."""
        scale, slope = self.kernel.slope(K, lambda: A @ self.folded, self.xp)
        values = self.xp.ones_like(K) if slope is None else slope
        values *= scale
        return (transposed_product(self._weighted(values, W), A),)

    def gradient(self, sums: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return the derivatives; each factor occurs twice in <f x, f z>."""
        by_points = self.scale[:, None] * self.factors**2 * sums[0]
        return by_points, 2 * (self.Z * by_points).sum(axis=0), np.zeros(self.Z.shape[0])


class ManhattanSums(MetricSums):
    """Sums of k = exp(-gamma w_j sum_f f |x_if - z_jf|)."""

    def __init__(
        self, kernel: Laplacian, Z: Array, V: Array, factors: Array, widths: Array, send: Any, xp: Any = np
    ) -> None:
        super().__init__(kernel, Z, V, factors, widths, send, xp)
        self.points = send(Z)

    def sums(self, A: Matrix, K: Any, W: Any) -> tuple[Any, ...]:
        """Return the sums over rows of P_ij sign(x_i - z_j) and of P_ij |x_i - z_j|."""
        P, A, xp = self._weighted(K, W), dense(A) if issparse(A) else A, self.xp
        differences = [A - self.points[j, :] for j in range(self.Z.shape[0])]
        signs = [P[:, j] @ xp.sign(difference) for j, difference in enumerate(differences)]
        return xp.stack(signs), xp.stack([P[:, j] @ xp.abs(difference) for j, difference in enumerate(differences)])

    def gradient(self, sums: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return the derivatives, 0 at the kernel's kinks."""
        signs, distances = (self.scale[:, None] * part for part in sums)
        pull = self.kernel.gamma * self.widths
        return (
            pull[:, None] * self.factors * signs,
            -self.factors * (pull @ distances),
            -pull * (distances @ self.factors),
        )


def metric_sums(
    kernel: Kernel, Z: Array, V: Array, factors: Array, widths: Array, send: Callable[[Array], Any], xp: Any = np
) -> MetricSums:
    """Return the sums for a kernel; ValueError where it has no gradients."""
    kinds = {RBF: GaussianSums, InnerKernel: InnerSums, Laplacian: ManhattanSums}
    kind = next((sums for of, sums in kinds.items() if isinstance(kernel, of)), None)
    if kind is None:
        raise ValueError(
            f"no metric can be learned with the {kernel.name} kernel, which is no inner product and no distance"
        )
    return kind(kernel, Z, V, factors, widths, send, xp)
