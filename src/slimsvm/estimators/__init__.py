"""The doors: SlimSVC and compress."""

from .svc import SlimSVC, classifier_of, compress, compress_reporting, fit_reporting, imported

__all__ = ["SlimSVC", "classifier_of", "compress", "compress_reporting", "fit_reporting", "imported"]
