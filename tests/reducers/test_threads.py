"""A contract of every reducer: the number of threads changes nothing but the time. Other tests run with one thread."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import SlimSVC, compress
from slimsvm.reducers import REDUCERS


@pytest.fixture(scope="module")
def full():
    """A full model of four classes, with its rows: enough that each thread has a strip of them."""
    X, y = make_moons(200, noise=0.2, random_state=0)
    y = y + 2 * (X[:, 0] > 0.5)
    return SlimSVC(gamma=0.5).fit(X, y), X, y


@pytest.mark.usefixtures("quick_slim")
@pytest.mark.parametrize("name", REDUCERS)
def test_three_threads_give_the_model_of_one(name, full, threads):
    model, X, y = full
    outputs = []
    for count in (1, 3):
        threads(count)
        outputs.append(compress(model, X, y, budget=4, reducer=name, random_state=0).decision_function(X))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-6, atol=1e-6)
