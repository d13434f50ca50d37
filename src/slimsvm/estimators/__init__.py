"""What users call: SlimSVC and compress, and what Ctrl-C raises."""

from .compress import compress, compress_reporting, imported
from .interrupted import Interrupted
from .svc import SlimSVC, classifier_of, fit_reporting

__all__ = ["Interrupted", "SlimSVC", "classifier_of", "compress", "compress_reporting", "fit_reporting", "imported"]
