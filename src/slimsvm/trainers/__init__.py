"""Trainers make an expansion from data. A new one is a file with a class, and a line here."""

from typing import Any

from .any_norm import AnyNorm
from .bsgd import BSGD
from .budget_l1 import BudgetL1
from .budget_l2 import BudgetL2
from .forgetron import Forgetron
from .lp import LP
from .pegasos import Pegasos
from .perceptron import Perceptron
from .ramp import Ramp
from .rbp import RBP
from .sbp import SBP
from .sdca import SDCA
from .smo import SMO

TRAINERS: dict[str, type[Any]] = {
    "smo": SMO,
    "sbp": SBP,
    "pegasos": Pegasos,
    "sdca": SDCA,
    "perceptron": Perceptron,
    "ramp": Ramp,
    "lp": LP,
    "any-norm": AnyNorm,
    "budget-l1": BudgetL1,
    "budget-l2": BudgetL2,
    "forgetron": Forgetron,
    "rbp": RBP,
    "bsgd": BSGD,
}
