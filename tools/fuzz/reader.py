"""What the fuzzer needs to know of a reader."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .mutations import Rng


@dataclass(frozen=True)
class Reader:
    """How to fuzz one reader; `mutate` changes contents in place, `use` reads a file and does with it what a user does."""

    ending: str
    seeds: Callable[[], Iterable[Any]]
    mutate: Callable[[Rng, Any], None]
    to_bytes: Callable[[Any], bytes]
    use: Callable[[Path], None]


def mutant(reader: Reader, rng: Rng, content: Any) -> Any:
    """Return a copy of contents with a few changes."""
    content = copy.deepcopy(content)
    for _ in range(int(rng.integers(1, 5))):
        reader.mutate(rng, content)
    return content


def answer(predict: Callable[[Any], Any], rows: Any) -> Any:
    """Return the labels, or None where the rows are refused with a clear error."""
    try:
        return predict(rows)
    except (ValueError, ImportError) as error:  # negative rows for chi2, a device that is not there
        if not str(error):
            raise
        return None
