"""ChoiceDisplay: scores over the grid and along C."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from slimsvm import SlimSVC, SlimSVCCV
from slimsvm.displays import ChoiceDisplay

pytest.importorskip("matplotlib").use("Agg")

X, Y = make_classification(90, 4, flip_y=0.2, random_state=0)


@pytest.fixture(scope="module")
def choice():
    return SlimSVCCV(Cs=[10, 0.1, 1], gammas=[0.1, 1, "scale"], cv=3, kernels=["rbf", "linear"]).fit(X, Y)


def test_a_grid_has_each_score_in_its_place(choice):
    display = ChoiceDisplay.from_estimator(choice, settings={"kernel": "rbf"})
    table, drawn = choice.cv_results_, display.image_.get_array().reshape(3, 3)
    for cell, score in zip(table["params"], table["mean_test_score"], strict=True):
        if cell["kernel"] == "rbf":
            assert drawn[[0.1, 1, "scale"].index(cell["gamma"]), [0.1, 1, 10].index(cell["C"])] == score
    assert display.best_ in display.within_
    assert all(cell["kernel"] == "rbf" for cell in display.within_)
    assert display.ax_.get_xlabel() == "C"


def test_a_path_has_a_line_for_each_gamma(choice):
    display = ChoiceDisplay.from_estimator(choice, kind="path", settings={"kernel": "rbf"})
    assert len(display.ax_.containers) == 3
    np.testing.assert_array_equal(display.ax_.containers[0].lines[0].get_xdata(), [0.1, 1, 10])
    assert len(display.vectors_ax_.lines) == 3


def test_kernels_without_a_width_and_other_searches_are_drawn(choice):
    linear = ChoiceDisplay.from_estimator(choice, settings={"kernel": "linear"})
    assert len(linear.ax_.containers) == 1
    grid = GridSearchCV(SlimSVC(), {"C": [1, 10], "gamma": [0.1, 1]}, cv=3).fit(X, Y)
    assert ChoiceDisplay.from_estimator(grid).image_.get_array().size == 4
    assert ChoiceDisplay.from_estimator(grid, kind="path").vectors_ax_ is None


def test_what_cannot_be_drawn_is_told(choice):
    with pytest.raises(ValueError, match="no cv_results_"):
        ChoiceDisplay.from_estimator(SlimSVCCV())
    with pytest.raises(ValueError, match="no cell has the settings"):
        ChoiceDisplay.from_estimator(choice, settings={"kernel": "poly"})
    with pytest.raises(ValueError, match="unknown kind"):
        ChoiceDisplay.from_estimator(choice, kind="pie")
    with pytest.raises(ValueError, match="no cell of these results"):
        ChoiceDisplay(results={"params": [{"C": 1}], "mean_test_score": [np.nan]})
