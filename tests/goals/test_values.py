"""Regression and novelty: targets, margin targets, predictions, losses; the decision of a goal is what it decodes by."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from slimsvm.goals import CLASSIFIERS, GOALS, Decision, Novelty, OneVsOne, OneVsRest, Regression

Y = np.array([0.5, -1.0, 3.0, 2.0])
F = np.array([[0.4], [-1.3], [3.0], [0.0]])


def test_targets_are_the_labels_as_a_column():
    for goal in (Regression(), Novelty()):
        np.testing.assert_array_equal(goal.encode(Y), Y[:, None])
        assert goal.outputs == 1
        assert goal.n_classes == 0
        assert goal.real


def test_labels_demand_a_tube():
    margin_targets = Regression(epsilon=0.25).margin_targets(Y[:, None])
    np.testing.assert_array_equal(margin_targets.low, Y[:, None] - 0.25)
    np.testing.assert_array_equal(margin_targets.high, Y[:, None] + 0.25)


def test_a_small_model_follows_the_outputs_themselves():
    followed = Regression(epsilon=0.25).followed(Y[:, None], F)
    np.testing.assert_array_equal(followed.low, F)
    np.testing.assert_array_equal(followed.high, F)


def test_a_regressor_predicts_its_output():
    np.testing.assert_array_equal(Regression().decode(F), F.ravel())
    np.testing.assert_array_equal(Regression().scores(F), F.ravel())


def test_a_score_of_zero_is_not_novel():
    np.testing.assert_array_equal(Novelty().decode(F), [1, -1, 1, 1])
    np.testing.assert_array_equal(Novelty().scores(F), F.ravel())


def test_the_mean_loss_is_one_less_r_squared():
    goal = Regression(variance=float(np.var(Y)))
    assert goal.losses(Y, F).mean() == pytest.approx(1 - r2_score(Y, F.ravel()))


def test_rows_are_all_of_one_kind():
    np.testing.assert_array_equal(Regression().groups(Y[:, None]), np.zeros(4))
    assert Regression().strata(Y) is None
    assert Regression().labelled
    assert not Novelty().labelled


def decoded(decision, outputs):
    """Each rule, plainly."""
    rules = {
        Decision.SIGN: lambda f: int(f[0] > 0),
        Decision.LARGEST: lambda f: max(range(len(f)), key=lambda k: (f[k], -k)),
        Decision.VALUE: lambda f: f[0],
        Decision.SIDE: lambda f: 1 if f[0] >= 0 else -1,
    }
    return [rules[decision](row) for row in outputs.tolist()]


@pytest.mark.parametrize("goal", [OneVsRest(2), OneVsOne(2), OneVsRest(4), Regression(), Novelty()], ids=repr)
def test_the_decision_is_the_rule_that_decode_goes_by(goal):
    outputs = np.random.default_rng(0).integers(-2, 3, (200, goal.outputs)).astype(float)
    np.testing.assert_array_equal(goal.decode(outputs), decoded(goal.decision, outputs))


def test_votes_are_told_from_votes_that_scores_decide():
    assert OneVsOne(3).decision is Decision.VOTES
    assert OneVsOne(3, break_ties=True).decision is Decision.SCORED_VOTES


@pytest.mark.parametrize("name", GOALS)
def test_goals_know_their_names_and_whether_they_have_classes(name):
    goal = GOALS[name](3) if name in CLASSIFIERS else GOALS[name]()
    assert goal.name == name
    assert goal.real == (name not in CLASSIFIERS)
    assert goal.n_classes == (3 if name in CLASSIFIERS else 0)
