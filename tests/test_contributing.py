"""The examples of CONTRIBUTING.md: a trainer, a reducer and a home, each added by what stands there."""

import inspect
import re
import traceback
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_classification

from slimsvm import SlimSVC
from slimsvm.reducers import REDUCERS
from slimsvm.rows.homes import HOMES
from slimsvm.rows.host import HostRows
from slimsvm.solvers.smo import SmoState
from slimsvm.trainers import TRAINERS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
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


def test_the_house_has_every_room():
    drawn = set(re.findall(r"^      (\w+)/ ", TEXT, re.MULTILINE))
    assert drawn == {path.parent.name for path in (ROOT / "src" / "slimsvm").glob("*/*.py")} | {"_core"}


#: the roads of a round, and what each asks of the rows
LINES = re.findall(r"^      (\w+)  .*?  ([\w, ]+): ", TEXT.partition("a round of SmoState.solve")[2], re.MULTILINE)
ROUNDS = {road: set(re.findall(r"\w+", asked)) for road, asked in LINES}
#: what `SmoState.choose` asks for before a round of pair steps
CHOSEN = {"block": "step", "on_demand": "step_whole"}


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the rows, with the functions of the package from `fit` to there."""
    heard = []

    def watch(name):
        method = getattr(HostRows, name)

        def watched(rows, *args, **kwargs):
            frames = [frame.name for frame in traceback.extract_stack()[:-1] if "/slimsvm/" in frame.filename]
            answer = method(rows, *args, **kwargs)
            if answer is not None:
                heard.append((name, frames))
            return answer

        monkeypatch.setattr(HostRows, name, watched)

    for name in ("block", "fetch", "subset", "on_demand", "dual_vectors"):
        watch(name)
    return heard


def road_of(name, frames):
    """The road by which something was asked: the last round of `SmoState.solve` on the way, or solve_together."""
    rounds = [after for before, after in pairwise(frames) if before == "solve" and after in {*ROUNDS, "choose"}]
    road = rounds[-1] if rounds else next(frame for frame in frames if frame == "solve_together")
    return CHOSEN[name] if road == "choose" else road


def test_default_fits_take_the_roads_of_the_drawing(asked, threads):
    threads(1)  # a thread of its own has no stack from fit on
    first = re.findall(r"^    (SlimSVC\.fit -> .*) -> SMO\.solve_together", TEXT, re.MULTILINE)[0]
    wanted, taken = [name.rpartition(".")[2] for name in first.split(" -> ")], set()
    for rows, settings in ((60, {}), (600, {}), (3000, {}), (5000, {}), (12_000, {}), (1000, {"C": 1e6, "gamma": 1e-3})):
        A, b = make_classification(rows, 20, n_informative=8, flip_y=0.1, random_state=0)
        SlimSVC(**settings).fit(A, b)
    SlimSVC().fit(*load_digits(return_X_y=True))
    for name, frames in asked:
        assert [frame for frame in frames if frame != "train"][:3] == wanted  # `train` is within BinaryTrainer.fit
        road = road_of(name, frames)
        taken.add(road)
        assert name in ROUNDS.get(road, {"block"}), (road, name)
    assert taken | {"ran_on_device"} == {*ROUNDS, "solve_together"}
    assert all(f"self.{road}(" in inspect.getsource(SmoState.solve) for road in ROUNDS)
