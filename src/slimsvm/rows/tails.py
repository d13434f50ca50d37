"""Tails: from a tile of inner products to kernel values, by the kernel's own formula or in one compiled pass."""

from __future__ import annotations

import threading

import numpy as np

from .._core import core
from ..kernels import RBF, Array, InnerKernel


class Tail:
    """The kernel's own tail over a tile of inner products; `sum_dtype` is the precision of V in products."""

    def __init__(self, kernel: InnerKernel, dtype: np.dtype) -> None:
        self.kernel, self.dtype, self.sum_dtype = kernel, dtype, dtype

    def scaled(self, norms: Array) -> Array:
        """Return the squared norms in the form that `values` takes."""
        return norms.astype(self.dtype)

    def values(self, G: Array, a: Array, b: Array, widths: Array | None = None) -> Array:
        """Return kernel values for the inner products G, in place if possible; `widths` multiply gamma of each column."""
        if widths is None:
            return self.kernel.tail(G, a, b)
        return self.kernel.tail(G, a, b, widths=widths)  # type: ignore[call-arg]  # kernels with a width take them

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array, widths: Array | None = None) -> None:
        """Add K @ V to out; G is overwritten."""
        out += self.values(G, a, b, widths) @ V


class CompiledRBF(Tail):
    """The float32 RBF tail as one compiled pass, with the weighted sum in it where V is one column."""

    def __init__(self, kernel: RBF, dtype: np.dtype) -> None:
        super().__init__(kernel, dtype)
        self.scale = kernel.gamma * float(np.log2(np.e))  # the compiled tail computes powers of 2

    def scaled(self, norms: Array) -> Array:
        """Return the squared norms in the unit of the exponent."""
        return (self.scale * norms).astype(np.float32)

    def values(self, G: Array, a: Array, b: Array, widths: Array | None = None) -> Array:
        """Return kernel values, in place."""
        core.rbf_tail(self.scale, G, a, b, widths)
        return G

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array, widths: Array | None = None) -> None:
        """Add K @ V to out: in one fused pass for one column, in two passes for more."""
        if V.shape[1] == 1:
            core.rbf_tail_dot(self.scale, G, a, b, V.ravel(), out.ravel(), widths)
        else:
            super().add_product(G, a, b, V, out, widths)


class DoubleRBF(CompiledRBF):
    """The RBF tail as one compiled pass over a float64 tile; it has no widths (`tail_of`)."""

    def scaled(self, norms: Array) -> Array:
        """Return the squared norms in the unit of the exponent."""
        return self.scale * norms

    def values(self, G: Array, a: Array, b: Array, widths: Array | None = None) -> Array:  # noqa: ARG002
        """Return kernel values, in place."""
        core.rbf_tail_double(self.scale, G, a, b)
        return G

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array, widths: Array | None = None) -> None:  # noqa: ARG002
        """Add K @ V to out in two passes: the product is a small part of the work."""
        out += self.values(G, a, b) @ V


class MixedRBF(DoubleRBF):
    """Float32 kernel values from float64 inner products, for rows whose distances need float64."""

    def __init__(self, kernel: RBF, dtype: np.dtype) -> None:
        super().__init__(kernel, dtype)
        self.sum_dtype = np.dtype(np.float64)
        self.local = threading.local()

    def values(self, G: Array, a: Array, b: Array, widths: Array | None = None) -> Array:  # noqa: ARG002
        """Return kernel values, in memory that the thread's next tile overwrites."""
        if getattr(self.local, "size", 0) < G.size:
            self.local.tile, self.local.size = np.empty(G.size, np.float32), G.size
        K = self.local.tile[: G.size].reshape(G.shape)
        core.rbf_tail_mixed(self.scale, G, a, b, K)
        return K

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array, widths: Array | None = None) -> None:  # noqa: ARG002
        """Add K @ V to out: in one fused pass with float64 sums for one column, by float32 products for more."""
        if V.shape[1] == 1:
            core.rbf_tail_dot_mixed(self.scale, G, a, b, V.ravel(), out.ravel())
        else:
            out += self.values(G, a, b) @ V.astype(np.float32)


def tail_of(kernel: InnerKernel, inner: np.dtype, values: np.dtype, *, widths: bool = False) -> Tail:
    """Return the tail from inner products in one precision to kernel values in another.

    It is the kernel's own tail where no compiled one exists: with widths, there is none for float64 tiles.
    """
    if not isinstance(kernel, RBF) or (widths and inner != np.float32):
        return Tail(kernel, inner)
    if inner == np.float32:
        return CompiledRBF(kernel, inner)
    return MixedRBF(kernel, values) if values == np.float32 else DoubleRBF(kernel, inner)
