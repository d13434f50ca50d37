"""Newton's method for free rows finds the optimum that pair steps find, and leaves the run as it was where it cannot."""

import numpy as np
import pytest

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm._core import core
from slimsvm.clock import Deadline
from slimsvm.kernels import RBF
from slimsvm.model import Status
from slimsvm.rows.host import HostRows
from slimsvm.solvers import smo
from slimsvm.solvers.free_rows import NewtonRule, free_rows_optimum, free_rows_steps
from slimsvm.solvers.smo import SmoState
from slimsvm.trainers import SMO


def made(n=300, C=100.0, seed=0, repeat=1):
    """Rows of two classes with noise, their labels as +1 and -1, and caps that differ."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n // repeat, 3)), repeat, axis=0)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=X.shape[0]) > 0, 1.0, -1.0)
    return X, y, C * rng.uniform(0.5, 1.5, X.shape[0])


def by_pair_steps(K, y, cap, tol, alpha=None):
    """The slow twin: the optimum of a block to within tol."""
    alpha = np.zeros(y.size) if alpha is None else alpha
    v = y - K @ (alpha * y)
    _, gap = core.smo(K, y, cap, alpha, v, tol, 10_000_000)
    assert gap <= tol
    return alpha


def objective(K, y, alpha):
    return alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y)


#: Newton's method after the first pair step
EAGER = NewtonRule(steps=1, systems=0.0)


def test_the_rule_waits_for_pair_steps_that_take_as_long_as_systems():
    rule = NewtonRule(steps=100, systems=2.0, most=600, share=0.1)
    due = {"steps": 99, "failed": 0, "free": 30, "new": 0, "size": 1000}
    assert not rule.is_due(**due)
    assert rule.is_due(**due | {"steps": 100})
    assert not rule.is_due(**due | {"steps": 100, "failed": 1})
    assert not rule.is_due(**due | {"steps": 100, "new": 33})
    assert not rule.is_due(**due | {"steps": 100, "free": 0})
    assert not rule.is_due(**due | {"steps": 10**9, "free": 601})
    assert not rule.is_due(**due | {"steps": 11_999, "free": 600})
    assert rule.is_due(**due | {"steps": 12_000, "free": 600})


@pytest.mark.parametrize("settings", [{"steps": -1}, {"systems": np.nan}, {"most": "all"}, {"share": -0.1}], ids=str)
def test_rules_that_make_no_sense(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} must be a number of at least 0, not"):
        NewtonRule(**settings)


def test_a_rule_is_a_rule_or_none():
    with pytest.raises(ValueError, match="newton must be a NewtonRule or None, not 5"):
        SMO(newton=5)


@pytest.fixture
def tried(monkeypatch):
    """Whether each attempt of Newton's method worked."""
    worked, inner = [], SmoState.moved_free

    def watched(self, *arguments):
        worked.append(inner(self, *arguments))
        return worked[-1]

    monkeypatch.setattr(SmoState, "moved_free", watched)
    return worked


def eager(**settings):
    return SMO(newton=EAGER, working_set=200, **settings)


@pytest.mark.parametrize("repeat", [1, 2], ids=["distinct", "each row twice"])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_pair_steps(seed, repeat):
    X, y, cap = made(200, seed=seed, repeat=repeat)
    K = RBF(0.5)(X, X)
    exact = by_pair_steps(K, y, cap, 1e-9)
    alpha = by_pair_steps(K, y, cap, 0.05)
    signed, v = alpha * y, y - K @ (alpha * y)
    ends = -signed, y * cap - signed
    steps = free_rows_optimum(K, v, np.minimum(*ends), np.maximum(*ends), 1e-6, 1e-10)
    assert steps is not None
    found = (signed + steps) * y
    assert abs(steps.sum()) < 1e-8
    assert (found > -1e-9).all()
    assert (found < cap + 1e-9).all()
    assert objective(K, y, found) == pytest.approx(objective(K, y, exact), rel=1e-9)
    np.testing.assert_allclose(K @ (found * y), K @ (exact * y), atol=1e-4)


def test_it_gives_up_far_from_the_optimum_and_at_the_deadline():
    X, y, cap = made(200)
    K = RBF(5.0)(X, X)
    assert free_rows_optimum(K, y, np.minimum(0, y * cap), np.maximum(0, y * cap), 1e-3, 0.0, Deadline(0.0)) is None
    # both rows want beyond their caps, so that none is free
    assert (
        free_rows_optimum(np.eye(2), np.array([1.0, -1.0]), np.array([0.0, -0.1]), np.array([0.1, 0.0]), 1e-3, 0.0) is None
    )


@pytest.mark.parametrize("seed", range(2))
def test_a_run_converges_to_the_same_optimum(tried, seed):
    X, y, cap = made(600, C=1e3, seed=seed)
    rows = HostRows(RBF(0.3), X, None, 64.0, 0.0)
    run = SmoState(rows, y, cap, SMO(tol=1e-4, working_set=200))
    run.newton = EAGER
    run.solve(np.inf)
    assert True in tried
    assert run.status is Status.CONVERGED
    assert run.violation() <= 1e-4
    assert ((run.alpha >= 0) & (run.alpha <= cap)).all()
    assert abs(run.signed.sum()) < 1e-7
    K = RBF(0.3)(X, X)
    np.testing.assert_allclose(run.responses.values[:, 0], K @ run.signed, atol=1e-6)
    assert objective(K, y, run.alpha) == pytest.approx(objective(K, y, by_pair_steps(K, y, cap, 1e-5)), rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(SlimSVC, {"C": 100.0, "class_weight": "balanced"}), (SlimSVR, {"C": 3.0}), (SlimOneClassSVM, {"nu": 0.5})],
    ids=["classes", "regression", "novelty"],
)
def test_estimators_predict_the_same(tried, kind, settings):
    X, y, _ = made(700)
    labels = () if kind is SlimOneClassSVM else (y if kind is SlimSVC else X[:, 0] ** 2 + 0.1 * y,)
    model = kind(gamma=0.3, tol=1e-6, trainer=eager(), **settings).fit(X, *labels)
    assert True in tried
    plain = kind(gamma=0.3, tol=1e-6, trainer=SMO(newton=None), **settings).fit(X, *labels)
    scores = "predict" if kind is SlimSVR else "decision_function"
    np.testing.assert_allclose(getattr(model, scores)(X), getattr(plain, scores)(X), atol=2e-4)


@pytest.mark.parametrize("settings", [{"kernel": "precomputed"}, {"device": "array_api_strict"}], ids=str)
def test_other_kernels_and_homes_converge_too(tried, settings):
    if "device" in settings:
        pytest.importorskip("array_api_strict")
        pytest.importorskip("array_api_compat")
    X, y, _ = made(600)
    given = RBF(0.3)(X, X) if settings.get("kernel") == "precomputed" else X
    model = SlimSVC(gamma=0.3, C=100.0, trainer=eager(), **settings).fit(given, y)
    assert tried
    assert model.status_ is Status.CONVERGED
    plain = SlimSVC(gamma=0.3, C=100.0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(given), plain.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("seed", range(5))
def test_steps_with_an_indefinite_kernel_raise_the_objective_or_are_none(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(20, 20))
    K, v = A + A.T, rng.normal(size=20)
    steps = free_rows_steps(K, v, np.full(20, -1.0), np.full(20, 1.0), 1e-3)
    assert steps is None or steps @ (v - 0.5 * (K @ steps)) > 0


def test_rows_at_bounds_alone_leave_it_to_pair_steps(tried):
    X, y, _ = made(600)
    model = SlimSVC(gamma=0.3, C=1e-4, tol=1e-9, trainer=eager()).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert not any(tried)


def test_a_failed_attempt_waits_twice_as_long(tried, monkeypatch):
    monkeypatch.setattr(smo, "free_rows_steps", lambda *_, **__: None)
    X, y, cap = made(600, C=1e3)
    run = SmoState(HostRows(RBF(0.3), X, None, 64.0, 0.0), y, cap, SMO(tol=1e-4, working_set=100))
    run.shrinks, run.newton = False, EAGER
    run.solve(np.inf)
    assert run.status is Status.CONVERGED
    assert tried
    assert not any(tried)
    assert len(tried) <= np.log2(run.steps) + 1


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_few_rows_with_features_of_unequal_scales_end(noise):
    """Pair steps alone do not end within ten million, LIBSVM's included."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X.sum(axis=1) + noise * rng.normal(size=100) > 0
    svc = SlimSVC(kernel="linear").fit(X * [1e3, 1.0], y)
    assert svc.status_ is Status.CONVERGED
    assert svc.n_iter_ < 10_000_000
