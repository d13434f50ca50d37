"""What users call: SlimSVC, SlimSVR, SlimOneClassSVM and compress, and what Ctrl-C raises."""

from .base import fit_reporting
from .compress import compress, compress_reporting
from .imported import estimator_of, imported
from .interrupted import Interrupted
from .one_class import SlimOneClassSVM
from .svc import SlimSVC, classifier_of
from .svr import SlimSVR

__all__ = [
    "Interrupted",
    "SlimOneClassSVM",
    "SlimSVC",
    "SlimSVR",
    "classifier_of",
    "compress",
    "compress_reporting",
    "estimator_of",
    "fit_reporting",
    "imported",
]
