"""The largest scores, by a sample where there are many."""

import numpy as np
import pytest

from slimsvm.rows import responses
from slimsvm.rows.responses import largest


@pytest.fixture(params=["few", "many"])
def many(request, monkeypatch):
    """Whether a sample of the scores is looked at first."""
    if request.param == "many":
        monkeypatch.setattr(responses, "MANY", 100)
        monkeypatch.setattr(responses, "SAMPLED", 4)


SCORES = {
    "spread": lambda rng: rng.normal(size=3000),
    "equal": lambda rng: np.ones(3000),  # noqa: ARG005
    "mostly infinite": lambda rng: np.where(rng.random(3000) < 0.97, -np.inf, rng.normal(size=3000)),
    "with infinities of both signs": lambda rng: rng.choice([-np.inf, 0.0, 1.0, 2.0, np.inf], 3000),
    "sorted": lambda rng: np.sort(rng.normal(size=3000)),
    "none finite": lambda rng: np.full(3000, -np.inf),  # noqa: ARG005
}


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("count", [1, 10, 100, 5000])
def test_largest_finds_the_largest_finite_scores(name, count):
    score = SCORES[name](np.random.default_rng(0))
    found = largest(score, count)
    finite = np.sort(score[np.isfinite(score)])
    assert np.unique(found).size == found.size
    np.testing.assert_array_equal(np.sort(score[found]), finite[max(finite.size - count, 0) :])
