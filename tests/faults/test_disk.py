"""A disk that is full, a folder that may no longer be written to, a process that is killed: old files stay whole."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import slimsvm
from slimsvm import SlimSVC, load, save

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX")

#: runs commands under a limit on the size of files, and prints their exit codes
TOO_LARGE = """
import json, resource, signal, sys
from slimsvm.studio.cli.commands import run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk is an error of write, not a signal
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
print(*[run(command) for command in json.loads(sys.argv[1])])
"""
COMMANDS = [
    ["train", "d.npz", "--force", "-o", "old.slim", "-C", "100"],
    ["compress", "full.slim", "d.npz", "-b", "140", "--reducer", "prune", "--force", "-o", "old.slim"],
    ["predict", "full.slim", "d.npz", "--split", "train", "--scores", "--force", "-o", "old.txt"],
    ["export", "full.slim", "-f", "c", "--force", "-o", "old.slim"],
]


@pytest.fixture
def fitted(tmp_path, rows):
    """A model in full.slim, and files old.slim and old.h to be replaced."""
    model = SlimSVC(gamma=20.0).fit(*rows)
    save(model, tmp_path / "full.slim")
    (tmp_path / "old.slim").write_bytes(b"old")
    (tmp_path / "old.txt").write_bytes(b"old")
    (tmp_path / "old.h").write_bytes(b"old")
    return model


def files(folder):
    """The names and bytes of all files in a folder, but the data."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "d.npz"}


def test_a_full_disk_leaves_the_old_file_and_nothing_else(python, fitted, tmp_path):  # noqa: ARG001
    before = files(tmp_path)
    code, out, err = python.run("-c", TOO_LARGE, json.dumps(COMMANDS))
    assert (code, out) == (0, "1 1 1 1\n")
    assert len(err.splitlines()) == len(COMMANDS)
    assert all(re.fullmatch(r"slimsvm: error: (/.*/)?old\.(slim|txt): File too large", line) for line in err.splitlines())
    assert files(tmp_path) == before


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_one_line(unbuffered, python, fitted):  # noqa: ARG001
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    code = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); from slimsvm.studio.cli import main; main()"
    status, _, err = python.run(
        "-c", code, "predict", "full.slim", "d.npz", "--split", "train", PYTHONUNBUFFERED=unbuffered
    )
    assert status == 1
    assert [line for line in err.splitlines() if "accuracy" not in line] == [
        "slimsvm: error: [Errno 28] No space left on device"
    ]


#: loses the right to write to its folder between fit and save; root is allowed anything, and becomes somebody else
NO_PERMISSION = """
import os, sys
import slimsvm
model = slimsvm.load("full.slim")
slimsvm.export(model, "warm.c")  # imports what is imported late, while it can still be read
slimsvm.save(model, "warm.slim")
os.chmod(".", 0o555)
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    for write in (slimsvm.save, lambda m, path: slimsvm.export(m, path, "c", force=True)):
        try:
            write(model, "old.slim")
        except PermissionError as error:
            assert error.filename == os.path.realpath("old.slim"), error.filename
        else:
            sys.exit("written without permission")
finally:
    if os.getuid() == 0:
        os.seteuid(0)
    os.chmod(".", 0o755)
"""


def test_a_lost_permission_is_an_error_that_names_the_file(python, fitted, tmp_path):  # noqa: ARG001
    folders = Path(slimsvm.__file__).resolve().parents
    if os.geteuid() == 0 and not all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders):
        pytest.skip("root becomes somebody else, who may not read the package here")
    os.chmod(tmp_path.parent, 0o755)  # for somebody else than root to look into
    os.chmod(tmp_path, 0o755)
    before = files(tmp_path)
    assert python.run("-c", NO_PERMISSION) == (0, "", "")
    assert {name: data for name, data in files(tmp_path).items() if "warm" not in name} == before


#: replaces two files again and again by others of their own size, and says when it begins
OVERWRITING = """
import itertools, pathlib
from slimsvm.files.container import write_together
print("begun", flush=True)
for letter in itertools.cycle([b"a", b"b", b"c"]):
    write_together({pathlib.Path("m.c"): [letter * 1000] * 300, pathlib.Path("m.h"): [letter * 1000] * 300})
"""


@pytest.mark.parametrize("moment", range(3))
def test_a_killed_process_leaves_whole_files(moment, python, tmp_path):
    process = python.begin("-c", OVERWRITING)
    assert process.stdout.readline() == "begun\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.02 + 0.026 * moment)
    process.kill()
    assert python.end(process)[0] == -signal.SIGKILL
    for name in ("m.c", "m.h"):
        data = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else b""
        assert len(data) in (0, 300_000)
        assert len(set(data)) <= 1


def test_what_a_killed_process_leaves_does_not_disturb_the_next(python, fitted, tmp_path):
    process = python.begin("-c", OVERWRITING)
    assert process.stdout.readline() == "begun\n"
    process.kill()
    python.end(process)
    save(fitted, tmp_path / "old.slim")
    assert load(tmp_path / "old.slim").model_.size == fitted.model_.size
