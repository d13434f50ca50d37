"""slimsvm: kernel SVMs that are small enough to ship."""

from importlib.metadata import version

from .estimators import SlimSVC, compress
from .io.native import load, save

__version__ = version("slimsvm")
__all__ = ["SlimSVC", "__version__", "compress", "load", "save"]
