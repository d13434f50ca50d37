import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_friedman1, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import Interrupted, SlimOneClassSVM, SlimSVC, SlimSVR, tune
from slimsvm.model import Status
from slimsvm.reducers import Slim
from slimsvm.studio.tune.halving import Clock
from slimsvm.studio.tune.problem import constraint_of, make_problem
from slimsvm.studio.tune.result import print_tuning
from slimsvm.studio.tune.trials import Trials

pytestmark = pytest.mark.usefixtures("quick_slim")

COLUMNS = [
    *("gamma", "C", "scaling", "metric", "size", "bytes", "rows", "error", "standard_error", "seconds"),
    *("stage", "feasible", "status"),
]  # fmt: skip


def moons(n=60, seed=0):
    """Two classes that a line cannot tell apart, with one feature in other units."""
    X, y = make_moons(n, noise=0.15, random_state=seed)
    return X * [1, 1000], np.array(["in", "out"])[y]


@pytest.fixture(scope="module")
def found():
    return tune(*moons(), budget=6, n_trials=2, random_state=0)


def test_the_best_estimator_is_a_fitted_pipeline_within_the_budget(found):
    X, y = moons(400, seed=1)
    assert isinstance(found.best_estimator_, Pipeline)
    last = found.best_estimator_[-1]
    assert len(last.support_vectors_) <= 6
    assert found.best_params_["C"] == last.C
    assert last.gamma == found.best_params_["gamma"]
    assert last.reducer.metric == found.best_params_["metric"]
    assert found.best_estimator_.score(X, y) > 0.9


def test_units_of_features_do_not_matter_since_scaling_is_chosen(found):
    assert found.best_params_["scaling"] != "none"
    assert "TuningResult(error" in repr(found)


def test_results_make_a_table(found):
    table = pd.DataFrame(found.results_)
    assert list(table.columns) == COLUMNS
    assert table.stage.iloc[-1] == "last fit"
    assert (table.rows.iloc[:-1] < table.rows.iloc[-1]).all()
    assert table.feasible.all()
    assert table["bytes"].max() < 700


@pytest.mark.parametrize(
    ("settings", "rows", "features", "metrics"),
    [
        ({}, 1000, 2, ("fixed", "both")),
        ({"kernel": "poly"}, 1000, 2, ("fixed", "scales")),
        ({}, 999, 2, ("fixed",)),  # few rows are no basis for a metric
        ({}, 1000, 1001, ("fixed",)),
        ({"reducer": Slim(metric="widths")}, 20, 2, ("widths",)),
    ],
    ids=str,
)
def test_metrics_are_tried_where_they_can_be_learned(settings, rows, features, metrics):
    X, y = np.random.default_rng(0).random((rows, features)), np.arange(rows) % 2
    assert make_problem(SlimSVC(**settings), X, y, None, constraint_of(4, None)).metrics == metrics
    assert make_problem(SlimSVC(**settings), X, y, None, constraint_of((4, "100 KB"), None)).metrics == metrics[:1]


def test_a_reducers_own_metric_is_kept():
    own = Slim(metric="scales", steps=2)
    found = tune(*moons(), budget=2, n_trials=1, estimator=SlimSVC(reducer=own), random_state=0)
    assert set(found.results_["metric"]) == {"scales"}
    assert found.best_estimator_[-1].model_.metric is not None
    assert found.best_estimator_[-1].reducer == own


def test_the_best_error_is_the_lowest_of_the_last_stage(found):
    table = pd.DataFrame(found.results_)
    last = table[table.stage == table.stage.iloc[-2]]
    assert found.best_error_ == last.error.min()


def test_a_seed_decides_everything(found):
    again = tune(*moons(), budget=6, n_trials=2, random_state=0)
    assert again.best_params_ == found.best_params_
    assert again.results_["error"] == found.results_["error"]
    np.testing.assert_array_equal(again.best_estimator_[-1].support_vectors_, found.best_estimator_[-1].support_vectors_)


def test_values_are_tuned_by_a_regressor():
    X, y = make_friedman1(90, random_state=0)
    found = tune(X, y, budget=6, n_trials=1, random_state=0)
    assert isinstance(found.best_estimator_[-1], SlimSVR)
    assert found.best_params_["epsilon"] >= 0
    assert found.best_estimator_.score(X, y) > 0.6
    assert 0 < found.best_error_ < 0.6


def test_whole_numbers_are_values_for_a_regressor():
    X, y = make_friedman1(90, random_state=0)
    found = tune(X, np.round(y).astype(int), budget=2, n_trials=1, estimator=SlimSVR(), random_state=0)
    assert isinstance(found.best_estimator_[-1], SlimSVR)


def test_other_settings_of_the_estimator_are_kept():
    template = SlimSVC(kernel="laplacian", class_weight="balanced", reducer=Slim(steps=5))
    found = tune(*moons(), budget=2, n_trials=1, estimator=template, random_state=0).best_estimator_[-1]
    assert (found.kernel, found.class_weight, found.reducer) == ("laplacian", "balanced", Slim(steps=5))
    assert template.budget is None


def test_sparse_rows_stay_sparse():
    X, y = moons()
    found = tune(csr_array(X), y, budget=2, n_trials=2, random_state=0)
    scalers = [step for step in found.best_estimator_ if isinstance(step, StandardScaler)]
    assert not any(scaler.with_mean for scaler in scalers)
    assert found.best_estimator_.predict(csr_array(X)).shape == y.shape


def test_repeated_entries_of_sparse_rows_are_summed():
    X, y = moons()
    once = csr_array(X)
    halves = np.repeat(once.data / 2, 2)
    twice = csr_array((halves, np.repeat(once.indices, 2), 2 * once.indptr), shape=once.shape)
    assert not twice.has_canonical_format
    found, same = (tune(each, y, budget=2, n_trials=2, random_state=0) for each in (twice, once))
    assert found.best_params_ == same.best_params_
    np.testing.assert_allclose(found.best_estimator_.decision_function(X), same.best_estimator_.decision_function(X))
    assert twice.nnz == 2 * once.nnz  # the rows given are not changed


def test_masked_rows_are_refused():
    X, y = moons()
    with pytest.raises(ValueError, match="X is a masked array with 1 masked entries"):
        tune(np.ma.masked_equal(X, X[0, 0]), y, budget=2)


def test_rows_of_weight_zero_are_absent():
    X, y = moons()
    weights = np.r_[np.ones(50), np.zeros(10)]
    some = tune(X, y, budget=2, n_trials=1, sample_weight=weights, random_state=0)
    assert some.results_["rows"][-1] == 50


def test_names_of_features_are_kept():
    X, y = moons()
    found = tune(pd.DataFrame(X, columns=["a", "b"]), y, budget=2, n_trials=1, random_state=0)
    assert list(found.best_estimator_.feature_names_in_) == ["a", "b"]


def test_bytes_limit_the_support_vectors():
    found = tune(*moons(), budget="600 B", n_trials=1, random_state=0)
    assert found.best_params_["budget"] > 1
    assert found.results_["bytes"][-1] <= 600
    assert found.best_estimator_[-1].model_.precision == "int8"
    with pytest.raises(ValueError, match=r"0\.5 is a fraction of a full model's support vectors"):
        tune(*moons(), budget=0.5)


def test_bytes_count_the_outputs_of_the_coding():
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 5
    limits = constraint_of("1300 B", None)
    sizes = [make_problem(SlimSVC(multiclass=name, precision="float32"), X, y, None, limits).size for name in (None, "ovo")]
    assert sizes[0] > 1.5 * sizes[1]  # a point has 2 + 5 numbers, or 2 + 10


def test_an_error_makes_the_model_as_small_as_it_can_be():
    found = tune(*moons(), max_error=0.25, budget=4, n_trials=2, random_state=0)
    table = pd.DataFrame(found.results_)
    assert found.feasible_
    assert found.best_params_["budget"] == table[:-1][table.feasible[:-1]]["size"].min() <= 4
    assert any(stage.endswith("sizes") for stage in table.stage)


def test_more_trials_never_give_a_larger_model(monkeypatch):
    order, sizes, left = [], [], iter(())
    monkeypatch.setattr(Clock, "allows", lambda *_: next(left, False))
    for most in (4, 7, 11, 1000):
        left = iter([True] * most)
        found = tune(*moons(), max_error=0.2, budget=16, n_trials=6, random_state=0)
        trials = list(zip(found.results_["gamma"], found.results_["C"], found.results_["size"], strict=True))[:-1]
        assert trials[: len(order)] == order  # the same trials, and some more
        order = trials
        sizes.append(found.best_params_["budget"])
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_the_smallest_feasible_trial_is_returned_wherever_it_was_found():
    found = tune(*moons(), max_error=0.2, budget=16, n_trials=6, random_state=0)
    table = pd.DataFrame(found.results_)[:-1]
    assert found.best_params_["budget"] == table[table.feasible]["size"].min()


@pytest.mark.parametrize("limits", [{"budget": 4}, {"max_error": 0.2}], ids=str)
def test_ctrl_c_in_the_search_keeps_the_best_model_so_far(limits):
    def stop_at_the_fifth(progress, seen=[]):  # noqa: B006 (counts the calls)
        seen.append(progress)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stop:
        tune(*moons(), **limits, n_trials=6, random_state=0, callback=stop_at_the_fifth)
    best = stop.value.best
    assert len(best.results_["gamma"]) == 5
    assert best.best_estimator_[-1].status_ is Status.INTERRUPTED
    assert best.best_estimator_.score(*moons()) > 0.7
    good = [size for size, feasible in zip(best.results_["size"], best.results_["feasible"], strict=True) if feasible]
    if "max_error" in limits:
        assert best.best_estimator_[-1].model_.size == min(good)
    else:
        assert best.best_error_ == min(best.results_["error"])


def test_ctrl_c_before_the_first_trial_is_a_keyboard_interrupt(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "run", stop)
    with pytest.raises(KeyboardInterrupt) as found:
        tune(*moons(), budget=4, n_trials=2, random_state=0)
    assert not isinstance(found.value, Interrupted)


def test_an_impossible_error_warns_and_returns_the_best():
    with pytest.warns(UserWarning, match="no model of at most 1 support vectors has a validation error of 0"):
        found = tune(*moons(), max_error=0, budget=1, n_trials=1, random_state=0)
    assert not found.feasible_
    assert found.best_params_["budget"] == 1


def test_a_time_limit_too_short_for_one_trial_says_what_is_needed():
    with pytest.raises(TimeoutError, match=r"time_limit=1e-06 is too short for one trial.*give .* seconds at least"):
        tune(*moons(), budget=4, time_limit=1e-6, random_state=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the last fit, on a busy machine
def test_a_time_limit_ends_the_search():
    found = tune(*moons(), budget=2, n_trials=5000, time_limit=3, random_state=0)
    assert 1 < len(found.results_["gamma"]) < 5000


def test_progress_has_the_time_left(capsys):
    seen = []
    tune(*moons(), budget=2, n_trials=1, random_state=0, callback=seen.append)
    assert [each.stage for each in seen][-1] == "last fit"
    assert all(each.seconds_left >= 0 and each.done <= each.of for each in seen)
    print_tuning(seen[0])
    assert "stage 1 of 2: 1 of 1, best error" in capsys.readouterr().err


def test_ctrl_c_in_the_last_fit_hands_over_what_there_is(monkeypatch):
    fit = Pipeline.fit

    def interrupted(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        raise Interrupted(self[-1])

    monkeypatch.setattr(Pipeline, "fit", interrupted)
    with pytest.raises(Interrupted) as stop:
        tune(*moons(), budget=2, n_trials=1, random_state=0)
    assert stop.value.best.best_estimator_.predict(moons()[0]).shape == (60,)


WRONG = {
    "budget 0": ({"budget": 0}, ValueError, "budget must be 64 "),
    "a fraction": ({"budget": 0.5}, ValueError, "0.5 is a fraction of a full model"),
    "few bytes": ({"budget": "20 B"}, ValueError, "budget='20 B' is too small: with one support vector the C takes"),
    "negative error": ({"max_error": -1}, ValueError, "max_error must be a number of at least 0"),
    "no trial": ({"n_trials": 0}, ValueError, "n_trials must be a whole number of at least 1"),
    "no time": ({"time_limit": 0}, ValueError, "time_limit must be a number of seconds above 0"),
    "novelty": ({"estimator": SlimOneClassSVM()}, ValueError, "novelty detection has no labels"),
    "no labels": ({"y": None}, ValueError, "novelty detection has no labels"),
    "another estimator": ({"estimator": StandardScaler()}, ValueError, "estimator must be a SlimSVC or SlimSVR"),
    "another reducer": (
        {"estimator": SlimSVC(reducer="lars")},
        ValueError,
        "trials are small models by the reducer 'slim'",
    ),
    "no gradient": ({"estimator": SlimSVC(kernel=rbf_kernel)}, ValueError, "has none"),
    "one class": ({"y": np.zeros(60)}, ValueError, "all rows have the label"),
    "few rows": ({"X": np.eye(4), "y": [0, 1, 0, 1]}, ValueError, "minimum of 10 is required"),
    "negative weights": ({"sample_weight": -np.ones(60)}, ValueError, "sample weights must be 0 or more"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_before_any_trial(case):
    changed, kind, words = WRONG[case]
    X, y = moons()
    with pytest.raises(kind, match=words):
        tune(**{"X": X, "y": y, "budget": 4, "random_state": 0, **changed})
