"""Reducers: data and an expansion in, a path of small expansions out. A new one is a class and a line here."""

from .cpsp import CPSP
from .slant import AggressiveSlant, Slant

REDUCERS = {"slant": Slant, "slant-aggressive": AggressiveSlant, "cpsp": CPSP}
