"""What every trainer keeps to, whatever its method: found in the table, new ones too."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from slimsvm import SlimSVC
from slimsvm.estimators import fit_reporting
from slimsvm.model import Status
from slimsvm.studio.cli import commands as cli
from slimsvm.trainers import TRAINERS

pytestmark = pytest.mark.usefixtures("quick_slim")

LIMITED = [name for name, kind in TRAINERS.items() if "budget" in kind.__dataclass_fields__]
WEIGHTED = [name for name, kind in TRAINERS.items() if kind.weighted]


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def fitted(name, X, y, **settings):
    """A model of 40 support vectors where the trainer keeps to a budget, else the full one."""
    budget = 40 if name in LIMITED else None
    return SlimSVC(budget, trainer=name, **{"gamma": 0.5, "random_state": 0} | settings).fit(X, y)


@pytest.mark.parametrize("name", TRAINERS)
def test_two_classes_and_many(name, moons, iris):
    for X, y in (moons, iris):
        model = fitted(name, X, y)
        assert model.score(X, y) > 0.85
        assert model.status_.as_planned
        assert model.n_kernel_evals_ > 0
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("name", TRAINERS)
def test_a_seed_makes_results_repeatable(name, moons):
    first, second = (fitted(name, *moons).decision_function(moons[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", TRAINERS)
def test_sparse_rows_are_the_same_rows(name, iris):
    X, y = iris
    dense, sparse = fitted(name, X, y), fitted(name, csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense.decision_function(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_kernel_matrix_is_as_good_as_its_rows(name, moons, excused):
    X, y = moons
    if name == "bsgd":
        excused("merged points are not rows: with a kernel matrix it projects instead of merging, and learns another model")
        assert fitted(name, rbf_kernel(X, gamma=0.5), y, kernel="precomputed").score(rbf_kernel(X, gamma=0.5), y) > 0.85
        return
    K = rbf_kernel(X, gamma=0.5)
    # those that keep to a budget may need a reducer in the end, and a kernel matrix one that chooses among rows
    given, own = (
        fitted(name, rows, y, reducer="slant-aggressive", **settings)
        for rows, settings in ((K, {"kernel": "precomputed"}), (X, {}))
    )
    np.testing.assert_allclose(given.decision_function(K), own.decision_function(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", TRAINERS)
def test_rows_stay_as_they_are(name, moons):
    X, y = (array.copy() for array in moons)
    fitted(name, X, y, kernel="laplacian" if name != "bsgd" else "rbf")
    np.testing.assert_array_equal(X, moons[0])
    np.testing.assert_array_equal(y, moons[1])


@pytest.mark.parametrize("name", TRAINERS)
def test_weights_count_or_are_refused(name, moons, excused):
    X, y = moons
    weights = np.where(y == 1, 5.0, 0.2)
    budget = 40 if name in LIMITED else None
    model = SlimSVC(budget, trainer=name, gamma=0.5, C=0.1, random_state=0)
    if name in WEIGHTED:
        plain = model.fit(X, y).predict(X).mean()
        assert model.fit(X, y, sample_weight=weights).predict(X).mean() > plain
        return
    with pytest.raises(ValueError, match=r"takes no sample_weight or class_weight; the trainers that do") as error:
        model.fit(X, y, sample_weight=weights)
    excused("it treats all rows alike and refuses weights")
    assert all(repr(other) in str(error.value) for other in WEIGHTED)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        model.set_params(class_weight={0: 1.0, 1: 2.0}).fit(X, y)
    model.set_params(class_weight=None).fit(X, y, sample_weight=np.full(y.size, 3.0))


@pytest.mark.only_for("trainers with max_iter")
@pytest.mark.parametrize("name", [name for name, kind in TRAINERS.items() if "max_iter" in kind.__dataclass_fields__])
def test_an_early_end_is_told(name, moons, excused):
    if name == "sbp":
        excused("so few rows are solved in its first round")
        return
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        model = fitted(name, *moons, max_iter=1, tol=1e-9)
    assert model.status_ is Status.MAX_ITER


#: settings with which a run ends at its goal, not after its passes
TO_THE_GOAL = {"pegasos": {"gap": 0.2}, "perceptron": {"passes": 100}, "sbp": {"working_set": 40, "gap": 0.01}}


#: why a run that was cut short may be of little help to the next one
START_AGAIN = {
    "lp": "the simplex method has no model before it ends, so a run that it did not end starts again",
    "any-norm": "the search for the multiplier of an ellipsoid starts again",
    "perceptron": "its model is an average, and the weights that the run had are not kept",
}


def to_the_goal(name, **settings):
    """An estimator that starts warm, with narrow kernels: the rows can be separated."""
    trainer = TRAINERS[name](**TO_THE_GOAL.get(name, {}))
    budget = 40 if name in LIMITED else None
    return SlimSVC(budget, trainer=trainer, gamma=20.0, warm_start=True, random_state=0, **settings)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_warm_start_from_the_goal_takes_few_steps(name, moons, excused):
    X, y = moons
    cold = to_the_goal(name).fit(X, y)
    steps, outputs = cold.n_iter_, cold.decision_function(X)
    if hasattr(TRAINERS[name], "learn"):
        excused("it has no goal but its passes: two fits of one pass are one fit of two")
        cold.fit(X, y)
        trainer = TRAINERS[name](passes=2)
        twice = SlimSVC(40, trainer=trainer, gamma=20.0, random_state=0).fit(X, y)
        np.testing.assert_array_equal(cold.decision_function(X), twice.decision_function(X))
        return
    assert cold.status_ is Status.CONVERGED
    warm = cold.fit(X, y)
    assert warm.status_ is Status.CONVERGED
    assert warm.n_iter_ < (1.0 if name == "ramp" else 0.5) * steps  # ramp's first step is the SVM, whatever the start
    near = 0.3 if name == "pegasos" else 0.05  # its goal here is a gap of 20 %
    np.testing.assert_allclose(warm.decision_function(X), outputs, atol=near * np.abs(outputs).max())


@pytest.mark.parametrize("name", TRAINERS)
def test_a_warm_start_goes_on_after_a_limit(name, moons, excused):
    X, y = moons
    if hasattr(TRAINERS[name], "learn"):
        excused("it has no goal but its passes: two fits of one pass are one fit of two")
        return
    cold = to_the_goal(name).fit(X, y)
    limit = -(-cold.n_iter_ // 2)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        warm = to_the_goal(name, max_iter=limit).fit(X, y)
    if name in START_AGAIN:
        excused(START_AGAIN[name])
        limit = 0
    warm.set_params(max_iter=-1).fit(X, y)
    assert warm.status_ is Status.CONVERGED
    assert warm.n_iter_ <= 1.4 * (cold.n_iter_ - limit)
    assert (warm.predict(X) == cold.predict(X)).mean() > 0.95


class Clock:
    """A clock on which a second passes between two looks at it."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        self.looks += 1
        return float(self.looks)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_time_limit_is_kept_and_told(name, monkeypatch):
    """A trainer looks at the clock while it works, and ends when the time is over, with a model and advice."""
    X, y = make_moons(900, noise=0.4, random_state=0)
    settings = {"working_set": 20} if "working_set" in TRAINERS[name].__dataclass_fields__ else {}
    if name == "lp":
        settings = {"direct": 100, "batch": 5}  # many small programs, each of which HiGHS ends itself
    clock, seconds = Clock(), 6.0
    monkeypatch.setattr("slimsvm.clock.perf_counter", clock)
    trainer, trained = TRAINERS[name](time_limit=seconds, **settings), []
    svc = SlimSVC(40 if name in LIMITED else None, trainer=trainer, C=100.0, gamma=5.0, reducer="prune", random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped at the time limit; raise time_limit"):
        fit_reporting(svc, X, y, when_trained=lambda _: trained.append(clock.looks))
    assert svc.status_ is Status.TIME_LIMIT
    assert seconds < trained[0] < seconds + 20  # a few looks before training begins, and a few after its end
    assert np.isfinite(svc.decision_function(X[:5])).all()


@pytest.mark.parametrize("name", TRAINERS)
def test_an_interrupt_ends_training(name, moons):
    def interrupt(*_):
        raise KeyboardInterrupt

    model = SlimSVC(40 if name in LIMITED else None, trainer=name)
    with pytest.raises(KeyboardInterrupt):
        fit_reporting(model, *moons, report=interrupt)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("name", TRAINERS)
def test_progress_is_told_in_shares(name, iris):
    heard = []
    model = SlimSVC(40 if name in LIMITED else None, trainer=name, random_state=0)
    fit_reporting(model, *iris, report=lambda phase, done: heard.append(done) if phase == "train" else None)
    assert heard
    assert all(0 <= done <= 1 for done in heard)
    measured = [entry for entry in model.history_ if entry["phase"] == "train"]
    assert measured
    assert all({"gap", "active_gap", "objective", "online_error"} & set(entry) for entry in measured)


@pytest.mark.only_for("trainers with a budget")
@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (1, "keeps to a budget during training: budget must be .* 2 at least, not 1; give budget=100"),
        (0.5, r"keeps to a budget during training: budget must be .* 2 at least, not 0\.5; give budget=100"),
        (None, "keeps to a budget during training: budget must be .* 2 at least, not None; give budget=100"),
    ],
)
def test_a_budget_that_a_trainer_cannot_keep_to(name, budget, message, moons):
    with pytest.raises(ValueError, match=message):
        SlimSVC(budget, trainer=name).fit(*moons)


@pytest.mark.only_for("trainers with a budget")
@pytest.mark.parametrize("name", LIMITED)
def test_a_trainer_with_a_budget_needs_no_second_shrinking(name, moons):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(name, *moons)
    assert model.model_.size <= 40
    small = SlimSVC(10, trainer=TRAINERS[name](budget=60), gamma=0.5, random_state=0).fit(*moons)
    assert small.model_.size <= 10


@pytest.mark.parametrize("name", TRAINERS)
def test_command_line(name, tmp_path, moons, capsys):
    X, y = moons
    data = tmp_path / "rows.csv"
    np.savetxt(data, np.column_stack([X, y]), delimiter=",")
    output = tmp_path / "model.slim"
    assert cli.run(["train", str(data), "-o", str(output), "--trainer", name, "-b", "20", "-g", "0.5"]) == 0
    assert cli.run(["info", str(output)]) == 0
    assert "support vectors" in capsys.readouterr().out
