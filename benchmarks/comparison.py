"""docs/comparison.md: slim beside what a user would pick instead, from the rows of `benchmarks.equal_bytes`.

python -m benchmarks.comparison                          the page and its picture from docs/results/equal_bytes.jsonl
python -m benchmarks.comparison new.jsonl                the same after the rows of another file have been taken over
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.equal_bytes_shown import Row, figure, read_rows

DOCS = Path(__file__).parents[1] / "docs"
ROWS = DOCS / "results" / "equal_bytes.jsonl"
#: contenders in the order of the tables, by the names of the page
NAMES = {
    "slim": "slim",
    "slim-fixed": "slim, metric fixed",
    "lightgbm": "LightGBM",
    "hist-gradient-boosting": "HistGradientBoosting",
    "mlp": "small network",
    "protonn": "ProtoNN",
    "bonsai": "Bonsai",
    "nystroem": "Nystroem + linear",
}

HEAD = """# What would you use instead? Models of equal bytes

A kernel SVM is not the only small model. This page compares slim with its rivals at their best: boosted trees as a stream
of bits, with one table of the splits that they share and leaves of 8 bits; networks of one or two hidden layers with
weights of 4 or 8 bits, trained through their rounding; ProtoNN and Bonsai, the published models for microcontrollers, with
the same rounding; and Nystroem features with a linear model. Every model is compiled C of at most 1, 4 or 16 KB, code
included. All of them were tuned by the same rule in the same time: settings one at a time on a few training rows, the best
three on more of them, and the best one on all of them for the rest of the time. Settings are compared on a fifth of the
training rows, random ones and the last ones of each class, and the usual setting is kept unless another is better by more
than a standard error, and worse on neither kind of rows. slim finds points, the rank of a projection and bits by itself,
and is also shown with the plain kernel. Errors and microseconds are those of the compiled C on the test rows.

Made by `python -m benchmarks.comparison` from `docs/results/equal_bytes.jsonl`, which `python -m benchmarks.equal_bytes
--seconds {seconds}` writes ({machine}). With more time each contender would find better
settings, and the order may change. **The rows below are of earlier code: an earlier slim, trees in plain tables and
networks without 4 bits. They do not show these rivals at their best.**
"""


def write_page(rows: Sequence[Row], folder: Path = DOCS) -> Path:
    """Write the page and its picture; return the page."""
    figure(rows, folder / "equal_bytes.svg")
    seconds = sorted({f"{row['seconds_given']:g}" for row in rows if "seconds_given" in row}, key=float)
    machines = sorted({row["machine"] for row in rows if "machine" in row})
    head = HEAD.format(seconds=" or ".join(seconds), machine="; ".join(machines))
    sizes = sorted({row["kilobytes"] for row in rows})
    picture = "![Error against kilobytes, a panel for each data set](equal_bytes.svg)\n"
    page = folder / "comparison.md"
    page.write_text(
        "\n".join([head, "## Who wins\n", _wins(rows, sizes), picture, *(_section(rows, size) for size in sizes)])
    )
    return page


def _wins(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    """Return a table: on how many data sets each contender has the lowest error, or is within a standard error of it."""
    lines = ["| lowest error, or within one standard error of it | " + " | ".join(f"{size} KB" for size in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    for name in _contenders(rows):
        cells = [_score([row for row in rows if row["kilobytes"] == size], name) for size in sizes]
        lines.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", _speeds(rows), ""])


def _speeds(rows: Sequence[Row]) -> str:
    """Return what a dash means, and the range of microseconds of each contender, in words."""
    ranges = []
    for name in _contenders(rows):
        times = [row["microseconds"] for row in rows if row["contender"] == name and "error" in row]
        ranges.append(f"{NAMES[name]} {min(times):.2g} to {max(times):.2g}")
    return (
        "A dash: no model of this kind fits into so few bytes, or none was measured. Microseconds a row: "
        f"{', '.join(ranges)}. Where trees or the network have the lower error and you need no kernel, use them."
    )


def _score(rows: Sequence[Row], name: str) -> str:
    """Return "3 of 9": the data sets on which a contender is first or close to it, and those on which it was measured."""
    first = measured = 0
    for data in dict.fromkeys(row["data"] for row in rows):
        found = {row["contender"]: row for row in rows if row["data"] == data and "error" in row}
        if name in found:
            measured += 1
            first += found[name]["error"] <= min(row["error"] for row in found.values()) + found[name]["standard_error"]
    return f"{first} of {measured}" if measured else "–"


def _contenders(rows: Sequence[Row]) -> list[str]:
    known = {row["contender"] for row in rows}
    unknown = known - NAMES.keys()
    if unknown:
        raise ValueError(f"no name on the page for {', '.join(sorted(unknown))}; add it to NAMES")
    return [name for name in NAMES if name in known]


def _section(rows: Sequence[Row], size: int) -> str:
    """Return the errors and microseconds of one size, a line for each data set."""
    names = [name for name in _contenders(rows) if any(_is(row, size, name) and "error" in row for row in rows)]
    lines = [
        f"## {size} KB\n",
        "Error in percent (for abalone and cal_housing the root of the mean squared error in percent",
    ]
    lines += [
        "of the targets' standard deviation), its standard error, and microseconds a row. The lowest error is bold.\n"
    ]
    lines += [f"| data | {' | '.join(NAMES[name] for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for data in sorted({row["data"] for row in rows}):
        found = {
            row["contender"]: row for row in rows if row["data"] == data and row["kilobytes"] == size and "error" in row
        }
        best = min((row["error"] for row in found.values()), default=None)
        lines.append(f"| {data} | {' | '.join(_cell(found.get(name), best) for name in names)} |")
    return "\n".join([*lines, ""])


def _is(row: Row, size: int, name: str) -> bool:
    return row["kilobytes"] == size and row["contender"] == name


def _cell(row: Row | None, best: float | None) -> str:
    if row is None:
        return "–"
    error = f"{row['error']:.2f}"
    shown = f"**{error}**" if row["error"] == best else error
    return f"{shown} ± {row['standard_error']:.2f}, {row['microseconds']:.2g} µs"


def main() -> None:
    """Take over rows, if a file is given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=Path, help="a file of rows that replaces docs/results/equal_bytes.jsonl")
    given = parser.parse_args()
    if given.rows is not None:
        ROWS.write_text(given.rows.read_text())
    print(write_page(read_rows(ROWS)))


if __name__ == "__main__":
    main()
