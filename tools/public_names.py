"""Print the public interface, a line for each name: `python -m tools.public_names > tests/public_names.txt`.

`tests/test_public_names.py` compares the two, so that the interface changes on purpose only.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import slimsvm
from slimsvm.kernels import KERNELS
from slimsvm.reducers import REDUCERS
from slimsvm.ship.export import EXPORTERS
from slimsvm.trainers import TRAINERS

#: public names outside the package's own `__all__`: those that the README tells users to import
DOCUMENTED = {
    "slimsvm.dask": ("DaskSlimSVC", "DaskSlimSVR"),
    "slimsvm.files.datasets": ("read_data",),
    "slimsvm.files.models": ("read_libsvm",),
    "slimsvm.ship.converter": ("register",),
}
TABLES: dict[str, dict[str, Any]] = {"trainer": TRAINERS, "reducer": REDUCERS, "kernel": KERNELS, "exporter": EXPORTERS}


def public_names() -> Iterator[str]:
    """Yield each name with its parameters."""
    for name in slimsvm.__all__:
        yield from _lines(f"slimsvm.{name}", getattr(slimsvm, name))
    for module, names in DOCUMENTED.items():
        for name in names:
            yield from _lines(f"{module}.{name}", getattr(import_module(module), name))
    for kind, table in TABLES.items():
        for name, part in sorted(table.items()):
            fields = [field.name for field in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
            yield f"{kind} {name}({', '.join(fields)})"


def _lines(name: str, value: Any) -> Iterator[str]:
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        yield name
        return
    yield f"{name}({_parameters(value)})"
    if inspect.isclass(value):
        for member, content in sorted(inspect.getmembers(value)):
            if not member.startswith("_") and value.__name__ in getattr(content, "__qualname__", value.__name__):
                yield f"{name}.{member}({_parameters(content)})" if inspect.isfunction(content) else f"{name}.{member}"


def _parameters(value: Callable[..., Any]) -> str:
    return ", ".join(name for name in inspect.signature(value).parameters if name != "self")


if __name__ == "__main__":
    print(*public_names(), sep="\n")
