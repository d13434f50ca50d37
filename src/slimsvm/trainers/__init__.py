"""Trainers: data in, an expansion out. A new one is a class and a line here."""

from .smo import SMO

TRAINERS = {"smo": SMO}
