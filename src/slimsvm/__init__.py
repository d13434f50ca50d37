"""slimsvm: kernel SVMs that are small enough to ship."""

from importlib.metadata import version

from .estimators import SlimSVC, compress

__version__ = version("slimsvm")
__all__ = ["SlimSVC", "__version__", "compress"]
