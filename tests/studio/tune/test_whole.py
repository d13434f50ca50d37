"""tune without a limit on the model: the settings of a full one."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from slimsvm import SlimSVC, SlimSVCCV, tune

X, Y = make_classification(240, 4, n_informative=3, n_redundant=0, flip_y=0.05, class_sep=1.5, random_state=0)


def test_a_full_model_has_the_settings_of_a_cross_validation():
    told = []
    result = tune(X * [1, 1, 1, 100], Y, n_trials=20, random_state=0, callback=told.append)
    best, table = result.best_estimator_[-1], result.results_
    assert result.best_params_["budget"] is None
    assert best.budget is None
    assert best.path_ is None
    assert result.best_params_["C"] == best.C
    assert result.best_estimator_.score(X * [1, 1, 1, 100], Y) > 0.9
    assert result.best_params_["scaling"] != "none"
    assert table["stage"][0] == "stage 1 of 2"
    assert table["stage"][-1] == "last fit"
    second = [error for stage, error in zip(table["stage"], table["error"], strict=True) if stage == "stage 2 of 2"]
    assert result.best_error_ == min(second)
    assert len(second) == 9
    assert told[-1].last


def test_the_second_round_is_a_cross_validation_of_all_rows():
    result = tune(X, Y, n_trials=20, random_state=0)
    table, best = result.results_, result.best_params_
    assert table["rows"][-2] == 160
    chosen = SlimSVC(C=best["C"], gamma=best["gamma"])
    scaled = result.best_estimator_[:-1].transform(X) if len(result.best_estimator_) > 1 else X
    score = SlimSVCCV(chosen, Cs=[best["C"]], cv=3).fit(scaled, Y).best_score_
    assert abs(1 - score - result.best_error_) < 0.06


def test_a_regression_has_a_tube_and_weights():
    y = np.sin(X[:, 0]) + X[:, 1]
    weights = np.linspace(0.5, 1.5, y.size)
    result = tune(X, y, n_trials=10, sample_weight=weights, random_state=0)
    assert result.best_params_["epsilon"] == result.best_estimator_[-1].epsilon
    assert result.best_error_ < 0.3


def test_a_time_limit_that_is_too_short_is_told():
    with pytest.raises(TimeoutError, match="time_limit"):
        tune(X, Y, time_limit=1e-6)
