"""A contract of every trainer: the number of threads changes nothing but the time. Other tests run with one thread."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import SlimSVC
from slimsvm.trainers import TRAINERS


@pytest.fixture(scope="module")
def rows():
    """Four classes, and enough rows that each thread has a strip of them."""
    X, y = make_moons(200, noise=0.2, random_state=0)
    return X, y + 2 * (X[:, 0] > 0.5)


@pytest.mark.filterwarnings("ignore:.* stopped at max_iter:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TRAINERS)
def test_three_threads_give_the_model_of_one(name, rows, threads):
    X, y = rows
    budget = 30 if "budget" in TRAINERS[name].__dataclass_fields__ else None
    outputs = []
    for count in (1, 3):
        threads(count)
        reducer = "slim" if budget is None else "slant-aggressive"
        model = SlimSVC(budget, trainer=name, gamma=0.5, random_state=0, max_iter=100, reducer=reducer)
        outputs.append(model.fit(X, y).decision_function(X))
    np.testing.assert_array_equal(outputs[0], outputs[1])
