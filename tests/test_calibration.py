"""Maps from scores to probabilities: their shapes, their limits, and what is refused."""

import numpy as np
import pytest

from slimsvm.calibration import CALIBRATIONS, Isotonic, Sigmoid, Temperature, check_calibration

MAPS = {
    "sigmoid-two": (Sigmoid(np.array([2.0]), np.array([0.5])), 2),
    "sigmoid-many": (Sigmoid(np.array([1.0, 2.0, 0.5]), np.zeros(3)), 3),
    "isotonic-two": (Isotonic(np.array([-1.0, 0.0, 2.0]), np.array([0.0, 0.4, 1.0]), np.array([0, 3])), 2),
    "isotonic-many": (Isotonic(np.tile([-1.0, 1.0], 3), np.tile([0.0, 1.0], 3), np.array([0, 2, 4, 6])), 3),
    "temperature-two": (Temperature(0.7), 2),
    "temperature-many": (Temperature(3.0), 3),
}


@pytest.mark.parametrize("name", MAPS)
def test_probabilities_sum_to_one_and_none_is_impossible(name):
    calibration, n_classes = MAPS[name]
    scores = 100 * np.random.default_rng(0).normal(size=(50, n_classes) if n_classes > 2 else 50)
    p = calibration(scores)
    assert p.shape == (50, n_classes)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    calibration.check(n_classes)


@pytest.mark.parametrize("name", MAPS)
def test_a_larger_score_is_a_larger_probability(name):
    calibration, n_classes = MAPS[name]
    for row in np.random.default_rng(1).normal(size=(20, n_classes if n_classes > 2 else 1)):
        more = row.copy()
        more[-1] += 0.3
        before, after = (calibration(scores[None] if n_classes > 2 else scores) for scores in (row, more))
        assert after[0, -1] >= before[0, -1]


def test_the_sigmoid_is_written_out():
    p = Sigmoid(np.array([2.0]), np.array([-1.0]))(np.array([0.5, 2.0]))
    np.testing.assert_allclose(p[:, 1], [0.5, 1 / (1 + np.exp(-3.0))])


def test_the_temperature_keeps_the_order_of_the_classes():
    scores = np.random.default_rng(2).normal(size=(30, 4))
    np.testing.assert_array_equal(np.argsort(Temperature(5.0)(scores), axis=1), np.argsort(scores, axis=1))


@pytest.mark.parametrize(
    "wrong",
    [
        Sigmoid(np.ones(2), np.ones(2)),
        Sigmoid(np.ones(3), np.array([1.0, np.nan, 0.0])),
        Isotonic(np.zeros(4), np.zeros(3), np.array([0, 1, 2, 3])),
        Isotonic(np.zeros(3), np.zeros(3), np.array([0, 1, 3])),
        Isotonic(np.array([0.0, 2.0, 1.0, 0.0]), np.zeros(4), np.array([0, 1, 3, 4])),
        Temperature(0.0),
        Temperature(float("nan")),
    ],
    ids=["two-slopes", "nan", "values", "starts", "falling", "zero", "no-number"],
)
def test_maps_that_do_not_fit_three_classes_are_refused(wrong):
    with pytest.raises(ValueError, match=r"calibration|temperature"):
        wrong.check(3)


def test_unknown_names_are_refused_with_those_that_there_are():
    for name in (*CALIBRATIONS, None):
        check_calibration(name)
    with pytest.raises(ValueError, match=r"platt.*sigmoid.*isotonic.*temperature"):
        check_calibration("platt")
