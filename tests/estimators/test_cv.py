"""SlimSVCCV and SlimSVRCV: the scores of separate fits, GridSearchCV's table, and what they say of wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from slimsvm import Interrupted, SlimSVC, SlimSVCCV, SlimSVR, SlimSVRCV
from slimsvm.estimators.choosing import Search

COSTS, WIDTHS = [0.1, 1.0, 20.0], [0.05, 0.5]


def rows(n: int = 150, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=classes, n_clusters_per_class=1, flip_y=0.15, random_state=seed
    )


@parametrize_with_checks([SlimSVCCV(Cs=[1], cv=3), SlimSVRCV(Cs=[1], cv=3)])
def test_sklearn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def scores(table: dict[str, Any], folds: int) -> dict[tuple[Any, ...], np.ndarray]:
    """Return the scores of each cell by its settings."""
    names = [(params["C"], params.get("gamma"), params.get("epsilon")) for params in table["params"]]
    return {
        name: np.array([table[f"split{k}_test_score"][place] for k in range(folds)]) for place, name in enumerate(names)
    }


def check_same(choice: Any, grid: GridSearchCV, tolerance: float = 1e-9) -> None:
    mine, theirs = scores(choice.cv_results_, choice.n_splits_), scores(grid.cv_results_, grid.n_splits_)
    assert mine.keys() == theirs.keys()
    for name, found in mine.items():
        np.testing.assert_allclose(found, theirs[name], atol=tolerance, err_msg=str(name))
    assert choice.best_score_ == pytest.approx(grid.best_score_, abs=tolerance)


@pytest.mark.parametrize(
    ("estimator", "classes", "scoring", "tolerance"),
    [
        (SlimSVC(), 2, None, 1e-9),
        (SlimSVC(class_weight="balanced"), 2, "roc_auc", 5e-3),
        (SlimSVC(), 3, None, 1e-9),
        (SlimSVC(multiclass="ovr"), 3, "f1_macro", 1e-9),
        (SlimSVC(multiclass="dag", class_weight={0: 2.0}), 3, make_scorer(lambda y, p: (y == p).mean()), 1e-9),
        (SlimSVC(kernel="poly", break_ties=True), 4, None, 1e-9),
        (SlimSVC(kernel="laplacian", cache_mb=0.01), 2, None, 1e-9),
    ],
)
def test_scores_are_those_of_separate_fits(estimator: Any, classes: int, scoring: Any, tolerance: float) -> None:
    X, y = rows(classes=classes)
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    choice = SlimSVCCV(estimator, Cs=COSTS, gammas=WIDTHS, cv=cv, scoring=scoring).fit(X, y)
    grid = GridSearchCV(estimator, {"C": COSTS, "gamma": WIDTHS}, cv=cv, scoring=scoring).fit(X, y)
    assert choice.shared_
    check_same(choice, grid, tolerance)
    again = clone(estimator).set_params(C=choice.C_, gamma=choice.gamma_).fit(X, y)
    np.testing.assert_allclose(choice.decision_function(X), again.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(choice.predict(X), again.predict(X))
    np.testing.assert_array_equal(choice.classes_, again.classes_)


def test_regression_with_widths_of_the_tube() -> None:
    X, _ = rows(120)
    y = 3 * np.sin(X[:, 0]) + X[:, 1]
    choice = SlimSVRCV(Cs=COSTS, gammas=WIDTHS, epsilons=[0.05, 0.5], cv=4).fit(X, y)
    grid = GridSearchCV(SlimSVR(), {"C": COSTS, "gamma": WIDTHS, "epsilon": [0.05, 0.5]}, cv=4).fit(X, y)
    check_same(choice, grid, 1e-3)
    assert choice.epsilon_ == choice.best_estimator_.epsilon
    assert choice.score(X, y) == choice.best_estimator_.score(X, y)


def test_sample_weights_are_those_of_grid_search() -> None:
    X, y = rows()
    weights = np.random.default_rng(0).uniform(0, 2, y.size)
    weights[:10] = 0
    for scoring in (None, "accuracy"):
        choice = SlimSVCCV(Cs=COSTS, gammas=WIDTHS, cv=3, scoring=scoring).fit(X, y, weights)
        check_same(choice, GridSearchCV(SlimSVC(), {"C": COSTS, "gamma": WIDTHS}, cv=3).fit(X, y, sample_weight=weights))
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        SlimSVCCV(Cs=[1], scoring=lambda estimator, X, y: estimator.score(X, y)).fit(X, y, weights)


def test_the_same_rows_in_other_forms_have_the_same_scores() -> None:
    X, y = rows()
    plain = SlimSVCCV(Cs=COSTS, kernels=["linear"], cv=3).fit(X, y).cv_results_["mean_test_score"]
    for estimator, given in (
        (SlimSVC(kernel="precomputed"), X @ X.T),
        (SlimSVC(kernel=lambda A, B: A @ B.T), X),
        (SlimSVC(kernel="linear"), csr_array(X)),
        (SlimSVC(kernel="linear", tol=1e-5), X),
    ):
        found = SlimSVCCV(estimator, Cs=COSTS, cv=3).fit(given, y)
        np.testing.assert_allclose(found.cv_results_["mean_test_score"], plain, atol=1e-9)
        assert found.gamma_ is None


def test_a_grid_of_kernels_has_no_gamma_where_a_kernel_has_none() -> None:
    X, y = rows()
    choice = SlimSVCCV(Cs=[1, 2], gammas=[0.1, "scale"], kernels=["linear", "rbf"], cv=3).fit(X, y)
    table = choice.cv_results_
    assert len(table["params"]) == 2 + 4
    assert table["param_gamma"].mask.tolist() == [True, True, False, False, False, False]
    assert table["rank_test_score"].min() == 1
    assert table["rank_test_score"][choice.best_index_] == 1
    keys = GridSearchCV(SlimSVC(), {"C": [1]}, cv=3).fit(X, y).cv_results_.keys()
    assert keys <= table.keys()
    assert all(len(column) == 6 for column in table.values())
    assert table["mean_n_support"].min() > 1


def test_what_cannot_be_shared_is_fitted_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rows()
    estimator = SlimSVC(calibration="sigmoid", random_state=0)
    choice = SlimSVCCV(estimator, Cs=[1], cv=3, scoring="neg_log_loss", verbose=True).fit(X, y)
    assert not choice.shared_
    grid = GridSearchCV(estimator, {"C": [1], "gamma": ["scale"]}, cv=3, scoring="neg_log_loss").fit(X, y)
    check_same(choice, grid)
    assert choice.predict_proba(X).shape == (150, 2)
    assert "calibration needs folds of its own" in capsys.readouterr().out
    precomputed = SlimSVCCV(SlimSVC(kernel="precomputed", max_iter=5), Cs=[1], cv=3)
    with pytest.warns(Warning, match="max_iter"):
        assert not precomputed.fit(X @ X.T, y).shared_


def test_folds_of_any_kind() -> None:
    X, y = rows()
    for cv in (ShuffleSplit(3, random_state=0), [(np.arange(100), np.arange(50, 150))], [(y == y, np.arange(150) < 9)]):
        grid = GridSearchCV(SlimSVC(), {"C": COSTS, "gamma": [0.1]}, cv=cv).fit(X, y)
        check_same(SlimSVCCV(Cs=COSTS, gammas=[0.1], cv=cv).fit(X, y), grid)
    groups = np.arange(150) % 7
    grid = GridSearchCV(SlimSVC(), {"C": COSTS, "gamma": [0.1]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    check_same(SlimSVCCV(Cs=COSTS, gammas=[0.1], cv=GroupKFold(3)).fit(X, y, groups=groups), grid)
    with pytest.raises(ValueError, match="number of groups"):
        SlimSVCCV(cv=GroupKFold(3)).fit(X, y, groups=np.zeros(150))


def test_a_class_that_a_fold_does_not_train_on() -> None:
    X, y = rows(classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    check_same(
        SlimSVCCV(Cs=COSTS, gammas=[0.1], cv=KFold(3)).fit(X, y),
        GridSearchCV(SlimSVC(), {"C": COSTS, "gamma": [0.1]}, cv=KFold(3)).fit(X, y),
    )
    two = y < 2
    with pytest.raises(ValueError, match="fold 0 leaves no training rows of two classes"):
        SlimSVCCV(Cs=[1], cv=KFold(2)).fit(X[two], y[two])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"Cs": [0, 1]}, "above 0"),
        ({"Cs": [1, -1]}, "above 0"),
        ({"Cs": 0}, "at least 1"),
        ({"Cs": [[1, 2]]}, "flat list"),
        ({"Cs": []}, "flat list"),
        ({"Cs": [1, 1]}, "twice"),
        ({"gammas": ["wide"]}, "'scale', 'auto'"),
        ({"kernels": ["rbff"]}, "did you mean 'rbf'"),
        ({"scoring": "acuracy"}, "did you mean 'accuracy'"),
        ({"scoring": ["accuracy"]}, "one score"),
        ({"scoring": "neg_log_loss", "Cs": [1]}, "calibration='sigmoid'"),
        ({"estimator": SlimSVR()}, "must be a SlimSVC"),
        ({"time_limit": 0}, "time_limit"),
        ({"cv": []}, "no folds"),
        ({"refit": lambda _: 99, "Cs": [1]}, "number of a cell"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SlimSVCCV(**settings).fit(*rows(60))


def test_wrong_arguments_of_fit_are_told() -> None:
    X, y = rows(60)
    with pytest.raises(TypeError, match="sample_weight and groups"):
        SlimSVCCV(Cs=[1]).fit(X, y, weights=y)
    with pytest.raises(ValueError, match="0 or more"):
        SlimSVCCV(Cs=[1]).fit(X, y, -np.ones(60))


def test_refit_chooses_and_may_be_left_out() -> None:
    X, y = rows()
    choice = SlimSVCCV(Cs=COSTS, cv=3, refit=lambda table: int(table["mean_n_support"].argmin())).fit(X, y)
    assert COSTS[int(choice.cv_results_["mean_n_support"].argmin())] == choice.C_
    without = SlimSVCCV(Cs=COSTS, cv=3, refit=False).fit(X, y)
    assert without.best_score_ >= choice.best_score_
    with pytest.raises(AttributeError, match="refit=True"):
        without.predict(X)
    piped = make_pipeline(StandardScaler(), SlimSVCCV(Cs=[1], cv=3)).fit(X, y)
    assert piped.score(X, y) > 0.5


def test_a_time_limit_keeps_what_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    with pytest.raises(TimeoutError, match="one value of C"):
        SlimSVCCV(Cs=[1], time_limit=1e-9).fit(X, y)
    keep = Search.keep

    def slow(search: Search, place: int, cell: Any) -> None:
        keep(search, place, cell)
        search.deadline.end = 0.0  # the time is over after one cell

    monkeypatch.setattr(Search, "keep", slow)
    with pytest.warns(Warning, match="1 of 3 settings"):
        choice = SlimSVCCV(Cs=COSTS, cv=3, time_limit=100).fit(X, y)
    assert COSTS[0] == choice.C_
    assert np.isnan(choice.cv_results_["mean_test_score"][1:]).all()
    assert choice.cv_results_["rank_test_score"].tolist() == [1, 2, 2]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_continues_from_its_checkpoint(classes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(classes=classes)
    file, keep = tmp_path / "search", Search.keep
    search = SlimSVCCV(Cs=COSTS, gammas=WIDTHS, cv=3, checkpoint=file)
    whole = SlimSVCCV(Cs=COSTS, gammas=WIDTHS, cv=3).fit(X, y)
    kept = []

    def stopped(self: Search, place: int, cell: Any) -> None:
        keep(self, place, cell)
        kept.append(place)
        if len(kept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Search, "keep", stopped)
    with pytest.raises(Interrupted) as caught:
        search.fit(X, y)
    assert caught.value.best is search
    assert np.isfinite(search.cv_results_["mean_test_score"]).sum() == 4
    assert file.exists()
    with pytest.raises(ValueError, match="other settings"):
        SlimSVCCV(SlimSVC(tol=1e-2), Cs=COSTS, gammas=WIDTHS, cv=3, checkpoint=file).fit(X, y)
    with pytest.raises(ValueError, match="other settings"):
        SlimSVCCV(Cs=COSTS, gammas=WIDTHS, cv=4, checkpoint=file).fit(X, y)
    clone(search).fit(X, y)
    assert sorted(kept) == list(range(6))
    assert not file.exists()
    np.testing.assert_array_equal(
        clone(search).set_params(checkpoint=None).fit(X, y).cv_results_["mean_test_score"],
        whole.cv_results_["mean_test_score"],
    )


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    SlimSVCCV(Cs=COSTS, cv=3, verbose=True).fit(*rows())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "is kept for all folds" in lines[0]
    assert lines[1].startswith("[SlimSVCCV] 1 of 3: C 0.1, kernel rbf, gamma scale: score ")
    assert "s left" in lines[1]
    SlimSVCCV(SlimSVC(cache_mb=0.01), Cs=[1], cv=3, verbose=True).fit(*rows())
    assert "computed again" in capsys.readouterr().out


def test_metadata_is_routed_to_splitter_and_scorer() -> None:
    X, y = rows()
    weights, groups = np.random.default_rng(0).uniform(0.1, 2, y.size), np.arange(150) % 5
    scorer = make_scorer(roc_auc_score)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer.set_score_request(sample_weight=True)
        search = SlimSVCCV(Cs=COSTS, gammas=[0.1], cv=GroupKFold(3), scoring=scorer).set_fit_request(sample_weight=True)
        grid = GridSearchCV(
            SlimSVC().set_fit_request(sample_weight=True), {"C": COSTS, "gamma": [0.1]}, cv=GroupKFold(3), scoring=scorer
        )
        params = {"sample_weight": weights, "groups": groups}
        check_same(search.fit(X, y, **params), grid.fit(X, y, **params), 2e-3)
        assert 0 < search.score(X, y, sample_weight=weights) <= 1
