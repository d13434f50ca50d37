"""Reducers: from data and a full model to a path of small models. A new one is one file and one line here."""

from ..solvers.metric_search import Learning
from ..solvers.point_search import Schedule
from .base import Reducer
from .cpsp import CPSP
from .csvm import CSVM
from .cvm import CVM
from .lars import Lars
from .nystroem import Nystroem
from .osuna_girosi import OsunaGirosi
from .prune import Prune
from .reduced_set import ReducedSet
from .rsvm import RSVM
from .slant import Slant
from .slant_aggressive import AggressiveSlant
from .slim import Slim
from .slmc import SLMC
from .spsvm import SpSVM
from .zhan_shen import ZhanShen

__all__ = [
    "CPSP",
    "CSVM",
    "CVM",
    "REDUCERS",
    "RSVM",
    "SLMC",
    "AggressiveSlant",
    "Lars",
    "Learning",
    "Nystroem",
    "OsunaGirosi",
    "Prune",
    "ReducedSet",
    "Reducer",
    "Schedule",
    "Slant",
    "Slim",
    "SpSVM",
    "ZhanShen",
]

REDUCERS: dict[str, type[Reducer]] = {
    "slim": Slim,
    "slant": Slant,
    "slant-aggressive": AggressiveSlant,
    "lars": Lars,
    "cvm": CVM,
    "reduced-set": ReducedSet,
    "osuna-girosi": OsunaGirosi,
    "zhan-shen": ZhanShen,
    "rsvm": RSVM,
    "spsvm": SpSVM,
    "cpsp": CPSP,
    "csvm": CSVM,
    "slmc": SLMC,
    "prune": Prune,
    "nystroem": Nystroem,
}
