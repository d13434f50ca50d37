"""The choice of a model: scorers, folds, rare classes, bytes and microseconds."""

import pickle
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import block_array, random_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification, make_moons
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer, recall_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress, smallest_within
from slimsvm.budget import Budget
from slimsvm.c_bytes import Shape, largest_where
from slimsvm.model import Judgement, Status
from slimsvm.selection.folds import ENOUGH_ROWS, MOST_FOLDS, fold_rows, split_rows
from slimsvm.selection.path import Path, Step
from slimsvm.selection.search import CLOSE, levels_off
from slimsvm.ship.c import CExporter
from slimsvm.ship.source import artefact_of
from slimsvm.slim.method import Slim

pytestmark = pytest.mark.usefixtures("quick_slim")

QUICK = "spsvm"
SEVERAL_STARTS = Slim(steps=10)


@pytest.fixture(scope="module")
def rare():
    """Rows of two classes, 97 of 100 in one of them."""
    X, y = make_classification(4000, 6, n_informative=5, n_redundant=0, weights=[0.97], flip_y=0.0, random_state=0)
    return X, np.where(y == 1, "rare", "common")


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.25, random_state=0)


# Folds


def test_few_rows_have_folds_whose_validation_rows_differ():
    strata = np.repeat([0, 1], [60, 240])
    folds = fold_rows(strata, 0.2, 0)
    assert len(folds) == MOST_FOLDS
    np.testing.assert_array_equal(folds[0][0], split_rows(strata, 0.2, 0)[0])
    seen = np.concatenate([validation for _, validation in folds])
    assert np.unique(seen).size == seen.size
    for train, validation in folds:
        assert sorted([*train, *validation]) == list(range(300))
        assert np.bincount(strata[validation]).tolist() == [12, 48]


def test_many_rows_have_one_split():
    assert len(fold_rows(np.zeros(5 * ENOUGH_ROWS, dtype=int), 0.2, 0)) == 1
    assert len(fold_rows(np.zeros(300, dtype=int), 0.7, 0)) == 1


def test_a_class_of_one_row_is_in_both_parts_and_the_others_are_split():
    strata = np.repeat([0, 1, 2], [100, 100, 1])
    for train, validation in fold_rows(strata, 0.2, 0):
        assert np.intersect1d(train, validation).tolist() == [200]
        assert set(strata[validation]) == {0, 1, 2}


@pytest.mark.parametrize("settings", [{}, {"scoring": "balanced_accuracy"}, {"scoring": "roc_auc_ovr"}], ids=str)
def test_a_class_of_one_row_can_be_fitted(settings):
    X, y = load_iris(return_X_y=True)
    if settings.get("scoring") == "roc_auc_ovr":
        settings = {"scoring": lambda model, X, y: float(np.mean(model.decision_function(X).argmax(axis=1) == y))}
    svc = SlimSVC(4, reducer=QUICK, random_state=0, **settings).fit(X[:101], y[:101])
    assert set(svc.classes_) == {0, 1, 2}
    assert len(svc.support_vectors_) <= 4


def test_budgets_are_used_on_small_data():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:455]
    for seed, budget in ((0, 6), (1, 10)):
        svc = SlimSVC(budget, reducer=SEVERAL_STARTS, random_state=seed).fit(X, y[:455])
        assert len(svc.support_vectors_) == budget


def test_a_difference_on_the_same_rows_is_measured_by_the_rows_that_differ():
    losses, weights = np.zeros(400), np.ones(400)
    losses[:100] = 1
    few_more, many_others = losses.copy(), np.roll(losses, 100)
    few_more[100:110] = 1
    many_others[300:310] = 1
    base = Judgement.of(losses, weights)
    assert Judgement.of(few_more, weights).worse_than(base, 2.0)
    assert not Judgement.of(many_others, weights).worse_than(base, 2.0)


def test_the_mean_over_folds_is_that_of_all_rows():
    losses = np.random.default_rng(0).random(30)
    whole = Judgement.of(losses, np.ones(30))
    parts = [Judgement.of(losses[some], np.ones(some.size)) for some in np.split(np.arange(30), [10])]
    mean = Judgement.mean(parts, np.array([1 / 3, 2 / 3]))
    assert mean.error == pytest.approx(whole.error)
    assert mean.standard_error == pytest.approx(np.linalg.norm(mean.deviations), rel=1e-5)
    assert mean.standard_error == pytest.approx(whole.standard_error, rel=0.05)


# Scoring


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", make_scorer(balanced_accuracy_score)], ids=str)
def test_errors_on_the_path_are_those_of_the_scorer(scoring, rare):
    X, y = rare
    svc = SlimSVC(6, reducer=QUICK, scoring=scoring, random_state=np.random.RandomState(0)).fit(X[:400], y[:400])
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    _, validation = split_rows(np.unique(y[:400], return_inverse=True)[1], 0.2, seed)
    scorer = get_scorer(scoring)
    if svc.path_.n_validation == validation.size:  # the first fold has decided
        for step in svc.path_:
            score = scorer(svc.at(step.size), X[validation], y[validation])
            assert step.error == pytest.approx((1.0 if isinstance(scoring, str) else 0.0) - score)
            assert step.standard_error >= 0


def test_a_scorer_that_is_no_mean_of_losses_has_a_standard_error(rare):
    X, y = rare
    svc = SlimSVC(4, reducer=QUICK, scoring="roc_auc", random_state=0).fit(X[:400], y[:400])
    again = SlimSVC(4, reducer=QUICK, scoring="roc_auc", random_state=0).fit(X[:400], y[:400])
    assert max(step.standard_error for step in svc.path_) > 0
    assert svc.path_.to_dict() == again.path_.to_dict()


def test_a_regressor_is_judged_by_a_scorer_in_its_units():
    X, y = load_diabetes(return_X_y=True)
    svr = SlimSVR(tolerance=5.0, scoring="neg_mean_absolute_error", reducer="spsvm", C=100, random_state=0).fit(X, y)
    assert 20 < svr.path_[-1].error < 80
    assert svr.model_.size < X.shape[0] // 2


def test_novelty_is_judged_by_what_the_full_model_predicts():
    X, _ = load_iris(return_X_y=True)
    novelty = SlimOneClassSVM(10, scoring="accuracy", reducer="spsvm", nu=0.2, random_state=0).fit(X)
    assert all(0 <= step.error <= 1 for step in novelty.path_)


def test_an_unknown_scoring_lists_the_names_there_are(moons):
    with pytest.raises(ValueError, match=r"unknown scoring 'recal'; did you mean 'recall'\? There are accuracy, .*roc_auc"):
        SlimSVC(5, scoring="recal").fit(*moons)
    with pytest.raises(ValueError, match="scoring must be the name of a scorer, a callable"):
        SlimSVC(5, scoring=3).fit(*moons)
    with pytest.raises(ValueError, match="gave nan"):
        SlimSVC(5, scoring=lambda *_: np.nan, reducer=QUICK).fit(*moons)


# Rare classes


def test_a_tolerance_does_not_give_up_a_rare_class(rare):
    X, y = rare
    full = SlimSVC(C=10).fit(X[:1000], y[:1000])
    small = SlimSVC(C=10, tolerance=0.005, reducer="spsvm", random_state=0).fit(X[:1000], y[:1000])
    before, after = (recall_score(y[1000:], model.predict(X[1000:]), pos_label="rare") for model in (full, small))
    assert before > 0.5
    assert after >= before - 0.3
    assert small.model_.size < full.model_.size


def test_a_tolerance_near_the_share_of_a_class_warns(rare):
    X, y = rare
    with pytest.warns(UserWarning, match=r"tolerance=0.02 is not well below the rarest class's share of the rows, 0.0"):
        SlimSVC(tolerance=0.02, reducer="spsvm", random_state=0).fit(X[:400], y[:400])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SlimSVC(tolerance=0.02, scoring="accuracy", reducer="spsvm", random_state=0).fit(X[:400], y[:400])


# Sizes between neighbours


def test_a_tolerance_tries_sizes_between_powers_of_two(moons):
    svc = SlimSVC(tolerance=0.02, C=5.0, reducer=Slim(steps=10), random_state=0).fit(*moons)
    sizes, kept = svc.path_.sizes, svc.path_.kept
    assert svc.path_[kept].size == svc.model_.size
    assert kept == 0 or sizes[kept] - sizes[kept - 1] <= max(1, CLOSE * sizes[kept])
    assert svc.model_.size == 1 or any(size & (size - 1) for size in sizes)


# The model that is returned


def test_under_a_tolerance_small_models_follow_full_ones_that_have_not_seen_the_validation_rows(moons, monkeypatch):
    X, y = moons
    followed = []

    def watched(self, task, sizes, model):
        followed.append((task.rows.n, model))
        return type(self).__mro__[1].path(self, task, sizes, model)

    monkeypatch.setattr(Slim, "path", watched)
    small = SlimSVC(tolerance=0.02, C=10.0, reducer=Slim(target="slant"), random_state=0).fit(X, y)
    tasks = fold_rows((y == 1).astype(int), 0.2, 0)
    assert len(followed) >= len(tasks)
    own = SlimSVC(C=10.0, gamma=small.model_.kernel.gamma).fit(X, y).model_
    for n, model in followed:
        assert n < y.size
        assert not np.allclose(model(X), own(X), atol=0.02)  # another model than that of all rows


def test_a_fit_to_all_rows_that_makes_the_model_worse_is_not_kept(moons, monkeypatch):
    X, y = moons

    def spoiled(self, task, step, model):  # noqa: ARG001
        return type(step.model)(step.model.kernel, step.model.points, -step.model.coef, -step.model.bias)

    monkeypatch.setattr(Slim, "finished", spoiled)
    svc = SlimSVC(5, reducer=Slim(steps=5), random_state=0).fit(X, y)
    assert svc.model_ is svc.path_[svc.path_.kept].model


# Estimators of other sizes


def test_at_returns_a_fitted_estimator_that_can_be_exported_and_saved(moons, tmp_path):
    X, y = moons
    svc = SlimSVC(8, reducer=QUICK, random_state=0).fit(X, y)
    for step in svc.path_:
        small = svc.at(step.size)
        assert len(small.support_vectors_) == step.size
        assert small.path_[small.path_.kept].size == step.size
        slimsvm.export(small, tmp_path / f"m{step.size}.json")
        np.testing.assert_array_equal(slimsvm.runtime(small)(X), small.predict(X))
        slimsvm.save(small, tmp_path / f"m{step.size}.slim")
        np.testing.assert_array_equal(slimsvm.load(tmp_path / f"m{step.size}.slim").predict(X), small.predict(X))
    assert len(svc.support_vectors_) == 8
    np.testing.assert_array_equal(svc.at(8).predict(X), svc.predict(X))
    with pytest.raises(ValueError, match=r"no model of 100 support vectors on this path; it has sizes \[1, 2"):
        svc.at(100)
    with pytest.raises(ValueError, match=r"there is no path: the only model has \d+ support vectors, not 5"):
        SlimSVC().fit(X, y).at(5)


def test_a_path_is_a_table(moons):
    X, y = moons
    svc = SlimSVC(4, reducer=QUICK, random_state=0).fit(X, y)
    table = svc.path_.to_dict(X=X[:1])
    assert {len(column) for column in table.values()} == {len(svc.path_)}
    assert np.diff(table["bytes"]).min() > 0
    assert table["kept"].count(True) == 1
    assert all(time > 0 for time in table["microseconds"])
    assert isinstance(pickle.loads(pickle.dumps(svc)).path_, Path)


# Bytes


@pytest.mark.parametrize("precision", ["float32", "int16", "int8"])
@pytest.mark.parametrize(
    ("kernel", "features", "classes"), [("rbf", 4, 3), ("rbf", 30, 2), ("linear", 4, 3), ("poly", 30, 2)], ids=str
)
def test_bytes_are_those_of_the_exported_c(kernel, features, classes, precision):
    X, y = make_classification(
        200, features, n_informative=4, n_redundant=0, n_classes=classes, n_clusters_per_class=1, random_state=0
    )
    svc = SlimSVC(6, kernel=kernel, reducer="spsvm", random_state=0).fit(X, y)
    expected = CExporter(precision).cost(artefact_of(svc)).bytes
    shape = Shape.of(kernel, features, svc.goal_)
    assert shape.of_model(svc.model_).bytes(svc.model_.size, precision) == expected
    assert svc.path_.to_dict(precision)["bytes"][svc.path_.kept] == expected


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True)], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("precision", ["float32", "int8", "auto"])
def test_a_pipeline_is_within_its_bytes(precision, scaler):
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(scaler, SVC()).fit(X, y)
    small = compress(model, X, y, budget="2 KB", precision=precision, reducer="spsvm", random_state=0)
    meant = small[-1].model_.precision
    assert precision in ("auto", meant)
    assert CExporter(meant).cost(artefact_of(small)).bytes <= 2048
    assert len(small[-1].support_vectors_) >= 4


def test_sparse_models_are_within_their_bytes():
    one, other = (random_array((150, 1000), density=0.02, rng=np.random.default_rng(seed), format="csr") for seed in (0, 1))
    X, y = block_array([[one, None], [None, other]], format="csr"), np.repeat([0, 1], 150)
    svc = SlimSVC("4 KB", reducer="spsvm", random_state=0).fit(X, y)
    cost = CExporter(svc.model_.precision).cost(artefact_of(svc))
    assert cost.bytes <= 4096
    assert max(svc.path_.sizes) > 5  # all features would take 2,000 bytes a point


def test_limits_hold_together_and_the_nearest_possible_one_is_named(moons):
    X, y = moons
    with pytest.raises(
        ValueError, match=r"budget='15 B' is too small: with one support vector the C takes \d+ bytes"
    ) as told:
        SlimSVC("15 B", precision="float32", reducer=QUICK).fit(X, y)
    least = re.search(r"Give '(\d+ B)' or more, or fewer bits", str(told.value))[1]
    assert len(SlimSVC(least, precision="float32", reducer=QUICK).fit(X, y).support_vectors_) == 1
    both = [SlimSVC((count, "700 B"), reducer=QUICK, random_state=0).fit(X, y) for count in (3, 10**6)]
    sizes = [max(svc.path_.sizes) for svc in both]
    assert sizes[0] == 3 < sizes[1]
    assert CExporter("int8").cost(artefact_of(both[1])).bytes <= 700
    with pytest.raises(ValueError, match="which has no 'precomputed' kernel"):
        SlimSVC("1 KB", kernel="precomputed", reducer=QUICK).fit(X @ X.T, y)
    with pytest.raises(ValueError, match="chi2 kernel has no int8 tables"):
        SlimSVC("1 KB", precision="int8", kernel="chi2", reducer=QUICK).fit(np.abs(X), y)
    with pytest.raises(ValueError, match="'isotonic' makes tables whose length is known after the fit only"):
        SlimSVC("1 KB", calibration="isotonic").fit(X, y)


def test_bytes_that_the_full_model_fits_warn_and_keep_it(moons):
    with pytest.warns(UserWarning, match=r"budget='1 MB' is enough for the \d+ support vectors of the full model"):
        assert SlimSVC("1 MB").fit(*moons).path_ is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": "0 KB"}, "budget='0 KB' must be above 0"),
        ({"budget": "0.5 B"}, "budget='0.5 B' is less than a byte"),
        ({"budget": "KB"}, "budget='KB' is no number with a unit; give 64"),
        ({"budget": "4 KiB"}, "unknown unit 'KiB'; there are B, KB, MB, us, ms"),
        ({"budget": (64, 32)}, "two limits of one kind, which contradict each other"),
        ({"budget": ("4 KB", "1 KB")}, "contradict each other"),
        ({"budget": ()}, "has no limit"),
        ({"budget": -1}, r"budget must be 64 \(support vectors\), .* not -1"),
        ({"precision": "int3"}, "unknown precision 'int3'; there are auto, float32, int16, int8, int4"),
        ({"budget": "fast"}, "budget='fast' is no number with a unit"),
        ({"tolerance": -1, "scoring": "r2"}, "tolerance must be a difference of scores"),
    ],
    ids=str,
)
def test_bad_values_are_refused(settings, words, moons):
    with pytest.raises(ValueError, match=words):
        SlimSVC(**settings).fit(*moons)


def test_budgets_are_numbers_or_text_with_units():
    assert Budget.of(64) == Budget.of("64") == Budget(count=64)
    assert Budget.of(0.1) == Budget(fraction=0.1)
    assert Budget.of("4 KB") == Budget.of("4kb") == Budget(bytes=4096)
    assert Budget.of(("1.5 MB", "0.02 ms", 7)) == Budget(count=7, bytes=3 << 19, microseconds=20.0)
    assert [str(Budget.of(given)) for given in ("4 KB", "700 B", "20 us", (8, "2 MB"))] == [
        "4 KB",
        "700 B",
        "20 us",
        "8 and 2 MB",
    ]
    assert not Budget.of(None).given


# Time


def test_a_time_that_is_impossible_is_refused_with_one_that_is_possible(moons):
    with pytest.raises(ValueError, match=r"budget='0.001 us' is too little.*Give '[\d.e+]+ us' or more"):
        SlimSVC("0.001 us").fit(*moons)


@pytest.fixture
def clock(monkeypatch):
    """Let a call take a microsecond for each support vector, and 5 for a Pipeline."""

    def time(call):
        model = call.func.__self__
        pipeline = hasattr(model, "steps")
        size = len((model[-1] if pipeline else model).support_vectors_)
        return float(size + 5 * pipeline)

    monkeypatch.setattr("slimsvm.selection.limits.microseconds", time)


@pytest.mark.usefixtures("clock")
def test_the_time_allowed_bounds_the_size(moons):
    X, y = moons
    quick = {"reducer": QUICK, "random_state": 0}
    assert max(SlimSVC("12 us", **quick).fit(X, y).path_.sizes) == 12
    assert max(SlimSVC((5, "12 us"), **quick).fit(X, y).path_.sizes) == 5
    assert max(SlimSVC("7 us", trainer=None, reducer="spsvm", random_state=0).fit(X, y).path_.sizes) == 7
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    assert max(compress(pipeline, X, y, budget="12 us", **quick)[-1].path_.sizes) == 7


def test_the_largest_size_that_fits_is_found():
    for most in (1, 2, 3, 7, 8, 100):
        for bound in (1, 2, 3, 5, 64, 99, 1000):
            assert largest_where(lambda size, bound=bound: size <= bound, most) == min(bound, most)


# Grids


def test_a_grid_search_keeps_the_smallest_budget_within_the_tolerance(moons):
    X, y = moons
    grid = {"svc__budget": [2, 8, 30], "svc__gamma": [0.5, 2.0]}
    pipeline = make_pipeline(StandardScaler(), SlimSVC(reducer="spsvm", random_state=0)).set_params()
    pipeline.steps[-1] = ("svc", pipeline.steps[-1][1])
    search = GridSearchCV(pipeline, grid, refit=smallest_within(0.03), cv=3).fit(X, y)
    scores, sizes = search.cv_results_["mean_test_score"], search.cv_results_["param_svc__budget"]
    good = scores >= scores.max() - 0.03
    assert search.best_params_["svc__budget"] == min(sizes[good])
    assert scores[search.best_index_] == max(scores[good & (sizes == search.best_params_["svc__budget"])])


def test_a_grid_without_a_budget_or_with_other_scores_is_refused():
    with pytest.raises(ValueError, match=r"the grid has \['C'\]"):
        smallest_within(0.1)({"param_C": [1], "mean_test_score": [1]})
    with pytest.raises(ValueError, match=r"no score 'r2'; it has \['score'\]"):
        smallest_within(0.1, metric="r2")({"param_budget": [1], "mean_test_score": [1]})
    assert smallest_within(0.1)({"param_budget": [None, 9, 4], "mean_test_score": [0.9, 0.85, 0.7]}) == 1
    with pytest.raises(ValueError, match="tolerance"):
        smallest_within(-1)
    scores = {"mean_test_score": [0.9, 0.85, 0.7]}
    assert smallest_within(0.1)({"param_budget": ["4 KB", "700 B", "64 B"], **scores}) == 1
    with pytest.raises(ValueError, match="bytes, count have no common order"):
        smallest_within(0.1)({"param_budget": ["4 KB", 9, 4], **scores})


# Searches that end early


def path_of(errors):
    """A path of sizes 1, 2, 4, ... with these errors."""
    models = [SimpleNamespace(size=2**place) for place in range(len(errors))]
    steps = tuple(Step(model, error) for model, error in zip(models, errors, strict=True))
    return Path(steps, Status.BUDGET)


def test_a_search_levels_off_where_four_times_the_points_gain_nothing():
    assert levels_off(path_of([0.3, 0.2, 0.1, 0.1, 0.1]))
    assert levels_off(path_of([0.3, 0.2, 0.1, 0.12, 0.15]))
    assert not levels_off(path_of([0.3, 0.2, 0.1, 0.1, 0.09]))
    assert not levels_off(path_of([0.3, 0.2, 0.1, 0.09, 0.1]))
    assert not levels_off(path_of([0.3, 0.3]))  # nothing is a quarter of the last size


def test_a_tolerance_that_no_model_meets_ends_where_errors_level_off():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)

    def score(svc, X, y):  # noqa: ARG001
        return 1.0 if len(svc.support_vectors_) > 200 else 0.5

    with pytest.warns(UserWarning, match="no model of at most 64 support vectors"):
        svc = SlimSVC(gamma=10.0, tolerance=0.1, scoring=score, reducer=QUICK, random_state=0).fit(X, y)
    assert len(svc.support_vectors_) > 200
