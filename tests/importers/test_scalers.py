"""Scalers as one scaling: what scikit-learn computes."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler

from slimsvm.importers.around import SCALERS, resolve_scale
from slimsvm.tables.folding import folded

X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 10, 0.1, 3] + [0, 5, -1, 2]
KINDS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler((-1, 2)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
]


@pytest.mark.parametrize("scaler", KINDS, ids=str)
def test_a_scaling_is_what_the_scaler_computes(scaler):
    scaler.fit(X[:20])
    scaling = folded([scaler], "rbf", X[:3], None, ())[1]
    scaling.check(4)
    np.testing.assert_allclose(scaling(X), scaler.transform(X), rtol=1e-12, atol=1e-12)


def test_every_scaler_is_here_and_others_are_a_preparation():
    assert {type(scaler) for scaler in KINDS} == set(SCALERS)
    assert folded([PowerTransformer().fit(X)], "rbf", X[:3], None, ())[3] is not None
    assert folded([], "rbf", X[:3], None, ())[1] is None


@pytest.mark.parametrize(("deviations", "scale"), [((1, 2, 3), "none"), ((1, 2, 300), "standard")], ids=["even", "uneven"])
def test_features_are_standardised_where_they_differ_widely(deviations, scale):
    rows = np.random.default_rng(0).normal(size=(50, 3)) * deviations
    assert resolve_scale("auto", rows) == scale
    assert resolve_scale("auto", csr_array(rows)) == "none"
    assert resolve_scale("minmax", rows) == "minmax"
