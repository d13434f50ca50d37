"""Trainers: data in, an expansion out. A new one is a class and a line here."""

from .lp import LP
from .outputs import BinaryTrainer
from .ramp import Ramp
from .smo import SMO

TRAINERS: dict[str, type[BinaryTrainer]] = {"smo": SMO, "ramp": Ramp, "lp": LP}
