"""The kinds of steps. A new one is a file here and a line in `FILES`; tests run all in Python, C and JavaScript."""

from __future__ import annotations

from typing import Any

from ..program import Step
from . import affine, categories, functions, holes, power, quantile, rows

FILES = (affine, holes, categories, quantile, power, rows, functions)
#: the kinds by the names in files
STEPS: dict[str, type[Step]] = {
    kind.kind: kind
    for file in FILES
    for kind in vars(file).values()
    if isinstance(kind, type) and issubclass(kind, Step) and "kind" in vars(kind)
}
#: how a fitted transformer is read, by its class's name
READERS: dict[str, Any] = {name: reader for file in FILES for name, reader in file.READERS.items()}
#: functions that the code of steps calls, each before those that call it
FUNCTIONS: dict[str, str] = {
    "probit": quantile.PROBIT,
    "power_of_log": power.POWERS,
    "yeo_johnson": power.YEO_JOHNSON,
    "box_cox": power.BOX_COX,
}
