"""What users call: SlimSVC, SlimSVR, SlimOneClassSVM and compress, and what Ctrl-C raises."""

from .base import fit_reporting
from .compress import compress, compress_within
from .cv import SlimSVCCV, SlimSVRCV
from .distill import distill
from .machines import MACHINES, imported, machine_of
from .one_class import SlimOneClassSVM
from .resume import Interrupted
from .svc import SlimSVC
from .svr import SlimSVR

__all__ = [
    "MACHINES",
    "Interrupted",
    "SlimOneClassSVM",
    "SlimSVC",
    "SlimSVCCV",
    "SlimSVR",
    "SlimSVRCV",
    "compress",
    "compress_within",
    "distill",
    "fit_reporting",
    "imported",
    "machine_of",
]
