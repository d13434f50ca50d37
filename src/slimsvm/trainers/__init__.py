"""Trainers make an expansion from data. A new one is a file with a class, and a line here."""

from ..papers.batch_perceptron import SBP
from ..papers.budget_svm import AnyNorm, BudgetL1, BudgetL2
from ..papers.forgetron_rbp import RBP, Forgetron
from ..papers.lp_svm import LP
from ..papers.one_row_at_a_time import SDCA, Pegasos, Perceptron
from ..papers.ramp_loss import Ramp
from .base import Trainer
from .bsgd import BSGD
from .smo import SMO

TRAINERS: dict[str, type[Trainer]] = {
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
