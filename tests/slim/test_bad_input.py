"""What slim is given that cannot work, or hardly: the answer says what is possible, or the model is whole."""

import re

import numpy as np
import pytest

import slimsvm
from slimsvm import SlimSVC, SlimSVR, compress
from slimsvm.reducers import Slim

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
#: reducers of every kind of descent
KINDS = [Slim(steps=5), Slim(metric="both", steps=5), Slim(metric="projection", rank=2, steps=5)]


def is_whole(model, rows):
    parts = (np.asarray(getattr(model.model_, name)) for name in ("points", "coef", "bias", "factors", "widths"))
    return all(np.isfinite(part).all() for part in parts) and np.isfinite(model.decision_function(rows)).all()


def test_a_budget_in_which_no_model_fits_names_the_nearest_and_what_takes_the_room():
    with pytest.raises(ValueError, match=r"budget='200 B' is too small: with one support vector the C takes") as caught:
        SlimSVC("200 B", trainer=None).fit(X, y)
    assert re.search(r"of code and [\d,]+ of \w+ tables \(4 features, 1 outputs\)", str(caught.value))
    nearest = re.search(r"Give '(\d+) B' or more", str(caught.value)).group(1)
    assert SlimSVC(f"{nearest} B", trainer=None, reducer=Slim(steps=2), random_state=0).fit(X, y).model_.size >= 1


@pytest.mark.parametrize("reducer", KINDS, ids=lambda reducer: reducer.metric)
@pytest.mark.parametrize("budget", [4, "1200 B"])
def test_constant_and_duplicate_features(reducer, budget):
    rows = np.column_stack([X, X[:, 0], np.zeros(120), np.full(120, 3.0)])
    small = SlimSVC(budget, trainer=None, reducer=reducer, random_state=0).fit(rows, y)
    assert is_whole(small, rows)
    assert small.score(rows, y) > 0.6


@pytest.mark.parametrize("reducer", KINDS, ids=lambda reducer: reducer.metric)
@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_rows_with_huge_and_tiny_values(reducer, unit):
    plain, small = (SlimSVC(4, trainer=None, reducer=reducer, random_state=0).fit(scale * X, y) for scale in (1, unit))
    assert is_whole(small, unit * X)
    assert small.score(unit * X, y) > plain.score(X, y) - 0.1


@pytest.mark.parametrize("reducer", KINDS, ids=lambda reducer: reducer.metric)
def test_one_row_far_away(reducer):
    rows = np.vstack([X, np.full((1, 4), 1e9)])
    small = SlimSVC(4, trainer=None, gamma=0.25, reducer=reducer, random_state=0).fit(rows, np.append(y, 1))
    assert is_whole(small, rows)


@pytest.mark.parametrize("reducer", KINDS, ids=lambda reducer: reducer.metric)
@pytest.mark.parametrize("budget", [1, 2, "1200 B"])
def test_two_rows(reducer, budget):
    small = SlimSVC(budget, trainer=None, gamma=1.0, reducer=reducer, random_state=0).fit(X[:2], [0, 1])
    assert is_whole(small, X[:2])
    values = SlimSVR(budget, trainer=None, gamma=1.0, reducer=reducer, random_state=0).fit(X[:2], [0.0, 1.0])
    assert np.isfinite(values.predict(X[:2])).all()


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (np.tile([1.1, -0.1], (120, 1)), "probabilities must be 0 or more, with the sum 1 in each row"),
        (np.tile([0.5, 0.4], (120, 1)), "with the sum 1 in each row; the smallest of row 0 is 0.4, and their sum 0.9"),
        (np.ones((120, 1)), r"must have a column for each class of y, the shape \(120, 2\), not \(120, 1\)"),
    ],
)
def test_soft_targets_that_are_none(probabilities, message):
    with pytest.raises(ValueError, match=message):
        SlimSVC(4, trainer=None, random_state=0).fit(X, y, probabilities=probabilities)


@pytest.mark.parametrize("kernel", ["chi2", "poly"])
def test_kernels_without_a_metric_name_what_they_have(kernel):
    with pytest.raises(ValueError, match=r"give metric=('fixed'|'scales' or 'fixed')"):
        SlimSVC(4, kernel=kernel, trainer=None, reducer=Slim(metric="both")).fit(np.abs(X), y)
    assert is_whole(SlimSVC(2, kernel=kernel, trainer=None, reducer=Slim(steps=3)).fit(np.abs(X), y), np.abs(X))


def test_a_target_that_cannot_hold_what_was_learned_names_the_setting_that_can(tmp_path):
    learned = SlimSVC(4, trainer=None, reducer=Slim(metric="both", steps=5), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=re.escape("reducer=Slim(metric='fixed')")):
        slimsvm.export(learned, tmp_path / "m.libsvm")
    slimsvm.export(compress(learned, X, y, budget=3, reducer=Slim(metric="fixed"), random_state=0), tmp_path / "m.libsvm")
