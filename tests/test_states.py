"""Declared states: what is packed comes back, and what was not packed is refused."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import numpy as np
import pytest

from slimsvm.states import (
    LARGEST,
    MOST,
    UNSAVED,
    Finite,
    StateError,
    floats,
    go_on,
    ordered,
    pack,
    row_numbers,
    unpack,
    whole,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Inner:
    values: Annotated[np.ndarray, floats("n")]


@dataclass
class Outer:
    points: Annotated[np.ndarray, floats("m", "d")]
    theta: Annotated[np.ndarray, floats(("m", 1), 2)]
    ordered: Annotated[np.ndarray, ordered("m", "d")]
    places: Annotated[np.ndarray, row_numbers("n")]
    number: float
    finite: Finite
    steps: int
    share: Annotated[int, whole(-1, 5)]
    going: bool
    name: str
    colour: Colour
    rng: np.random.Generator
    inner: Inner
    several: list[Inner]
    opaque: dict[str, object]
    missing: int | None = None
    factors: Annotated[np.ndarray, floats("", positive=True)] | None = None
    unsaved: Annotated[object, UNSAVED] = None
    cached: float = field(default=0.0, init=False)


def outer(**changes):
    rng = np.random.default_rng(0)
    made = {
        "points": rng.normal(size=(3, 4)),
        "theta": np.ones((4, 2)),
        "ordered": np.asfortranarray(rng.normal(size=(3, 4))),
        "places": np.array([4, 0, 2], dtype=np.intp),
        "number": np.inf,
        "finite": 0.5,
        "steps": 7,
        "share": -1,
        "going": True,
        "name": "x",
        "colour": Colour.BLUE,
        "rng": np.random.default_rng(5),
        "inner": Inner(np.arange(5.0)),
        "several": [Inner(np.zeros(5)), Inner(np.ones(5))],
        "opaque": {"anything": [1]},
        "unsaved": object(),
    }
    return Outer(**(made | changes))


def test_what_is_packed_comes_back():
    value = outer(factors=np.ones(2))
    again = unpack(Outer, pack(value), n=5)
    for name in ("points", "theta", "ordered", "places", "factors"):
        np.testing.assert_array_equal(getattr(again, name), getattr(value, name))
    assert again.places.dtype == np.intp
    assert np.isfortran(again.ordered)
    for name in ("number", "finite", "steps", "share", "going", "name", "colour", "opaque", "missing"):
        assert getattr(again, name) == getattr(value, name)
    assert again.rng.random() == np.random.default_rng(5).random()
    assert [inner.values.sum() for inner in (again.inner, *again.several)] == [10.0, 0.0, 5.0]
    assert again.unsaved is None


def test_a_state_does_not_change_with_the_value():
    value = outer()
    state = pack(value)
    value.points[:], value.ordered[:] = 9.0, 9.0
    value.rng.random()
    again = unpack(Outer, state, n=5)
    assert 9.0 not in again.points
    assert 9.0 not in again.ordered
    assert again.rng.random() == np.random.default_rng(5).random()
    again.points[:] = 8.0
    assert 8.0 not in state["points"]


def test_a_shared_generator_goes_on():
    shared, at = np.random.default_rng(0), np.random.default_rng(7)
    go_on(shared, at)
    assert shared.random() == at.random()


BAD = {
    "no state": (lambda _: [1], "no array 'points'"),
    "another number of features": ({"points": np.zeros((3, 5))}, "no array 'ordered' of shape"),
    "fewer coefficients than points": ({"theta": np.ones((3, 2))}, "no array 'theta' of shape"),
    "more outputs than declared": ({"theta": np.ones((4, 3))}, "no array 'theta' of shape"),
    "float32": ({"points": np.zeros((3, 4), np.float32)}, "type float64"),
    "NaN": ({"points": np.full((3, 4), np.nan)}, "numbers in 'points' that are NaN or too large"),
    "a huge number": ({"points": np.full((3, 4), -2 * LARGEST)}, "numbers in 'points' that are NaN or too large"),
    "an order in words": ({"ordered": {"values": np.zeros((3, 4)), "fortran": "yes"}}, "no 'ordered'"),
    "an order alone": ({"ordered": np.zeros((3, 4))}, "no array 'ordered'"),
    "a row that is not there": ({"places": np.array([5])}, "rows in 'places' that are out of range"),
    "a negative row": ({"places": np.array([-1])}, "rows in 'places' that are out of range"),
    "a row twice": ({"places": np.array([1, 1])}, "a row twice in 'places'"),
    "rows in a table": ({"places": np.array([[1]])}, "no array 'places'"),
    "a number that is none": ({"number": np.nan}, "nan for 'number'"),
    "a number in words": ({"number": "1"}, "no 'number'"),
    "truth for a number": ({"number": True}, "no 'number'"),
    "a number beyond float64": ({"number": 10**400}, "a number 'number' beyond float64"),
    "infinity": ({"finite": np.inf}, "inf for 'finite'"),
    "a negative count": ({"steps": -1}, "a 'steps' that is not between 0"),
    "a count beyond all": ({"steps": MOST + 1}, "a 'steps' that is not between 0"),
    "half a step": ({"steps": 0.5}, "no 'steps'"),
    "a share out of range": ({"share": 6}, "a 'share' that is not between -1 and 5"),
    "a number for truth": ({"going": 1}, "no 'going'"),
    "a number for a name": ({"name": 1}, "no 'name'"),
    "a colour of its own": ({"colour": "GREEN"}, "the unknown colour 'GREEN'"),
    "no inner state": ({"inner": 3}, "no 'inner'"),
    "an inner state of other rows": ({"inner": {"values": np.zeros(4)}}, "no array 'values'"),
    "a list of numbers": ({"several": [1]}, "no 'several'"),
    "no list": ({"several": {}}, "no 'several'"),
    "a count that is missing": (lambda state: {k: v for k, v in state.items() if k != "steps"}, "no 'steps'"),
    "factors of 0": ({"factors": np.zeros(2)}, "numbers in 'factors' that are not positive"),
    "a generator without a state": ({"rng": {"state": 1}}, "no generator"),
    "an array for a generator": ({"rng": np.zeros(3)}, "no generator"),
    "a generator that draws zeros": (
        lambda state: state | {"rng": state["rng"] | {"state": {"state": 0, "inc": 0}}},
        "its increment is even",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_was_not_packed_is_refused(case):
    change, words = BAD[case]
    state = pack(outer())
    with pytest.raises(StateError, match=words):
        unpack(Outer, change(state) if callable(change) else state | change, n=5)
