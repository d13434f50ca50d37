"""Fuzz a reader for some seconds: python -m tools.fuzz READER --seconds N

Mutants of good files are read in a process of their own. A finding is a crash, a hang, more memory than a file of some
kilobytes can need, a file opened elsewhere, code that runs, or an error other than a ValueError that names the file. Each
finding and the file that made it are kept in the folder `fuzz-findings`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

#: seconds without a new mutant that are a hang
PATIENCE = 20.0
#: seconds in which the first mutant must be there
START = 120.0
FOUND = Path("fuzz-findings")


@dataclass(frozen=True)
class Report:
    """What came of a run: how many mutants there were, how many of them were read, and what was found, in words."""

    mutants: int
    read: int
    findings: tuple[str, ...]


def fuzz(
    name: str, seconds: float, seed: int = 0, found: Path = FOUND, most: int = 5, patience: float = PATIENCE
) -> Report:
    """Read mutants for some seconds, with a new process after each finding, until there are `most` findings.

    A mutant that takes more seconds than `patience` is a finding.
    """
    end, mutants, read = time.monotonic() + seconds, 0, 0
    findings: list[str] = []
    while (left := end - time.monotonic()) > 0 and len(findings) < most:
        with TemporaryDirectory() as scratch:
            folder = Path(scratch).resolve()
            problem = _watch(name, folder, seed + len(findings), left, patience)
            mutants, read = mutants + _count(folder), read + _count(folder, "read")
            if problem:
                findings.append(_keep(problem, folder, found, f"{name.rpartition(':')[2]}-{seed}-{len(findings)}"))
    return Report(mutants, read, tuple(findings))


def _watch(name: str, folder: Path, seed: int, seconds: float, patience: float) -> str | None:
    """Run a worker; return what went wrong."""
    command = [sys.executable, "-m", "tools.fuzz.worker", name, str(folder), str(seed), str(seconds)]
    with (
        open(folder / "output.txt", "wb") as sink,
        subprocess.Popen(command, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL) as process,
    ):
        count, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            if _count(folder) != count:
                count, since = _count(folder), time.monotonic()
            if time.monotonic() - since > (patience if count else START):
                process.kill()
                return f"it hangs: mutant {count} takes more than {patience:g} seconds"
    if (folder / "finding.txt").exists():
        return (folder / "finding.txt").read_text()
    if process.returncode:
        output = (folder / "output.txt").read_text(errors="replace")
        return f"it crashes, with status {process.returncode}\n{output[-2000:]}"
    return None


def _count(folder: Path, name: str = "mutants") -> int:
    file = folder / name
    return int(file.read_text() or 0) if file.exists() else 0


def _keep(problem: str, folder: Path, found: Path, stem: str) -> str:
    """Copy the file of a finding; return the finding with the name of the copy."""
    found.mkdir(exist_ok=True)
    for file in folder.glob("mutant.*"):
        copied = found / f"{stem}{file.suffix}"
        shutil.copyfile(file, copied)
        problem = f"{copied}: {problem}"
    (found / f"{stem}.txt").write_text(problem)
    return problem


def main() -> None:
    """Fuzz the readers that are named, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("readers", nargs="+", help="names in tools.fuzz.readers.READERS, or module:name")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--found", type=Path, default=FOUND, help="the folder for findings")
    given = parser.parse_args()
    findings = 0
    for name in given.readers:
        report = fuzz(name if ":" in name else f"tools.fuzz.readers:{name}", given.seconds, given.seed, given.found)
        words = f"{report.mutants} mutants in {given.seconds:g} s, {report.read} of them read without an error"
        print(f"{name}: {words}, {len(report.findings)} findings", flush=True)
        for finding in report.findings:
            print(finding, flush=True)
        findings += len(report.findings)
    raise SystemExit(bool(findings))


if __name__ == "__main__":
    main()
