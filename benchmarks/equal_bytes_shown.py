"""Rows of `benchmarks.equal_bytes` as a table in Markdown and as a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
#: a data set and size into which fewer points fit is not compared
FEW_POINTS = 8


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; of several with the same names, the last."""
    rows = [json.loads(text) for text in path.read_text().splitlines() if text.startswith("{")]
    known = {(row["data"], row["kilobytes"], row["contender"]): row for row in rows if "kilobytes" in row}
    return list(known.values())


def _names(rows: Sequence[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def markdown(rows: Sequence[Row]) -> str:
    """Return a line for each data set and size: the error of each contender, and in how many slim is first or close."""
    contenders = _contenders(rows)
    lines = [f"| data, KB | {' | '.join(contenders)} |", "|---" * (len(contenders) + 1) + "|"]
    groups = [(data, size) for data in sorted(_names(rows, "data")) for size in sorted(_names(rows, "kilobytes"))]
    kept = [
        (data, size, {r["contender"]: r for r in rows if (r["data"], r["kilobytes"]) == (data, size)})
        for data, size in groups
    ]
    for data, size, found in kept:
        best = min((row["error"] for row in found.values() if "error" in row), default=None)
        lines.append(f"| {data}, {size} | {' | '.join(_cell(found.get(name), best) for name in contenders)} |")
    return "\n".join([*lines, "", *_verdicts(kept), ""])


def _contenders(rows: Sequence[Row]) -> list[str]:
    """Return the names of the contenders, slim's first."""
    return sorted(_names(rows, "contender"), key=lambda name: (not name.startswith("slim"), name))


def _cell(row: Row | None, best: float | None) -> str:
    """Return the error with its standard error, and the microseconds of a row."""
    if row is None or "error" not in row:
        return "–"
    error = f"{row['error']:.2f}"
    error = f"**{error}**" if row["error"] == best else error
    return f"{error} ± {row['standard_error']:.2f}, {row['microseconds']:.2g} µs"


def _verdicts(kept: Sequence[tuple[str, int, dict[str, Row]]]) -> list[str]:
    """Return for each size on how many data sets with classes each slim is first, or within a standard error of it."""
    names = [name for name in dict.fromkeys(name for _, _, found in kept for name in found) if name.startswith("slim")]
    lines = []
    for size in sorted({size for _, size, _ in kept}):
        for name in names:
            close = [_is_close(found, name) for _, each, found in kept if each == size and _is_compared(found, name)]
            words = f"{sum(close)} of {len(close)} data sets with classes"
            lines.append(f"{size} KB, {name}: first or within a standard error of the first on {words}.\n")
    return lines


def _is_compared(found: dict[str, Row], name: str) -> bool:
    """Return whether a slim counts on a data set: it has classes, enough points fit, and another kind was measured."""
    ours = found.get(name, {})
    enough = ours.get("fitting", FEW_POINTS) >= FEW_POINTS
    return "error" in ours and enough and ours.get("goal") != "values" and bool(_rivals(found))


def _is_close(found: dict[str, Row], name: str) -> bool:
    """Return whether a slim is within its standard error of the lowest error of the other kinds."""
    return bool(found[name]["error"] <= min(_rivals(found)) + found[name]["standard_error"])


def _rivals(found: dict[str, Row]) -> list[float]:
    return [row["error"] for other, row in found.items() if "error" in row and not other.startswith("slim")]


def figure(rows: Sequence[Row], path: Path) -> None:
    """Draw error against kilobytes, a panel for each data set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    data, contenders = sorted(_names(rows, "data")), _contenders(rows)
    columns = min(len(data), 4)
    figure_, panels = plt.subplots(
        -(-len(data) // columns), columns, squeeze=False, figsize=(3.2 * columns, 2.6 * -(-len(data) // columns))
    )
    for panel in panels.flat[len(data) :]:
        panel.set_visible(False)
    for panel, name in zip(panels.flat, data, strict=False):
        for number, contender in enumerate(contenders):
            found = [r for r in rows if (r["data"], r["contender"]) == (name, contender) and "error" in r]
            found.sort(key=lambda row: row["kilobytes"])
            panel.errorbar(
                [row["kilobytes"] for row in found],
                [row["error"] for row in found],
                [row["standard_error"] for row in found],
                label=contender,
                color=f"C{number}",
                marker="o",
                linestyle="-" if contender.startswith("slim") else "--",
            )
        panel.set(title=name, xscale="log")
        panel.set_xticks(sorted(_names(rows, "kilobytes")), [f"{size} KB" for size in sorted(_names(rows, "kilobytes"))])
        panel.minorticks_off()
        panel.set_ylabel("error in %")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure_.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))
    figure_.set_layout_engine("constrained")
    figure_.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
