"""Time contenders side by side: each in turn, several times, the best of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any


def interleaved(
    contenders: Mapping[str, Callable[[], Any]], repeats: Mapping[str, int]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the best time of each contender and its last result; round r runs those with more than r repeats."""
    best: dict[str, float] = {}
    results: dict[str, Any] = {}
    for number in range(max(repeats.values())):
        for name, run in contenders.items():
            if number < repeats[name]:
                start = perf_counter()
                results[name] = run()
                best[name] = min(best.get(name, float("inf")), perf_counter() - start)
    return best, results


def line(**values: Any) -> None:
    """Print one JSON line, floats to four significant digits."""
    short = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in values.items()}
    print(json.dumps(short, default=int), flush=True)  # counts may be NumPy's
