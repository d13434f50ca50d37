"""The cost model of fits on a cluster."""

import numpy as np

from benchmarks.cost_model import CostModel, Round


def test_the_factors_that_made_the_seconds_are_found():
    rng = np.random.default_rng(0)
    rounds = [
        Round(int(n), int(k), int(p), float(m), int(w))
        for n, k, p, m, w in zip(
            rng.integers(10**4, 10**6, 40),
            rng.integers(1, 5, 40),
            rng.integers(1, 9, 40),
            rng.integers(100, 2000, 40),
            rng.integers(500, 4000, 40),
            strict=True,
        )
    ]
    made = CostModel(np.array([0.01, 0.002, 1e-9, 5e-8, 3e-9]))
    found = CostModel.fitted(rounds, np.array([made.seconds(each) for each in rounds]))
    np.testing.assert_allclose(found.factors, made.factors, rtol=1e-6)


def test_a_round_brings_a_number_for_each_row_and_the_working_set():
    small = Round(rows=1000, workers=2, parts=4, moved=10, working_set=100, features=5)
    assert small.bytes_moved == 8 * 1000 + 5 * 100 * 28
    assert small.worker_bytes == 2 * 4 * 5 * 500
