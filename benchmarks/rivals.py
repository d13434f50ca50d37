"""The same small model in other libraries: scikit-learn's SVC, m2cgen, micromlgen and skl2onnx."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC

from slimsvm.ship.artefact import Artefact
from slimsvm.ship.libsvm_layout import layout_of

#: seconds that a generator and its compiler get each
PATIENCE = 60


def svc_like(artefact: Artefact) -> SVC:
    """Return a fitted SVC that computes an artefact of the rbf kernel: its points, in LIBSVM's layout."""
    layout, k = layout_of(artefact), artefact.classes.size
    points = np.ascontiguousarray(artefact.table[layout.index])
    rng = np.random.default_rng(0)
    svc = SVC(gamma=artefact.parameters["gamma"], C=1.0)
    svc.fit(rng.normal(size=(2 * k, artefact.features)), np.repeat(artefact.classes, 2))
    # for two classes SVC's first class is our class 0, and its outputs have the other sign inside
    sign = -1.0 if k == 2 else 1.0
    groups = np.split(np.arange(points.shape[0]), np.cumsum(layout.counts)[:-1])
    order = np.concatenate(groups[::-1] if k == 2 else groups)
    svc.support_vectors_, svc.support_ = points[order], np.arange(points.shape[0], dtype=np.int32)
    svc._n_support = np.ascontiguousarray((layout.counts[::-1] if k == 2 else layout.counts).astype(np.int32))
    svc._dual_coef_ = np.ascontiguousarray(sign * layout.coef[:, order])
    svc._intercept_ = sign * layout.bias
    svc.dual_coef_, svc.intercept_ = sign * svc._dual_coef_, sign * svc._intercept_
    svc.shape_fit_ = points.shape
    return svc


def section_bytes(compiled: Path) -> int:
    """Return the bytes of code and constants in an object file."""
    done = subprocess.run(["size", "-A", compiled], capture_output=True, text=True, check=True)
    return sum(int(size) for size in re.findall(r"^\.(?:text|rodata)\S*\s+(\d+)", done.stdout, re.MULTILINE))


def code_bytes(source: bytes, *compiler: str, ending: str = ".c") -> int:
    """Return the bytes of code and constants of a source, compiled for size, by gcc unless another compiler is given."""
    with tempfile.TemporaryDirectory() as folder:
        path, compiled = Path(folder) / f"model{ending}", Path(folder) / "model.o"
        path.write_bytes(source)
        _run_patiently([*(compiler or ("gcc",)), "-Os", "-w", "-c", str(path), "-o", str(compiled)])
        return section_bytes(compiled)


def _run_patiently(command: list[str]) -> None:
    """Run a command; end it and its children when it takes too long."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def m2cgen_bytes(svc: SVC) -> int:
    """Return the bytes of the model by m2cgen."""
    import m2cgen

    return code_bytes(m2cgen.export_to_c(svc).encode())


def micromlgen_bytes(svc: SVC) -> int:
    """Return the bytes of the model by micromlgen, whose Arduino header needs stdarg.h first."""
    import micromlgen

    text = "#include <stdarg.h>\n#include <stdint.h>\n#include <math.h>\n" + micromlgen.port(svc)
    keep = "int keep(float *x) { static Eloquent::ML::Port::SVM model; return model.predict(x); }\n"
    return code_bytes((text + keep).encode(), "g++", ending=".cpp")


def skl2onnx_model(svc: SVC) -> bytes:
    """Return the model by skl2onnx."""
    from skl2onnx import to_onnx

    rows = np.zeros((1, svc.n_features_in_), np.float32)
    return to_onnx(svc, rows, options={"zipmap": False}).SerializeToString()


def attempt(make: Callable[[SVC], int], svc: SVC) -> int | str:
    """Return the bytes of a rival's model, or how it failed."""
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(2 * PATIENCE)
    try:
        return make(svc)
    except Exception as error:
        return f"fails: {type(error).__name__}"
    finally:
        signal.alarm(0)


def _out_of_time(*_: Any) -> None:
    raise TimeoutError


RIVALS: dict[str, Any] = {
    "m2cgen": m2cgen_bytes,
    "micromlgen": micromlgen_bytes,
    "skl2onnx": lambda svc: len(skl2onnx_model(svc)),
}
