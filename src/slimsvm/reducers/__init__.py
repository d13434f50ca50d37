"""Reducers: from data and a full model to a path of small models. A new one is one file and one line here."""

from ..papers.cpsp import CPSP
from ..papers.csvm import CSVM
from ..papers.cvm import CVM
from ..papers.lars import Lars
from ..papers.nystroem import Nystroem
from ..papers.osuna_girosi import OsunaGirosi
from ..papers.reduced_set import ReducedSet
from ..papers.rsvm import RSVM
from ..papers.slant import Slant
from ..papers.slant_aggressive import AggressiveSlant
from ..papers.slmc import SLMC
from ..papers.zhan_shen import ZhanShen
from ..solvers.metric_search import Learning
from ..solvers.point_search import Schedule
from .base import Reducer
from .prune import Prune
from .slim import Slim
from .spsvm import SpSVM

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
