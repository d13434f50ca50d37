"""The doors: SlimSVC and compress."""

from .svc import SlimSVC, compress

__all__ = ["SlimSVC", "compress"]
