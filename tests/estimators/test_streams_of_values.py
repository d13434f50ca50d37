"""partial_fit of SlimSVR and SlimOneClassSVM: the arithmetic of their loop, batches of any size, and what they learn."""

import numpy as np
import pytest

from slimsvm import SlimOneClassSVM, SlimSVR
from slimsvm.trainers import BSGD


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, 5 + np.sin(X[:, 0]) + rng.normal(scale=0.1, size=n)


def kernel(A, B, gamma=1.0):
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def streamed(model, X, y, size):
    for start in range(0, X.shape[0], size):
        model.partial_fit(X[start : start + size], None if y is None else y[start : start + size])
    return model


def slow_regression(X, y, first, C, epsilon):
    """The loop of the docstring, without a budget."""
    lam, late, offset, v = 1 / (C * first), first, y[:first].mean(), np.zeros(len(y))
    for t, (target, row) in enumerate(zip(y, kernel(X, X), strict=True)):
        scale = lam * (t + 1 + late)
        residual = target - offset - row @ v / scale
        if abs(residual) > epsilon:
            v[t] += np.sign(residual) * min(1.0, scale * (abs(residual) - epsilon))
    return v / (lam * (len(y) + late)), offset


def slow_novelty(X, nu):
    lam, late, rho, v = nu, 1 / nu, 0.0, np.zeros(len(X))
    for t, row in enumerate(kernel(X, X)):
        scale = lam * (t + 1 + late)
        if row @ v / scale < rho:
            v[t] += 1.0
            rho -= (1 - nu) / scale
        else:
            rho += nu / scale
    return v / (lam * (len(X) + late)), rho


@pytest.mark.parametrize("size", [1, 7, 60])
def test_regression_is_the_loop_as_it_is_written(size):
    X, y = rows(60)
    model = streamed(SlimSVR(1000, trainer="bsgd", gamma=1.0, C=2.0, epsilon=0.05), X, y, size)
    coef, offset = slow_regression(X, y, size, 2.0, 0.05)
    np.testing.assert_allclose(model.predict(X), kernel(X, X) @ coef + offset, atol=1e-10)
    assert model.n_iter_ == 60


@pytest.mark.parametrize("size", [1, 7, 60])
def test_novelty_is_the_loop_as_it_is_written(size):
    X, _ = rows(60)
    model = streamed(SlimOneClassSVM(1000, trainer="bsgd", gamma=1.0, nu=0.2), X, None, size)
    coef, rho = slow_novelty(X, 0.2)
    np.testing.assert_allclose(model.decision_function(X), kernel(X, X) @ coef - rho, atol=1e-10)


def test_streams_learn_a_function_and_a_region_within_their_budget():
    X, y = rows(2000)
    svr = streamed(SlimSVR(20, trainer="bsgd", gamma=1.0, C=1.0, epsilon=0.1), X, y, 100)
    assert len(svr.support_vectors_) <= 20
    new, truth = rows(500, 1)
    assert svr.score(new, truth) > 0.9
    one = streamed(SlimOneClassSVM(20, trainer="bsgd", gamma=1.0, nu=0.1), X, None, 100)
    assert len(one.support_vectors_) <= 20
    assert (one.predict(new) < 0).mean() < 0.3
    assert (one.predict(new + 8) < 0).all()
    assert 0 < one.offset_ < 1


@pytest.mark.parametrize("maintenance", ["merging", "projection", "removal"])
def test_fit_is_a_pass_and_a_stream_goes_on_from_it(maintenance):
    X, y = rows(300)
    trainer = BSGD(20, shuffle=False, maintenance=maintenance)
    whole = SlimSVR(20, trainer=trainer, gamma=1.0, random_state=0).fit(X, y)
    parts = streamed(SlimSVR(20, trainer=trainer, gamma=1.0, random_state=0), X, y, 300)
    np.testing.assert_allclose(whole.predict(X), parts.predict(X), rtol=1e-9)
    before = whole.predict(X)
    whole.partial_fit(X, y + 1)
    assert (whole.predict(X) > before).mean() > 0.9


def test_streams_keep_their_settings_and_refuse_what_they_cannot_have():
    X, y = rows(50)
    with pytest.raises(AttributeError, match="partial_fit"):
        SlimSVR(10).partial_fit(X, y)
    model = SlimSVR(10, trainer="bsgd").partial_fit(X, y)
    with pytest.raises(ValueError, match="epsilon changed"):
        model.set_params(epsilon=0.3).partial_fit(X, y)
    with pytest.raises(ValueError, match="features"):
        SlimOneClassSVM(10, trainer="bsgd").partial_fit(X).partial_fit(np.c_[X, X])
    with pytest.raises(ValueError, match="method for classes"):
        SlimSVR(10, trainer="forgetron").partial_fit(X, y)
    with pytest.raises(ValueError, match="Compress the model"):
        SlimSVR(10, trainer=BSGD(5)).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"[Ii]nput y contains|NaN"):
        SlimSVR(10, trainer="bsgd").partial_fit(X, np.full(50, np.nan))
