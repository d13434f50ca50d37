"""Reducers: data and an expansion in, a path of small expansions out. A new one is a class and a line here."""

from .osuna_girosi import OsunaGirosi
from .slant import AggressiveSlant, Slant

REDUCERS = {
    "slant": Slant,
    "slant-aggressive": AggressiveSlant,
    "osuna-girosi": OsunaGirosi,
}
