"""What the figures of experiments share: numbers on a logarithmic axis, and one colour for a contender in all panels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: an axis whose ends differ by more than this has 1, 2 and 5 times the powers of ten on it; others have all digits
WIDE = 5.0


def plain_numbers(axes: Any) -> None:
    """Write plain numbers on the logarithmic y axis, so many that they do not overlap."""
    from matplotlib.ticker import LogLocator

    low, high = axes.get_ylim()
    if high > WIDE * low:
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")


def colors(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each label, in the order of matplotlib's own."""
    return {label: f"C{number % 10}" for number, label in enumerate(labels)}
