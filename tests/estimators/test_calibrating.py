"""Probabilities of fitted classifiers: against scikit-learn's, and never against `predict`."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

from slimsvm import SlimSVC, compress
from slimsvm.calibration import CALIBRATIONS
from slimsvm.estimators.calibrating import calibrate


def two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def many_classes():
    X, y = make_classification(900, 8, n_informative=6, n_redundant=0, n_classes=4, random_state=0)
    return X, np.array(["ash", "beech", "cedar", "oak"])[y]


@pytest.mark.parametrize("budget", [None, 12])
@pytest.mark.parametrize("make", [two_classes, many_classes])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_most_probable_class_is_predicted_and_probabilities_are_good(calibration, make, budget):
    X, y = make()
    A, B, a, b = train_test_split(X, y, random_state=0, stratify=y)
    ours = SlimSVC(budget, C=3.0, calibration=calibration, random_state=0).fit(A, a)
    p = ours.predict_proba(B)
    np.testing.assert_array_equal(ours.classes_[p.argmax(axis=1)], ours.predict(B))
    np.testing.assert_allclose(ours.predict_log_proba(B), np.log(p))
    method = calibration if calibration != "temperature" else "sigmoid"
    theirs = CalibratedClassifierCV(SVC(C=3.0), method=method, ensemble=False).fit(A, a)
    assert log_loss(b, p, labels=ours.classes_) <= log_loss(b, theirs.predict_proba(B)) + (0.02 if budget is None else 0.35)


def test_the_sigmoid_has_the_least_loss():
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=300), rng.uniform(0.5, 2, 300)
    labels = (scores + rng.normal(size=300) > 0.4).astype(int)
    found = calibrate("sigmoid", scores, labels, weights, 2)
    inside, outside = weights[labels == 1].sum(), weights[labels == 0].sum()
    target = np.where(labels == 1, (inside + 1) / (inside + 2), 1 / (outside + 2))

    def loss(both):
        p = 1 / (1 + np.exp(-(both[0] * scores + both[1])))
        return -weights @ (target * np.log(p) + (1 - target) * np.log(1 - p))

    best = minimize(loss, [1.0, 0.0])
    assert loss([found.slope[0], found.shift[0]]) <= best.fun + 1e-6


def test_without_calibration_there_are_no_probabilities():
    X, y = load_iris(return_X_y=True)
    svc = SlimSVC().fit(X, y)
    assert svc.calibration_ is None
    assert not hasattr(svc, "predict_proba")
    with pytest.raises(AttributeError) as refused:
        svc.predict_proba(X)
    assert "calibration='sigmoid'" in str(refused.value.__cause__)


def test_calibration_leaves_scores_as_they_are():
    X, y = load_iris(return_X_y=True)
    plain, calibrated = SlimSVC().fit(X, y), SlimSVC(calibration="isotonic").fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), calibrated.decision_function(X))


def test_a_class_of_two_rows_is_calibrated_on_the_training_rows():
    X, y = load_iris(return_X_y=True)
    some = np.concatenate([np.arange(2), np.arange(50, 150)])
    p = SlimSVC(calibration="sigmoid").fit(X[some], y[some]).predict_proba(X)
    assert np.isfinite(p).all()


@pytest.mark.parametrize("budget", [None, 10])
@pytest.mark.parametrize("reducer", ["slim", "slant-aggressive"])
def test_compressed_models_have_probabilities_too(reducer, budget):
    X, y = many_classes()
    full = SVC(C=3.0).fit(X[:400], y[:400])
    small = compress(full, X[400:], y[400:], budget=budget, reducer=reducer, calibration="sigmoid", random_state=0)
    p = small.predict_proba(X)
    np.testing.assert_array_equal(small.classes_[p.argmax(axis=1)], small.predict(X))
    assert log_loss(y, p, labels=small.classes_) < np.log(4)


def test_probabilities_of_values_are_refused():
    X, _ = many_classes()
    with pytest.raises(ValueError, match="SVR has no classes"):
        compress(SVR().fit(X, X[:, 0]), X, X[:, 0], budget=4, calibration="sigmoid")
