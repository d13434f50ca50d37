"""SlimSVR and SlimOneClassSVM keep scikit-learn's contract; test_estimators has that of SlimSVC."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from slimsvm import SlimOneClassSVM, SlimSVR

#: validation rows are drawn at random, and a row of weight 2 is drawn differently from two rows
RANDOM = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")], "rows are drawn at random"
)


#: some of scikit-learn's checks have fewer support vectors than the budget, and the estimator warns
@pytest.mark.filterwarnings("ignore:budget=.* is not below the:UserWarning")
@parametrize_with_checks(
    [kind(**settings) for kind in (SlimSVR, SlimOneClassSVM) for settings in ({}, {"budget": 4, "reducer": "spsvm"})],
    expected_failed_checks=lambda estimator: RANDOM if estimator.budget else {},
)
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)
