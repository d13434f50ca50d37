"""Ctrl-C at any moment: the call ends, files and estimators are whole, and nothing stays behind."""

import json
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

#: Ctrl-C at the k-th call of a function of Python, wherever that is, for `count` values of k spread over a whole run
AT_CALL = '''
import os, signal, sys
import numpy, scipy.linalg
from threadpoolctl import threadpool_info

class AtCall:
    """Count calls, and interrupt at one of them."""

    def __init__(self, moment):
        self.moment, self.calls = moment, 0

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_name != "weakref_cb":  # Python ignores what is raised in such a one
            self.calls += 1
            if self.calls == self.moment:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

def calls_of(work, moment=-1):
    """Return how many calls the work makes, up to the interrupt, and what ended it: its result or KeyboardInterrupt."""
    counter = AtCall(moment)
    sys.setprofile(counter)
    try:
        end = work()
    except KeyboardInterrupt as stop:
        end = stop.with_traceback(None)  # whose frames would keep unfinished `with` blocks
    finally:
        sys.setprofile(None)
    return counter.calls, end

def moments(work, count, reset=lambda: None):
    """Yield the end of the work for Ctrl-C at moments spread over it; the first run only warms up."""
    work()
    reset()
    total, _ = calls_of(work)
    for part in range(count):
        reset()
        calls, end = calls_of(work, 1 + part * total // count)
        yield end

def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
'''

COMMAND_LINE = (
    AT_CALL
    + """
import collections, io, json, pathlib
from contextlib import redirect_stderr, redirect_stdout
import slimsvm
from slimsvm.studio.cli.commands import run

output, kept = pathlib.Path("out.slim"), set(os.listdir())

def reset():
    for name in set(os.listdir()) - kept:
        os.remove(name)

def work(command):
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = run([*command, "-o", "out.c" if command[0] == "export" else "out.slim"])
    return code, said.getvalue()

def ends_of(command):
    codes, words, before = collections.Counter(), collections.Counter(), blas_threads()
    for end in moments(lambda: work(command), 8, reset):
        code, said = end if isinstance(end, tuple) else (130, "interrupted; nothing was written")
        written = set(os.listdir()) - kept
        assert code in (0, 130), (code, said)
        assert "Traceback" not in said, said
        assert written <= {"out.slim", "out.c", "out.h"}, written
        assert ("nothing was written" in said) == (not written), (code, said, written)
        if written and command[0] != "export":
            slimsvm.load(output)
        elif written:
            assert written == {"out.c", "out.h"} and pathlib.Path("out.c").read_text().endswith("}\\n")
        assert blas_threads() == before
        codes[code] += 1
        words[said.strip()] += 1
    reset()
    return codes, words

print(json.dumps([ends_of(command) for command in json.loads(sys.argv[1])]))
"""
)
COMMANDS = [
    ["train", "d.npz", "-b", "6", "--reducer", "spsvm"],
    ["train", "d.npz", "-b", "6", "--reducer", "spsvm", "--keep"],
    ["compress", "full.slim", "d.npz", "-b", "6", "--reducer", "slant-aggressive", "--keep"],
    ["export", "full.slim", "-f", "c"],
]


def test_the_command_line_writes_whole_files_or_none_and_says_which(python, rows, tmp_path):
    from slimsvm import SlimSVC, save

    save(SlimSVC().fit(*rows), tmp_path / "full.slim")
    code, out, err = python.run("-c", COMMAND_LINE, json.dumps(COMMANDS), OMP_NUM_THREADS="2")
    assert (code, err) == (0, "")
    for command, (codes, words) in zip(COMMANDS, json.loads(out), strict=True):
        assert codes["130"] >= 6, command  # the others came after all was done
        kept = "slimsvm: error: interrupted; the best model found so far is in out.slim" in words
        assert kept == ("--keep" in command), command


IN_PYTHON = (
    AT_CALL
    + """
import numpy as np
from slimsvm import Interrupted, SlimSVC, compress
from slimsvm.model import Status

rows = np.load("d.npz")
X, y = rows["X_train"], rows["y_train"]

def found_by(reducer):
    first, found, before = SlimSVC(gamma=1.0).fit(X, y), 0, blas_threads()
    svc = SlimSVC(8, reducer=reducer, random_state=0)
    svc.__dict__ |= {name: value for name, value in vars(first).items() if name.endswith("_")}
    fitted = dict(vars(svc))

    def reset():
        svc.__dict__ = dict(fitted)

    for end in moments(lambda: svc.fit(X, y), 12, reset):
        if isinstance(end, Interrupted):
            found += 1
            assert end.best is svc and svc.status_ is Status.INTERRUPTED and svc.model_.size <= 8
        elif isinstance(end, KeyboardInterrupt):
            assert svc.model_ is first.model_ and svc.status_ is first.status_
        assert svc.predict(X).shape == y.shape
        assert blas_threads() == before

    for end in moments(lambda: compress(first, X, y, budget=8, reducer=reducer, random_state=0), 6):
        if isinstance(end, Interrupted):
            found += 1
            assert end.best.status_ is Status.INTERRUPTED
            assert end.best.predict(X).shape == y.shape
        assert isinstance(end, KeyboardInterrupt | SlimSVC)
    return found

print(*map(found_by, sys.argv[1:]))
"""
)


def test_python_leaves_the_estimator_as_it_was_or_with_the_best_so_far(python, rows):  # noqa: ARG001
    code, out, err = python.run("-c", IN_PYTHON, "spsvm", "slant-aggressive", OMP_NUM_THREADS="2")
    assert (code, err) == (0, "")
    assert all(int(found) > 1 for found in out.split())


#: loses a KeyboardInterrupt in a callback, as the import system's own callbacks do, and goes on working
LOST = """
import signal, sys, time, weakref
from slimsvm.studio.cli.interrupts import end_at_once_on_interrupt, raise_on_interrupt
end_at_once_on_interrupt()
raise_on_interrupt()

class Thing:
    pass

thing = Thing()
reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del thing
    for _ in range(3000):
        time.sleep(0.01)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_that_a_callback_loses_is_sent_again(python):
    assert python.run("-c", LOST) == (130, "", "")


def test_other_errors_of_callbacks_are_still_reported(python):
    code, _, err = python.run("-c", LOST.replace("signal.raise_signal(signal.SIGINT)", "1 / 0").replace("3000", "1"))
    assert code == 0
    assert "ZeroDivisionError" in err
