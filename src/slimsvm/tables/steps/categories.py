"""Categories become features: OneHotEncoder, OrdinalEncoder and TargetEncoder.

Words are codes already; numbers that are categories become codes first. The tables of a column begin with an entry for
missing cells and one for categories that training has not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ..program import Array, Step
from ..recognition import is_missing
from ..tape import Tape, are_words

#: the entry of a cell among those of its column; words that only other steps know are unknown
ENTRY = (
    "    INT entry = starts[j] + (ISNAN(IN_J) ? 0 : TO_INT IN_J + 2);\n"
    "    if (entry >= starts[j + 1])\n        entry = starts[j] + 1;\n"
)


@dataclass(frozen=True)
class Match(Step):
    """The place of a number among those of its column; -1 for others, NaN for missing cells."""

    kind: ClassVar[str] = "match"
    starts: Array  # (inputs + 1,)
    numbers: Array

    @property
    def source(self) -> str:
        """The code."""
        return (
            "for (INT j = 0; j < COUNT; j++) {\n    OUT_J = ISNAN(IN_J) ? IN_J : -1;\n"
            "    for (INT k = starts[j]; k < starts[j + 1]; k++)\n"
            "        if (numbers[k] == IN_J)\n            OUT_J = TO_REAL(k - starts[j]);\n}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        out = np.where(np.isnan(values), np.nan, -1.0)
        for column, (start, end) in enumerate(pairwise(self.starts.tolist())):
            rows, matches = np.nonzero(values[:, column, None] == self.numbers[start:end])
            out[rows, column] = matches
        return out

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return {"starts": self.starts, "numbers": self.numbers}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        _check_starts(self.starts, self.inputs.size, self.numbers.size, least=0)


@dataclass(frozen=True)
class OneHot(Step):
    """A feature for each category, 1 for that of the cell; `slots` has 1 + the feature of each entry, 0 for none."""

    kind: ClassVar[str] = "one-hot"
    starts: Array
    slots: Array
    width: int

    @property
    def outputs(self) -> int:
        """The count of features."""
        return self.width

    @property
    def source(self) -> str:
        """The code."""
        return (
            "for (INT i = 0; i < WIDTH; i++)\n    OUT = 0;\nfor (INT j = 0; j < COUNT; j++) {\n"
            f"{ENTRY}    if (slots[entry] > 0)\n        t[BASE + slots[entry] - 1] = 1;\n}}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        out = np.zeros((values.shape[0], self.width + 1))
        out[np.arange(values.shape[0])[:, None], self.slots[_entries(self.starts, values)]] = 1.0
        return out[:, 1:]

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return {"starts": self.starts, "slots": self.slots, "WIDTH": self.width}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        _check_starts(self.starts, self.inputs.size, self.slots.size, least=2)
        if self.slots.dtype.kind not in "iu" or not ((self.slots >= 0) & (self.slots <= self.width)).all():
            raise ValueError(f"a category has a feature beyond {self.width}")


@dataclass(frozen=True)
class Lookup(Step):
    """Numbers in the place of each category, `each` of them."""

    kind: ClassVar[str] = "lookup"
    starts: Array
    values: Array  # (entries, each)

    @property
    def each(self) -> int:
        """The numbers of a category."""
        return int(self.values.shape[1])

    @property
    def outputs(self) -> int:
        """The count of numbers written."""
        return int(self.inputs.size) * self.each

    @property
    def source(self) -> str:
        """The code."""
        return (
            f"for (INT j = 0; j < COUNT; j++) {{\n{ENTRY}"
            "    for (INT i = 0; i < EACH; i++)\n        t[BASE + j * EACH + i] = values[entry * EACH + i];\n}\n"
        )

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return self.values[_entries(self.starts, values)].reshape(values.shape[0], -1)

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return {"starts": self.starts, "values": self.values, "EACH": self.each}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        if self.values.ndim != 2:
            raise ValueError("each category has as many numbers")
        _check_starts(self.starts, self.inputs.size, self.values.shape[0], least=2)


def _entries(starts: Array, values: Array) -> Array:
    codes = np.where(np.isnan(values), -2, values).astype(np.intp) + 2
    return starts[:-1] + np.where(codes < np.diff(starts), codes, 1)


def _check_starts(starts: Array, columns: int, entries: int, least: int) -> None:
    if starts.shape != (columns + 1,) or starts.dtype.kind not in "iu" or not columns:
        raise ValueError("there is a list of categories for each column")
    if starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < least).any():
        raise ValueError("lists of categories follow each other")


def read_one_hot(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a OneHotEncoder."""
    slots, width = [], 0
    for number in range(len(places)):
        groups, count, rare = _groups(step, number)
        dropped = _dropped(step, number)
        encoded = np.array([group - (dropped is not None and group > dropped) for group in groups.tolist()], dtype=np.intp)
        column = np.where(groups == (-1 if dropped is None else dropped), 0, 1 + width + encoded)
        others = 0
        if rare is not None and step.handle_unknown in ("infrequent_if_exist", "warn"):
            others = int(column[np.flatnonzero(groups == rare)[0]])
        slots.append((column, float(others), float(others)))
        width += count - (dropped is not None)
    starts, table, inputs = _listed(step.categories_, slots, places, tape)
    return tape.add(OneHot(inputs, starts, table.astype(np.intp), width))


def read_ordinal(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add an OrdinalEncoder."""
    other = float(step.unknown_value) if step.handle_unknown == "use_encoded_value" else np.nan
    values = [(_groups(step, number)[0].astype(np.float64), other, other) for number in range(len(places))]
    for number, categories in enumerate(step.categories_):
        missing = [place for place, cell in enumerate(categories) if is_missing(cell)]
        values[number][0][missing] = float(step.encoded_missing_value)
    starts, table, inputs = _listed(step.categories_, values, places, tape)
    return tape.add(Lookup(inputs, starts, table[:, None]))


def read_target(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a TargetEncoder: a mean for each category, or one for each class."""
    per_place = len(step.encodings_) // len(places)
    means = np.atleast_1d(np.asarray(step.target_mean_, dtype=np.float64))
    parts = []
    for column in range(per_place):
        encodings = [np.asarray(step.encodings_[number * per_place + column]) for number in range(len(places))]
        values = [(encoding, float(means[column]), float(means[column])) for encoding in encodings]
        parts.append(_listed(step.categories_, values, places, tape, match=column == 0))
    return tape.add(Lookup(parts[0][2], parts[0][0], np.column_stack([table for _, table, _ in parts])))


def _groups(step: Any, number: int) -> tuple[Array, int, int | None]:
    """Return the group of each category of a column, their count, and the group of the infrequent ones, if any."""
    size = len(step.categories_[number])
    rare = getattr(step, "_infrequent_indices", None)
    rare = None if rare is None or not getattr(step, "_infrequent_enabled", True) else rare[number]
    if rare is None or not len(rare):
        return np.arange(size), size, None
    groups = np.full(size, size - len(rare))
    groups[np.setdiff1d(np.arange(size), rare)] = np.arange(size - len(rare))
    return groups, size - len(rare) + 1, size - len(rare)


def _dropped(step: Any, number: int) -> int | None:
    """Return the group of a column that has no feature."""
    dropped = getattr(step, "_drop_idx_after_grouping", None)
    return None if dropped is None or dropped[number] is None else int(dropped[number])


def _listed(
    categories: Any, values: list[tuple[Array, float, float]], places: list[int], tape: Tape, *, match: bool = True
) -> tuple[Array, Array, Array]:
    """Return starts, table and inputs: for each column entries for missing cells, for unknown ones and for each code.

    `values` has for each column the value of each category, of missing cells where these are no category, and of unknown
    ones.
    """
    tables, inputs = [], list(places)
    for number, (cells, (of_column, missing, other)) in enumerate(zip(categories, values, strict=True)):
        holes = [place for place, cell in enumerate(cells) if is_missing(cell)]
        # a category with the value of unknown ones is as good as unknown
        known = [place for place, cell in enumerate(cells) if not is_missing(cell) and of_column[place] != other]
        first = float(of_column[holes[0]]) if holes else missing
        if are_words(cells) or tape.has_words(places[number]):
            codes = tape.codes(places[number], [str(cells[place]) for place in known]).astype(np.intp)
        else:
            codes = np.arange(len(known))
            if match:
                numbers = np.array([float(cells[place]) for place in known])
                inputs[number] = tape.add(Match(np.array([places[number]]), np.array([0, numbers.size]), numbers))[0]
        table = np.full(2 + (codes.max(initial=-1) + 1), float(other))
        table[0] = first
        table[2 + codes] = np.asarray(of_column, dtype=np.float64)[known]
        tables.append(table)
    starts = np.cumsum([0, *(table.size for table in tables)])
    return starts, np.concatenate(tables), np.array(inputs, dtype=np.intp)


ENCODER = ("categories_", "_infrequent_enabled", "_infrequent_indices", "_default_to_infrequent_mappings")
READERS: dict[str, Callable[[Any, list[int], Tape], list[int]]] = {
    "OneHotEncoder": read_one_hot,
    "OrdinalEncoder": read_ordinal,
    "TargetEncoder": read_target,
}
FITTED: dict[str, tuple[str, ...]] = {
    "OneHotEncoder": (*ENCODER, "drop_idx_", "_drop_idx_after_grouping", "_n_features_outs"),
    "OrdinalEncoder": (*ENCODER, "_missing_indices"),
    "TargetEncoder": (*ENCODER, "encodings_", "target_type_", "target_mean_", "classes_"),
}
