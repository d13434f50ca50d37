"""Trainers make an expansion from data. A new one is a file with a class, and a line here."""

from typing import Any

from ..papers.any_norm import AnyNorm
from ..papers.budget_l1 import BudgetL1
from ..papers.budget_l2 import BudgetL2
from ..papers.forgetron import Forgetron
from ..papers.lp_svm import LP
from ..papers.pegasos import Pegasos
from ..papers.perceptron import Perceptron
from ..papers.ramp_loss import Ramp
from ..papers.rbp import RBP
from ..papers.sbp import SBP
from ..papers.sdca import SDCA
from .bsgd import BSGD
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
