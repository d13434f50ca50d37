"""Declared states: dataclasses whose fields say what may be in them, packed and checked here.

    @dataclass
    class Solved:
        dual: Annotated[Array, floats("n")]
        steps: int
        status: Status

`pack` makes a dict of arrays, numbers, strings, lists and dicts of these. `unpack(Solved, state, n=rows.n)` reads it back.
The file may be damaged or forged, so each entry is checked. An `int` is a count and a `float` is not NaN; `X | None` may be
missing. A name in the shape of an array stands for the same number everywhere. If `unpack` is not given it, the first array
that has it sets it; ("m", 1) is one more than "m".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from math import isfinite, isnan
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from .text import short

State = dict[str, Any]

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


class StateError(ValueError):
    """A saved state that no run can continue from. Callers that know the file name it."""

    def __init__(self, words: str) -> None:
        super().__init__(f"its state has {words}; start without this checkpoint")
        self.words = words


@dataclass(frozen=True, eq=False)
class Entry:
    """What a field is read from, by its name and the sizes known so far, with a StateError otherwise; how it is written."""

    read: Callable[[str, Any, Sizes], Any]
    packed: Callable[[Any], Any] = lambda value: value


def plain(*kinds: type) -> Entry:
    """Return the entry for values of these types, which are written as they are."""

    def read(name: str, found: Any, _: Sizes) -> Any:
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
            raise StateError(f"no {name!r}")
        return found

    return Entry(read)


def whole(least: int = 0, most: int = MOST) -> Entry:
    """Return the entry for whole numbers from `least` to `most`."""

    def read(name: str, found: Any, sizes: Sizes) -> int:
        if not least <= plain(int).read(name, found, sizes) <= most:
            raise StateError(f"a {name!r} that is not between {least} and {most}")
        return int(found)

    return Entry(read)


def real(*, finite: bool = False) -> Entry:
    """Return the entry for numbers, which are not NaN and, if `finite`, not infinite."""

    def read(name: str, found: Any, sizes: Sizes) -> float:
        try:
            number = float(plain(int, float).read(name, found, sizes))
        except OverflowError:
            raise StateError(f"a number {name!r} beyond float64") from None
        if isnan(number) or (finite and not isfinite(number)):
            raise StateError(f"{number} for {name!r}")
        return number

    return Entry(read)


def floats(*shape: Size, finite: bool = True, positive: bool = False, dtype: str = "float64") -> Entry:
    """Return the entry for arrays without NaN and, if `finite`, with entries up to LARGEST; they are copied."""

    def read(name: str, found: Any, sizes: Sizes) -> Array:
        fits = isinstance(found, np.ndarray) and found.dtype == dtype and found.ndim == len(shape)
        if not fits or not all(_agrees(*pair, sizes) for pair in zip(shape, found.shape, strict=True)):
            raise StateError(f"no array {name!r} of shape {shape} and type {dtype}, with {sizes}")
        if np.isnan(found).any() or (finite and (np.abs(found, dtype=np.float64) > LARGEST).any()):
            raise StateError(f"numbers in {name!r} that are NaN or too large")
        if positive and not (found > 0).all():
            raise StateError(f"numbers in {name!r} that are not positive")
        return found.copy()

    return Entry(read, lambda value: np.array(value, dtype))


def ordered(*shape: Size) -> Entry:
    """Return the entry for arrays whose order in memory is kept, on which sums depend."""

    def read(name: str, found: Any, sizes: Sizes) -> Array:
        parts = found if isinstance(found, dict) else {}
        values = floats(*shape).read(name, parts.get("values"), sizes)
        return np.asfortranarray(values) if plain(bool).read(name, parts.get("fortran"), sizes) else values

    return Entry(read, lambda value: {"values": np.array(value), "fortran": bool(np.isfortran(value))})


def row_numbers(below: str) -> Entry:
    """Return the entry for row numbers below a size that `unpack` is given, without repetition."""
    numbers = floats("", finite=False, dtype="int64")

    def read(name: str, found: Any, sizes: Sizes) -> Array:
        rows: Array = numbers.read(name, found, sizes).astype(np.intp)
        if rows.size and not 0 <= rows.min() <= rows.max() < sizes[below]:
            raise StateError(f"rows in {name!r} that are out of range")
        if np.unique(rows).size < rows.size:
            raise StateError(f"a row twice in {name!r}")
        return rows

    return Entry(read, numbers.packed)


def nested(kind: type) -> Entry:
    """Return the entry for a dataclass; the sizes known by then hold in it too."""
    return Entry(lambda name, found, sizes: unpack(kind, plain(dict).read(name, found, sizes), **sizes), pack)


def several(each: Entry) -> Entry:
    """Return the entry for lists."""
    return Entry(
        lambda name, found, sizes: [each.read(name, item, sizes) for item in plain(list).read(name, found, sizes)],
        lambda value: [each.packed(item) for item in value],
    )


def _member(members: type[Enum]) -> Entry:
    """Return the entry for the members of an enumeration, by their names."""

    def read(name: str, found: Any, sizes: Sizes) -> Enum:
        if plain(str).read(name, found, sizes) not in members.__members__:
            raise StateError(f"the unknown {name} {short(found)}")
        return members[found]

    return Entry(read, lambda value: value.name)


def _generator(name: str, found: Any, _: Sizes) -> np.random.Generator:
    """Return a random generator in a state. PCG64 needs an odd increment; with others it can return zeros for ever."""
    rng = np.random.default_rng(0)
    try:
        if found["state"]["inc"] % 2 != 1:
            raise ValueError("its increment is even")
        rng.bit_generator.state = found
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise StateError(f"no generator {name!r} ({error})") from error
    return rng


#: what is in fields of these types
PLAIN: dict[Any, Entry] = {kind: plain(kind) for kind in (bool, str, dict)} | {
    int: whole(),
    float: real(),
    np.random.Generator: Entry(_generator, lambda value: dict(value.bit_generator.state)),
}
#: marks a field that is not saved and has a default: Annotated[X, UNSAVED]
UNSAVED = object()
#: a number that is neither NaN nor infinite
Finite = Annotated[float, real(finite=True)]


def pack(value: Any) -> State:
    """Return the state of a dataclass; it does not change with the value."""
    kind: Any = type(value)
    entries = ((name, entry, getattr(value, name)) for name, entry, _ in _entries(kind))
    return {name: entry.packed(found) for name, entry, found in entries if found is not None}


def unpack(kind: type[T], state: Any, **sizes: int) -> T:
    """Return the dataclass of a state that `pack` made; raise StateError if it cannot be one."""
    found, declared = state if isinstance(state, dict) else {}, _entries(kind)  # type: ignore[arg-type]
    read = {name: entry.read for name, entry, optional in declared if not optional or found.get(name) is not None}
    absent = {name: None for name, _, _ in declared if name not in read}
    return kind(**absent, **{name: reading(name, found.get(name), sizes) for name, reading in read.items()})


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
        return several(_entry_of(arguments[0])[0]), False
    kind: Any = origin or hint
    return PLAIN.get(kind) or (_member(kind) if issubclass(kind, Enum) else nested(kind)), False


def _agrees(size: Size, have: int, sizes: Sizes) -> bool:
    """Return whether a size of an array is the one declared; a name without a number gets this one."""
    if isinstance(size, int):
        return have == size
    name, more = (size, 0) if isinstance(size, str) else size
    return not name or sizes.setdefault(name, have - more) == have - more
