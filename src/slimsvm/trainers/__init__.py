"""Trainers: data in, an expansion out. A new one is a class and a line here."""

from .anynorm import AnyNorm, BudgetL1, BudgetL2
from .outputs import BinaryTrainer
from .smo import SMO

TRAINERS: dict[str, type[BinaryTrainer]] = {"smo": SMO, "any-norm": AnyNorm, "budget-l1": BudgetL1, "budget-l2": BudgetL2}
