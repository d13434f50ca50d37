"""Build the wheel of this machine and try it as a user meets it: `python -m tools.wheels [PYTHON ...]` (`make wheels`).

The folder dist/ gets the source archive, the repaired wheel and its bill of materials. Both are built twice and must have
the same bytes, and they must hold what git tracks and nothing else. Each Python named then gets an empty environment with
the wheel, where the tests that cibuildwheel runs (pyproject.toml) run without a compiler.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def run(*command: str | os.PathLike[str], **environment: str) -> None:
    """Run a command in the repository; its failure is ours."""
    print("$", *command, flush=True)
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | environment)


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Return the source archive of the last commit, and the wheel built from it, dated as that commit."""
    epoch = git("log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ".", SOURCE_DATE_EPOCH=epoch)
    (archive,) = folder.glob("*.tar.gz")
    raw = folder / "raw"
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", raw, archive, SOURCE_DATE_EPOCH=epoch)
    (wheel,) = raw.glob("*.whl")
    run("auditwheel", "repair", "--strip", "--wheel-dir", folder, wheel, SOURCE_DATE_EPOCH=epoch)
    (repaired,) = folder.glob("*.whl")
    return archive, repaired


def archive_files(archive: Path) -> set[str]:
    """Return the paths of the files in a source archive, from its root."""
    with tarfile.open(archive) as file:
        return {name.partition("/")[2] for name in file.getnames() if not file.getmember(name).isdir()} - {"PKG-INFO"}


def package_files(wheel: Path) -> set[str]:
    """Return the paths of the files in a wheel, its metadata and its compiled core left out."""
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    return {name for name in names if not name.startswith("slimsvm/_core/core.") or name.endswith(".pyi")}


def expected_package_files() -> set[str]:
    """Return the tracked files that belong in a wheel: all of src/slimsvm but what the core is compiled from."""
    tracked = {path.removeprefix("src/") for path in git("ls-files", "src/slimsvm").split()}
    return {path for path in tracked if not path.endswith((".c", ".h", ".pxi", ".pyx", "meson.build"))}


def check_contents(archive: Path, wheel: Path) -> None:
    """Stop if the archive or the wheel differs from what git tracks."""
    for file, found, wanted in (
        (archive, archive_files(archive), set(git("ls-files").splitlines())),
        (wheel, package_files(wheel), expected_package_files()),
    ):
        if found != wanted:
            sys.exit(f"{file.name} lacks {sorted(wanted - found)} and has, untracked, {sorted(found - wanted)}")


def check_same(first: tuple[Path, Path], second: tuple[Path, Path]) -> None:
    """Stop if two builds differ in a byte."""
    for one, other in zip(first, second, strict=True):
        sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
        if sums[0] != sums[1]:
            sys.exit(f"two builds of {one.name} differ: {sums}; diffoscope tells where")
        print(sums[0], one.name, flush=True)


def environment(python: str, folder: Path, wheel: Path) -> Path:
    """Return the Python of an empty environment with the wheel and its dependencies, binaries only."""
    if python == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        run(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel)
    return inside


def write_bill(inside: Path, wheel: Path) -> None:
    """Write the CycloneDX bill of materials beside the wheel: what it brings into an empty environment, itself included."""
    run(inside, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools", "pip")  # which venv brings
    bill = wheel.with_suffix(".cdx.json")
    tool = ("cyclonedx-py", "environment", "--output-reproducible", "--pyproject", ROOT / "pyproject.toml")
    run(*tool, "--output-file", bill, inside)


def test_command() -> list[str]:
    """Return the tests that cibuildwheel runs with each wheel."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    return shlex.split(settings["test-command"])


def run_tests(python: str, wheel: Path) -> None:
    """Run the tests with the wheel and without a compiler: PATH has the environment's own commands only."""
    with tempfile.TemporaryDirectory() as folder:
        inside = environment(python, Path(folder), wheel)
        run(inside, "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
        run(inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--group", "test")
        run(inside, "-m", *test_command(), PATH=str(inside.parent), OMP_NUM_THREADS="1", PYTHONPATH="")


def main(pythons: list[str]) -> None:
    """Build, check, describe and try."""
    shutil.rmtree(DIST, ignore_errors=True)
    built = build(DIST)
    with tempfile.TemporaryDirectory() as folder:
        check_same(built, build(Path(folder)))
    shutil.rmtree(DIST / "raw")
    check_contents(*built)
    run("auditwheel", "show", built[1])
    run("abi3audit", "--strict", "--report", built[1])
    with tempfile.TemporaryDirectory() as folder:
        write_bill(environment(sys.executable, Path(folder), built[1]), built[1])
    for python in pythons:
        run_tests(python, built[1])


if __name__ == "__main__":
    main(sys.argv[1:])
