"""What the tests of faults share: other processes with a time limit, and a model that takes a moment to write."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_moons

#: seconds after which a process of a test is killed and the test fails
LIMIT = 180
#: seconds of the processor that only a fit without an end takes
HANG = 600


def default_interrupt():
    """Give a new process Python's own Ctrl-C, whatever the one that runs the tests has."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Started:
    """Run Python in a folder as another process."""

    def __init__(self, folder):
        self.folder = folder
        path = os.pathsep.join(map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))))
        self.env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}

    def begin(self, *arguments, **env):
        """Start Python and return the process."""
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.env | env,
            preexec_fn=default_interrupt,
        )

    def end(self, process):
        """Return (exit code, stdout, stderr) of a process that must end by itself."""
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    def run(self, *arguments, **env):
        """Run Python to its end."""
        return self.end(self.begin(*arguments, **env))


@pytest.fixture
def python(tmp_path):
    """Start Python in a folder of the test's own."""
    return Started(tmp_path)


@pytest.fixture
def rows(tmp_path):
    """A file with 300 rows of two classes, d.npz."""
    X, y = make_moons(300, noise=0.25, random_state=0)
    np.savez(tmp_path / "d.npz", X_train=X, y_train=y)
    return X, y


@pytest.fixture
def ends():
    """Fail a test that would never end: it has minutes of the processor for what takes seconds."""
    if sys.platform == "win32":
        yield
        return

    def too_long(*_):
        pytest.fail("the fit does not end")

    earlier = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, earlier)
