"""Reducers: data and an expansion in, a path of small expansions out. A new one is a class and a line here."""

from .nystroem import Nystroem
from .osuna_girosi import OsunaGirosi
from .reducer import Reducer
from .rsvm import RSVM
from .slant import AggressiveSlant, Slant
from .slim import Slim
from .slmc import SLMC
from .spsvm import SpSVM
from .zhan_shen import ZhanShen

REDUCERS: dict[str, type[Reducer]] = {
    "slim": Slim,
    "slant": Slant,
    "slant-aggressive": AggressiveSlant,
    "rsvm": RSVM,
    "spsvm": SpSVM,
    "nystroem": Nystroem,
    "osuna-girosi": OsunaGirosi,
    "zhan-shen": ZhanShen,
    "slmc": SLMC,
}
