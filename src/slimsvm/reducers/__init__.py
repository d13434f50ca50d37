"""Reducers: data and an expansion in, a path of small expansions out. A new one is a class and a line here."""

from .csvm import CSVM
from .prune import Prune
from .reduced_set import ReducedSet
from .slant import AggressiveSlant, Slant

REDUCERS = {
    "slant": Slant,
    "slant-aggressive": AggressiveSlant,
    "reduced-set": ReducedSet,
    "csvm": CSVM,
    "prune": Prune,
}
