"""Several targets: columns of y that share their support vectors, trained, shrunk, scored and refused."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from slimsvm import SlimSVC, SlimSVR, SlimSVRCV, compress, distill, save
from slimsvm.reducers import REDUCERS
from slimsvm.ship.source import artefact_of
from slimsvm.studio.cli import commands

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = np.column_stack([np.sin(2 * X[:, 0]), 1000 + 300 * X[:, 1] * X[:, 2]]) + RNG.normal(size=(150, 2)) * [0.05, 15]


def standardised(**settings):
    return TransformedTargetRegressor(SlimSVR(random_state=0, **settings), transformer=StandardScaler())


def test_the_full_model_is_that_of_each_target_alone():
    both = SlimSVR(C=10, epsilon=0.1, tol=1e-6).fit(X, Y)
    alone = MultiOutputRegressor(SlimSVR(C=10, epsilon=0.1, tol=1e-6)).fit(X, Y)
    np.testing.assert_allclose(both.predict(X), alone.predict(X), rtol=1e-4, atol=1e-4)
    assert both.predict(X).shape == Y.shape
    assert both.dual_coef_.shape == (2, len(both.support_vectors_))
    np.testing.assert_array_equal(both.n_support_, [len(both.support_vectors_)])
    np.testing.assert_allclose(both.score(X, Y), r2_score(Y, alone.predict(X)), atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{"trainer": None}, {}, {"tolerance": 0.05, "budget": None}, {"scoring": "r2"}], ids=str
)
def test_small_models_share_their_points(settings):
    small = standardised(**{"budget": 24, "C": 10, "epsilon": 0.02, **settings}).fit(X, Y)
    svr = small.regressor_
    assert svr.dual_coef_.shape[0] == 2
    assert svr.path_ is None or svr.model_.size < 150
    assert small.score(X, Y) > 0.85


def test_units_of_targets_do_not_matter_to_a_small_model():
    for y in (Y, Y * [1, 1e-3], Y * [1e3, 1]):
        svr = SlimSVR(12, trainer=None, C=1e6, epsilon=0, random_state=0).fit(X, y)
        assert r2_score(y, svr.predict(X), multioutput="raw_values").min() > 0.7


def test_one_column_of_y_is_one_target():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        one = SlimSVR(8, random_state=0).fit(X, Y[:, :1])
    np.testing.assert_array_equal(one.predict(X), SlimSVR(8, random_state=0).fit(X, Y[:, 0]).predict(X))


def full_models():
    rbf = 1.0 * RBF(2.0) + WhiteKernel(0.1)
    return {
        "ridge": KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1),
        "process": GaussianProcessRegressor(rbf, normalize_y=True, optimizer=None),
        "machines": MultiOutputRegressor(SVR(C=3)),
        "slim": SlimSVR(C=3),
        "scaled": TransformedTargetRegressor(KernelRidge(kernel="rbf", gamma=0.2, alpha=0.1), transformer=StandardScaler()),
    }


@pytest.mark.parametrize("name", full_models())
def test_models_of_several_targets_are_read_and_shrunk(name):
    alike = Y / [1, 300] if name in ("machines", "slim") else Y
    model = full_models()[name].fit(X, alike)
    read = compress(model)
    np.testing.assert_allclose(read.predict(X), model.predict(X), rtol=1e-6, atol=1e-6)
    artefact = artefact_of(model)
    assert artefact.outputs == 2
    small = compress(model, X, alike, budget=30, random_state=0)
    inside = getattr(small, "regressor_", small)
    assert inside.model_.size <= 30
    agreement = r2_score(model.predict(X), small.predict(X))
    assert agreement > 0.9
    followed = compress(model, X, budget=30, random_state=0)
    assert r2_score(model.predict(X), followed.predict(X)) > 0.9


@pytest.mark.parametrize("name", [name for name, kind in REDUCERS.items() if kind.real_valued])
def test_every_reducer_of_values_takes_several(name):
    full = SlimSVR(C=1, epsilon=0.05).fit(X, Y / [1, 300])
    small = compress(full, X, Y / [1, 300], budget=20, reducer=name, random_state=0)
    assert small.model_.size <= 20
    assert small.predict(X).shape == Y.shape


def test_a_model_is_trained_again_from_where_it_was():
    svr = SlimSVR(C=10, warm_start=True).fit(X, Y)
    again = svr.fit(X, Y)
    assert again.n_iter_ <= 4


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: SlimSVC().fit(X, Y > 0), r"SlimSVC learns one column.*fit one classifier for each column"),
        (lambda: SlimSVR(calibration="conformal").fit(X, Y), "intervals of one target, and y has 2 columns"),
        (lambda: SlimSVR(8, trainer="bsgd").fit(X, Y), "'bsgd' learns one target, and y has 2 columns"),
        (lambda: SlimSVR(8, trainer="bsgd").partial_fit(X, Y), "'bsgd' learns one target, and y has 2 columns"),
        (lambda: SlimSVRCV(SlimSVR()).fit(X, Y), "SlimSVRCV chooses the settings of one target"),
        (lambda: SlimSVR().fit(X, np.zeros((150, 2, 2))), r"the shape \(150, 2, 2\)"),
        (lambda: SlimSVR().fit(X, Y[:100]), "inconsistent numbers of samples"),
        (lambda: SlimSVR().fit(X, Y.astype(str)), "."),
        (lambda: compress(SlimSVR().fit(X, Y), X, Y[:, 0], budget=8), "predicts 2 targets"),
        (lambda: compress(MultiOutputRegressor(SVR(C=1)).fit(X, Y), X, Y, budget=8, calibration="sigmoid"), "no classes"),
        (lambda: distill(KernelRidge().fit(X, Y), X, Y, budget=8), "one target"),
    ],
)
def test_errors_say_what_to_give(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


def test_regressors_of_other_kernels_are_not_joined():
    model = MultiOutputRegressor(SVR()).fit(X, Y)
    model.estimators_[1] = SVR(gamma=3.0).fit(X, Y[:, 1])
    with pytest.raises(ValueError, match="kernels differ"):
        compress(model, X, Y, budget=8)


def test_the_command_line_predicts_all_targets(tmp_path, capsys):
    svr = SlimSVR(8, trainer=None, random_state=0).fit(X, Y)
    save(svr, tmp_path / "model.slim")
    np.savetxt(tmp_path / "rows.csv", X[:3], delimiter=",", header="a,b,c,d", comments="")
    assert commands.run(["predict", str(tmp_path / "model.slim"), str(tmp_path / "rows.csv")]) == 0
    found = np.array([line.split() for line in capsys.readouterr().out.splitlines()], dtype=float)
    np.testing.assert_allclose(found, svr.predict(X[:3]))
