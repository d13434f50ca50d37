"""Declared states: dataclasses whose fields say what may be in them, packed and checked here.

    @dataclass
    class Solved:
        dual: Annotated[Array, Floats("n")]
        steps: int
        status: Status

`pack` makes a dict of arrays, numbers, strings, lists and dicts of these. `unpack(Solved, state, n=rows.n)` reads it back.
The file may be damaged or forged, so each entry is checked. An `int` is a count and a `float` is not NaN; `X | None` may be
missing. A name in the shape of an array stands for the same number everywhere. If `unpack` is not given it, the first array
that has it sets it; ("m", 1) is one more than "m".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from math import isfinite, isnan
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from .keeping import State, StateError
from .text import short

Array = np.ndarray
T = TypeVar("T")
#: a size of an array: a number, a name ("": any size), or a name and how many more
Size = int | str | tuple[str, int]
#: the sizes that shapes name
Sizes = dict[str, int]
#: the largest count in a state, of steps, rows or evaluations
MOST = 2**62
#: the largest entry of an array, as of features: products of two are float64 numbers
LARGEST = 1e150


class Entry:
    """What may be in a field; this kind is of values that are written as they are."""

    def __init__(self, *kinds: type) -> None:
        self.kinds = kinds

    def packed(self, value: Any) -> Any:
        """Return the value as it is written."""
        return value

    def read(self, name: str, found: Any, sizes: Sizes) -> Any:  # noqa: ARG002
        """Return the value that was written; raise StateError if it cannot be one."""
        if not isinstance(found, self.kinds) or (isinstance(found, bool) and bool not in self.kinds):
            raise StateError(f"no {name!r}")
        return found


class Whole(Entry):
    """A whole number from `least` to `most`."""

    def __init__(self, least: int = 0, most: int = MOST) -> None:
        super().__init__(int)
        self.least, self.most = least, most

    def read(self, name: str, found: Any, sizes: Sizes) -> int:
        """Return the number."""
        if not self.least <= super().read(name, found, sizes) <= self.most:
            raise StateError(f"a {name!r} that is not between {self.least} and {self.most}")
        return int(found)


class Real(Entry):
    """A number, which is not NaN and, if `finite`, not infinite."""

    def __init__(self, *, finite: bool = False) -> None:
        super().__init__(int, float)
        self.finite = finite

    def read(self, name: str, found: Any, sizes: Sizes) -> float:
        """Return the number."""
        try:
            number = float(super().read(name, found, sizes))
        except OverflowError:
            raise StateError(f"a number {name!r} beyond float64") from None
        if isnan(number) or (self.finite and not isfinite(number)):
            raise StateError(f"{number} for {name!r}")
        return number


class OneOf(Entry):
    """A member of an enumeration, by its name."""

    def __init__(self, members: type[Enum]) -> None:
        super().__init__(str)
        self.members = members

    def packed(self, value: Any) -> str:
        """Return the name."""
        return str(value.name)

    def read(self, name: str, found: Any, sizes: Sizes) -> Enum:
        """Return the member."""
        if super().read(name, found, sizes) not in self.members.__members__:
            raise StateError(f"the unknown {name} {short(found)}")
        return self.members[found]


class Floats(Entry):
    """A float64 array without NaN and, if `finite`, with entries up to LARGEST. See above for the shape."""

    dtype = "float64"

    def __init__(self, *shape: Size, finite: bool = True, positive: bool = False) -> None:
        super().__init__(np.ndarray)
        self.shape, self.finite, self.positive = shape, finite, positive

    def packed(self, value: Any) -> Any:
        """Return a copy: the run changes its arrays."""
        return np.array(value)

    def read(self, name: str, found: Any, sizes: Sizes) -> Array:
        """Return a copy of the array."""
        fits = isinstance(found, np.ndarray) and found.dtype == self.dtype and found.ndim == len(self.shape)
        if not fits or not all(_agrees(*pair, sizes) for pair in zip(self.shape, found.shape, strict=True)):
            raise StateError(f"no array {name!r} of shape {self.shape} and type {self.dtype}, with {sizes}")
        self.check(name, found, sizes)
        return found.copy()

    def check(self, name: str, found: Array, sizes: Sizes) -> None:  # noqa: ARG002
        """Raise StateError if the numbers are not of this kind."""
        if np.isnan(found).any() or (self.finite and (np.abs(found) > LARGEST).any()):
            raise StateError(f"numbers in {name!r} that are NaN or too large")
        if self.positive and not (found > 0).all():
            raise StateError(f"numbers in {name!r} that are not positive")


class Ordered(Floats):
    """An array whose order in memory is kept, on which sums depend."""

    def packed(self, value: Any) -> Any:
        """Return a copy, and its order."""
        return {"values": np.array(value), "fortran": bool(np.isfortran(value))}

    def read(self, name: str, found: Any, sizes: Sizes) -> Array:
        """Return the array in its order."""
        parts = found if isinstance(found, dict) else {}
        values = super().read(name, parts.get("values"), sizes)
        return np.asfortranarray(values) if Entry(bool).read(name, parts.get("fortran"), sizes) else values


class Places(Floats):
    """Row numbers below a size that is given, without repetition."""

    dtype = "int64"

    def __init__(self, below: str) -> None:
        super().__init__("")
        self.below = below

    def packed(self, value: Any) -> Any:
        """Return a copy."""
        return np.array(value, dtype=np.int64)

    def read(self, name: str, found: Any, sizes: Sizes) -> Array:
        """Return the row numbers."""
        return super().read(name, found, sizes).astype(np.intp)

    def check(self, name: str, found: Array, sizes: Sizes) -> None:
        """Raise StateError if a row is not there or is there twice."""
        if found.size and not 0 <= found.min() <= found.max() < sizes[self.below]:
            raise StateError(f"rows in {name!r} that are out of range")
        if np.unique(found).size < found.size:
            raise StateError(f"a row twice in {name!r}")


class Generator(Entry):
    """A random generator. PCG64 needs an odd increment; with others it can return zeros for ever."""

    def packed(self, value: Any) -> State:
        """Return the state of the generator."""
        return dict(value.bit_generator.state)

    def read(self, name: str, found: Any, sizes: Sizes) -> np.random.Generator:  # noqa: ARG002
        """Return a generator in that state."""
        rng = np.random.default_rng(0)
        try:
            if found["state"]["inc"] % 2 != 1:
                raise ValueError("its increment is even")
            rng.bit_generator.state = found
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise StateError(f"no generator ({error})") from error
        return rng


class Part(Entry):
    """A state within the state; the sizes known by then hold in it too."""

    def __init__(self, kind: type) -> None:
        super().__init__(dict)
        self.kind = kind

    def packed(self, value: Any) -> State:
        """Return the state of the part."""
        return pack(value)

    def read(self, name: str, found: Any, sizes: Sizes) -> Any:
        """Return the part."""
        return unpack(self.kind, super().read(name, found, sizes), **sizes)


class Several(Entry):
    """A list."""

    def __init__(self, each: Entry) -> None:
        super().__init__(list)
        self.each = each

    def packed(self, value: Any) -> list[Any]:
        """Return the list as it is written."""
        return [self.each.packed(item) for item in value]

    def read(self, name: str, found: Any, sizes: Sizes) -> list[Any]:
        """Return the list."""
        return [self.each.read(name, item, sizes) for item in super().read(name, found, sizes)]


#: what may be in fields of these types
PLAIN: dict[type, Entry] = {
    bool: Entry(bool),
    int: Whole(),
    float: Real(),
    str: Entry(str),
    dict: Entry(dict),
    np.random.Generator: Generator(),
}
#: marks a field that is not saved and has a default: Annotated[X, UNSAVED]
UNSAVED = object()
#: a number that is neither NaN nor infinite
Finite = Annotated[float, Real(finite=True)]


def pack(value: Any) -> State:
    """Return the state of a dataclass; it does not change with the value."""
    kind: Any = type(value)
    entries = ((name, entry, getattr(value, name)) for name, entry, _ in _entries(kind))
    return {name: entry.packed(found) for name, entry, found in entries if found is not None}


def unpack(kind: type[T], state: Any, **sizes: int) -> T:
    """Return the dataclass of a state that `pack` made; raise StateError if it cannot be one."""
    found = state if isinstance(state, Mapping) else {}
    declared: Any = kind
    return kind(
        **{
            name: None if optional and found.get(name) is None else entry.read(name, found.get(name), sizes)
            for name, entry, optional in _entries(declared)
        }
    )


def go_on(rng: np.random.Generator, at: np.random.Generator) -> None:
    """Let a generator, which others share, go on from where another one is."""
    rng.bit_generator.state = at.bit_generator.state


@cache
def _entries(kind: Any) -> list[tuple[str, Entry, bool]]:
    """Return the name of each field, what may be in it, and whether it may be missing."""
    hints = get_type_hints(kind, include_extras=True)
    saved = [field.name for field in fields(kind) if field.init and UNSAVED not in get_args(hints[field.name])]
    return [(name, *_entry_of(hints[name])) for name in saved]


def _entry_of(hint: Any) -> tuple[Entry, bool]:
    origin, arguments = get_origin(hint), get_args(hint)
    if NoneType in arguments:
        return _entry_of(next(each for each in arguments if each is not NoneType))[0], True
    if origin is Annotated:
        return next(each for each in arguments if isinstance(each, Entry)), False
    if origin is list:
        return Several(_entry_of(arguments[0])[0]), False
    kind: Any = origin or hint
    if kind in PLAIN:
        return PLAIN[kind], False
    return (OneOf(kind) if issubclass(kind, Enum) else Part(kind)), False


def _agrees(size: Size, have: int, sizes: Sizes) -> bool:
    """Return whether a size of an array is the one declared; a name without a number gets this one."""
    if isinstance(size, int):
        return have == size
    name, more = (size, 0) if isinstance(size, str) else size
    return not name or sizes.setdefault(name, have - more) == have - more
