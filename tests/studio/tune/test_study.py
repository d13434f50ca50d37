import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import SlimSVC, tune
from slimsvm.model import Status
from slimsvm.states import pack
from slimsvm.studio.tune.space import Settings
from slimsvm.studio.tune.study import EVALUATIONS, SEED, StudyStore, seed_in
from slimsvm.studio.tune.trials import Trial, TrialEffort, Trials

pytestmark = pytest.mark.usefixtures("quick_slim")

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)
X, Y = make_moons(60, noise=0.2, random_state=0)


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path}/tune.db"


def search(rows=X, labels=Y, **settings):
    return tune(rows, labels, **{"budget": 2, "n_trials": 1, "random_state": 0, **settings})


def test_a_study_is_continued_without_running_its_trials_again(storage, monkeypatch):
    first = search(storage=storage, study="moons")

    def run(*_, **__):
        raise AssertionError("this trial is in the study")

    monkeypatch.setattr(Trials, "run", run)
    again = search(storage=storage, study="moons", random_state=None)  # the study knows the seed
    assert again.best_params_ == first.best_params_
    assert again.results_["error"] == first.results_["error"]


def test_a_study_shows_what_was_tried(storage):
    found = search(storage=storage, study="moons", n_trials=4)
    study = optuna.load_study(study_name="moons", storage=storage)
    assert study.best_params["gamma"] == pytest.approx(found.best_params_["gamma"])
    assert study.best_value == found.best_error_
    assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
    tried = zip(found.results_["gamma"][:-1], found.results_["C"][:-1], found.results_["scaling"][:-1], strict=True)
    assert len(study.trials) == len(set(tried))


def test_a_study_object_is_taken_as_it_is():
    study = optuna.create_study()
    search(study=study)
    assert len(study.trials) > 1


def test_more_trials_go_on_after_those_of_the_study():
    study = optuna.create_study()
    search(study=study)
    before = len(study.trials)
    search(study=study, n_trials=2)
    assert len(study.trials) > before


def test_ctrl_c_leaves_the_trials_made_so_far(monkeypatch):
    study, run, made = optuna.create_study(), Trials.run, []

    def interrupted(self, *args, **kwargs):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(run(self, *args, **kwargs))
        return made[-1]

    monkeypatch.setattr(Trials, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(study=study, n_trials=3)
    assert len(study.trials) == 2


@pytest.mark.parametrize("change", ["rows", "labels", "weights"])
def test_a_study_of_another_data_set_is_refused(change):
    study = optuna.create_study()
    search(study=study)
    other = {"rows": {"rows": X + 1}, "labels": {"labels": 1 - Y}, "weights": {"sample_weight": np.arange(1, 61)}}[change]
    with pytest.raises(ValueError, match="is of another data set"):
        search(study=study, **other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"budget": 5}, "is of another search: 2 support vectors", id="budget"),
        pytest.param({"estimator": SlimSVC(kernel="laplacian")}, "is of another search", id="kernel"),
        pytest.param({"random_state": 1}, "was made with random_state", id="seed"),
    ],
)
def test_a_study_of_another_search_is_refused(change, words):
    study = optuna.create_study()
    search(study=study)
    with pytest.raises(ValueError, match=words):
        search(study=study, **change)


def test_a_study_of_something_else_is_refused():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(ValueError, match=r"holds trials that slimsvm\.tune did not make"):
        search(study=study)


HOSTILE = {
    "no list": lambda _: "evaluations",
    "no trials": lambda _: [1, None],
    "nothing": lambda _: [{}],
    "an error in words": lambda kept: [kept | {"error": "low"}],
    "an error that is no number": lambda kept: [kept | {"error": float("nan")}],
    "a size below 0": lambda kept: [kept | {"size": -1}],
    "a status of its own": lambda kept: [kept | {"status": "fine"}],
    "settings that are a list": lambda kept: [kept | {"settings": [1.0, 2.0]}],
    "no gamma": lambda kept: [kept | {"settings": kept["settings"] | {"gamma": None}}],
    "an effort in words": lambda kept: [kept | {"effort": dict.fromkeys(kept["effort"], "much")}],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_study_with_what_no_trial_leaves_is_refused(name):
    kept = Trial(Settings(1.0, 1.0, "none"), TrialEffort(10, 5, 1, 2), 0.1, 0.01, 2, 24, 0.5, Status.CONVERGED, "first")
    study = optuna.create_study()
    study.add_trial(optuna.create_trial(value=0.0, user_attrs={EVALUATIONS: HOSTILE[name](pack(kept))}))
    with pytest.raises(ValueError, match=r"cannot be continued: its trial 0 has .*; give another name"):
        StudyStore(study)


def test_what_a_trial_leaves_is_read_back():
    kept = Trial(Settings(1.0, 2.0, "none", 0.5), TrialEffort(10, 5, 1, 2), 0.1, 0.01, 2, 24, 0.5, Status.MAX_ITER, "first")
    study = optuna.create_study()
    study.add_trial(optuna.create_trial(value=0.0, user_attrs={EVALUATIONS: [pack(kept)]}))
    assert StudyStore(study).recall(kept.settings, kept.effort) == kept


@pytest.mark.parametrize("seed", ["one", -1, 2**40, 1.5, True])
def test_a_seed_that_is_none_is_refused(seed):
    study = optuna.create_study()
    study.set_user_attr(SEED, seed)
    with pytest.raises(ValueError, match="for its seed; give another name"):
        seed_in(study)


@pytest.mark.parametrize("directions", [["maximize"], ["minimize", "minimize"]])
def test_a_study_that_does_not_minimise_one_error_is_refused(directions):
    with pytest.raises(ValueError, match="does not minimise one error"):
        search(study=optuna.create_study(directions=directions))


@pytest.mark.parametrize("place", ["no address", "sqlite:////there/is/no/folder/tune.db", "sqlite:///{folder}/text.db"])
def test_a_storage_that_cannot_be_opened_is_one_line(place, tmp_path):
    (tmp_path / "text.db").write_text("not a database " * 100)
    with pytest.raises(ValueError, match=r"cannot open the storage of the study: [^\n]*$"):
        search(storage=place.format(folder=tmp_path))


def test_a_study_with_a_second_storage_is_refused(storage):
    with pytest.raises(ValueError, match="which has its own storage"):
        search(study=optuna.create_study(), storage=storage)


def test_without_optuna_the_error_names_the_extra(monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "optuna":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"slimsvm\[tune\]"):
        search(storage="sqlite://", study="moons")
