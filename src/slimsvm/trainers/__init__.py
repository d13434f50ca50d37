"""Trainers: data in, an expansion out. A new one is a class and a line here."""

from typing import Any

from .bsgd import BSGD
from .perceptrons import RBP, Forgetron
from .smo import SMO

TRAINERS: dict[str, type[Any]] = {"smo": SMO, "forgetron": Forgetron, "rbp": RBP, "bsgd": BSGD}
