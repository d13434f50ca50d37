"""What users call: SlimSVC and compress."""

from .compress import compress, compress_reporting, imported
from .svc import SlimSVC, classifier_of, fit_reporting

__all__ = ["SlimSVC", "classifier_of", "compress", "compress_reporting", "fit_reporting", "imported"]
