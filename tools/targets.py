"""Run exported models: compile, load or emulate them, and return their predictions and scores.

The tests compare these with Python's; `python -m benchmarks ship` measures them. A new exporter adds a line to `RUNNERS`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import dump_svmlight_file

from slimsvm.goals import Decision
from slimsvm.ship.artefact import Array, Artefact
from slimsvm.ship.integers import Integers
from slimsvm.ship.literals import identifier

STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Werror")
#: a program that reads rows of floats and writes the prediction and the scores of each, if it has any
MAIN = """
#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    float x[{upper}_FEATURES];
    while (fread(x, sizeof x, 1, stdin) == 1) {{
#ifdef {upper}_TARGETS
        float values[{upper}_TARGETS];
        {prefix}_predict(x, values);
        fwrite(values, sizeof values, 1, stdout);
#else
        {kind} found = {prefix}_predict(x);
        fwrite(&found, sizeof found, 1, stdout);
#endif
#ifdef {upper}_SCORES
        float scores[{upper}_SCORES];
        {prefix}_scores(x, scores);
        fwrite(scores, sizeof scores, 1, stdout);
#endif
    }}
    return 0;
}}
"""
#: the same for sparse rows: the number of entries, their features and their values
SPARSE_MAIN = """
#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    static uint32_t index[{most}];
    static float value[{most}];
    uint32_t count;
    while (fread(&count, sizeof count, 1, stdin) == 1) {{
        if (fread(index, sizeof *index, count, stdin) != count || fread(value, sizeof *value, count, stdin) != count)
            return 1;
#ifdef {upper}_TARGETS
        float values[{upper}_TARGETS];
        if ({prefix}_predict_sparse(index, value, count, values))
            return 1;
        fwrite(values, sizeof values, 1, stdout);
#else
        {kind} found = {prefix}_predict_sparse(index, value, count);
        fwrite(&found, sizeof found, 1, stdout);
#endif
#ifdef {upper}_SCORES
        float scores[{upper}_SCORES] = {{0}};
        int32_t failed = {prefix}_scores_sparse(index, value, count, scores);
        fwrite(&failed, sizeof failed, 1, stdout);
        fwrite(scores, sizeof scores, 1, stdout);
#endif
    }}
    return 0;
}}
"""
NODE = """
import { readFileSync } from "node:fs";
const { predict, scores } = await import(process.argv[1]);
const read = (row) => (row.pairs ? new Map(row.pairs) : row);
const rows = JSON.parse(readFileSync(0, "utf8")).map(read);
console.log(JSON.stringify({ labels: rows.map(predict), scores: scores ? rows.map(scores) : null }));
"""
#: a program that reads rows of floats, makes them integers, and writes the prediction and the scores of each
INTEGER_MAIN = """
#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    float x[{upper}_FEATURES];
    {row} q[{upper}_FEATURES];
    while (fread(x, sizeof x, 1, stdin) == 1) {{
        {prefix}_quantise(x, q);
        int32_t found = {prefix}_predict(q);
        fwrite(&found, sizeof found, 1, stdout);
#ifdef {upper}_SCORES
        int32_t scores[{upper}_SCORES];
        {prefix}_scores(q, scores);
        fwrite(scores, sizeof scores, 1, stdout);
#endif
    }}
    return 0;
}}
"""
#: a program that learns from rows, each with a number behind it, and then writes what it did and the scores of all rows
LEARNING_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"
#ifndef {upper}_SCORES
#define {upper}_SCORES 1
#endif
int main(void)
{{
    static float x[{rows}][{upper}_FEATURES + 1];
    if (fread(x, sizeof x, 1, stdin) != 1)
        return 1;
    for (int i = 0; i < {rows}; i++) {{
        signed char told = (signed char){prefix}_update(x[i]{label});
        fwrite(&told, 1, 1, stdout);
    }}
    for (int i = 0; i < {rows}; i++) {{
        float scores[{upper}_SCORES];
        {scores};
        fwrite(scores, sizeof scores, 1, stdout);
    }}
    return 0;
}}
"""
#: a row as (features, values)
Entries = tuple[Sequence[int], Sequence[float]]


@dataclass(frozen=True)
class Outcome:
    """The predictions and scores of an exported model; scores are (n, 1) for two classes, None where there are none."""

    labels: Array
    scores: Array | None


def missing(*tools: str) -> str:
    """Return a reason to skip that names the programs that are not installed; empty where all are."""
    absent = [tool for tool in tools if not runs(tool)]
    return f"{', '.join(absent)} not installed" if absent else ""


@cache
def runs(tool: str) -> bool:
    """Return whether a program is installed; rustup's `rustc` is there without a compiler behind it too."""
    path = shutil.which(tool)
    return path is not None and (tool != "rustc" or subprocess.run([path, "-V"], capture_output=True).returncode == 0)


def compile_c(
    source: Path, folder: Path, compiler: Sequence[str] = ("gcc",), kind: str = "int", main: str = MAIN, most: int = 0
) -> Path:
    """Compile an exported C model into a program. The model is compiled by itself, with all warnings as errors.

    `kind` is the type of its predictions, and `most` the most entries of a sparse row.
    """
    prefix = identifier(source.stem)
    words = {"name": source.stem, "prefix": prefix, "upper": prefix.upper(), "kind": kind, "most": max(most, 1)}
    (folder / "main.c").write_text(main.format(**words))
    program, model = folder / "program", folder / "model.o"
    subprocess.run([*compiler, *STRICT, "-c", source, "-o", model], check=True)
    subprocess.run([*compiler, *STRICT, f"-I{source.parent}", folder / "main.c", model, "-lm", "-o", program], check=True)
    return program


def run_c(
    source: Path, artefact: Artefact, X: Array, compiler: Sequence[str] = ("gcc",), emulator: Sequence[str] = ()
) -> Outcome:
    """Run an exported C model on this machine, or in an emulator."""
    value = artefact.decision in (Decision.VALUE, Decision.VALUES)
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c(source, Path(folder), compiler, "float" if value else "int")
        rows = np.ascontiguousarray(X, dtype=np.float32).tobytes()
        done = subprocess.run([*emulator, program], input=rows, capture_output=True, check=True)
    if value:
        return Outcome(_values(np.frombuffer(done.stdout, dtype=np.float32).astype(np.float64), artefact), None)
    found = np.frombuffer(done.stdout, dtype=[("label", np.int32), ("scores", np.float32, (artefact.scores,))])
    labels = artefact.classes[found["label"]] if artefact.classes.size else found["label"]
    return Outcome(labels, found["scores"].astype(np.float64))


def _values(found: Array, artefact: Artefact) -> Array:
    """Return values as `predict` does: a column for each of several targets."""
    return found.ravel() if artefact.decision is Decision.VALUE else found.reshape(-1, artefact.outputs)


def run_c_integers(source: Path, held: Integers, X: Array, compiler: Sequence[str] = ("gcc",)) -> Outcome:
    """Run a C model in integers on this machine. Labels are those of `held.predict`, and scores are integers.

    The model is compiled without floating point where the machine has such a mode.
    """
    prefix, p = identifier(source.stem), held.a.decision is not Decision.VALUE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = {"name": source.stem, "prefix": prefix, "upper": prefix.upper(), "row": f"int{held.row_bits}_t"}
        (folder / "main.c").write_text(INTEGER_MAIN.format(**words))
        model, program = folder / "model.o", folder / "program"
        subprocess.run([*compiler, *STRICT, "-mgeneral-regs-only", "-c", source, "-o", model], check=True)
        rest = [folder / "main.c", source.with_name(f"{source.stem}_quantise.c"), model]
        subprocess.run([*compiler, *STRICT, f"-I{source.parent}", *rest, "-o", program], check=True)
        rows = np.ascontiguousarray(X, dtype=np.float32).tobytes()
        done = subprocess.run([program], input=rows, capture_output=True, check=True)
    found = np.frombuffer(done.stdout, dtype=[("label", np.int32), ("scores", np.int32, (held.a.scores * p,))])
    return Outcome(found["label"], found["scores"] if p else None)


def run_c_learning(
    source: Path, artefact: Artefact, X: Array, labels: Array, compiler: Sequence[str] = ("gcc",)
) -> tuple[Array, Array]:
    """Run a C model that learns from rows in turn; return what each update told, and the scores of all rows at the end.

    Labels are numbers of classes, or values; those of novelty detectors do not count.
    """
    prefix, decision = identifier(source.stem), artefact.decision
    label = {Decision.VALUE: ", x[i][{}_FEATURES]", Decision.SIDE: ""}.get(decision, ", (int)x[i][{}_FEATURES]")
    scores = f"scores[0] = {prefix}_predict(x[i])" if decision is Decision.VALUE else f"{prefix}_scores(x[i], scores)"
    words = {"name": source.stem, "prefix": prefix, "upper": prefix.upper(), "rows": len(X), "scores": scores}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.c").write_text(LEARNING_MAIN.format(**words, label=label.format(prefix.upper())))
        model, program = folder / "model.o", folder / "program"
        subprocess.run([*compiler, *STRICT, "-ffp-contract=off", "-c", source, "-o", model], check=True)
        subprocess.run([*compiler, *STRICT, f"-I{source.parent}", folder / "main.c", model, "-o", program], check=True)
        given = np.column_stack([X, labels]).astype(np.float32).tobytes()
        done = subprocess.run([program], input=given, capture_output=True, check=True).stdout
    return np.frombuffer(done, np.int8, len(X)), np.frombuffer(done, np.float32, offset=len(X)).reshape(len(X), -1)


def run_c_sparse(source: Path, artefact: Artefact, rows: Sequence[Entries]) -> Outcome:
    """Run an exported C model on sparse rows. Labels are numbers of classes; refused rows have scores of NaN."""
    value = artefact.decision in (Decision.VALUE, Decision.VALUES)
    given = b"".join(
        np.uint32(len(index)).tobytes() + np.array(index, np.uint32).tobytes() + np.array(values, np.float32).tobytes()
        for index, values in rows
    )
    with tempfile.TemporaryDirectory() as folder:
        most = max(len(index) for index, _ in rows)
        program = compile_c(source, Path(folder), kind="float" if value else "int", main=SPARSE_MAIN, most=most)
        done = subprocess.run([program], input=given, capture_output=True, check=True)
    if value:
        return Outcome(_values(np.frombuffer(done.stdout, dtype=np.float32).astype(np.float64), artefact), None)
    entry = [("label", np.int32), ("failed", np.int32), ("scores", np.float32, (artefact.scores,))]
    found = np.frombuffer(done.stdout, dtype=entry)
    return Outcome(found["label"], np.where(found["failed"][:, None] != 0, np.nan, found["scores"].astype(np.float64)))


def run_onnx(source: Path, artefact: Artefact, X: Array) -> Outcome:
    """Run an exported ONNX model in ONNX Runtime."""
    session = onnx_session(source.read_bytes())
    double = session.get_inputs()[0].type == "tensor(double)"
    return onnx_outcome(artefact, session.run(None, {"X": X.astype(np.float64 if double else np.float32)}))


def onnx_outcome(artefact: Artefact, results: Sequence[Array]) -> Outcome:
    """Return what a session returned: a column of values, or labels and scores, which are [-f, f] for two classes."""
    if artefact.decision in (Decision.VALUE, Decision.VALUES):
        return Outcome(_values(results[0], artefact), None)
    labels, scores = results
    return Outcome(labels.ravel(), scores[:, 1:] if artefact.decision is Decision.SIGN else scores)


def onnx_session(model: bytes) -> Any:
    """Return a session of ONNX Runtime with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_libsvm(source: Path, artefact: Artefact, X: Array) -> Outcome:
    """Run svm-predict on an exported model. The rows are scaled first, as svm-scale would with the ranges file."""
    compact = artefact.compact()
    rows = X if compact.scaling is None else compact.scaling(X)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump_svmlight_file(rows, np.zeros(len(rows)), str(folder / "rows"), zero_based=False)
        subprocess.run(["svm-predict", folder / "rows", source, folder / "labels"], check=True, capture_output=True)
        return Outcome(np.loadtxt(folder / "labels"), None)


def run_js(source: Path, artefact: Artefact, X: Array) -> Outcome:  # noqa: ARG001
    """Run an exported ES module in Node."""
    return run_js_on(source, X.tolist())


def run_js_on(source: Path, rows: Sequence[Any]) -> Outcome:
    """Run an exported ES module on rows of any kind, as JSON: lists of numbers, indices and values, or pairs of a Map."""
    command = ["node", "--input-type=module", "-e", NODE, source.resolve().as_uri()]
    done = subprocess.run(command, input=json.dumps(rows), capture_output=True, check=True, text=True)
    found = json.loads(done.stdout)
    scores = found["scores"]
    return Outcome(np.array(found["labels"]), None if scores is None else np.array(scores).reshape(len(rows), -1))


#: each kernel as a reader of a JSON file would write it
PLAIN = {
    "linear": lambda x, z, _: x @ z,
    "rbf": lambda x, z, p: np.exp(-p["gamma"] * ((x - z) ** 2).sum()),
    "poly": lambda x, z, p: (p["gamma"] * x @ z + p["coef0"]) ** p["degree"],
    "sigmoid": lambda x, z, p: np.tanh(p["gamma"] * x @ z + p["coef0"]),
    "laplacian": lambda x, z, p: np.exp(-p["gamma"] * np.abs(x - z).sum()),
    "chi2": lambda x, z, p: np.exp(-p["gamma"] * ((x - z) ** 2 / np.where(x + z == 0, 1, x + z)).sum()),
}


def run_json(source: Path, artefact: Artefact, X: Array) -> Outcome:
    """Evaluate an exported JSON file by plain loops over its numbers."""
    model = json.loads(source.read_text())
    kernel, classes = model["kernel"], np.array(model["classes"])
    outputs = np.array([_json_outputs(model, PLAIN[kernel["name"]], row) for row in X])
    goal = model["goal"]
    if goal["name"] == "regression":
        return Outcome(_values(outputs, artefact), None)
    if goal["name"] == "novelty":
        return Outcome(np.where(outputs.ravel() < 0, -1, 1), outputs)
    if len(classes) == 2:
        return Outcome(classes[(outputs[:, 0] > 0).astype(int)], outputs)
    if goal["name"] == "ovr":
        return Outcome(classes[outputs.argmax(axis=1)], outputs)
    votes, confidence = np.zeros((2, len(X), len(classes)))
    for pair, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        votes[:, i] += outputs[:, pair] > 0
        votes[:, j] += outputs[:, pair] <= 0
        confidence[:, i] += outputs[:, pair]
        confidence[:, j] -= outputs[:, pair]
    scores = votes + confidence / (3 * (np.abs(confidence) + 1))
    if goal["name"] == "dag":
        for row, each in zip(outputs, scores, strict=True):
            each[_left_over(row, len(classes))] += len(classes)
    decisive = scores if goal["name"] == "dag" or goal["break_ties"] else votes
    return Outcome(classes[decisive.argmax(axis=1)], scores)


def _left_over(outputs: Array, k: int) -> int:
    """Return the class that is left when, of those left, the first always meets the last and the loser is out."""
    of_pair = dict(zip(combinations(range(k), 2), outputs, strict=True))
    left = list(range(k))
    while len(left) > 1:
        left.pop(-1 if of_pair[left[0], left[-1]] > 0 else 0)
    return left[0]


def _json_outputs(model: Any, kernel: Callable[..., float], row: Array) -> Array:
    scaling = model["scaling"]
    if scaling is not None:
        row = (row - scaling["centre"]) * scaling["scale"]
        for ends, cut in (("low", max), ("high", min)):
            row = np.array([x if end is None else cut(x, end) for x, end in zip(row, scaling[ends], strict=True)])
    row = row if model.get("projection") is None else row @ np.array(model["projection"])
    points = _json_points(model["points"])
    widths = model.get("widths") or [1.0] * len(points)
    settings = [model["kernel"] | {"gamma": width * model["kernel"].get("gamma", 1.0)} for width in widths]
    values = [kernel(row, np.array(point), each) for point, each in zip(points, settings, strict=True)]
    return np.array(values) @ np.array(model["coef"]).reshape(len(values), -1) + model["bias"]


def _json_points(points: Any) -> list[list[float]]:
    """Return the points of a JSON file with all their features."""
    if isinstance(points, list):
        return points
    found = []
    for begin, end in pairwise(points["starts"]):
        found.append([0.0] * points["features"])
        for place in range(begin, end):
            found[-1][points["columns"][place]] = points["values"][place]
    return found


def run_image(source: Path, artefact: Artefact, X: Array) -> Outcome:
    """Run an image in the reader of C."""
    from .images import build_c, run_reader

    with tempfile.TemporaryDirectory() as folder:
        program, proba = build_c(Path(folder)), artefact.calibration is not None
        labels, scores, _ = run_reader(program, source, X, artefact.scores, artefact.classes.size * proba)
    scores = scores[:, : artefact.scores].astype(np.float64)
    if artefact.decision is Decision.VALUE:
        return Outcome(scores[:, 0], None)
    return Outcome(artefact.classes[labels] if artefact.classes.size else labels, scores)


def run_package(source: Path, artefact: Artefact, X: Array) -> Outcome:
    """Run the C model in a folder for Arduino or CMake."""
    return run_c(source / "src" / f"{source.name}.c", artefact, X)


#: how the files of each exporter are run
RUNNERS: dict[str, Callable[[Path, Artefact, Array], Outcome]] = {
    "c": run_c,
    "onnx": run_onnx,
    "libsvm": run_libsvm,
    "js": run_js,
    "json": run_json,
    "image": run_image,
    "arduino": run_package,
    "cmake": run_package,
}
#: the programs that this needs
TOOLS = {
    "c": ("gcc",),
    "image": ("gcc",),
    "arduino": ("gcc",),
    "cmake": ("gcc",),
    "libsvm": ("svm-predict",),
    "js": ("node",),
}
