"""Water filling: the level to which a volume of water rises over rows of heights c, in one basin or in two.

The stochastic batch perceptron distributes a total slack over the rows so that the smallest margin becomes as large as
possible. That is water poured over the margins c_i = y_i <w, phi(x_i)> (Cotter, Shalev-Shwartz & Srebro 2012, section 3.2):
rows under water get slack up to the level g, which solves sum_i max(0, g - c_i) = volume.

With an unregularised bias each class is a basin of its own (3.6). A bias raises the level of one as much as it lowers that
of the other, so only the sum of the levels counts, and at the optimum both have equally many rows under water. The k-th
lowest row of one and the k-th lowest of the other then go under water together: the sum of the levels is the level of the
same water in one basin whose heights are the sums of these pairs.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array

#: lowest rows of each basin that are sorted at first; more: slower rounds where few are under water
SORTED = 256


def level_of(heights: Array, volume: float, guess: float = np.inf) -> float:
    """Return the level in one basin, by Newton's method from a guess.

    The volume is a convex function of the level with few kinks between two rounds, so few steps reach the level exactly.
    """
    under = heights <= guess
    if not under.any():
        under = np.ones(heights.size, dtype=bool)
    level, wet = (volume + heights[under].sum()) / np.count_nonzero(under), heights.size + 1
    # the first step may lead from below to above the level; from there on fewer and fewer rows are under water
    while 0 < (count := int(np.count_nonzero(heights <= level))) < wet:
        level, wet = (volume + heights[heights <= level].sum()) / count, count
    return float(level)


def levels_of(basins: tuple[Array, Array], volume: float) -> tuple[float, float]:
    """Return the levels of two basins that hold this water together; infinite where the whole smaller basin is wet."""
    fewest, count = min(heights.size for heights in basins), SORTED
    while True:
        low = [_lowest(heights, count) for heights in basins]
        pairs = low[0][: min(count, fewest)] + low[1][: min(count, fewest)]
        total = level_of(pairs, volume)
        wet = int(np.count_nonzero(pairs < total)) or 1
        if wet < min(count, fewest) or count >= fewest:
            break
        count *= 4
    least = [float(rows[wet - 1]) for rows in low]
    rooms = [float(rows[wet]) - rows[wet - 1] if rows.size > wet else np.inf for rows in low]
    extra = max(total - sum(least), 0.0)
    first = min(max(extra / 2, extra - rooms[1]), rooms[0])
    return least[0] + first, least[1] + (extra - first)


def _lowest(heights: Array, count: int) -> Array:
    """Return the `count` lowest heights and one more, sorted, or all of them."""
    return np.sort(heights if heights.size <= count + 1 else np.partition(heights, count)[: count + 1])
