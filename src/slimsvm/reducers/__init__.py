"""Reducers: data and an expansion in, a path of small expansions out. A new one is a class and a line here."""

from .cpsp import CPSP
from .nystroem import Nystroem
from .rsvm import RSVM
from .slant import AggressiveSlant, Slant
from .slim import Slim
from .spsvm import SpSVM

REDUCERS = {
    "slim": Slim,
    "slant": Slant,
    "slant-aggressive": AggressiveSlant,
    "rsvm": RSVM,
    "spsvm": SpSVM,
    "nystroem": Nystroem,
    "cpsp": CPSP,
}
