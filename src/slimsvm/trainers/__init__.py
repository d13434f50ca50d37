"""Trainers: data in, an expansion out. A new one is a class and a line here."""

from .outputs import BinaryTrainer
from .pegasos import Pegasos
from .perceptron import Perceptron
from .sbp import SBP
from .sdca import SDCA
from .smo import SMO

TRAINERS: dict[str, type[BinaryTrainer]] = {
    "smo": SMO,
    "sbp": SBP,
    "pegasos": Pegasos,
    "sdca": SDCA,
    "perceptron": Perceptron,
}
