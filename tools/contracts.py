"""Write docs/contracts.md: which contract each method keeps or is excused from, as the contract tests found it.

python -m tools.contracts

A contract is a test that runs for every name in a table of methods. Its outcome for a method is one cell: kept where the
test passes, excused where it is skipped, is expected to fail, or says so by the fixture `excused`. The reasons are those of
the tests. A run of all tests compares the file with what it saw, and fails where they differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from slimsvm.kernels import KERNELS
from slimsvm.reducers import REDUCERS
from slimsvm.ship.export import EXPORTERS
from slimsvm.trainers import TRAINERS

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "contracts.md"
HEAD = """# What each method supports

Made by `python -m tools.contracts` from the outcomes of the contract tests; not for editing by hand.

- ✓: the test passes for this method.
- ✓ with a number: it passes, except for what the note says.
- A number alone: the method is excused, for the reason in the note.
- An empty cell: the contract is not about this method.
"""
#: a skip for one of these reasons is about the machine, not about the method
OF_THE_MACHINE = ("not installed", "could not import", "no CUDA GPU")


@dataclass(frozen=True)
class Section:
    """A table of methods, the files with their contract tests, and the test argument that names the method."""

    title: str
    methods: Mapping[str, Any]
    files: tuple[str, ...]
    argument: str


HOMES = "tests/rows/test_homes.py"
SECTIONS = (
    Section("Trainers", TRAINERS, ("tests/trainers/test_trainers.py", "tests/trainers/test_threads.py", HOMES), "name"),
    Section("Reducers", REDUCERS, ("tests/reducers/test_reducers.py", "tests/reducers/test_threads.py", HOMES), "name"),
    Section("Exporters", EXPORTERS, ("tests/ship/test_export.py",), "target"),
    Section("Kernels", KERNELS, ("tests/kernels/test_kernels.py",), "kernel_name"),
)


@dataclass(frozen=True, order=True)
class Contract:
    """A contract test: its file by position, its line, its name in words, and the methods it is about if not all."""

    file: int
    line: int
    words: str
    only_for: str = ""


@dataclass
class Outcomes:
    """For each contract and method, the reason of each run: empty where the contract was kept."""

    cells: dict[tuple[Contract, str], list[str]] = field(default_factory=dict)

    def add(self, contract: Contract, method: str, reason: str) -> None:
        """Add one run of a test."""
        self.cells.setdefault((contract, method), []).append(reason)

    def table(self, section: Section) -> str:
        """Return the section in Markdown."""
        notes: dict[str, int] = {}
        lines = [_row(["", *section.methods]), _row(["---", *[":-:"] * len(section.methods)])]
        for contract in sorted({contract for contract, _ in self.cells}):
            words = f"{contract.words} ({contract.only_for})" if contract.only_for else contract.words
            found = [_cell(self.cells.get((contract, method), []), notes) for method in section.methods]
            lines.append(_row([words, *found]))
        reasons = [f"{number}. {reason}" for reason, number in notes.items()]
        return "\n".join([f"## {section.title}", "", *lines, *(["", *reasons] if reasons else []), ""])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(reasons: list[str], notes: dict[str, int]) -> str:
    """Return ✓ where any run kept the contract, and the numbers of the notes of the other runs."""
    excused = [str(notes.setdefault(reason, len(notes) + 1)) for reason in sorted(set(reasons) - {""})]
    return " ".join([*(["✓"] if "" in reasons else []), *excused])


def render(outcomes: Mapping[str, Outcomes]) -> str:
    """Return the whole file."""
    return "\n".join([HEAD, *(outcomes[section.title].table(section) for section in SECTIONS)])


class Recorder:
    """A pytest plugin that collects the outcomes of the contract tests, from all processes of a run."""

    def __init__(self, config: pytest.Config, file: Path = FILE) -> None:
        self.config, self.file = config, file
        self.outcomes = {section.title: Outcomes() for section in SECTIONS}
        self.complaint = ""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Attach to a contract test what it is about; properties of a test travel between processes."""
        path = item.path.relative_to(self.config.rootpath).as_posix()
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        section = next((s for s in SECTIONS if path in s.files and parameters.get(s.argument) in s.methods), None)
        if section is None:
            return
        words = item.originalname.removeprefix("test_").replace("_", " ")  # type: ignore[attr-defined]
        mark = item.get_closest_marker("only_for")
        contract = [section.files.index(path), item.location[1] or 0, words, mark.args[0] if mark else ""]
        item.user_properties.append(("contract", [section.title, contract, parameters[section.argument]]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the outcome of a contract test."""
        properties: dict[str, Any] = dict(report.user_properties)
        if "contract" not in properties or not (report.when == "call" or report.skipped):
            return
        title, contract, method = properties["contract"]
        reason = str(properties.get("excused", "")) or _reason(report)
        if any(words in reason for words in OF_THE_MACHINE):
            reason = ""
        self.outcomes[title].add(Contract(*contract), method, reason)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file where that was asked for; after a run of all tests, compare it."""
        if hasattr(self.config, "workerinput") or exitstatus:
            return
        if self.config.getoption("write_contracts"):
            self.file.write_text(render(self.outcomes))
        elif _all_tests(self.config) and (not self.file.exists() or self.file.read_text() != render(self.outcomes)):
            self.complaint = f"docs/{self.file.name} is not what the tests found; write it by python -m tools.contracts"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say why a run failed whose tests all passed."""
        if self.complaint:
            terminalreporter.write_line(f"FAILED {self.complaint}", red=True)


def _reason(report: pytest.TestReport) -> str:
    """Return why a test was skipped or expected to fail; empty for a test that passed."""
    if hasattr(report, "wasxfail"):
        return report.wasxfail.removeprefix("reason: ")
    return report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""


def _all_tests(config: pytest.Config) -> bool:
    chosen = any(config.getoption(name, None) for name in ("keyword", "markexpr", "lf", "collectonly", "deselect"))
    return config.args_source is config.ArgsSource.TESTPATHS and not chosen


if __name__ == "__main__":
    files = list(dict.fromkeys(str(ROOT / file) for section in SECTIONS for file in section.files))
    sys.exit(pytest.main(["--write-contracts", "--numprocesses", "auto", *files]))
