"""Runs of a trade-off: the models of SlimSVC, timed alone; rows that come one by one and are not made twice."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import train_test_split

import slimsvm
from slimsvm import Interrupted, SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm.reducers import Nystroem
from slimsvm.studio.tradeoff import read_tradeoff, run, smallest_good, tradeoff
from slimsvm.studio.tradeoff.rows import COLUMNS, read_rows
from slimsvm.studio.tradeoff.summary import Point, answer, summarise
from slimsvm.studio.tradeoff.tasks import CLASSIFY

pytestmark = pytest.mark.usefixtures("quick_slim")

X, Y = load_iris(return_X_y=True)


def names(rows):
    return [(row["method"], row["budget"], row["seed"]) for row in rows]


def quick(**settings):
    """A trade-off in a fraction of a second, and the rows in the order in which they were made."""
    made = []
    found = tradeoff(
        X, Y, **{"methods": ["nystroem"], "budgets": [2, 4], "report": lambda p: made.append(p.row), **settings}
    )
    return found, made


def test_a_row_is_what_slimsvc_does_by_hand():
    found, _ = quick(C=3.0)
    A, A_test, b, b_test = train_test_split(X, Y, test_size=38, stratify=Y, random_state=0)
    by_hand = SlimSVC(4, reducer="nystroem", C=3.0, random_state=0).fit(A, b)
    row = found.rows[-1]
    assert row["error"] == np.mean(by_hand.predict(A_test) != b_test)
    assert (row["size"], row["n_train"], row["n_test"]) == (4, 112, 38)
    assert row["validation_error"] == by_hand.path_.best(4).error
    np.testing.assert_array_equal(found.model(row).predict(X), by_hand.predict(X))


def test_columns_are_ready_for_a_data_frame():
    frame = pd.DataFrame(quick()[0].columns())
    assert list(frame.columns) == list(COLUMNS)
    assert frame["method"].tolist() == ["full", "nystroem", "nystroem"]
    assert frame["threads"].min() >= 1


def test_a_result_prints_as_a_table():
    found, _ = quick(budgets=[2, 10_000])
    lines = repr(found).splitlines()
    assert lines[0] == "Tradeoff of 3 runs, 1 of them without a model"
    assert lines[1].split() == ["method", "budget", "size", "bytes", "error"]
    assert lines[3].split()[:3] == ["nystroem", "2", "2"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert found._repr_html_().count("<tr>") == 3


def test_only_the_fit_is_timed(monkeypatch):
    clock = [0.0]

    def slow(function):
        def wrapped(*args):
            clock[0] += 100
            return function(*args)

        return wrapped

    monkeypatch.setattr(run, "perf_counter", lambda: clock[0])
    for name in ("split_rows", "make_scaler", "measure"):
        monkeypatch.setattr(run, name, slow(getattr(run, name)))
    assert [row["seconds"] for row in quick()[0].rows] == [0.0, 0.0, 0.0]


def test_finished_rows_are_not_run_again(tmp_path):
    file = tmp_path / "rows.csv"
    first, made = quick(file=file)
    assert names(made) == [("full", None, 0), ("nystroem", 2, 0), ("nystroem", 4, 0)]
    again, made = quick(file=file)
    assert made == []
    assert again.rows == first.rows == tuple(read_rows(file))
    more, made = quick(file=file, budgets=[2, 3, 4], methods=["nystroem", "bsgd"])
    assert names(made) == [("nystroem", 3, 0), ("bsgd", 2, 0), ("bsgd", 3, 0), ("bsgd", 4, 0)]
    assert len(more.rows) == 7
    assert len(quick(file=file, C=2.0)[1]) == 3
    assert len(quick(file=file, force=True)[1]) == 3


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    file = tmp_path / "rows.csv"
    quick(file=file)
    file.write_bytes(file.read_bytes()[:-20])
    found, made = quick(file=file)
    assert names(made) == [("nystroem", 4, 0)]
    assert tuple(read_rows(file)) == found.rows


def test_ctrl_c_keeps_what_was_finished(tmp_path):
    file = tmp_path / "rows.csv"

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(file=file, report=stop)
    assert names(read_rows(file)) == [("full", None, 0)]
    assert names(quick(file=file)[1]) == [("nystroem", 2, 0), ("nystroem", 4, 0)]


def test_a_run_that_ctrl_c_cut_short_is_no_row(tmp_path, monkeypatch):
    fit = SlimSVC.fit

    def interrupted(self, X, y):
        fit(self, X, y)
        if self.budget:
            raise Interrupted(self)
        return self

    monkeypatch.setattr(SlimSVC, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick(file=tmp_path / "rows.csv")
    assert names(read_rows(tmp_path / "rows.csv")) == [("full", None, 0)]


def test_a_failure_is_a_row_with_its_reason_and_is_tried_again(tmp_path):
    settings = {"file": tmp_path / "rows.csv", "methods": ["reduced-set", "nystroem"], "budgets": [3], "kernel": "sigmoid"}
    found, _ = quick(**settings)
    failed = found.rows[1]
    assert (failed["status"], failed["error"]) == ("failed", None)
    assert "sigmoid" in failed["reason"]
    assert found.rows[2]["status"] == "ok"
    assert names(quick(**settings)[1]) == [("reduced-set", 3, 0)]


def test_budgets_beyond_the_full_model_are_skipped_with_a_reason():
    row = quick(budgets=[2, 100_000])[0].rows[-1]
    assert row["status"] == "skipped"
    assert "support vectors" in row["reason"]


def test_methods_may_be_trainers_pairs_and_settings():
    found, _ = quick(methods=["bsgd", "lp", "none+slim", "lp+nystroem"], budgets=[3])
    assert [row["status"] for row in found.rows] == ["ok"] * 5
    assert [row["budget"] for row in found.rows] == [None, 3, None, 3, 3]
    mine, _ = quick(methods={"mine": {"reducer": Nystroem(), "C": 5.0}}, budgets=[3])
    assert [row["method"] for row in mine.rows] == ["full", "mine"]
    assert mine.model(mine.rows[1]).C == 5.0


def test_a_time_limit_reaches_the_reducer():
    found, _ = quick(time_limit=123.0, budgets=[3])
    assert found.model(found.rows[1]).reducer == Nystroem(time_limit=123.0)


def test_seeds_draw_other_test_rows_and_give_standard_errors():
    found, _ = quick(seeds=[5, 6, 7])
    assert {row["seed"] for row in found.rows} == {5, 6, 7}
    assert set(found.models) == {row["model"] for row in found.rows if row["seed"] == 5}
    point = summarise(found.rows)[1]
    errors = [row["error"] for row in found.rows if row["budget"] == 2]
    assert point.seeds == 3
    assert point.error == pytest.approx(np.mean(errors))
    assert point.se == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3))


def test_given_test_rows_are_used():
    found, _ = quick(test=(X[:5], Y[:5]))
    assert {(row["n_train"], row["n_test"]) for row in found.rows} == {(150, 5)}


def test_models_are_saved_beside_the_file(tmp_path):
    quick(file=tmp_path / "rows.csv")
    found = read_tradeoff(tmp_path / "rows.csv")
    assert [found.model(row).model_.size for row in found.rows[1:]] == [2, 4]


def test_a_model_that_cannot_be_saved_is_a_row_without_one(tmp_path):
    found, _ = quick(file=tmp_path / "rows.csv", kernel=lambda A, B: A @ B.T)
    assert [row["status"] for row in found.rows] == ["ok"] * 3
    assert {row["model"] for row in found.rows} == {""}
    assert "not kept" in found.rows[0]["reason"]


def test_progress_counts_down_to_no_time_left():
    seen = []
    quick(report=seen.append)
    assert [(p.number, p.total) for p in seen] == [(1, 3), (2, 3), (3, 3)]
    assert seen[-1].seconds_left == 0


def test_the_smallest_good_size_is_chosen_by_validation_errors():
    blank = dict.fromkeys(COLUMNS) | {"method": "m", "status": "ok", "validation_se": 0.03, "error": 0.0}
    errors = {4: 0.5, 8: 0.12, 16: 0.1, 32: 0.11}
    rows = [blank | {"budget": budget, "validation_error": error} for budget, error in errors.items()]
    assert smallest_good(rows, "m") == 8
    assert smallest_good(rows, "other") is None
    for spread in (float("nan"), -1.0, None):
        assert smallest_good([row | {"validation_se": spread} for row in rows], "m") == 16


ANSWERS = {
    "near": (
        0.11,
        0.10,
        ["How small can it be? slim needs 9 support vectors instead of 200 and 400 bytes", "It is the smallest"],
    ),
    "far": (
        0.33,
        0.18,
        ["No size tried is near the full model. slim needs 9", "full model: 82.0 %", "--budgets 32,64,128"],
    ),
    "better": (0.1, 0.3, ["The full model is the worse one", "slimsvm tune"]),
    "noisy": (0.33, 0.18, ["How small can it be?"]),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_answer_says_where_no_size_is_near_the_full_model(case):
    error, full_error, words = ANSWERS[case]
    se = 0.1 if case == "noisy" else 0.01
    small = Point("slim", 9, 8.5, 400.0, 1.0, error, se, 1.0, 1.0, 0.1, 2)
    full = Point("full", None, 200.0, 9000.0, 1.0, full_error, se, 1.0, 1.0, None, 2)
    said = answer(CLASSIFY, small, full)
    assert all(word in said for word in words), said


def test_models_know_the_names_of_the_features():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    found = tradeoff(frame, Y, methods=["nystroem"], budgets=[2], seeds=2)
    assert all(list(model.feature_names_in_) == ["a", "b", "c", "d"] for model in found.models.values())
    assert "seed" in repr(found).splitlines()[1]


BAD = {
    "method": ({"methods": ["slim", "nonsense"]}, "unknown method 'nonsense'; there are the reducers slim"),
    "instance": ({"methods": [Nystroem()]}, "methods are names, or a mapping such as"),
    "mapping": ({"methods": {"mine": {"reducr": "slim"}}}, "for each a dict of settings of SlimSVC: C, "),
    "named full": ({"methods": {"full": {}}}, "names other than 'full'"),
    "one budget": ({"budgets": 16}, "budgets must be numbers"),
    "seed": ({"seeds": 1.5}, "seeds must be"),
    "budget": ({"budgets": [0, 3]}, "budget must be 64 "),
    "no budgets": ({"budgets": []}, "budgets must be"),
    "seeds": ({"seeds": 0}, "seeds must be"),
    "scale": ({"scale": "log"}, "unknown scale 'log'; there are auto, none"),
    "test_size": ({"test_size": 1.5}, "test_size must be a share"),
    "setting": ({"gama": 1}, "no setting gama; settings for all runs are C,"),
    "precomputed": ({"kernel": "precomputed"}, "splits rows, not kernel matrices"),
    "varied": ({"trainer": "lp"}, "no setting trainer"),
    "task": ({"task": "guess"}, "unknown task 'guess'; there are classify, regress, novelty"),
    "nu of classes": ({"nu": 0.1}, "no setting nu; settings for all runs are C,"),
    "width": ({"test": (X[:, :2], Y)}, "the test rows have 2 features and the rows have 4"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_before_the_first_run(name):
    settings, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        quick(**settings, report=lambda _: pytest.fail("a run was made"))


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="1 rows are too few"):
        tradeoff(X[:1], Y[:1])


def test_the_function_is_at_the_door():
    assert slimsvm.tradeoff is tradeoff


DIABETES = load_diabetes(return_X_y=True)


def test_a_row_of_regression_is_what_slimsvr_does_by_hand():
    found = tradeoff(*DIABETES, task="regress", methods=["nystroem"], budgets=[4], C=50.0)
    A, A_test, b, b_test = train_test_split(*DIABETES, test_size=111, random_state=0)
    by_hand = SlimSVR(4, reducer="nystroem", C=50.0, random_state=0).fit(A, b)
    row = found.rows[-1]
    assert row["error"] == pytest.approx(1 - by_hand.score(A_test, b_test))
    losses = (by_hand.predict(A_test) - b_test) ** 2 / b_test.var()
    assert row["se"] == pytest.approx(losses.std() / np.sqrt(111))
    assert row["validation_error"] == by_hand.path_.best(4).error
    assert isinstance(found.model(row), SlimSVR)


def test_a_novelty_detector_is_compared_with_the_full_one(tmp_path):
    X = DIABETES[0]
    settings = {"task": "novelty", "methods": ["nystroem"], "nu": 0.1, "seeds": 2, "file": tmp_path / "rows.csv"}
    tradeoff(X, None, budgets=[4], **settings)
    found = tradeoff(X, None, budgets=[4, 8], **settings)  # the full models are not in memory any more
    for row in found.rows:
        A, A_test = train_test_split(X, test_size=111, random_state=row["seed"])
        full = SlimOneClassSVM(nu=0.1, random_state=row["seed"]).fit(A)
        small = SlimOneClassSVM(row["budget"], nu=0.1, reducer="nystroem", random_state=row["seed"]).fit(A)
        assert row["error"] == np.mean(full.predict(A_test) != small.predict(A_test))
    assert [row["error"] for row in found.rows if row["method"] == "full"] == [0.0, 0.0]


def test_values_are_no_classes():
    with pytest.raises(ValueError, match=r"no classes but continuous, such as 50\.\d*; .*--task regress"):
        tradeoff(DIABETES[0], DIABETES[1] / 3)
