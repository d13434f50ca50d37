"""Values in the JSON header of a .slim file, read back. Needs NumPy only, and scipy where the file has sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..tables.recognition import ColumnsOf
from ..tables.steps.functions import function_named
from ..text import short
from .container import DTYPE, SCALAR, Arrays, Entry, checked_shape, version

#: no value of a table
NOTHING = object()


class Reader:
    """JSON to values; each array may be referred to once.

    `kinds` has the frozen dataclasses that the file may name, by kind and name; `statuses` how trainings end, by name.
    `csr` makes a sparse array of data, indices, indptr and shape, by default one of scipy; `step` makes a transformer of
    its class's name and attributes, by default an object with these.
    """

    def __init__(
        self,
        arrays: Arrays,
        kinds: Mapping[str, Mapping[str, Any]],
        statuses: Mapping[str, Any],
        csr: Callable[..., Any] | None = None,
        step: Callable[[str, Entry], Any] | None = None,
    ) -> None:
        self.arrays, self.kinds, self.statuses = arrays, kinds, statuses
        self.make_step: Callable[[str, Entry], Any] = step or (
            lambda name, attributes: SimpleNamespace(type_name=name, **attributes)
        )
        self.make_csr: Callable[..., Any] = csr or _scipy_csr

    def unpack(self, packed: Any) -> Any:
        """Return the value that `native.save` made this JSON of."""
        match packed:
            case float() if not math.isfinite(packed):
                raise ValueError(f"it has {packed} for a number")
            case None | bool() | int() | float() | str():
                return packed
            case list():
                return [self.unpack(item) for item in packed]
            case {"scalar": bool() | int() | float() as value, "dtype": str(dtype)} if SCALAR.fullmatch(dtype):
                return np.array(self.unpack(value), np.dtype(dtype).newbyteorder("="))[()]
            case {"tuple": list(items)}:
                return tuple(self.unpack(items))
            case {"dict": list(pairs)}:
                return self._unpack_dict(pairs)
            case {"status": str(name)} if name in self.statuses:
                return self.statuses[name]
            case {"kind": str(kind), "name": str(name), "fields": dict(fields)} if name in self.kinds.get(kind, {}):
                return build(self.kinds[kind][name], {field: self.unpack(content) for field, content in fields.items()})
        value = self._unpack_of_tables(packed)
        return self._unpack_array(packed) if value is NOTHING else value

    def _unpack_of_tables(self, packed: Any) -> Any:
        """Return a value that transformers of tables have; NOTHING for another one."""
        match packed:
            case {"step": str(name), "attributes": dict(attributes)}:
                return self.make_step(name, {key: self.unpack(value) for key, value in attributes.items()})
            case {"number": "nan" | "inf" | "-inf" | "NA" as word}:
                return _na() if word == "NA" else float(word)
            case {"slice": [int() | None as start, int() | None as stop]}:
                return slice(start, stop)
            case {"dtype": str(text)} if len(packed) == 1 and (text == "|O" or DTYPE.fullmatch(text)):
                return np.dtype(text)
            case {"number type": str(text)} if SCALAR.fullmatch(text):
                return np.dtype(text).type
            case {"columns_of": [str(kind), list(), list(), list()]}:
                return build(ColumnsOf, {}, kind, *(tuple(self.unpack(part)) for part in packed["columns_of"][1:]))
            case {"cells": list(items)}:
                cells = np.empty(len(items), dtype=object)
                cells[:] = self.unpack(items)
                return cells
            case {"function": str(name)}:
                return function_named(name)
        return NOTHING

    def _unpack_dict(self, pairs: list[Any]) -> dict[Any, Any]:
        unpacked = self.unpack(pairs)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in unpacked):
            raise ValueError(f"it has a dict that is not made of pairs: {short(pairs)}")
        return build(dict, {}, unpacked)

    def _unpack_array(self, packed: Entry) -> Any:
        match packed:
            case {"array": str(name)} if name in self.arrays:
                return self.arrays.pop(name)
            case {"strings": list(items)} if all(isinstance(item, str) for item in items):
                return np.array(items, dtype=object)
            case {"csr": list(shape), "data": data, "indices": indices, "indptr": indptr}:
                return self._csr([self.unpack(piece) for piece in (data, indices, indptr)], checked_shape(shape))
        raise ValueError(f"it has a value that slimsvm {version()} does not know: {short(packed)}")

    def _csr(self, pieces: list[Any], shape: tuple[int, ...]) -> Any:
        kinds = [piece.dtype.kind if isinstance(piece, np.ndarray) and piece.ndim == 1 else None for piece in pieces]
        if kinds != ["f", "i", "i"] or len(shape) != 2:
            raise ValueError("it has a sparse array whose pieces are not of the types of a CSR array")
        return self.make_csr(*pieces, shape)


def _scipy_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, ...]) -> Any:
    from .arrays import checked_csr

    return checked_csr(data, indices, indptr, shape)


def _na() -> Any:
    """Return pandas' NA, or NaN where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return math.nan
    return pd.NA


def build(kind: Any, fields: Entry, *given: Any) -> Any:
    """Return kind(*given, **fields)."""
    try:
        return kind(*given, **fields)
    except (AttributeError, IndexError, TypeError) as error:
        raise ValueError(f"it has a {kind.__name__} that cannot be made: {error}") from error
