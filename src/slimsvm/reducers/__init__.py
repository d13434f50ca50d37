"""Reducers: from data and a full model to a path of small models. A new one is one file and one line here."""

from ..papers.compressed_vectors import CVM, Lars
from ..papers.condensed import CSVM
from ..papers.cutting_planes import CPSP
from ..papers.optimally_sparse import AggressiveSlant, Slant
from ..papers.random_basis import RSVM, Nystroem
from ..papers.reduced_set import ReducedSet
from ..papers.regression_of_outputs import OsunaGirosi, ZhanShen
from ..papers.slmc import SLMC
from ..slim.method import Slim
from .base import Reducer
from .prune import Prune
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
    "Nystroem",
    "OsunaGirosi",
    "Prune",
    "ReducedSet",
    "Reducer",
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
