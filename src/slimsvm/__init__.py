"""slimsvm: kernel SVMs that are small enough to ship."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # instead of an import of typing, which would delay the handling of Ctrl-C by the command line

if TYPE_CHECKING:
    from typing import Any

    from . import displays, reducers, trainers
    from .estimators import (
        Interrupted,
        SlimOneClassSVM,
        SlimSVC,
        SlimSVCCV,
        SlimSVR,
        SlimSVRCV,
        compress,
        distill,
    )
    from .files.models import load
    from .files.native import save
    from .selection.allowance import smallest_within
    from .ship.export import export
    from .ship.runtime import runtime
    from .ship.shapley import shapley
    from .studio.report import report
    from .studio.tradeoff import tradeoff
    from .studio.tune import tune
    from .tables.preparation import table_preparation
    from .versions import show_versions

__version__: str
__all__ = [
    "Interrupted",
    "SlimOneClassSVM",
    "SlimSVC",
    "SlimSVCCV",
    "SlimSVR",
    "SlimSVRCV",
    "__version__",
    "compress",
    "displays",
    "distill",
    "export",
    "load",
    "reducers",
    "report",
    "runtime",
    "save",
    "shapley",
    "show_versions",
    "smallest_within",
    "table_preparation",
    "tradeoff",
    "trainers",
    "tune",
]

#: the module of each name; it is imported at first use, so that `runtime` works without scikit-learn
HOMES = {
    "Interrupted": "estimators",
    "SlimOneClassSVM": "estimators",
    "SlimSVC": "estimators",
    "SlimSVCCV": "estimators",
    "SlimSVR": "estimators",
    "SlimSVRCV": "estimators",
    "compress": "estimators",
    "distill": "estimators",
    "export": "ship.export",
    "load": "files.models",
    "report": "studio.report",
    "runtime": "ship.runtime",
    "save": "files.native",
    "shapley": "ship.shapley",
    "show_versions": "versions",
    "smallest_within": "selection.allowance",
    "table_preparation": "tables.preparation",
    "tradeoff": "studio.tradeoff",
    "tune": "studio.tune",
}
MODULES = ("displays", "reducers", "trainers")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import

        return version("slimsvm")
    if name in MODULES:
        return import_module(f".{name}", __name__)
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
