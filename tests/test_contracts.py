"""docs/contracts.md: how outcomes become cells, and that the committed file knows every method and every contract test."""

import ast
import re
from types import SimpleNamespace

import pytest

from tools.contracts import FILE, ROOT, SECTIONS, Contract, Outcomes, Recorder, Section

SECTION = Section("Pets", {"cat": None, "dog": None}, ("tests/test_pets.py",), "name")


def outcomes_of(*runs):
    outcomes = Outcomes()
    for line, words, method, reason in runs:
        outcomes.add(Contract(0, line, words), method, reason)
    return outcomes


def test_a_cell_is_kept_excused_or_both_and_reasons_are_notes():
    table = outcomes_of(
        (9, "it comes when called", "dog", ""),
        (9, "it comes when called", "cat", "it has better things to do"),
        (3, "it sleeps", "cat", ""),
        (3, "it sleeps", "dog", ""),
        (3, "it sleeps", "dog", "not beside the cat"),
    ).table(SECTION)
    assert table.splitlines() == [
        "## Pets",
        "",
        "|  | cat | dog |",
        "| --- | :-: | :-: |",
        "| it sleeps | ✓ | ✓ 1 |",
        "| it comes when called | 2 | ✓ |",
        "",
        "1. not beside the cat",
        "2. it has better things to do",
    ]


def test_a_contract_that_is_not_about_a_method_leaves_its_cell_empty():
    outcomes = Outcomes()
    outcomes.add(Contract(0, 1, "it barks", "dogs"), "dog", "")
    assert "| it barks (dogs) |  | ✓ |" in outcomes.table(SECTION)


def report(title, method, when="call", skipped=False, longrepr=None, excused=None, **more):
    properties = [("contract", [title, [0, 1, "works", ""], method]), *([("excused", excused)] if excused else [])]
    return SimpleNamespace(when=when, skipped=skipped, longrepr=longrepr, user_properties=properties, **more)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ({}, ""),
        ({"skipped": True, "longrepr": ("file", 3, "Skipped: it is a yardstick")}, "it is a yardstick"),
        ({"skipped": True, "longrepr": ("file", 3, "Skipped: gcc not installed")}, ""),
        ({"skipped": True, "when": "setup", "longrepr": ("file", 3, "Skipped: never")}, "never"),
        ({"skipped": True, "wasxfail": "reason: rows are drawn by chance"}, "rows are drawn by chance"),
        ({"excused": "it refuses weights"}, "it refuses weights"),
    ],
    ids=["passed", "skipped", "a tool is missing", "skipped by a marker", "expected to fail", "excused"],
)
def test_the_reason_of_an_outcome(outcome, reason):
    recorder = Recorder(None)
    recorder.pytest_runtest_logreport(report("Trainers", "smo", **outcome))
    assert recorder.outcomes["Trainers"].cells == {(Contract(0, 1, "works"), "smo"): [reason]}


def test_other_tests_and_other_phases_are_not_recorded():
    recorder = Recorder(None)
    recorder.pytest_runtest_logreport(report("Trainers", "smo", when="setup"))
    recorder.pytest_runtest_logreport(SimpleNamespace(user_properties=[], when="call", skipped=False))
    assert not recorder.outcomes["Trainers"].cells


def finished(recorder, exitstatus=0):
    session = SimpleNamespace(exitstatus=exitstatus)
    recorder.pytest_sessionfinish(session, exitstatus)
    return session.exitstatus


def config(*, everything=True, write=False, **more):
    def getoption(name, *_):
        return write and name == "write_contracts"

    sources = SimpleNamespace(TESTPATHS="all", ARGS="some")
    return SimpleNamespace(ArgsSource=sources, args_source="all" if everything else "some", getoption=getoption, **more)


def test_a_run_of_all_tests_fails_where_the_file_is_out_of_date(tmp_path):
    file = tmp_path / "contracts.md"
    for change in (lambda: None, lambda: file.write_text("old")):
        change()
        assert finished(Recorder(config(), file)) == pytest.ExitCode.TESTS_FAILED
        assert finished(Recorder(config(everything=False), file)) == 0
        assert finished(Recorder(config(workerinput={}), file)) == 0
    assert finished(Recorder(config(write=True), file)) == 0
    recorder = Recorder(config(), file)
    assert finished(recorder) == 0
    recorder.pytest_runtest_logreport(report("Trainers", "smo"))
    assert finished(recorder) == pytest.ExitCode.TESTS_FAILED
    assert "python -m tools.contracts" in recorder.complaint
    assert finished(Recorder(config(write=True), file), exitstatus=1) == 1


def contract_tests():
    """The contract tests in the sources, as the table words them."""
    for section in SECTIONS:
        for file in section.files:
            functions = [node for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)]
            for node in functions:
                named = section.argument in {argument.arg for argument in node.args.args}
                if named and node.name.startswith("test_"):
                    yield node.name.removeprefix("test_").replace("_", " ")


def test_the_committed_file_has_every_method_and_every_contract_test():
    """A quick look that any run takes; a run of all tests compares every cell."""
    text = FILE.read_text()
    for section in SECTIONS:
        assert f"## {section.title}\n\n|  | {' | '.join(section.methods)} |" in text
    rows = re.findall(r"^\| ([^|(]*[^|( -])", text, re.MULTILINE)
    assert sorted(set(rows)) == sorted(set(contract_tests()))
