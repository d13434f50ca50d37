"""The reproduction of the papers' experiments: runs continue their files, and the page follows from the rows."""

import os
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from benchmarks.problems import problem
from benchmarks.reproduce import pool
from benchmarks.reproduce.__main__ import main
from benchmarks.reproduce.batch_perceptron import MULTIPLES
from benchmarks.reproduce.compressed_vectors import RIVAL, SIZES, TENTH, TOY, circle, lars_and_moved
from benchmarks.reproduce.covtype import KnownOutputs
from benchmarks.reproduce.experiment import (
    NOT_ON_TERMS,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    RESULTS,
    Claim,
    Experiment,
    is_higher,
)
from benchmarks.reproduce.optimally_sparse import chosen
from benchmarks.reproduce.optimum import optimal_slack, optimum_without_bias
from benchmarks.reproduce.page import write_page
from benchmarks.reproduce.papers import EXPERIMENTS
from benchmarks.reproduce.pool import missing_cells, run_cells, timed_run
from slimsvm import SlimSVC
from slimsvm.clock import Deadline
from slimsvm.kernels import RBF
from slimsvm.model import Expansion
from slimsvm.rows.host import HostRows


def squares():
    """Return an experiment of three cells."""

    def run(cell):
        yield {"square": cell["number"] ** 2}

    def claims(rows):
        return [Claim.of("Squares are even.", all(int(row["square"]) % 2 == 0 for row in rows) if rows else None, "of all")]

    def draw(rows, file):
        file.write_text(str(len(rows)))

    cells = [{"number": number} for number in range(3)]
    return Experiment("squares", "Squares", "Ours.", ("number", "square"), lambda: cells, run, claims, draw)


@pytest.fixture
def experiment(monkeypatch):
    """Return an experiment that is in the table."""
    monkeypatch.setitem(EXPERIMENTS, "squares", squares())
    return EXPERIMENTS["squares"]


def run_some(experiment, count, folder):
    """Run missing cells in this process."""
    for name, cell in missing_cells([experiment.name], count, folder):
        experiment.append(timed_run(name, cell), folder)


def test_a_run_that_was_stopped_goes_on(experiment, tmp_path):
    run_some(experiment, 1, tmp_path)
    assert [row["square"] for row in experiment.rows(tmp_path)] == ["0"]
    assert [cell["number"] for _, cell in missing_cells(["squares"], None, tmp_path)] == [1, 2]
    run_some(experiment, None, tmp_path)
    run_some(experiment, None, tmp_path)
    assert [row["square"] for row in experiment.rows(tmp_path)] == ["0", "1", "4"]


def test_the_page_has_a_verdict_for_every_claim(experiment, tmp_path):
    assert f"| Squares are even. | **{NOT_RUN}** |" in write_page([experiment], tmp_path).read_text()
    run_some(experiment, 1, tmp_path)
    page = write_page([experiment], tmp_path).read_text()
    assert f"**{REPRODUCED}** | of all |" in page
    assert "Of the papers' 1 claims, 1 reproduced." in page
    assert "2 cells are missing" in page
    assert "took 0 minutes of one core" in page
    run_some(experiment, None, tmp_path)
    assert f"**{NOT_REPRODUCED}**" in write_page([experiment], tmp_path).read_text()
    assert (tmp_path / "squares.svg").read_text() == "3"


def test_cells_run_in_processes_and_a_failure_is_counted_and_said(tmp_path, capfd):
    """The first cell of the toy problem has rows; a cell of unknown data has one with its reason, and others go on."""
    unknown = {"data": "unknown", "run": "full", "budget": ""}
    work = [("compressed_vectors", unknown), (TOY.name, {"seed": 0})]
    assert run_cells(work, 2, folder=tmp_path) == 1
    sizes = {row["method"]: int(row["support_vectors"]) for row in TOY.rows(tmp_path)}
    assert sizes["CVM"] == sizes["LARS-SVM"] == 8
    assert "failed: compressed_vectors unknown" in capfd.readouterr().err
    (row,) = EXPERIMENTS["compressed_vectors"].all_rows(tmp_path)
    assert row["data"] == "unknown"
    assert row["failure"] == "KeyError: 'unknown'"


def test_a_cell_that_failed_is_on_the_page_until_it_runs(experiment, tmp_path):
    experiment.append([{"number": 1, "seconds": 0, "failure": "MemoryError: no room"}], tmp_path)
    assert not experiment.rows(tmp_path)
    assert len(missing_cells(["squares"], None, tmp_path)) == 3
    assert "Cells that failed: 1: MemoryError: no room." in write_page([experiment], tmp_path).read_text()
    run_some(experiment, None, tmp_path)
    assert "failed" not in write_page([experiment], tmp_path).read_text()
    experiment.tidy(tmp_path)
    assert [row["number"] for row in experiment.all_rows(tmp_path)] == ["0", "1", "2"]


def test_a_process_that_dies_ends_its_cells_alone(tmp_path, monkeypatch):
    """The cells that were running have rows with the reason; others run in new processes."""
    monkeypatch.setattr(pool, "timed_run", dying_run)
    work = [(TOY.name, {"seed": seed}) for seed in range(3)]
    assert run_cells(work, 1, folder=tmp_path) == 1
    assert [row["seed"] for row in TOY.failures(tmp_path)] == ["0"]
    assert {row["seed"] for row in TOY.rows(tmp_path)} == {"1", "2"}


def dying_run(name, cell):
    """End the process of the first cell."""
    if cell["seed"] == 0:
        os._exit(1)
    return [cell | {"method": name, "support_vectors": 1, "error": 0, "agreement": 1, "seconds": 1}]


def test_a_row_that_was_cut_as_it_was_written_is_left_out(experiment, tmp_path):
    run_some(experiment, 2, tmp_path)
    file = experiment.file(tmp_path)
    file.write_text(file.read_text()[:-5])
    assert [cell["number"] for _, cell in missing_cells(["squares"], None, tmp_path)] == [1, 2]
    run_some(experiment, None, tmp_path)
    assert [row["square"] for row in experiment.rows(tmp_path)] == ["0", "1", "4"]


def test_the_cells_that_take_longest_run_first(experiment, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "squares", replace(experiment, expected=lambda cell: cell["number"]))
    assert [cell["number"] for _, cell in missing_cells(["squares"], None, tmp_path)] == [2, 1, 0]


def test_no_cell_begins_after_the_time_is_over(tmp_path):
    assert run_cells([(TOY.name, {"seed": 0})], 1, seconds=0.0, folder=tmp_path) == 1
    assert not TOY.rows(tmp_path)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_has_columns_for_its_cells_and_claims_before_it_is_run(name):
    experiment = EXPERIMENTS[name]
    cell = next(iter(experiment.cells()))
    assert tuple(cell) == experiment.columns[: len(cell)]
    claims = experiment.claims([])
    assert claims
    assert {claim.verdict for claim in claims} <= {NOT_RUN, NOT_ON_TERMS}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_page_in_the_documentation_follows_from_its_rows(name):
    page = (RESULTS / "index.md").read_text()
    for claim in EXPERIMENTS[name].claims(EXPERIMENTS[name].rows()):
        assert f"{claim.words} | **{claim.verdict}** | {claim.figures} |" in page


def test_settings_are_chosen_on_one_half_and_measured_on_the_other():
    common = {"data": "a", "method": "m", "eta": "", "size": "4"}
    rows = [
        common | {"validation": "0.1 0.3", "test": "0.5 0.6"},
        common | {"validation": "0.2 0.2", "test": "0.7 0.8"},
    ]
    assert chosen(rows) == {("a", "m", 4): pytest.approx((0.5 + 0.8) / 2)}


def test_condensed_rows_lead_to_the_same_page_and_no_cell_runs_again(tmp_path):
    experiment = EXPERIMENTS["optimally_sparse_covtype"]
    rng = np.random.default_rng(0)

    def errors():
        return " ".join(f"{error:.5f}" for error in rng.uniform(size=3))

    measured = ({"size": 8, "support_vectors": 8, "validation": errors(), "test": errors(), "seconds": 1} for _ in count())
    rows = [cell | one for cell, one in zip(experiment.cells(), measured, strict=False)]
    experiment.append(rows[:-1], tmp_path)
    experiment.tidy(tmp_path)
    assert experiment.rows(tmp_path) == [
        {key: str(value) for key, value in row.items()} | {"failure": "", "commit": ""} for row in rows[:-1]
    ]
    experiment.append(rows[-1:], tmp_path)
    before = experiment.rows(tmp_path)
    for _ in range(2):
        experiment.tidy(tmp_path)
        after = experiment.rows(tmp_path)
        assert chosen(after) == pytest.approx(chosen(before), abs=1e-6)
        assert experiment.claims(after) == experiment.claims(before)
        assert not experiment.missing(tmp_path)
        assert all(" " not in row["test"] for row in after)


def test_known_outputs_are_given_for_all_rows_alone():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = Expansion(RBF(1.0), X[:3], np.ones((3, 1)), np.zeros(1))
    known = KnownOutputs(model.kernel, model.points, model.coef, model.bias, outputs=np.zeros((30, 1)))
    assert known.on(HostRows(RBF(1.0), X)) is known.outputs
    np.testing.assert_array_equal(known.on(HostRows(RBF(1.0), X[:20])), model.on(HostRows(RBF(1.0), X[:20])))


def test_claims_on_the_batch_perceptron_compare_all_numbers_of_evaluations():
    experiment = EXPERIMENTS["batch_perceptron"]
    errors = {"sbp, paper": 0.1, "pegasos, paper": 0.2, "sdca, paper": 0.2, "smo, one row": 0.3, "sbp": 0.12}
    rows = [
        {"data": "a9a", "trainer": trainer, "seed": "0", "multiple": str(multiple), "test_error": str(error), "value": ""}
        for trainer, error in errors.items()
        for multiple in MULTIPLES
    ]
    first, second, third, ours, *_ = experiment.claims(rows)
    assert [first.verdict, second.verdict, third.verdict] == [REPRODUCED, REPRODUCED, NOT_RUN]
    assert ours.ours
    assert ours.verdict == NOT_REPRODUCED
    assert second.figures.endswith("seeds so far: sbp, paper 1")  # the other one has no chance in it


@pytest.mark.parametrize(
    ("one", "other", "rows", "higher"), [(0.11, 0.1, 100, False), (0.11, 0.1, 100_000, True), (0.1, 0.1, 9, False)]
)
def test_an_error_is_higher_only_by_more_than_chance(one, other, rows, higher):
    assert is_higher(one, other, rows) is higher


def test_a_missing_folder_of_data_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit) as stop:
        problem("a8a")
    for words in ("a8a.npz", str(tmp_path / "nowhere"), "SLIMSVM_DATA", "LIBSVM's data page", "X_train"):
        assert words in str(stop.value)


def test_a_claim_that_was_not_run_says_what_is_missing():
    reasons = {claim.words.partition(":")[0]: claim.figures for claim in EXPERIMENTS["batch_perceptron"].claims([])}
    assert reasons["MNIST"].startswith("no rows yet of")
    claim, *_ = EXPERIMENTS["optimally_sparse"].claims([])
    assert claim.figures.startswith("0 of 35 settings have rows")


def test_claims_on_some_of_the_data_say_which():
    experiment = EXPERIMENTS["compressed_vectors"]
    scores = {"full": [("1000", "0.9")], "CVM": "0.9", "LARS-SVM": "0.5", RIVAL: "0.6"}
    rows = [
        {"data": "magic", "method": method, "size": size, "accuracy": accuracy, "budget": TENTH, "steps": "9"}
        for method, score in scores.items()
        for size, accuracy in (score if method == "full" else [(str(size), score) for size in SIZES])
    ]
    first, second = experiment.claims(rows)
    assert first.verdict == second.verdict == f"{NOT_RUN} on pageblocks, letter, newsgroups200, mnist"
    assert first.figures.startswith(f"{REPRODUCED} so far: ahead by more than chance in 4 of 4 cases")


@pytest.mark.parametrize(
    ("plain", "few", "dark", "verdicts"),
    [
        (0.07, 0.07, 0.30, [REPRODUCED, REPRODUCED, REPRODUCED]),
        (0.07, 0.20, 0.30, [REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED]),
        (0.50, 0.07, 0.30, [REPRODUCED, "differs, because the plain SVMs", REPRODUCED]),
        (0.50, 0.07, 0.50, ["differs, because 2 budgets are dark", "differs, because the plain SVMs", REPRODUCED]),
    ],
)
def test_claims_on_budgets_differ_where_the_plain_svm_or_a_budget_is_no_yardstick(plain, few, dark, verdicts):
    """Errors of B = 500 and 1,000 by s = 100, 500 and 1,000: `dark` is the error of B = 1,000 with few weights."""
    maps = {"500": (0.5, few, few), "1000": (0.5, dark, plain)}
    rows = [
        {"ending": "optimum", "first_problem": "0", "norm": norm, "B": B, "s": s, "error": str(error)}
        for norm in ("l1", "l2")
        for B, errors in maps.items()
        for s, error in zip(("100", "500", "1000"), errors, strict=True)
    ]
    _, falls, fewer, _, _, equal = EXPERIMENTS["dekel_singer"].claims(rows)
    for claim, verdict in zip((falls, fewer, equal), verdicts, strict=True):
        assert claim.verdict.startswith(verdict)


def test_the_two_methods_of_a_run_end_with_its_time():
    X, y = circle(0)
    full = SlimSVC(C=1.0, gamma=0.5).fit(X, y)
    found = [(method, model.size) for method, model, _ in lars_and_moved(full, X, y, (4, 8), Deadline())]
    assert found == [("LARS-SVM", 4), ("CVM", 4), ("LARS-SVM", 8), ("CVM", 8)]
    assert list(lars_and_moved(full, X, y, (4, 8), Deadline(0.0))) == []


@pytest.mark.parametrize("C", [0.1, 5.0])
def test_the_optimum_without_a_bias_is_that_of_all_rows(C):
    """Trained on the rows that matter: the outputs and nu are those of a training on all rows."""
    X, labels = circle(1)
    y = np.where(labels[::-1] == 0, 1.0, -1.0)
    few = optimum_without_bias(X, y, 0.5, C, tol=1e-6)
    all_rows = SlimSVC(C=C, gamma=0.5, trainer="sdca", tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_allclose(few.decision_function(X), all_rows.decision_function(X), atol=5e-3)
    hinge, w = np.maximum(0, 1 - y * all_rows.decision_function(X)).mean(), all_rows.model_
    length = np.sqrt(w.coef[:, 0] @ w.kernel(w.points, w.points) @ w.coef[:, 0])
    assert optimal_slack(X, y, 0.5, C) == pytest.approx(hinge / length, rel=0.02)


def test_rows_can_go_to_another_folder_without_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["reproduce", TOY.name, "--cells", "1", "--folder", str(tmp_path), "--rows-only"])
    main()
    assert [file.name for file in tmp_path.iterdir()] == [f"{TOY.name}.csv"]
    assert {row["seed"] for row in TOY.rows(tmp_path)} == {"0"}
    assert "compressed_vectors_toy 0" in capsys.readouterr().out
