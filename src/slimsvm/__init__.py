"""slimsvm: kernel SVMs that are small enough to ship."""

from .estimators import SlimSVC, compress

__all__ = ["SlimSVC", "compress"]
