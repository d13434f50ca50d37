"""The tape while transformers are read: columns that get words, and steps that are added one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..text import short
from .program import Array, Column, Preparation, Step
from .recognition import is_missing

#: reads a fitted transformer: (transformer, places of its input, tape) -> places of its output
Reader = Callable[[Any, list[int], "Tape"], list[int]]


@dataclass
class Tape:
    """Columns and steps read so far; places are numbered as they are written."""

    given: int
    readers: Mapping[str, Reader]
    names: tuple[str, ...] = ()
    steps: list[Step] = field(default_factory=list)
    lists: dict[int, list[str]] = field(default_factory=dict)  # words by column
    columns_of: dict[int, int] = field(default_factory=dict)  # the column whose codes a place holds
    dates: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.columns_of = {place: place for place in range(self.given)}
        self.end = self.given

    def read(self, step: Any, places: list[int]) -> list[int]:
        """Return the places of a transformer's output; raise ValueError for one that cannot be shipped."""
        if step in ("passthrough", None):
            return places
        name = name_of(step)
        if name == "drop" or step == "drop":
            return []
        if name in self.readers:
            return self.readers[name](step, places, self)
        if hasattr(step, "get_support"):
            return [place for place, selected in zip(places, step.get_support(), strict=True) if selected]
        raise ValueError(
            f"cannot ship a Pipeline with a {name}; there are {', '.join(sorted(self.readers))}, and selectors of features"
            ". Transform the rows before, or convert the whole Pipeline by skl2onnx (slimsvm.ship.converter.register)"
        )

    def add(self, step: Step) -> list[int]:
        """Add a step and return the places of its outputs."""
        self.steps.append(step)
        places = list(range(self.end, self.end + step.outputs))
        self.end += step.outputs
        return places

    def filled(self, step: Step) -> list[int]:
        """Add a step whose outputs are its inputs without holes, and are codes of words where these are."""
        places = self.add(step)
        for place, before in zip(places, step.inputs.tolist(), strict=True):
            if before in self.columns_of:
                self.columns_of[place] = self.columns_of[before]
        return places

    def codes(self, place: int, words: list[Any]) -> Array:
        """Return the codes of words in a place: their places in its column's list, to which new ones are added."""
        if place not in self.columns_of or self.columns_of[place] in self.dates:
            raise ValueError(f"cannot ship an encoder of words {short(words)} behind a step that makes numbers")
        known = self.lists.setdefault(self.columns_of[place], [])
        known += [word for word in dict.fromkeys(words) if word not in known]
        numbers = {word: code for code, word in enumerate(known)}
        return np.array([numbers[word] for word in words], dtype=np.float64)

    def has_words(self, place: int) -> bool:
        """Whether a place holds codes of words, as far as is known."""
        return self.columns_of.get(place) in self.lists

    def finished(self, outputs: list[int]) -> Preparation:
        """Return the preparation whose rows are these places."""
        read = np.unique(np.concatenate([[], outputs, *(step.inputs for step in self.steps)])).astype(np.intp)
        used = [place for place in read.tolist() if place < self.given]
        moved = {place: number for number, place in enumerate(used)}
        moved |= {place: place - self.given + len(used) for place in range(self.given, self.end)}
        columns = tuple(
            Column(place, self.names[place] if self.names else "", self._kind(place), tuple(self.lists.get(place, ())))
            for place in used
        )
        steps = tuple(_moved(step, moved) for step in self.steps)
        return Preparation(columns, steps, np.array([moved[place] for place in outputs], dtype=np.intp), self.given)

    def _kind(self, column: int) -> str:
        return "word" if column in self.lists else "date" if column in self.dates else "number"


def _moved(step: Step, places: Mapping[int, int]) -> Step:
    fields = dict(vars(step))
    fields["inputs"] = np.array([places[place] for place in step.inputs.tolist()], dtype=np.intp)
    return type(step)(**fields)


def name_of(step: Any) -> str:
    """Return the class of a transformer, or what stands for one read from a file."""
    return str(getattr(step, "type_name", type(step).__name__))


def are_words(cells: Any) -> bool:
    """Return whether categories are words; those that are missing do not count."""
    return any(isinstance(cell, str) for cell in np.asarray(cells, dtype=object).ravel().tolist() if not is_missing(cell))
