"""Kernels: `functions` evaluates them, `spec` describes them for exporters and file formats.

The names of `functions` are imported when first used, because it needs scipy and scikit-learn. A deployed
`slimsvm.runtime` uses `spec` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .functions import (
        KERNELS,
        RBF,
        Array,
        Chi2,
        Custom,
        InnerKernel,
        Kernel,
        Laplacian,
        Linear,
        Matrix,
        Poly,
        Precomputed,
        Sigmoid,
        dense,
        inner_products,
        make_kernel,
        resolve_gamma,
        scaled,
        squared_norms,
        stacked,
        width_of,
    )

__all__ = [
    "KERNELS",
    "RBF",
    "Array",
    "Chi2",
    "Custom",
    "InnerKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matrix",
    "Poly",
    "Precomputed",
    "Sigmoid",
    "dense",
    "inner_products",
    "make_kernel",
    "resolve_gamma",
    "scaled",
    "squared_norms",
    "stacked",
    "width_of",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(".functions", __name__), name)
    globals()[name] = value  # the next access finds it there
    return value
