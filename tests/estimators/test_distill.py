"""distill: students of teachers of every kind, and teachers that nothing can be learned from."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC, SlimSVR, distill, load, save

FAST = {"budget": 4, "cv": 2, "random_state": 0}


def rows(n=120, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    noisy = np.c_[X[:, 0], np.sin(2 * X[:, 1]), X[:, 2] * 0.5] + rng.gumbel(size=(n, 3)) * 0.3
    return X, np.array(["a", "b", "c"])[noisy[:, :classes].argmax(axis=1)]


class Network:
    """A classifier that cannot be cloned."""

    def __init__(self, broken=()):
        self.broken = list(broken)

    def predict_proba(self, X):
        scores = np.exp(np.c_[X[:, 0], np.sin(2 * X[:, 1]), X[:, 2] * 0.5] * 3)
        scores[self.broken] = np.nan
        return scores / scores.sum(axis=1, keepdims=True)

    @property
    def classes_(self):
        return np.array(["a", "b", "c"])


TEACHERS = {
    "forest": RandomForestClassifier(20, random_state=0),
    "scores": SVC(),
    "scores of two": RidgeClassifier(),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1]}, cv=2),
}


@pytest.mark.parametrize("name", TEACHERS)
def test_students_of_any_classifier_are_small_and_say_what_was_gained(name):
    X, y = rows(classes=2 if name == "scores of two" else 3)
    teacher = TEACHERS[name].fit(X, y)
    small = distill(teacher, X, y, **FAST)
    assert isinstance(small, SlimSVC)
    assert len(small.support_vectors_) <= 4
    told = small.distillation_
    assert told.student_error <= told.plain_error + 2 * told.standard_error
    assert told.errors[told.kept] == told.student_error
    assert set(told.errors) >= {"labels", "teacher 0.25", "teacher 0.5"}
    assert 0 <= told.teacher_error < 0.5
    assert told.standard_error >= 0
    new, truth = rows(300, 1, classes=2 if name == "scores of two" else 3)
    assert small.score(new, truth) > 0.6


def test_teachers_labels_are_of_clones_that_have_not_seen_the_row():
    X, y = rows()
    seen = []

    class Watched(RandomForestClassifier):
        def fit(self, X, y):
            self.given_ = {tuple(row) for row in X}
            return super().fit(X, y)

        def predict_proba(self, X):
            if len(self.given_) < 120 and len(X) < 100:
                seen.append(any(tuple(row) in self.given_ for row in X))
            return super().predict_proba(X)

    distill(Watched(5, random_state=0).fit(X, y), X, y, **FAST)
    assert len(seen) >= 3
    assert not any(seen)


def test_regressors_and_functions_are_teachers():
    X, _ = rows()
    y = 100 * np.sin(X[:, 0]) + 500
    small = distill(RandomForestRegressor(20, random_state=0).fit(X, y), X, y, **FAST)
    assert isinstance(small, SlimSVR)
    assert small.score(X, y) > 0.8
    with pytest.warns(UserWarning, match="cannot be cloned"):
        small = distill(lambda rows: 100 * np.sin(rows[:, 0]) + 500, X, y, **FAST)
    assert small.score(X, y) > 0.8
    with pytest.warns(UserWarning, match="without y"):
        small = distill(lambda rows: 100 * np.sin(rows[:, 0]) + 500, X, **FAST)
    assert small.score(X, y) > 0.8
    assert small.distillation_.teacher_error == 0


def test_rows_that_the_teacher_has_not_seen_are_labelled_by_it():
    X, y = rows()
    further = rows(100, 1)[0]
    small = distill(Network(), X, y, X_unlabelled=further, **FAST)
    assert len(small.support_vectors_) <= 4
    small = distill(Network(), X, X_unlabelled=further, **FAST)
    assert small.score(X, Network().classes_[Network().predict_proba(X).argmax(axis=1)]) > 0.8
    frozen = FrozenEstimator(RandomForestClassifier(5, random_state=0).fit(X, y))
    with pytest.warns(UserWarning, match="cannot be cloned"):
        distill(frozen, X, y, **FAST)


def test_a_table_is_prepared_for_the_student(tmp_path):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("xyz")).assign(word=np.where(X[:, 0] > 0, "high", "low"))
    table.loc[::7, "y"] = np.nan
    table = table.drop(columns="x")
    teacher = make_pipeline(OneHotEncoder(handle_unknown="ignore", min_frequency=5), LogisticRegression()).fit(table, y)
    small = distill(teacher, table, y, **FAST)
    assert isinstance(small, Pipeline)
    assert small.distillation_.student_error < 0.6
    save(small, tmp_path / "small.slim")
    np.testing.assert_array_equal(load(tmp_path / "small.slim").predict(table), small.predict(table))


def test_uneven_features_are_standardised_for_the_student():
    X, y = rows()
    uneven = X * [1, 1, 1e4]
    small = distill(RandomForestClassifier(10, random_state=0).fit(uneven, y), uneven, y, **FAST)
    assert isinstance(small[0], StandardScaler)


def test_groups_weights_settings_and_time_limits_are_kept():
    X, y = rows()
    groups, weights = np.arange(120) // 4, np.r_[np.ones(60), np.full(60, 2.0)]
    teacher = RandomForestClassifier(10, random_state=0).fit(X, y)
    settings = {"groups": groups, "sample_weight": weights, "student": SlimSVC(C=3.0), "time_limit": 20}
    small = distill(teacher, X, y, **FAST | settings | {"cv": GroupKFold(2)})
    assert small.C == 3.0
    with pytest.warns(ConvergenceWarning, match="time limit"):
        hurried = distill(teacher, X, y, **FAST | {"time_limit": 1e-3})
    assert list(hurried.distillation_.errors) == ["labels"]


def test_rows_on_which_the_teacher_fails_have_their_labels_alone():
    X, _ = rows()
    with pytest.warns(UserWarning, match="no output for 3 of"):
        small = distill(Network(broken=[0, 1, 2]), X, X_unlabelled=X, **FAST)
    assert len(small.support_vectors_) <= 4


@pytest.mark.parametrize(
    ("teacher", "change", "words"),
    [
        ("a word", {}, "has predict_proba, decision_function or predict"),
        (LogisticRegression().fit(rows()[0][:, :2], rows()[1]), {}, "X has 3 features and the teacher was trained on 2"),
        (Network(), {"y": np.resize(["a", "b"], 120)}, "classes .*'c'.* that y does not have"),
        (lambda rows: np.zeros((len(rows), 2)), {}, r"shape \(120, 2\) for 3 classes"),
        (lambda _: np.zeros(3), {}, r"shape \(3,\) for 120 rows"),
        (LogisticRegression().fit(*rows()), {"cv": 1}, "cv must be a number of folds"),
        (LogisticRegression().fit(*rows()), {"student": SlimSVR()}, "student is a SlimSVC"),
        (LogisticRegression().fit(*rows()), {"time_limit": 0}, "time_limit"),
        (Network(), {"X_unlabelled": np.zeros((5, 2))}, "X_unlabelled has rows of shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:the teacher cannot be cloned")
def test_teachers_that_nothing_can_be_learned_from_are_refused(teacher, change, words):
    X, y = rows()
    with pytest.raises(ValueError, match=words):
        distill(teacher, X, **FAST | {"y": y} | change)


def test_compress_names_distill():
    from slimsvm import compress

    with pytest.raises(ValueError, match=r"slimsvm\.distill"):
        compress(RandomForestClassifier(2).fit(*rows()), *rows(), budget=4)
