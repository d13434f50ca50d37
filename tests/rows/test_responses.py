"""The largest scores, by a sample where there are many."""

import numpy as np
import pytest

from slimsvm.rows.responses import MANY, largest

SCORES = {
    "spread": lambda rng, n: rng.normal(size=n),
    "equal": lambda rng, n: np.ones(n),  # noqa: ARG005
    "mostly infinite": lambda rng, n: np.where(rng.random(n) < 0.97, -np.inf, rng.normal(size=n)),
    "with infinities of both signs": lambda rng, n: rng.choice([-np.inf, 0.0, 1.0, 2.0, np.inf], n),
    "sorted": lambda rng, n: np.sort(rng.normal(size=n)),
    "none finite": lambda rng, n: np.full(n, -np.inf),  # noqa: ARG005
}


@pytest.mark.parametrize("n", [3000, 2 * MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("count", [1, 10, 100, 5000])
def test_largest_finds_the_largest_finite_scores(name, count, n):
    score = SCORES[name](np.random.default_rng(0), n)
    found = largest(score, count)
    finite = np.sort(score[np.isfinite(score)])
    assert np.unique(found).size == found.size
    np.testing.assert_array_equal(np.sort(score[found]), finite[max(finite.size - count, 0) :])
