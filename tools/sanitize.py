"""Run the compiled core and exported C under the address and undefined-behaviour sanitizers: `make sanitize`.

The core is built once more, into build/sanitize, and its tests run with that build. Exported C is compiled with the
sanitizers by its own tests, in every precision. An error of either ends the run with the sanitizer's report.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanitize"
FLAGS = ("-Db_sanitize=address,undefined", "-Db_lundef=false", "--buildtype=debugoptimized")
#: tests that call every function of the compiled core, with wrong arguments too; whole fits add minutes and no other calls
CORE_TESTS = (
    "tests/rows/test_core.py",
    "tests/rows/test_curvatures.py",
    "tests/rows/test_on_demand.py",
    "tests/ship/test_runtime.py",
    "tests/papers/test_merging.py",
    "tests/solvers/test_newton.py",
    "tests/solvers/test_smo.py",
    "tests/test_pairs.py",
)
#: tests that compile exported C with the sanitizers
EXPORT_TESTS = ("tests/ship/test_c.py", "-k", "sanitised or clipped")
#: that the build with the sanitizers is the one that is imported
CHECK = "import sys, tools.without_editable; from slimsvm._core import core; assert core.__file__.startswith(sys.argv[1])"
#: Python itself keeps memory to its end, and NumPy asks for more than there is in some tests
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def build() -> Path:
    """Build the core with the sanitizers and return a copy of the package that has it."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", BUILD, *FLAGS], cwd=ROOT, check=True)
    subprocess.run(["ninja", "-C", BUILD], check=True)
    package = BUILD / "package" / "slimsvm"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "slimsvm", package, ignore=shutil.ignore_patterns("core.*.so", "__pycache__"))
    (library,) = (BUILD / "src" / "slimsvm" / "_core").glob("core.*.so")
    shutil.copy(library, package / "_core")
    return package.parent


def runtime_of(name: str) -> str:
    """Return the sanitizer's library, which has to be loaded before Python."""
    return subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()


def test(package: Path) -> int:
    """Run the tests of the core with the sanitized build, and those of exported C. Return the worse exit code."""
    paths = os.pathsep.join([str(package), str(ROOT)])
    preload = {"LD_PRELOAD": f"{runtime_of('libasan.so')} {runtime_of('libubsan.so')}", "PYTHONMALLOC": "malloc"}
    loaded = os.environ | SETTINGS | preload | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", CHECK, package], cwd=package, env=loaded, check=True)
    folders = f"pythonpath={package} . tests tests/rows tests/ship"
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    core = subprocess.run([*pytest, "-p", "tools.without_editable", "-o", folders, *CORE_TESTS], cwd=ROOT, env=loaded)
    # with the plain core, since the sanitized one ends a Python that has not loaded the sanitizer first
    plain = os.environ | {"OMP_NUM_THREADS": "1"}
    exported = subprocess.run([*pytest, *EXPORT_TESTS], cwd=ROOT, env=plain)
    return max(core.returncode, exported.returncode)


if __name__ == "__main__":
    sys.exit(test(build()))
