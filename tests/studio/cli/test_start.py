"""How the command line starts: quickly, by three names, and so that Ctrl-C ends it at any moment."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SlimSVC

#: modules of Python and our own that help and version import; NumPy alone would bring 140 more
MOST_MODULES = 200
RUN = "import sys; from slimsvm.studio.cli import main; main()"

#: sends SIGINT to the process itself when a module is first imported
INTERRUPTING = """
import os, signal, sys
from slimsvm.studio.cli import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
main()
"""


def python(*arguments, **options):
    """Run Python from any folder; a relative PYTHONPATH is made absolute."""
    path = os.pathsep.join(map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))))
    command, env = [sys.executable, *arguments], os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, **options)


@pytest.mark.parametrize("command", [["-c", RUN], ["-m", "slimsvm"]], ids=["script", "module"])
def test_a_pipe_sees_only_results(command):
    done = python(*command, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"slimsvm {slimsvm.__version__}\n", "")


def close_streams():
    for number in (0, 1, 2):
        os.close(number)


def test_closed_streams_do_no_harm(tmp_path):
    """Without standard streams the first file that is opened would get their numbers, and what is printed."""
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    words = [sys.executable, "-c", RUN, "train", "iris.npz", "-o", "m.slim"]
    done = subprocess.run(words, cwd=tmp_path, timeout=120, preexec_fn=close_streams)
    assert done.returncode == 0
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(X), SlimSVC().fit(X, y).predict(X))
    words[3:] = ["predict", "m.slim", "-"]
    assert subprocess.run(words, cwd=tmp_path, timeout=120, preexec_fn=close_streams).returncode == 1


@pytest.mark.parametrize(
    "words",
    [["--help"], ["-h"], [], ["--version"], ["info", "-h"], ["train", "-h"], ["export", "-h"], ["nonsense"]],
    ids=" ".join,
)
def test_help_and_version_need_no_numpy(words):
    code = f"""
import sys, atexit
atexit.register(lambda: print(*sorted({{"numpy", "scipy", "sklearn"}} & set(sys.modules)), file=sys.stderr, end="|"))
{RUN}
"""
    done = python("-c", code, *words)
    assert done.returncode == (2 if words == ["nonsense"] else 0)
    assert done.stderr.endswith("|" if words != ["nonsense"] else "\n|")
    modules = python("-X", "importtime", "-c", RUN, *words).stderr.count("import time:")
    assert modules < MOST_MODULES


def test_a_small_prediction_needs_numpy_only(tmp_path):
    """scikit-learn and scipy take a second to import; `slimsvm.runtime` reads a .slim file without them, too."""
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), SlimSVC(6, reducer="spsvm", random_state=0)).fit(X, y)
    slimsvm.save(model, tmp_path / "m.slim")
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",")
    code = f"""
import sys
sys.modules.update(dict.fromkeys(["scipy", "sklearn", "joblib", "rich", "pandas"]))
{RUN}
"""
    done = python("-c", code, "predict", "m.slim", "rows.csv", cwd=tmp_path)
    right = int((model.predict(X) == y).sum())
    assert (done.returncode, done.stderr) == (0, f"accuracy {right / 1.5:.2f} % ({right} of 150)\n")
    assert [int(line) for line in done.stdout.split()] == model.predict(X).tolist()


def interrupted_at(module, folder, handler):
    """Run a command that is interrupted when it imports a module, with Ctrl-C handled by its parent's rule."""

    def inherit():
        signal.signal(signal.SIGINT, handler)

    words = "-c", INTERRUPTING.format(module=module), "train", "missing.csv"
    return python(*words, cwd=folder, preexec_fn=inherit)


@pytest.mark.parametrize("module", ["slimsvm.studio.cli.commands", "argparse", "numpy", "scipy.sparse", "sklearn.base"])
def test_ctrl_c_while_modules_are_imported_is_one_line_and_130(module, tmp_path):
    done = interrupted_at(module, tmp_path, signal.SIG_DFL)
    assert done.returncode == 130
    assert done.stderr == "slimsvm: error: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stays_ignored_where_the_parent_has_it_ignored(tmp_path):
    """A shell starts jobs in the background so."""
    done = interrupted_at("numpy", tmp_path, signal.SIG_IGN)
    assert done.returncode == 1
    assert "missing.csv" in done.stderr


def test_help_lists_the_names_in_the_tables():
    for command, words in (
        ("train", ["slant-aggressive", "budget-l1", "laplacian"]),
        ("export", ["Oneofc,onnx,libsvm,js,json,image,arduino,cmake."]),
    ):
        out = "".join(python("-m", "slimsvm", command, "-h").stdout.split())  # names may be broken at a hyphen
        assert [word for word in words if word not in out] == []
        assert "{" not in out.partition("Options:")[2]
