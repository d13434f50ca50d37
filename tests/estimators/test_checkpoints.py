"""Fits that die and go on: the model is that of a fit that was not disturbed, bit for bit."""

from __future__ import annotations

import errno
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_classification, make_moons

import slimsvm
from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm.estimators import resume
from slimsvm.estimators.resume import CheckpointFile, fingerprint
from slimsvm.model import Status
from slimsvm.papers.batch_perceptron import SBP
from slimsvm.reducers import REDUCERS, Slim
from slimsvm.trainers import TRAINERS
from slimsvm.trainers.smo import SMO


class Killed(BaseException):
    """Stands for SIGKILL: nothing is saved after it."""


@pytest.fixture
def die(monkeypatch):
    """die(k): a process that ends right after it has written its k-th checkpoint."""
    write = CheckpointFile.write

    def after(saves):
        done = [0]

        def writing(self):
            if done[0] < saves:
                write(self)
                done[0] += 1
                if done[0] == saves:
                    raise Killed

        monkeypatch.setattr(CheckpointFile, "write", writing)

    yield after
    monkeypatch.setattr(CheckpointFile, "write", write)


def rows_of(n, d=6, classes=2, seed=0):
    return make_classification(n, d, n_informative=d - 1, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=seed)


def rows_of_text(n=200, d=60):
    rng = np.random.default_rng(0)
    rows = rng.random((n, d)) * (rng.random((n, d)) < 0.1)
    wide = csr_array(rows)
    wide.resize(n, 5000)
    return wide, (rows @ rng.normal(size=d) > 0).astype(int)


pytestmark = pytest.mark.filterwarnings("ignore:SBP stopped at max_iter")
X, y = rows_of(700)
X3, y3 = rows_of(300, classes=3)
SMALL = Slim(steps=6)
#: kernel values of so many rows are float32, until a point of a small model is too far out for that
FAR = np.random.default_rng(99).normal(size=(3000, 8))
ONE_START = Slim(steps=2)
LEARNED = replace(ONE_START, metric="both")
METRIC = SlimSVC(48, trainer=None, reducer=LEARNED, random_state=0)
AUTO = SlimSVC(4, trainer=None, reducer=replace(LEARNED, metric="auto"), random_state=0)
IN_SPAN = Slim(steps=6)
#: the estimator, its rows, and the saves after which it dies (negative: counted from the last)
FITS = {
    "smo, rounds": (SlimSVC(C=10.0, trainer=SMO(working_set=60)), X, y, (1, 4, 9)),
    "smo, active rows": (SlimSVC(C=0.3, gamma=0.02, trainer=SMO(working_set=16)), X, y, (3, 12, 40)),
    "smo, kernel rows on demand": (SlimSVC(C=10.0, trainer=SMO(working_set=400)), X, y, (1,)),
    "smo, sparse": (SlimSVC(C=10.0, trainer=SMO(working_set=60)), csr_array(np.where(X > 1.2, X, 0.0)), y, (4,)),
    "smo, pairs of classes": (SlimSVC(C=10.0, trainer=SMO(working_set=60)), *rows_of(900, classes=3), (3, 20)),
    "smo, regression": (SlimSVR(C=10.0, trainer=SMO(working_set=40)), X3, X3[:, 0] * X3[:, 1], (2, 7)),
    "smo, novelty": (SlimOneClassSVM(nu=0.2, trainer=SMO(working_set=40)), X, None, (2,)),
    "sbp": (SlimSVC(trainer=SBP(max_iter=12, gap=0, working_set=40), random_state=0), X, y, (1, 8)),
    "sbp, early stopping": (
        SlimSVC(trainer=SBP(gap=0, working_set=40, early_stopping=True), random_state=0),
        X,
        y,
        (5,),
    ),
    "slim": (SlimSVC(8, reducer=SMALL, random_state=0), X[:200], y[:200], (2, 6)),
    "slim, no full model": (SlimSVC(8, trainer=None, reducer=SMALL, random_state=0), X3[:200], y3[:200], (1, 4)),
    "slim, random seed": (SlimSVC(6, trainer=None, reducer=SMALL), X3, y3, ()),
    "slim, tolerance": (SlimSVC(tolerance=0.1, reducer=ONE_START, random_state=0), X[:100], y[:100], (9,)),
    "slim, span": (SlimSVC(8, trainer=None, reducer=IN_SPAN, random_state=0), *rows_of_text(), (2, 5, 7)),
    "slim, points far out": (
        SlimSVC(16, trainer=None, reducer=SMALL, random_state=5),
        FAR,
        FAR[:, 0] * FAR[:, 1] > 0,
        (1, 2, -1),
    ),
    "slim, regression": (SlimSVR(3, reducer=ONE_START, random_state=0), X3[:100], X3[:100, 0], (4,)),
    "slim, metric of two targets": (SlimSVC(6, reducer=LEARNED, random_state=0), X[:120], y[:120], (2, -1)),
    "slim, metric": (METRIC, X3[:120], y3[:120], (1, 3, 6, -1)),
    "slim, automatic metric": (AUTO, X[:120], y[:120], (2, -1)),
    "calibration": (SlimSVC(3, calibration="sigmoid", reducer=ONE_START, random_state=0), X[:80], y[:80], (6,)),
}


def same(a, b):
    """Assert that two fitted estimators are equal to the last bit."""
    assert (a.status_, a.n_iter_) == (b.status_, b.n_iter_)
    for name in ("points", "coef", "bias", "factors", "widths"):
        mine, theirs = (np.asarray(getattr(each.model_, name)) for each in (a, b))
        if mine.dtype == object:
            mine, theirs = (each.item().toarray() for each in (mine, theirs))
        np.testing.assert_array_equal(mine, theirs)
    assert (a.path_ is None) == (b.path_ is None)
    if a.path_ is not None:
        assert (a.path_.sizes, a.path_.errors) == (b.path_.sizes, b.path_.errors)


def saving(estimator, path):
    """The estimator with a checkpoint that is written at every chance."""
    return type(estimator)(**estimator.get_params(deep=False)).set_params(checkpoint=(path, 1e-9))


@cache
def whole(name):
    """The estimator of a fit that was not disturbed."""
    estimator, rows, labels, _ = FITS[name]
    return type(estimator)(**estimator.get_params(deep=False)).fit(rows, labels)


@cache
def states(name):
    """All checkpoints that a fit writes: a process that dies leaves the last one that it wrote."""
    estimator, rows, labels, _ = FITS[name]
    written = []
    with patch.object(resume, "write_whole", lambda path, pieces: written.append(b"".join(pieces))):  # noqa: ARG005
        saving(estimator, "state").fit(rows, labels)
    return written


def state_after(name, saves):
    """The checkpoint of a process that dies after so many saves; negative ones count from the last."""
    return states(name)[saves - 1 if saves > 0 else saves]


@pytest.mark.parametrize(
    ("name", "saves"), [(name, saves) for name, fit in FITS.items() for saves in fit[3]], ids=lambda value: str(value)
)
def test_a_fit_that_dies_goes_on_to_the_same_model(name, saves, tmp_path):
    estimator, rows, labels, _ = FITS[name]
    (tmp_path / "state").write_bytes(state_after(name, saves))
    resumed = saving(estimator, tmp_path / "state").fit(rows, labels)
    same(resumed, whole(name))
    assert resumed.n_kernel_evals_ < whole(name).n_kernel_evals_ + (saves == 1)  # it did not begin anew
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_dies_again_and_again_ends_all_the_same(die, tmp_path):
    estimator, rows, labels, _ = FITS["smo, active rows"]
    deaths = 0
    for _ in range(200):
        die(8)
        try:
            found = saving(estimator, tmp_path / "state").fit(rows, labels)
            break
        except Killed:
            deaths += 1
    assert deaths > 5
    same(found, whole("smo, active rows"))


def test_the_seed_of_a_fit_without_one_is_in_the_checkpoint(die, tmp_path, monkeypatch):
    estimator, rows, labels, _ = FITS["slim, random seed"]
    seeds = []
    opened = CheckpointFile.opened.__func__
    monkeypatch.setattr(
        CheckpointFile, "opened", classmethod(lambda cls, *a: (found := opened(cls, *a), seeds.append(found.seed))[0])
    )
    die(2)
    with pytest.raises(Killed):
        saving(estimator, tmp_path / "state").fit(rows, labels)
    die(10**9)
    saving(estimator, tmp_path / "state").fit(rows, labels)
    assert seeds[0] == seeds[1]


def test_a_time_limit_leaves_a_checkpoint_to_go_on_from(tmp_path):
    estimator, rows, labels, _ = FITS["smo, rounds"]
    with pytest.warns(match="SMO stopped at the time limit; raise time_limit"):
        short = saving(estimator, "").set_params(time_limit=1e-6, checkpoint=tmp_path / "state").fit(rows, labels)
    assert short.status_ is Status.TIME_LIMIT
    assert 0 < short.n_iter_ < whole("smo, rounds").n_iter_
    same(saving(estimator, tmp_path / "state").fit(rows, labels), whole("smo, rounds"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"C": 2.0}, r"it is of other settings \(C was '1.0'\)"),
        ({"random_state": 1}, "other settings .random_state was"),
        ({"trainer": SMO(working_set=61)}, "other settings .trainer was"),
        ({"X": X + 1e-9}, "it is of other rows, labels or weights"),
        ({"y": 1 - y}, "it is of other rows, labels or weights"),
    ],
    ids=["C", "seed", "trainer", "rows", "labels"],
)
def test_a_checkpoint_of_another_fit_is_refused(changes, message, die, tmp_path):
    estimator = saving(SlimSVC(trainer=SMO(working_set=60), random_state=0), tmp_path / "state")
    die(1)
    with pytest.raises(Killed):
        estimator.fit(X, y)
    die(10**9)
    rows, labels = changes.pop("X", X), changes.pop("y", y)
    before = (tmp_path / "state").read_bytes()
    with pytest.raises(ValueError, match=f"cannot continue from the checkpoint .*{message}"):
        estimator.set_params(**changes).fit(rows, labels)
    assert (tmp_path / "state").read_bytes() == before


@pytest.mark.parametrize("part", ["version", "format"])
def test_a_checkpoint_of_another_version_is_refused(part, tmp_path):
    estimator, rows, labels, saves = FITS["smo, rounds"]
    header, arrays = resume.unpack_file(state_after("smo, rounds", saves[-1]))
    header.pop("arrays")
    if part == "format":
        header["checkpoint"]["format"] = resume.FORMAT - 1
    else:
        header["slimsvm"] = "99"
    (tmp_path / "state").write_bytes(b"".join(resume.pack_file(header, arrays)))
    with pytest.raises(ValueError, match="finish the fit there or delete it") as told:
        saving(estimator, tmp_path / "state").fit(rows, labels)
    written = ("'99'", resume.FORMAT) if part != "format" else (repr(version("slimsvm")), resume.FORMAT - 1)
    assert "slimsvm {} wrote it with states of version {}, but".format(*written) in str(told.value)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "state.slim"
    slimsvm.save(SlimSVC().fit(X[:50], y[:50]), path)
    with pytest.raises(ValueError, match="it is a model and not a checkpoint"):
        SlimSVC(checkpoint=path).fit(X, y)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="truncated or damaged"):
        SlimSVC(checkpoint=path).fit(X, y)


def test_a_state_that_does_not_fit_the_rows_is_refused(die, tmp_path):
    estimator = saving(SlimSVC(trainer=SMO(working_set=60)), tmp_path / "state")
    die(1)
    with pytest.raises(Killed):
        estimator.fit(X, y)
    die(10**9)
    header, arrays = resume.unpack_file((tmp_path / "state").read_bytes())
    name = header["checkpoint"]["states"]["/training/output 0"]["alpha"]["array"]
    arrays[name] = arrays[name][:-1]
    header.pop("arrays")
    (tmp_path / "state").write_bytes(b"".join(resume.pack_file(header, arrays)))
    with pytest.raises(ValueError, match="no array 'alpha' of shape"):
        estimator.fit(X, y)


def test_a_full_disk_leaves_the_old_checkpoint_and_the_fit_goes_on(tmp_path, monkeypatch):
    estimator, rows, labels, _ = FITS["smo, rounds"]
    path, before, removed = tmp_path / "state", states("smo, rounds")[1], []
    path.write_bytes(before)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(resume, "write_whole", full)
    monkeypatch.setattr(CheckpointFile, "remove", lambda self: removed.append(self.path.read_bytes()))
    with pytest.warns(UserWarning, match="could not be written .No space left on device.; the one before it stays") as told:
        resumed = saving(estimator, path).fit(rows, labels)
    assert len(told) == 1
    assert removed == [before]
    same(resumed, whole("smo, rounds"))


@pytest.mark.parametrize("name", sorted(TRAINERS.keys() - {"smo", "sbp"}))
def test_trainers_that_cannot_go_on_say_which_can(name, tmp_path):
    with pytest.raises(ValueError, match=r"cannot continue from a checkpoint; those that can are \['sbp', 'smo'\]"):
        SlimSVC(10, trainer=name, checkpoint=tmp_path / "state").fit(X, y)


@pytest.mark.parametrize("name", sorted(REDUCERS.keys() - {"slim"}))
def test_reducers_that_cannot_go_on_say_which_can(name, tmp_path):
    with pytest.raises(ValueError, match=r"cannot continue from a checkpoint; those that can are \['slim'\]"):
        SlimSVC(10, reducer=name, checkpoint=tmp_path / "state").fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checkpoint": 3}, r"checkpoint must be the name of a file, \(name, seconds\), or None, not 3"),
        ({"checkpoint": "no/such/folder/state"}, "there is no folder that can be written to"),
        ({"checkpoint": "."}, "which is not a file"),
        ({"checkpoint": ("state", 0)}, "the seconds of a checkpoint must be a number above 0"),
    ],
    ids=["no name", "no folder", "a folder", "no seconds"],
)
def test_impossible_checkpoints(settings, message):
    with pytest.raises(ValueError, match=message):
        SlimSVC(**settings).fit(X, y)


def test_a_saved_model_has_no_checkpoint(tmp_path):
    slimsvm.save(SlimSVC(checkpoint=tmp_path / "state").fit(X[:50], y[:50]), tmp_path / "m.slim")
    assert slimsvm.load(tmp_path / "m.slim").checkpoint is None


def test_the_fingerprint_is_of_values_not_of_memory():
    plain = fingerprint(X, y)
    assert fingerprint(np.asfortranarray(X), y) == plain
    assert fingerprint(np.repeat(X, 2, axis=1)[:, ::2], y) == plain
    assert fingerprint(X.astype(np.float32), y) != plain
    assert fingerprint(csr_array(X), y) != plain


def test_moons_by_name(tmp_path):
    """A path may be a str, and is made absolute when the fit begins."""
    rows, labels = make_moons(60, random_state=0)
    assert SlimSVC(checkpoint=str(tmp_path / "state")).fit(rows, labels).status_ is Status.CONVERGED


def hostile(state, path, name):
    """Leave a checkpoint of a fit with this entry of its state changed: `state` maps the JSON and arrays of a part."""
    estimator, rows, labels, saves = FITS[name]
    header, arrays = resume.unpack_file(state_after(name, saves[-1]))
    arrays = {name: array.copy() for name, array in arrays.items()}
    header.pop("arrays")
    part = next(iter(header["checkpoint"]["states"].values()))
    state(part, arrays)
    path.write_bytes(b"".join(resume.pack_file(header, arrays)))
    return saving(estimator, path), rows, labels


def entry(*names, to):
    """Set an entry of a state; an array's entry sets its first number, another array replaces it."""

    def change(part, arrays):
        for name in names[:-1]:
            part = part[name]
        value = part[names[-1]]
        if not isinstance(value, dict) or value.keys() != {"array"}:
            part[names[-1]] = to
        elif isinstance(to, np.ndarray):
            arrays[value["array"]] = to
        else:
            arrays[value["array"]].ravel()[0] = to

    return change


HOSTILE = {
    "alpha is NaN": ("smo, rounds", entry("alpha", to=np.nan), "numbers in 'alpha'"),
    "alpha below 0": ("smo, rounds", entry("alpha", to=-1.0), "outside of their bounds"),
    "alpha beyond C": ("smo, rounds", entry("alpha", to=10.1), "outside of their bounds"),
    "alpha of float32": ("smo, rounds", entry("alpha", to=np.zeros(700, np.float32)), "type float64"),
    "responses beyond all": ("smo, rounds", entry("responses", to=1e200), "numbers in 'responses'"),
    "rows that are not there": ("smo, rounds", entry("working", to=700), "rows in 'working'"),
    "negative steps": ("smo, rounds", entry("steps", to=-1), "'steps' that is not between 0"),
    "more steps than numbers": ("smo, rounds", entry("steps", to=10**30), "'steps' that is not between 0"),
    "no count of rounds": ("smo, rounds", entry("rounds", "progress", "rounds", to=float("nan")), "no 'rounds'"),
    "truth for a number": ("smo, rounds", entry("rounds", "best", to=True), "no 'best'"),
    "a number beyond all": ("smo, rounds", entry("rounds", "best", to=10**400), "'best' beyond float64"),
    "never idle": ("smo, rounds", entry("rounds", "idle", to=-(10**9)), "'idle' that is not between -1"),
    "a generator that draws zeros": ("sbp", entry("rng", "state", to={"state": 0, "inc": 0}), "increment is even"),
    "a generator of another kind": ("sbp", entry("rng", "bit_generator", to="MT19937"), "no generator"),
    "no number of draws": ("sbp", entry("turns", to=np.inf), "numbers in 'turns'"),
    "a batch of no rows": ("sbp", entry("batch", to=0), "'batch' that is not between 1"),
    "coefficients of other points": (
        "slim, no full model",
        entry("search", "state", "found", "theta", to=np.zeros((9, 3))),
        "no array 'theta'",
    ),
    "more models than sizes": (
        "slim, no full model",
        lambda part, _: part.update(made=part["made"] * 99),
        "that is not between",
    ),
    "an objective of the file's own": (
        "slim, no full model",
        entry("search", "objective", "target", to="\x1b[31m" * 99),
        "unknown objective",
    ),
    "a metric's model of fewer coefficients than points": (
        "slim, metric",
        entry("made", 1, "coef", to=np.zeros((9, 3))),
        "no array 'coef'",
    ),
    "points of other features": ("slim, metric", entry("made", 1, "points", to=np.zeros((2, 5))), "no array 'points'"),
    "a negative width": ("slim, metric", entry("made", 1, "widths", to=-1.0), "numbers in 'widths' that are not positive"),
    "widths of other points": ("slim, metric", entry("made", 1, "widths", to=np.ones(3)), "no array 'widths'"),
    "a factor of 0": ("slim, metric", entry("made", 1, "factors", to=0.0), "numbers in 'factors' that are not positive"),
    "a factor that is no number": ("slim, metric", entry("made", 1, "factors", to=np.nan), "numbers in 'factors'"),
    "factors of other features": ("slim, metric", entry("made", 1, "factors", to=np.ones(7)), "no array 'factors'"),
    "a model that nothing made": ("slim, metric", entry("made", 1, "made", to=3), "no 'made'"),
    "a model of no target": ("slim, metric", entry("made", 1, "made", "target", to=3), "no 'target'"),
    "fewer sizes tried than made": ("slim, metric", entry("tried", to=0), "'tried' that is not between"),
    "more sizes tried than there are": ("slim, metric", entry("tried", to=10**6), "'tried' that is not between"),
    "an unknown objective": ("slim, metric", entry("search", "objective", "target", to="x"), "unknown objective .*=x"),
    "an unknown objective of the learned model": (
        "slim, metric",
        entry("learned", "objective", "decay", to=7.0),
        "unknown objective",
    ),
    "a row twice in a subsample": (
        "slim, metric",
        entry("search", "state", "subsample", to=np.zeros(999, np.int64)),
        "a row twice in 'subsample'",
    ),
    "nothing about what is learned": ("slim, metric", lambda part, _: part.pop("learned"), "no 'learned'"),
    "an unknown kind": ("slim, metric", entry("learned", "kind", to="x"), "unknown kind"),
    "no such rows in a subsample": ("slim, metric", entry("search", "state", "subsample", to=-1), "rows in 'subsample'"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_state_is_refused_with_the_name_of_its_file(case, tmp_path):
    name, state, words = HOSTILE[case]
    estimator, rows, labels = hostile(state, tmp_path / "state", name)
    with pytest.raises(ValueError, match=words) as told:
        estimator.fit(rows, labels)
    assert f"cannot continue from the checkpoint '{tmp_path / 'state'}'" in str(told.value)
    assert "\x1b" not in str(told.value)
    assert not hasattr(estimator, "model_")


@pytest.mark.parametrize("seed", [-1, 2**40, True, 1.5])
def test_a_seed_that_no_fit_draws_is_refused(seed, tmp_path):
    estimator, rows, labels = hostile(lambda *_: None, tmp_path / "state", "slim, no full model")
    header, arrays = resume.unpack_file((tmp_path / "state").read_bytes())
    header.pop("arrays")
    header["checkpoint"]["seed"] = seed
    (tmp_path / "state").write_bytes(b"".join(resume.pack_file(header, arrays)))
    with pytest.raises(ValueError, match="'seed'"):
        estimator.fit(rows, labels)
