"""The examples of CONTRIBUTING.md: a trainer, a reducer and a home, each added by what stands there."""

import re
import traceback
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from slimsvm import SlimSVC
from slimsvm.reducers import REDUCERS
from slimsvm.rows.homes import HOMES
from slimsvm.rows.host import HostRows
from slimsvm.trainers import TRAINERS

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
X, Y = load_iris(return_X_y=True)


@pytest.fixture
def example(monkeypatch):
    """Run the example with this word in it; its line in a table is taken back afterwards."""
    for table in (TRAINERS, REDUCERS, HOMES):
        for name in ("parzen", "first-rows", "exact"):
            if table.get(name) is None:
                monkeypatch.setitem(table, name, None)

    def run(word):
        (block,) = [block for block in BLOCKS if word in block]
        names = {}
        exec(compile(block, "CONTRIBUTING.md", "exec"), names)
        return names

    return run


def test_a_trainer(example):
    example("Parzen")
    model = SlimSVC(trainer="parzen").fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert SlimSVC(10, trainer="parzen", random_state=0).fit(X, Y).model_.size <= 10


def test_a_reducer(example):
    example("FirstRows")
    model = SlimSVC(10, trainer=None, reducer="first-rows", random_state=0).fit(X, Y)
    assert model.model_.size <= 10
    assert all((point == X).all(axis=1).any() for point in model.support_vectors_)


def test_a_home(example):
    home = example("ExactRows")["ExactRows"]
    rows = home(SlimSVC(gamma=0.5).fit(X, Y).model_.kernel, np.repeat(X, 200, axis=0))
    assert rows.dtype == np.float64
    there, here = SlimSVC(device="exact").fit(X, Y), SlimSVC().fit(X, Y)
    np.testing.assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-6)


def test_each_example_is_one_file_of_about_twenty_lines():
    assert len(BLOCKS) == 3
    assert all(len([line for line in block.splitlines() if line.strip()]) <= 24 for block in BLOCKS)


def test_the_drawing_has_the_calls_from_fit_to_the_matrix_product(monkeypatch):
    (drawn,) = re.findall(r"^    (SlimSVC\.fit -> .*) -> Rows\.block$", TEXT, re.MULTILINE)
    block, calls = HostRows.block, []

    def watched(rows, *args, **kwargs):
        calls.extend(frame.name for frame in traceback.extract_stack()[:-1] if "/slimsvm/" in frame.filename)
        return block(rows, *args, **kwargs)

    monkeypatch.setattr(HostRows, "block", watched)
    SlimSVC(tol=1e-6).fit(X[50:], Y[50:])
    calls.remove("train")  # a function within BinaryTrainer.fit
    assert calls[: drawn.count("->") + 1] == [name.rpartition(".")[2] for name in drawn.split(" -> ")]
