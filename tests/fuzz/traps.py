"""Readers that do what none may do: the fuzzer must notice each."""

import os
import pickle
import signal
import time

import numpy as np

from tools.fuzz.reader import Reader


def trap(spring, begin=b"good", change=b"bad"):
    """Return a reader whose first contents are fine and whose mutants all spring the trap."""

    def use(path):
        if path.read_bytes() != begin:
            spring(path)

    return Reader(".bin", lambda: [[begin]], lambda rng, content: content.__setitem__(0, change), lambda c: c[0], use)  # noqa: ARG005


def refuse(path):
    raise ValueError(f"cannot read {str(path)!r}: it is bad")


def misunderstand(path):  # noqa: ARG001
    raise KeyError("data")


def mumble(path):  # noqa: ARG001
    raise ValueError("bad")


def warn(path):  # noqa: ARG001
    np.float64(1e300) * np.float64(1e300)


def escape(path):
    (path.parent.parent / "elsewhere.txt").write_text("here I am")


def swallow(path):
    try:
        os.system("true")
    except BaseException:
        refuse(path)


READERS = {
    "refuses": trap(refuse),
    "crash": trap(lambda path: os.kill(os.getpid(), signal.SIGSEGV)),  # noqa: ARG005
    "hang": trap(lambda path: time.sleep(600)),  # noqa: ARG005
    "memory": trap(lambda path: np.ones(1 << 28)),  # noqa: ARG005
    "another error": trap(misunderstand),
    "an error that names no file": trap(mumble),
    "a warning": trap(warn),
    "a file elsewhere": trap(escape),
    "a pickle": trap(lambda path: pickle.loads(b"cos\ngetpid\n(tR.")),  # noqa: ARG005
    "code in a text": trap(lambda path: eval("1 + 1")),  # noqa: ARG005
    "a process, and the guard's error is caught": trap(swallow),
}
