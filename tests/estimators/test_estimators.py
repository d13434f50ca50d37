"""SlimSVC as a user meets it: scikit-learn's contract, budgets, attributes, and what it says to bad input."""

import doctest
import subprocess
import sys
from dataclasses import fields
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import slimsvm
from slimsvm import SlimSVC, compress
from slimsvm import clock as deadline
from slimsvm.estimators.methods import make_reducer, make_trainer
from slimsvm.goals import OneVsRest
from slimsvm.kernels import KERNELS
from slimsvm.model import Status
from slimsvm.papers.optimally_sparse import Slant
from slimsvm.reducers import REDUCERS
from slimsvm.selection.allowance import MOST_RECALL_LOST
from slimsvm.selection.folds import MOST_FOLDS, MOST_FOLDS_FOR_TOLERANCE, Splits, fold_rows
from slimsvm.selection.problem import Problem
from slimsvm.slim.method import Slim
from slimsvm.trainers import SMO, TRAINERS

pytestmark = pytest.mark.usefixtures("quick_slim")

EXACT = 1e-6
#: trainers whose models a reducer shrinks; the others keep to a budget by themselves
UNLIMITED = [name for name, kind in TRAINERS.items() if "budget" not in {field.name for field in fields(kind)}]
#: every such trainer with the reducer that SlimSVC has by default, and every reducer with its trainer
DEFAULT = SlimSVC()
METHODS = [*((name, DEFAULT.reducer) for name in UNLIMITED), *((DEFAULT.trainer, name) for name in REDUCERS)]
#: sparse trainers may need fewer support vectors than a budget allows, and the estimator says so
fits_the_budget = pytest.mark.filterwarnings("ignore:budget=.* is not below the:UserWarning")
TABLES = {"kernel": KERNELS, "trainer": TRAINERS, "reducer": REDUCERS}


#: validation rows are drawn by chance, and a row of weight 2 is drawn otherwise than two rows
BY_CHANCE = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")], "rows are drawn by chance"
)


#: the default reducer with a search that ends at once; the contract is not about how good the model is
QUICK = Slim(steps=2)


def expected_failures(estimator):
    return BY_CHANCE if estimator.budget else {}


@parametrize_with_checks(
    [SlimSVC(), SlimSVC(budget=2, reducer=QUICK), SlimSVC(budget=5, reducer="spsvm")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


# Budgets


@fits_the_budget
@pytest.mark.parametrize(("trainer", "reducer"), METHODS)
def test_a_budget_is_the_number_of_support_vectors_at_most(trainer, reducer, moons, iris):
    for budget, (X, y) in ((1, moons), (np.int64(5), iris)):
        slim = SlimSVC(budget, trainer=trainer, reducer=reducer, random_state=0).fit(X, y)
        assert slim.support_vectors_.shape[0] <= budget
        assert slim.path_ is not None or trainer == "lp"
        assert slim.path_ is None or max(slim.path_.sizes) <= budget
        assert set(slim.predict(X)) <= set(y)


@fits_the_budget
@pytest.mark.parametrize("trainer", UNLIMITED)
def test_twenty_support_vectors_are_nearly_as_good_as_all(trainer, moons):
    full = SlimSVC(trainer=trainer, C=10.0, random_state=0).fit(*moons)
    slim = SlimSVC(20, trainer=trainer, C=10.0, random_state=0).fit(*moons)
    assert slim.path_ is not None or trainer == "lp"
    assert slim.score(*moons) >= full.score(*moons) - 0.1


def test_the_model_of_a_budget_is_the_one_its_path_recommends(moons):
    slim = SlimSVC(20, reducer="slant-aggressive", random_state=0).fit(*moons)
    chosen = [step for step in slim.path_ if step.model is slim.model_]
    assert len(chosen) == 1
    assert chosen[0] is slim.path_.best(20)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, np.float32(0.25)])
def test_a_fraction_is_of_the_full_models_support_vectors(fraction, moons):
    full = SlimSVC().fit(*moons).support_vectors_.shape[0]
    slim = SlimSVC(fraction, random_state=0).fit(*moons)
    assert slim.support_vectors_.shape[0] <= max(1, round(fraction * full))


@pytest.mark.parametrize("budget", [10_000, "all"])
def test_a_budget_that_the_full_model_fits_warns_and_keeps_it(budget, moons):
    X, y = moons
    full = SlimSVC().fit(X, y)
    budget = full.support_vectors_.shape[0] if budget == "all" else budget
    with pytest.warns(UserWarning, match=rf"budget={budget} is not below the {full.support_vectors_.shape[0]}"):
        slim = SlimSVC(budget).fit(X, y)
    assert slim.path_ is None
    np.testing.assert_array_equal(slim.decision_function(X), full.decision_function(X))


def held_out_error_of_full(X, y, seed, **settings):
    """The full model's validation error, from a model that has not seen the validation rows."""
    given = np.random.RandomState(seed).randint(np.iinfo(np.int32).max)
    labels = np.unique(y, return_inverse=True)[1]
    rows = Problem(X, labels, np.ones(y.size), None, OneVsRest(2), given, np.arange(y.size))
    folds = fold_rows(rows.strata, SlimSVC().validation_fraction, given, MOST_FOLDS_FOR_TOLERANCE)
    wrong = 0
    for learn, judge in folds:
        assert judge.size == pytest.approx(SlimSVC().validation_fraction * y.size, abs=1)
        assert not np.isin(judge, learn).any()
        part = SVC(tol=EXACT, gamma=1 / (X.shape[1] * X.var()), **settings).fit(X[learn], y[learn])
        wrong += (part.predict(X[judge]) != y[judge]).sum()
    return wrong / sum(judge.size for _, judge in folds)


@pytest.mark.parametrize(("fraction", "rows"), [(0.2, 60), (0.5, 150), (0.8, 240)])
def test_the_validation_fraction_is_the_share_of_rows_that_models_are_compared_on(fraction, rows, moons):
    slim = SlimSVC(2, reducer="prune", validation_fraction=fraction, random_state=0).fit(*moons)
    folds = min(MOST_FOLDS, int(1 / fraction))  # asked where the first one leaves doubt
    assert slim.path_.n_validation in (rows, folds * rows)
    small = compress(SVC().fit(*moons), *moons, budget=2, reducer="prune", validation_fraction=fraction, random_state=0)
    assert small.path_.n_validation in (rows, folds * rows)


@pytest.mark.parametrize(("fraction", "needed"), [(0.2, 5), (0.5, 2), (0.7, 4), (0.1, 10)])
def test_a_class_that_can_spare_no_rows_is_validated_on_the_training_rows(fraction, needed):
    for count in (needed - 1, needed):
        labels = np.repeat([0, 1, 2], [count, 3 * count, 40])
        rows = Problem(None, labels, None, None, OneVsRest(3), 0, None, Splits(fraction))
        train, validation = rows.split()
        assert bool(np.intersect1d(train, validation).size) == (count < needed)
        assert set(labels[train]) == set(labels[validation]) == {0, 1, 2}


@pytest.mark.parametrize("tolerance", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("reducer", ["slant", "slant-aggressive"])
def test_a_tolerance_keeps_the_smallest_model_within_it(tolerance, reducer, moons):
    X, y = moons
    slim = SlimSVC(tolerance=tolerance, reducer=reducer, random_state=3, C=5.0).fit(X, y)
    allowed = held_out_error_of_full(X, y, 3, C=5.0) + tolerance + 1e-12
    assert slim.path_.allowance.limit == pytest.approx(allowed)
    chosen = next(step for step in slim.path_ if step.model is slim.model_)
    assert chosen.error <= allowed
    for place in range(slim.path_.kept):
        few = slim.path_[place : place + 3]  # a small model that is good by chance is followed by others that are not
        doubtful = max(step.error for step in few) > allowed - tolerance / 2
        assert doubtful or max(max(step.class_errors) for step in few) > MOST_RECALL_LOST
    assert chosen.size < SlimSVC(C=5.0).fit(X, y).support_vectors_.shape[0]


def test_a_larger_tolerance_keeps_no_larger_model(moons):
    sizes = [
        SlimSVC(tolerance=tolerance, reducer="spsvm", random_state=0).fit(*moons).support_vectors_.shape[0]
        for tolerance in (0.02, 0.05, 0.3)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_budget_and_tolerance_together_keep_the_smallest_model_within_both(moons):
    X, y = moons
    only, both = SlimSVC(tolerance=0.1, random_state=0).fit(X, y), SlimSVC(40, tolerance=0.1, random_state=0).fit(X, y)
    assert both.support_vectors_.shape[0] <= 40
    assert both.support_vectors_.shape[0] == only.support_vectors_.shape[0]


def test_a_tolerance_that_no_model_within_the_budget_meets_warns_and_keeps_the_best(moons):
    with pytest.warns(UserWarning, match=r"no model of at most 1 support vectors.*the best of at most 1"):
        slim = SlimSVC(1, tolerance=0.0, random_state=0).fit(*moons)
    assert slim.support_vectors_.shape[0] <= 1


def test_a_tolerance_that_no_smaller_model_meets_warns_and_keeps_the_full_model(moons):
    X, y = moons
    lazy = Slant(eta=1e-6, eps=1e-9, max_steps=50, refit=False)  # never gets anywhere
    with pytest.warns(UserWarning, match="the full model is returned"):
        slim = SlimSVC(tolerance=0.0, reducer=lazy, random_state=0).fit(X, y)
    assert slim.path_ is None
    np.testing.assert_allclose(slim.decision_function(X), SlimSVC().fit(X, y).decision_function(X), atol=5e-3)


def test_neither_budget_nor_tolerance_keeps_the_full_model(moons):
    X, y = moons
    slim = SlimSVC(tol=EXACT).fit(X, y)
    assert slim.path_ is None
    assert slim.support_vectors_.shape[0] == SVC(tol=EXACT).fit(X, y).support_vectors_.shape[0]


# Without a full model, without enough time


@pytest.mark.usefixtures("first_rows")
def test_a_small_model_straight_from_the_labels(moons, iris):
    for X, y in (moons, iris):
        slim = SlimSVC(16, trainer=None, reducer="first-rows", random_state=0).fit(X[::-1], y[::-1])
        assert slim.path_.sizes == [1, 2, 4, 8, 16]
        assert slim.model_ is slim.path_.best(16).model
        assert slim.goal_ == OneVsRest(np.unique(y).size)
        assert slim.n_iter_ == 0
        assert slim.status_ is Status.BUDGET
        assert slim.n_kernel_evals_ > 0
        assert slim.score(X, y) > 0.6


def test_without_a_trainer_a_reducer_that_needs_a_full_model_is_answered_with_those_that_do_not(first_rows, moons):
    able = sorted(name for name, kind in REDUCERS.items() if not kind.needs_model)
    assert "first-rows" in able
    with pytest.raises(ValueError, match=r"trainer=None leaves Slant without the full model") as caught:
        SlimSVC(16, trainer=None, reducer="slant").fit(*moons)
    assert str(able) in str(caught.value)
    assert SlimSVC(16, trainer=None, reducer=first_rows()).fit(*moons).status_ is Status.BUDGET


@pytest.mark.usefixtures("first_rows")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": None}, r"needs a number of support vectors, bytes or a time; budget is None\. Give budget=16"),
        ({"budget": 0.5}, r"needs a number of support vectors, bytes or a time; budget is 0\.5\. Give budget=16"),
        ({"budget": 5, "tolerance": 0.1}, r"no full model whose error tolerance=0\.1 could be compared with"),
    ],
    ids=str,
)
def test_what_needs_a_full_model_is_refused_without_one(settings, words, moons):
    with pytest.raises(ValueError, match=words):
        SlimSVC(trainer=None, reducer="first-rows", **settings).fit(*moons)


@pytest.mark.usefixtures("first_rows")
def test_a_model_from_the_labels_can_be_compressed_further_and_fitted_again(moons):
    X, y = moons
    slim = SlimSVC(16, trainer=None, reducer="first-rows", C=2.0, random_state=0).fit(X, y)
    small = compress(slim, X, y, budget=4, random_state=0)
    assert small.model_.size <= 4
    assert small.C == 2.0
    assert clone(small).fit(X, y).model_.size <= 4


@pytest.fixture
def impatient(monkeypatch):
    """A clock that runs a second further at each look."""
    clock = iter(range(10**9))
    monkeypatch.setattr(deadline, "perf_counter", lambda: next(clock))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("door", ["fit", "compress"])
def test_a_time_limit_keeps_the_best_so_far_and_says_how_far_it_got(door, moons):
    X, y = moons
    reducer, words = Slant(time_limit=5.0), r"Slant stopped at the time limit.* found has (\d+) support vectors; 30 were"
    small = {"budget": 30, "reducer": reducer, "random_state": 0}
    doors = {"fit": SlimSVC(**small).fit, "compress": partial(compress, SVC().fit(X, y), **small)}
    with pytest.warns(ConvergenceWarning, match=words) as caught:
        slim = doors[door](X, y)
    assert len(caught) == 1
    assert 0 < slim.model_.size <= slim.path_.sizes[-1] < 30
    assert f"has {slim.path_.sizes[-1]} support" in str(caught[0].message)
    assert slim.path_.status is Status.TIME_LIMIT


@pytest.mark.usefixtures("impatient")
def test_a_time_limit_holds_for_all_paths_to_a_tolerance(moons):
    with pytest.warns(UserWarning, match=r"Slant stopped at the time limit|no model of at most") as caught:
        slim = SlimSVC(tolerance=0.0, reducer=Slant(time_limit=4.0), random_state=0).fit(*moons)
    assert [warning.category for warning in caught] == [ConvergenceWarning, UserWarning]
    assert "no model of at most 64" in str(caught[1].message)
    assert slim.path_ is None


# Trainers, reducers and parameters


@pytest.mark.parametrize(
    ("trainer", "reducer"),
    [*((name, DEFAULT.reducer) for name in TRAINERS), *((DEFAULT.trainer, name) for name in REDUCERS)],
)
def test_methods_may_be_names_or_instances(trainer, reducer, moons):
    X, y = moons
    X, y = X[::2], y[::2]
    named = SlimSVC(2, trainer=trainer, reducer=reducer, random_state=0).fit(X, y)
    built = SlimSVC(2, trainer=TRAINERS[trainer](), reducer=REDUCERS[reducer](), random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(X), built.decision_function(X))


#: values that no method and no estimator has by default
OWN, ESTIMATORS = {"C": 7.0, "tol": 0.03, "max_iter": 5}, {"C": 3.0, "tol": 0.02, "max_iter": 9}


@pytest.mark.parametrize("setting", OWN)
@pytest.mark.parametrize(
    ("what", "name"), [*(("trainer", name) for name in TRAINERS), *(("reducer", name) for name in REDUCERS)]
)
def test_an_instance_keeps_its_own_settings_and_takes_the_others(what, name, setting):
    kind, make = TABLES[what][name], {"trainer": make_trainer, "reducer": make_reducer}[what]
    shared = {field.name for field in fields(kind)} & OWN.keys()
    own = {setting: OWN[setting]} if setting in shared else {}
    method = make(SlimSVC(10, **{what: kind(**own)}, **ESTIMATORS))
    assert {key: getattr(method, key) for key in shared} == {key: (ESTIMATORS | own)[key] for key in shared}


def test_a_trainer_keeps_its_own_number_of_steps(moons):
    with pytest.warns(ConvergenceWarning, match="SMO stopped at max_iter"):
        slim = SlimSVC(trainer=SMO(max_iter=3)).fit(*moons)
    assert slim.n_iter_ == 3
    assert slim.trainer == SMO(max_iter=3)


def test_a_trainers_own_cost_and_tol_are_followed(moons):
    X, y = moons
    trainer = SMO(C=5.0, tol=EXACT, working_set=16)
    full = SlimSVC(C=0.1, tol=0.1, trainer=trainer).fit(X, y)
    np.testing.assert_allclose(full.decision_function(X), SVC(C=5.0, tol=EXACT).fit(X, y).decision_function(X), atol=1e-4)


def test_a_reducers_own_settings_are_followed(moons):
    X, y = moons
    own, same = (
        SlimSVC(5, trainer=None, random_state=0, **settings).fit(X, y)
        for settings in ({"reducer": Slim(C=100.0)}, {"C": 100.0})
    )
    other = SlimSVC(5, trainer=None, random_state=0).fit(X, y)
    np.testing.assert_array_equal(own.decision_function(X), same.decision_function(X))
    assert not np.allclose(own.decision_function(X), other.decision_function(X))
    slant = SlimSVC(8, reducer=Slant(eta=0.25, eps=0.3, bias="learned", refit=False), random_state=0).fit(X, y)
    assert {step.settings for step in slant.path_} == {"eta=0.25, eps=0.3, bias=learned"}


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ({"trainer": SMO(C=-1.0)}, "C of the trainer must be a number above 0"),
        ({"trainer": SMO(tol=0.0)}, "tol of the trainer must be a number above 0"),
        ({"trainer": SMO(max_iter=-2)}, "max_iter of the trainer must be a whole number"),
    ],
    ids=["C", "tol", "max_iter"],
)
def test_settings_of_an_instance_are_checked(method, words, moons):
    with pytest.raises(ValueError, match=words):
        SlimSVC(5, **method).fit(*moons)


def test_parameters_are_kept_as_given_and_cloned():
    given = {"budget": 0.3, "tolerance": 0.3, "kernel": "poly", "gamma": "auto", "C": 2, "degree": 2, "coef0": 1}
    given |= {"trainer": SMO(working_set=64), "reducer": Slant(), "tol": 0.1, "max_iter": 10**6, "class_weight": "balanced"}
    given |= {"cache_mb": 10, "validation_fraction": 0.3, "calibration": None, "device": "cpu", "random_state": 7}
    given |= {"decision_function_shape": "ovo", "break_ties": False, "verbose": False, "multiclass": None}
    given |= {"time_limit": 9.0, "warm_start": True, "checkpoint": None, "scoring": None, "precision": "int8"}
    slim = SlimSVC(**given)
    assert slim.get_params(deep=False) == given
    copy = clone(slim)
    assert copy.get_params(deep=False) == given
    assert copy.set_params(budget=4, C=3.0) is copy
    assert (copy.budget, copy.C, slim.budget) == (4, 3.0, 0.3)
    X, y = load_iris(return_X_y=True)
    slim.fit(X, y)
    assert slim.get_params(deep=False) == given


def test_it_works_in_searches_and_pipelines(iris):
    X, y = iris
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SlimSVC(random_state=0)), {"slimsvc__C": [0.1, 10.0], "slimsvc__budget": [5]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.8
    assert cross_val_score(SlimSVC(10), X, y, cv=3).mean() > 0.85


# Attributes


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_attributes_of_two_classes_are_svcs(kernel):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    svc, slim = (kind(kernel=kernel, tol=EXACT, C=0.5).fit(X, y) for kind in (SVC, SlimSVC))
    assert slim.dual_coef_.shape == svc.dual_coef_.shape
    np.testing.assert_array_equal(slim.n_support_, svc.n_support_)
    np.testing.assert_array_equal(slim.classes_, svc.classes_)
    ours, theirs = (np.lexsort(model.support_vectors_.T) for model in (slim, svc))
    np.testing.assert_array_equal(slim.support_vectors_[ours], svc.support_vectors_[theirs])
    np.testing.assert_allclose(slim.dual_coef_[:, ours], svc.dual_coef_[:, theirs], atol=1e-4)
    np.testing.assert_allclose(slim.intercept_, svc.intercept_, atol=1e-4)


def test_attributes_fit_together_for_many_classes(iris):
    X, y = iris
    slim = SlimSVC(12, random_state=0).fit(X, y)
    m = slim.support_vectors_.shape[0]
    assert slim.dual_coef_.shape == (3, m)
    assert slim.intercept_.shape == (3,)
    assert slim.n_support_.shape == (3,)
    assert slim.n_support_.sum() == m
    assert slim.n_features_in_ == 4
    assert slim.status_ is Status.CONVERGED
    assert slim.n_iter_ > 0
    K = rbf_kernel(X, slim.support_vectors_, gamma=1 / (4 * X.var()))
    np.testing.assert_allclose(slim.decision_function(X), K @ slim.dual_coef_.T + slim.intercept_, atol=1e-9)


def test_support_vectors_are_training_rows_in_their_form(moons):
    X, y = moons
    rows = {tuple(row) for row in X}
    chosen = SlimSVC(10, reducer="slant-aggressive")
    assert all(tuple(point) in rows for point in chosen.fit(X, y).support_vectors_)
    for sparse in (csr_array, csr_matrix):
        points = chosen.fit(sparse(X), y).support_vectors_
        assert issparse(points)
        assert all(tuple(point) in rows for point in points.toarray())


def test_kernel_evaluations_are_counted(moons):
    X, y = moons
    seen = []

    def counting(A, B):
        seen.append(A.shape[0] * B.shape[0])
        return rbf_kernel(A, B)

    for settings in ({}, {"budget": 10}, {"tolerance": 0.05}):
        seen.clear()
        slim = SlimSVC(kernel=counting, reducer="slant-aggressive", random_state=0, **settings).fit(X, y)
        assert slim.n_kernel_evals_ == sum(seen)


# Labels


@pytest.mark.parametrize(
    "names", [["yes", "no"], ["b", "c", "a"], [7, -2], [True, False], [3.0, 1.0, 2.0]], ids=lambda names: str(names[0])
)
def test_labels_of_any_kind_and_order_are_predicted_as_given(names, iris):
    X, y = iris
    X, y = X[y < len(names)], np.array(names)[y[y < len(names)]]
    for budget in (None, 8):
        slim = SlimSVC(budget, random_state=0).fit(X, y)
        np.testing.assert_array_equal(slim.classes_, np.unique(y))
        assert slim.predict(X).dtype == y.dtype
        assert slim.score(X, y) > 0.85


def test_names_of_labels_change_nothing_but_the_names(iris):
    X, y = iris
    numbers, names = SlimSVC(9, random_state=0).fit(X, y), SlimSVC(9, random_state=0).fit(X, np.array(list("abc"))[y])
    np.testing.assert_array_equal(numbers.decision_function(X), names.decision_function(X))


def test_the_sign_of_the_score_names_the_second_class(moons):
    X, y = moons
    slim = SlimSVC(10, random_state=0).fit(X, np.where(y, "b", "a"))
    np.testing.assert_array_equal(slim.predict(X), np.where(slim.decision_function(X) > 0, "b", "a"))


def test_the_largest_score_names_the_class(iris):
    X, y = iris
    slim = SlimSVC(10, random_state=0).fit(X, y)
    np.testing.assert_array_equal(slim.predict(X), slim.decision_function(X).argmax(axis=1))


# The same model, whichever way the rows come


@pytest.mark.parametrize("settings", [{}, {"budget": 10}, {"tolerance": 0.05, "reducer": "spsvm"}], ids=str)
def test_a_random_state_makes_results_repeatable(settings, moons):
    X, y = (part[::2] for part in moons)
    first, again = (SlimSVC(random_state=5, **settings).fit(X, y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    by_object = SlimSVC(random_state=np.random.RandomState(5), **settings).fit(X, y)
    np.testing.assert_array_equal(by_object.decision_function(X), first)


def test_a_random_state_chooses_the_rows_held_out(moons):
    X, y = moons
    errors = {tuple(SlimSVC(10, random_state=seed).fit(X, y).path_.errors) for seed in range(3)}
    assert len(errors) > 1


@pytest.mark.parametrize("budget", [None, 10])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "precomputed"])
def test_precomputed_and_callable_kernels_equal_the_direct_one(name, budget, moons):
    X, y = moons
    X = X - X.min(axis=0)
    learn, test = slice(0, None, 2), slice(1, None, 2)
    settings = {"budget": budget, "reducer": "slant-aggressive", "random_state": 0, "tol": EXACT}
    direct = SlimSVC(kernel=name, gamma=0.05, coef0=0.5, degree=2, **settings).fit(X[learn], y[learn])
    kernel = direct.model_.kernel
    called = SlimSVC(kernel=kernel, **settings).fit(X[learn], y[learn])
    looked_up = SlimSVC(kernel="precomputed", **settings).fit(kernel(X[learn], X[learn]), y[learn])
    expected = direct.decision_function(X[test])
    np.testing.assert_allclose(called.decision_function(X[test]), expected, atol=1e-6)
    np.testing.assert_allclose(looked_up.decision_function(kernel(X[test], X[learn])), expected, atol=1e-6)
    assert looked_up.support_vectors_.shape[1] == 1
    np.testing.assert_array_equal(X[learn][looked_up.support_vectors_.ravel()], direct.support_vectors_)


@pytest.mark.parametrize("budget", [None, 10])
@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "precomputed"])
def test_sparse_rows_give_the_model_of_dense_rows(name, sparse, budget):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    settings = {"kernel": name, "gamma": 0.02, "reducer": "slant-aggressive", "random_state": 0}
    dense, slim = (SlimSVC(budget, **settings).fit(form(X), y) for form in (np.asarray, sparse))
    np.testing.assert_allclose(slim.decision_function(sparse(X)), dense.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(slim.decision_function(X), dense.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(dense.decision_function(sparse(X)), dense.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("n", [80, 800], ids=["float64", "float32"])
def test_sparse_rows_with_long_indices_are_no_different(n):
    rng = np.random.default_rng(0)
    X, y = csr_array(rng.random((n, 30)) * (rng.random((n, 30)) < 0.1)), np.arange(n) % 2
    long = csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    for budget in (None, 5):
        short = SlimSVC(budget, random_state=0).fit(X, y)
        same = SlimSVC(budget, random_state=0).fit(long, y)
        np.testing.assert_array_equal(same.decision_function(long), short.decision_function(X))


@pytest.mark.parametrize("budget", [None, 5])
def test_entries_of_sparse_rows_that_are_given_in_parts_are_summed(budget):
    rng = np.random.default_rng(0)
    X, y = csr_array(rng.random((80, 30)) * (rng.random((80, 30)) < 0.1)), np.arange(80) % 2
    halves = csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape)
    whole, parts = (SlimSVC(budget, random_state=0).fit(rows, y) for rows in (X, halves))
    assert halves.nnz == 2 * X.nnz  # the rows given are left as they are
    np.testing.assert_array_equal(parts.decision_function(halves), whole.decision_function(X))
    np.testing.assert_array_equal(whole.decision_function(halves), whole.decision_function(X))


def test_sparse_rows_that_end_before_they_begin_are_refused():
    X = csr_array(np.eye(4))
    X.indptr = np.array([0, 1000, 2, 3, 4], dtype=np.int32)
    with pytest.raises(ValueError, match="build it again"):
        SlimSVC().fit(X, [0, 1, 0, 1])


def test_float32_rows_give_the_model_of_float64_rows(moons):
    X, y = moons
    X = X.astype(np.float32)
    single, double = SlimSVC(tol=EXACT).fit(X, y), SlimSVC(tol=EXACT).fit(X.astype(np.float64), y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"budget": 6}, {"tolerance": 0.1}], ids=str)
def test_rows_of_weight_zero_are_absent_for_a_precomputed_kernel_too(settings, moons):
    X, y = moons
    settings = {"reducer": "slant-aggressive", **settings}
    weights = np.where(np.arange(y.size) % 3, 1.0, 0.0)
    here, K = weights > 0, rbf_kernel(X)
    weighted = SlimSVC(kernel="precomputed", random_state=0, **settings).fit(K, y, sample_weight=weights)
    assert weights[weighted.support_vectors_.ravel()].all()
    some = SlimSVC(kernel="precomputed", random_state=0, **settings).fit(K[np.ix_(here, here)], y[here])
    np.testing.assert_allclose(weighted.decision_function(K), some.decision_function(K[:, here]), atol=1e-9)


def test_more_memory_for_kernel_rows_changes_nothing(moons):
    X, y = moons
    tiny, large = (SlimSVC(10, cache_mb=mb, random_state=0).fit(X, y) for mb in (1e-3, 512))
    np.testing.assert_allclose(tiny.decision_function(X), large.decision_function(X), atol=1e-9)


# Few rows, odd rows


@pytest.mark.parametrize("settings", [{}, {"budget": 1}, {"budget": 2}, {"tolerance": 0.5}], ids=str)
def test_three_rows_are_enough(settings):
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [0, 1, 1]
    slim = SlimSVC(C=10.0, gamma=1.0, random_state=0, **settings).fit(X, y)
    assert slim.support_vectors_.shape[0] <= settings.get("budget", 3)
    assert slim.predict(X).shape == (3,)
    if not settings:
        np.testing.assert_array_equal(slim.predict(X), y)


@pytest.mark.filterwarnings("ignore:.*rarest class:UserWarning")
@pytest.mark.parametrize("rare", [1, 3, 6])
def test_a_class_of_few_rows_can_be_held_out_from(rare, moons):
    X, y = moons
    some = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:rare]])
    slim = SlimSVC(5, random_state=0, class_weight="balanced").fit(X[some], y[some])
    assert slim.support_vectors_.shape[0] <= 5
    SlimSVC(tolerance=0.3, random_state=0).fit(X[some], y[some])


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "precomputed"])
@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_constant_features_predict_the_larger_class(kernel, value, share):
    X, y = np.full((60, 3), value), (np.arange(60) >= 60 * share).astype(int)
    slim = SlimSVC(kernel=kernel).fit(X, y)
    assert np.unique(slim.predict(X)).size == 1
    if share < 0.5:
        assert slim.predict(X[:1]) == [1]


@pytest.mark.parametrize(("kernel", "share"), [("rbf", 0.5), ("linear", 0.5), ("linear", 0.3), ("poly", 0.3)])
def test_constant_features_can_be_shrunk(kernel, share):
    X, y = np.zeros((60, 3)), (np.arange(60) >= 60 * share).astype(int)
    slim = SlimSVC(3, kernel=kernel, random_state=0).fit(X, y)
    assert slim.support_vectors_.shape[0] <= 3
    if share < 0.5:
        assert slim.predict(X[:1]) == [1]


@pytest.mark.parametrize("budget", [None, 7])
def test_duplicate_rows_are_no_trouble(budget, moons):
    X, y = moons
    X, y = np.tile(X[:60], (4, 1)), np.concatenate([y[:60], y[:60], y[:60], 1 - y[:60]])
    slim = SlimSVC(budget, random_state=0).fit(X, y)
    assert slim.score(X[:60], y[:60]) > 0.6


def test_a_model_without_support_vectors_predicts(moons):
    X, y = moons
    with pytest.warns(match="max_iter"):
        slim = SlimSVC(max_iter=0).fit(X, y)
    assert slim.support_vectors_.shape == (0, 2)
    assert slim.predict(X).shape == y.shape
    np.testing.assert_array_equal(slim.n_support_, [0, 0])


def test_predicting_no_rows_is_refused_as_scikit_learn_does(moons):
    slim = SlimSVC().fit(*moons)
    with pytest.raises(ValueError, match="0 sample"):
        slim.predict(np.empty((0, 2)))


# Bad input

X2 = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.2], [0.1, 0.9], [2.0, 1.0], [3.0, 1.0]])
Y2 = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": 0}, "budget must be"),
        ({"budget": -3}, "budget must be"),
        ({"budget": 1.5}, "budget must be"),
        ({"budget": 1.0}, "budget must be"),
        ({"budget": 0.0}, "budget must be"),
        ({"budget": True}, "budget must be"),
        ({"budget": "five"}, "is no number with a unit"),
        ({"budget": float("nan")}, "budget must be"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"tolerance": 1.0}, "tolerance must be"),
        ({"tolerance": "small"}, "tolerance must be"),
        ({"tolerance": float("nan")}, "tolerance must be"),
        ({"kernel": "gauss"}, "unknown kernel 'gauss'"),
        ({"trainer": "sgd"}, "unknown trainer 'sgd'"),
        ({"reducer": "shears"}, "unknown reducer 'shears'"),
        ({"gamma": 0}, "gamma must be"),
        ({"gamma": -0.5}, "gamma must be"),
        ({"gamma": "wide"}, "gamma must be"),
        ({"C": 0}, "C must be"),
        ({"C": -1}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"decision_function_shape": "pairs"}, "decision_function_shape must be 'ovr' or 'ovo', not 'pairs'"),
        ({"C": "large"}, "C must be"),
        ({"tol": 0}, "tol must be"),
        ({"cache_mb": 0}, "cache_mb must be"),
        ({"cache_mb": -1}, "cache_mb must be"),
        ({"max_iter": -2}, "max_iter must be"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"degree": -1}, "degree must be"),
        ({"degree": 2.5}, "degree must be"),
        ({"coef0": float("nan")}, "coef0 must be"),
        ({"validation_fraction": 0.0}, "validation_fraction must be"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"validation_fraction": "some"}, "validation_fraction must be"),
        ({"validation_fraction": float("nan")}, "validation_fraction must be"),
        ({"device": "abacus"}, "device 'abacus'"),
        ({"kernel": "chi2", "gamma": 1.0, "shift": -5.0}, "MinMaxScaler"),
        ({"kernel": "precomputed"}, "must be square"),
        pytest.param({"kernel": lambda A, B: np.ones((A.shape[0], 1))}, "it must return", id="kernel of one column"),  # noqa: ARG005
    ],
    ids=str,
)
def test_a_setting_without_a_meaning_is_refused_and_named(settings, words):
    settings = dict(settings)
    X = X2 + settings.pop("shift", 0.0)
    with pytest.raises(ValueError, match=words):
        SlimSVC(**settings).fit(X, Y2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gamma": None}, "gamma must be"),
        ({"coef0": "a"}, "coef0 must be"),
        ({"kernel": ["rbf"]}, "unknown kernel"),
        ({"trainer": SMO}, "trainer"),
        ({"reducer": object()}, "reducer"),
    ],
    ids=["gamma", "coef0", "kernel", "trainer", "reducer"],
)
def test_a_setting_of_the_wrong_type_is_refused_and_named(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SlimSVC(**settings).fit(X2, Y2)


@pytest.mark.parametrize(
    ("setting", "table"),
    [("kernel", KERNELS), ("trainer", TRAINERS), ("reducer", REDUCERS)],
    ids=["kernel", "trainer", "reducer"],
)
def test_an_unknown_name_is_answered_with_the_names_there_are(setting, table):
    with pytest.raises(ValueError, match="unknown") as caught:
        SlimSVC(**{setting: "no such thing"}).fit(X2, Y2)
    assert all(name in str(caught.value) for name in table)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.where(X2 == 3.0, np.nan, X2), Y2, "NaN"),
        (np.where(X2 == 3.0, np.inf, X2), Y2, "infinity"),
        (np.ma.masked_equal(X2, 3.0), Y2, r"X is a masked array with \d+ masked entries; fill them"),
        (X2, np.ma.masked_array(Y2, [True] + [False] * 5), "y is a masked array with 1 masked entries"),
        (X2, [1] * 6, "number of classes has to be greater than one; got 1 class"),
        (X2, Y2[:5], "inconsistent numbers of samples"),
        (X2[:0], [], "0 sample"),
        (X2[:1], [0], "1 sample|minimum of 2"),
        (X2[:, 0], Y2, "1D array|2D array"),
        (X2, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "Unknown label type"),
        (X2, None, "y should be|requires y|y cannot be None"),
        (X2, [0, 1, np.nan, 0, 1, 0], "NaN"),
        (np.array([["a", "b"]] * 6), Y2, "could not convert|numeric"),
        (
            X2,
            np.array(["a", 1] * 3, dtype=object),
            r"y mixes labels of the types \['int', 'str'\], which have no common order",
        ),
    ],
    ids=[
        "nan",
        "inf",
        "masked",
        "masked labels",
        "one class",
        "lengths",
        "no rows",
        "one row",
        "1d",
        "continuous",
        "no y",
        "nan label",
        "text",
        "mixed",
    ],
)
def test_rows_and_labels_that_cannot_be_learned_from_are_refused(X, y, words):
    for settings in ({}, {"budget": 2}):
        with pytest.raises(ValueError, match=words):
            SlimSVC(**settings).fit(X, y)


def test_a_mask_without_masked_entries_is_no_matter():
    model = SlimSVC().fit(np.ma.masked_array(X2), Y2)
    np.testing.assert_array_equal(model.predict(np.ma.masked_array(X2)), model.predict(X2))
    with pytest.raises(ValueError, match="masked entries"):
        model.predict(np.ma.masked_equal(X2, X2[0, 0]))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0] * 5, "sample_weight"),
        ([1.0] * 5 + [-1.0], "sample weights must be 0 or more; the smallest is -1"),
        ([1.0] * 5 + [np.nan], "NaN"),
        ([0.0] * 6, "non-zero|all 6 rows have weight 0"),
        ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], "rows of weight 0 do not count"),
    ],
    ids=["too few", "negative", "nan", "all zero", "one class left"],
)
def test_weights_that_leave_nothing_to_learn_are_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        SlimSVC().fit(X2, Y2, sample_weight=weights)


@pytest.mark.parametrize("settings", [{}, {"budget": 2}], ids=["full", "budget"])
@pytest.mark.parametrize(
    ("C", "weights"),
    [(1e-200, [1e-200] * 6), (1e-300, [1.0] * 5 + [1e-10]), (1e300, [1e10] * 6)],
    ids=["all underflow", "one underflows", "overflow"],
)
def test_a_cost_beyond_the_range_of_floats_is_refused(C, weights, settings):
    with pytest.raises(ValueError, match=r"C times the weight of a row is between .*beyond the range of float64"):
        SlimSVC(C=C, gamma=1.0, **settings).fit(X2, Y2, sample_weight=weights)


def test_rows_of_another_width_are_refused_at_prediction(moons):
    slim = SlimSVC(5, random_state=0).fit(*moons)
    for method in (slim.predict, slim.decision_function):
        with pytest.raises(ValueError, match=r"3 features.*2 features"):
            method(np.ones((4, 3)))
        with pytest.raises(ValueError, match="NaN"):
            method(np.full((4, 2), np.nan))


def test_a_failed_fit_says_so_before_it_trains():
    """Settings are checked before any kernel value is computed."""

    def never(A, B):  # noqa: ARG001
        raise AssertionError("the kernel was called")

    for settings in ({"budget": 0}, {"tolerance": 2.0}, {"trainer": "x"}, {"reducer": "x"}, {"C": 0.0}):
        with pytest.raises(ValueError, match=r"must be|unknown"):
            SlimSVC(kernel=never, **settings).fit(X2, Y2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_valid_at_a_glance_get_the_same_scores(dtype):
    X, y = load_iris(return_X_y=True)
    X = X.astype(dtype)
    model = SlimSVC(9, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X[:2]), model.decision_function(X[:2].tolist()), rtol=1e-6)


def test_rows_not_valid_at_a_glance_are_still_refused():
    X, y = load_iris(return_X_y=True)
    model = SlimSVC(9, random_state=0).fit(X, y)
    for rows, words in ((X[:1] * np.nan, "NaN"), (X[:1, :2], "2 features"), (X[0], "2D"), (X[:0], "0 sample")):
        with pytest.raises(ValueError, match=words):
            model.decision_function(rows)
    with pytest.raises(NotFittedError):
        SlimSVC().predict(X[:1])


# Devices


@pytest.mark.strict_arrays
@pytest.mark.parametrize("budget", [None, 4])
def test_fit_and_predict_use_the_home_of_the_device(budget, moons):
    X, y = moons
    host, other = (
        SlimSVC(budget, trainer="smo" if budget is None else None, device=device, tol=EXACT, random_state=0).fit(X, y)
        for device in ("cpu", "array_api_strict")
    )
    np.testing.assert_allclose(other.decision_function(X), host.decision_function(X), atol=1e-3)
    assert other.n_kernel_evals_ > 0
    other.device = "abacus"
    with pytest.raises(ValueError, match="device 'abacus'"):
        other.predict(X)


@pytest.mark.strict_arrays
def test_compress_uses_the_home_of_the_device(moons):
    X, y = moons
    full = SVC().fit(X, y)
    host, other = (compress(full, X, y, budget=4, device=device, random_state=0) for device in ("cpu", "array_api_strict"))
    assert other.device == "array_api_strict"
    np.testing.assert_allclose(other.decision_function(X), host.decision_function(X), atol=1e-2)
    with pytest.raises(ValueError, match="device 'abacus'"):
        compress(full, X, y, device="abacus")


# The documentation


@pytest.mark.parametrize(
    "module", ["slimsvm.estimators.svc", "slimsvm.estimators.compress", "slimsvm.selection.path"], ids=lambda name: name
)
def test_examples_of_docstrings_run(module):
    failed, tried = doctest.testmod(import_module(module))
    assert tried > 0
    assert failed == 0


def test_tables_of_methods_are_attributes_of_the_package():
    """In a fresh interpreter: nothing else has imported them there."""
    words = "import slimsvm; print(*slimsvm.trainers.TRAINERS, *slimsvm.reducers.REDUCERS)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == [*TRAINERS, *REDUCERS]
    assert {"trainers", "reducers"} <= set(dir(slimsvm))


@pytest.mark.parametrize("count", [1, 5000], ids=["few features", "many features"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200, -1e200, 1e150, 3e38], ids=str)
def test_rows_to_predict_have_a_range(value, dtype, count):
    """Few rows are checked by one product, others by their largest and smallest features."""
    svc = SlimSVC(kernel="linear").fit([[0.0], [1.0]], [0, 1])
    with np.errstate(over="ignore"):
        rows = np.full((count, 1), value, dtype)
    if np.isfinite(rows).all() and float(np.abs(rows).max()) <= 1e150:
        assert np.isfinite(svc.decision_function(rows)).all()
    else:
        with pytest.raises(ValueError, match=r"features must lie between|NaN|infinity"):
            svc.decision_function(rows)


def test_a_validation_fraction_may_be_a_number_of_numpy(moons):
    fraction = np.float32(0.25)
    same = [SlimSVC(5, validation_fraction=each, random_state=0).fit(*moons) for each in (fraction, float(fraction))]
    np.testing.assert_array_equal(same[0].support_vectors_, same[1].support_vectors_)


def test_a_method_of_the_other_kind_is_refused():
    for settings, words in (({"trainer": Slim()}, "unknown trainer Slim"), ({"reducer": SMO()}, "unknown reducer SMO")):
        with pytest.raises(ValueError, match=words):
            SlimSVC(4, **settings).fit(*load_iris(return_X_y=True))
