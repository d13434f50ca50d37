"""Every exporter, form, kernel, goal, preparation of rows and target: `make targets` runs the whole product.

`python -m tools.products FILE` runs all cases, or with `--share 0.1` some of them by chance, and keeps a line for each in
FILE; those that are there already are left out. Without FILE it runs a covering design, in which every pair of two choices
occurs once at least, as tests/ship/test_products.py does. A case compares labels of many rows with Python's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from slimsvm.goals import Decision, Novelty, OneVsOne, OneVsOneDag, OneVsRest, Regression
from slimsvm.kernels import make_kernel
from slimsvm.kernels.spec import SPECS
from slimsvm.scaling import Scaling
from slimsvm.ship.artefact import NO_CLASSES, Array, Artefact
from slimsvm.ship.boards import BOARDS
from slimsvm.ship.c import PRECISIONS, CExporter, CodedCSource
from slimsvm.ship.c_source import SparseCSource
from slimsvm.ship.coded import Coded
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.image import ImageExporter
from slimsvm.ship.quantise import predictions
from slimsvm.ship.runtime import IntegerRuntime, Runtime
from slimsvm.ship.sparse import SparsePoints

from .images import build_rust, pythons, run_python, run_reader
from .targets import RUNNERS, TOOLS, missing, run_c, run_c_integers

FEATURES, POINTS, RANK = 4, 7, 2
#: a goal of each decision, and its outputs
DECISIONS: dict[str, tuple[Any, int]] = {
    "value": (Regression(), 1),
    "side": (Novelty(), 1),
    "sign": (OneVsRest(2), 1),
    "largest": (OneVsRest(4), 4),
    "votes": (OneVsOne(4), 6),
    "scored votes": (OneVsOne(4, break_ties=True), 6),
    "dag": (OneVsOneDag(4), 6),
}
#: rows that are compared: on this machine, and in emulators of processors
ROWS, FEW_ROWS = 1000, 60
PREPARATIONS = ("none", "scaled", "clipped", "projected", "widths", "sparse")
INTEGERS = tuple(f"integers {precision}" for precision in PRECISIONS if precision != "float32")
#: the forms and the targets of each exporter
FORMS: dict[str, tuple[str, ...]] = {
    "c": (*PRECISIONS, *INTEGERS),
    "image": PRECISIONS,
    "js": ("float32", "int4"),
    "json": ("float64",),
    "onnx": ("float32", "float64"),
    "libsvm": ("float64",),
}
TARGETS: dict[str, tuple[str, ...]] = {
    "c": ("gcc", "clang", *BOARDS),
    "image": ("gcc", "rustc", "python", "micropython"),
    "js": ("node",),
    "json": ("python",),
    "onnx": ("onnxruntime",),
    "libsvm": ("svm-predict",),
}
#: a main program for processors, which prints the number of each prediction in hexadecimal digits
PRINTED = """
static void tell(const ROW_TYPE *x)
{
    static const char digits[] = "0123456789abcdef";
    static char text[10] = "00000000\\n";
    union { FOUND found; uint32_t bits; } both = { .bits = 0 };
    both.found = (FOUND)model_predict(x);
    for (int i = 0; i < 8; i++)
        text[7 - i] = digits[both.bits >> 4 * i & 15];
    TELL
}
"""


class Case(NamedTuple):
    """One of each choice."""

    exporter: str
    form: str
    kernel: str
    goal: str
    preparation: str
    target: str


def cases() -> list[Case]:
    """Return the whole product."""
    return [
        Case(exporter, form, kernel, goal, preparation, target)
        for exporter, forms in FORMS.items()
        for form, kernel, goal, preparation, target in product(forms, SPECS, DECISIONS, PREPARATIONS, TARGETS[exporter])
    ]


def covering(seed: int = 0) -> list[Case]:
    """Return cases in which every pair of choices occurs that any case has, few of them by a greedy choice."""
    rng = np.random.default_rng(seed)
    every = [case for case in cases() if not refused(case)]
    pairs = [set(combinations(enumerate(case), 2)) for case in every]
    left, chosen = set().union(*pairs), []
    while left:
        some = rng.choice(len(every), min(400, len(every)), replace=False)
        best = max(some, key=lambda number: len(pairs[number] & left))
        if not pairs[best] & left:
            best = next(number for number, own in enumerate(pairs) if own & left)
        left -= pairs[best]
        chosen.append(every[best])
    return chosen


def rows_of(case: Case) -> Array:
    """Return rows to predict, some of them beyond the points."""
    seed = zlib.crc32(repr(case[2:5]).encode())
    return np.random.default_rng(seed).random((ROWS, FEATURES)) * [1.2, 2.4, 3.6, 1.2]


@cache
def artefact_for(kernel: str, goal: str, preparation: str) -> Artefact:
    """Return a model with random numbers whose outputs have either sign."""
    rng = np.random.default_rng(zlib.crc32(f"{kernel} {goal} {preparation}".encode()))
    (kind, outputs), spec = DECISIONS[goal], SPECS[kernel]
    sizes: dict[str, Any] = {"gamma": 0.4, "coef0": 0.5, "degree": 2}
    parameters = {parameter.name: sizes[parameter.name] for parameter in spec.parameters}
    rows = rng.random((ROWS, FEATURES)) * [1, 2, 3, 1]
    scaling, projection, points = None, None, rows[:POINTS]
    if preparation in ("scaled", "clipped"):
        ends = (0.0, 0.9) if preparation == "clipped" else (-np.inf, np.inf)
        low, high = (np.full(FEATURES, end) for end in ends)
        scaling = Scaling(np.full(FEATURES, 0.1), np.array([1.0, 0.5, 0.3, 1.0]), low, high)
        points = np.abs(scaling(points))
    elif preparation == "projected":
        projection = np.abs(rng.normal(size=(FEATURES, RANK)))
        points = points @ projection
    held: Any = points
    if preparation == "sparse":
        csr = csr_array(np.where(rng.random(points.shape) < 0.5, points, 0.0))
        held, points = SparsePoints.of(csr.indptr, csr.indices, csr.data, FEATURES), csr.toarray()
    widths = rng.uniform(0.5, 2.0, POINTS) if preparation == "widths" else None
    coef = rng.normal(size=(POINTS, outputs))
    scaled = rows if scaling is None else scaling(rows)
    scaled = scaled if projection is None else scaled @ projection
    settings: dict[str, Any] = {"gamma": 1.0, "coef0": 0.0, "degree": 1} | parameters
    function: Any = make_kernel(kernel, **settings)
    values = (
        function(scaled, points)
        if widths is None or kernel not in ("rbf", "laplacian")
        else function(scaled, points, widths)
    )
    outcomes = values @ coef
    bias = -np.median(outcomes, axis=0) - 0.04 * outcomes.std(axis=0)  # many rows of tanh have the median itself
    classes = np.arange(kind.n_classes) if kind.n_classes else NO_CLASSES
    return Artefact(
        kernel,
        parameters,
        held,
        coef,
        bias,
        kind,
        classes,
        scaling,
        None,
        widths,
        projection=projection,
        ranges=np.stack([rows.min(axis=0), rows.max(axis=0)]),
    )


def exporter_of(case: Case) -> Any:
    """Return the exporter with the settings of a case."""
    if case.exporter == "c":
        whole, rows = case.form.startswith("integers"), rows_of(case)[:200]
        return CExporter(
            case.form.removeprefix("integers "), integers=whole, rows=None if case.form in ("float32", "int4") else rows
        )
    if case.exporter == "image":
        return ImageExporter(case.form)
    settings = {"precision": case.form} if case.exporter in ("js", "onnx") else {}
    return EXPORTERS[case.exporter](**settings)


@cache
def rendered(exporter: str, form: str, kernel: str, goal: str, preparation: str) -> dict[str, bytes] | str:
    """Return the files of an export, or why there is none."""
    case = Case(exporter, form, kernel, goal, preparation, "")
    try:
        artefact = artefact_for(kernel, goal, preparation)
        artefact.check()
        with warnings.catch_warnings(action="ignore"):  # LIBSVM counts votes; coarse tables
            files_: dict[str, bytes] = exporter_of(case).render(artefact, "model")
    except ValueError as error:
        return str(error)
    return files_


def refused(case: Case) -> str:
    """Return why an exporter has no such model; empty where it has one."""
    if case.preparation == "widths" and case.kernel not in ("rbf", "laplacian"):
        return "this kernel has no widths"
    made = rendered(*case[:5])
    return made if isinstance(made, str) else ""


def expected(case: Case, rows: Array) -> Array:
    """Return the predictions of Python that computes as the export does."""
    artefact, exporter = artefact_for(*case[2:5]), exporter_of(case)
    if case.exporter == "image":
        coded = Coded.of(artefact, case.form)
        return Runtime(coded.a, coded)(rows)
    if case.exporter == "c" and case.form.startswith("integers"):
        return IntegerRuntime(exporter._integers(artefact))(rows)
    if case.exporter == "libsvm" and artefact.by_pairs:  # the format counts votes
        return Runtime(replace(artefact, goal=OneVsOne(artefact.classes.size)))(rows)
    if case.form == "int4":
        return Runtime(artefact, Coded.of(artefact, "int4"))(rows)
    if case.exporter != "c":
        return Runtime(artefact)(rows)
    source = exporter._source(artefact, "model")
    if isinstance(source, SparseCSource | CodedCSource):
        return Runtime(source.held if isinstance(source, SparseCSource) else source.coded.a)(rows)
    return Runtime(artefact)(rows) if source.small is None else predictions(source.a, source.small, rows)


def run(case: Case) -> str:
    """Return "same" if an export predicts as Python does, else what differs, is refused or is not installed."""
    if why := refused(case):
        return f"refused: {why}"
    if why := missing(*tools_of(case)):
        return f"not run: {why}"
    artefact, rows = artefact_for(*case[2:5]), rows_of(case)
    rows = (
        (rows[:FEW_ROWS] if case.target in BOARDS or "python" in case.target else rows)
        .astype(np.float32)
        .astype(np.float64)
    )
    made = rendered(*case[:5])
    assert not isinstance(made, str)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ending, data in made.items():
            (folder / f"model{ending}").write_bytes(data)
        found = np.asarray(predicted(case, artefact, folder, rows))
    wanted = np.asarray(expected(case, rows), dtype=found.dtype)
    if artefact.decision is Decision.VALUE:
        apart = float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-9))
        return "same" if apart <= 1e-3 else f"differs: by {apart:.2g} of the largest value"
    unlike = int((found != wanted).sum())
    exact = case.exporter == "image" or case.form == "int4" or case.form.startswith("integers")
    return "same" if unlike <= (0 if exact else len(rows) // 200) else f"differs: {unlike} of {len(rows)} labels"


def tools_of(case: Case) -> Sequence[str]:
    """Return the programs that a case needs."""
    if case.target in BOARDS:
        return BOARDS[case.target].missing
    known: dict[str, Sequence[str]] = {
        "onnxruntime": (),
        "python": (),
        "gcc": ("gcc",),
        "clang": ("clang",),
        "rustc": ("rustc",),
    }
    known["micropython"] = ("micropython",)
    return known.get(case.target, TOOLS.get(case.exporter, (case.target,)))


def predicted(case: Case, artefact: Artefact, folder: Path, rows: Array) -> Any:
    """Return the predictions of an export on its target."""
    if case.exporter == "c" and case.target in BOARDS:
        return on_board(case, artefact, folder, rows)
    if case.exporter == "c" and case.form.startswith("integers"):
        held = exporter_of(case)._integers(artefact)
        labels = run_c_integers(folder / "model.c", held, rows, (case.target,)).labels
        if artefact.decision is Decision.VALUE:
            return labels.astype(np.float32) * np.float32(held.unit) + np.float32(held.offset)
        return artefact.classes[labels] if artefact.classes.size else labels
    if case.exporter == "c":
        return run_c(folder / "model.c", artefact, rows, (case.target, "-ffp-contract=off")).labels
    if case.exporter == "image" and case.target != "gcc":
        if case.target == "rustc":
            return _labels(artefact, run_reader(_rust(), folder / "model.bin", rows, artefact.scores)[:2])
        return np.array([each[0] for each in run_python(folder / "model.bin", rows, pythons()[case.target])])
    return RUNNERS[case.exporter](folder / f"model{exporter_of(case).ending}", artefact, rows).labels


def _labels(artefact: Artefact, told: tuple[Array, Array]) -> Array:
    found, scores = told
    if artefact.decision is Decision.VALUE:
        return scores[:, 0]
    return artefact.classes[found] if artefact.classes.size else found


@cache
def _kept() -> Any:
    return tempfile.TemporaryDirectory()


@cache
def _rust() -> Path:
    return build_rust(Path(_kept().name))


def on_board(case: Case, artefact: Artefact, folder: Path, rows: Array) -> Array:
    """Return the predictions of a C model in the emulator of a processor."""
    board, value, kind, numbers = BOARDS[case.target], artefact.decision is Decision.VALUE, "float", rows.astype(np.float32)
    held = None
    if case.form.startswith("integers"):
        held = exporter_of(case)._integers(artefact)
        kind, numbers = f"int{held.row_bits}_t", held.quantise(rows)
    text = ", ".join("{ " + ", ".join(map(repr, row)) + " }" for row in numbers.tolist())
    tell = "call_host(4, text);" if board.source == "cortex.c" else "for (int i = 0; i < 9; i++) put(text[i]);"
    found = "float" if value and held is None else "int32_t"
    words = {"ROWS": len(rows), "REPEATS": 1, "ROW_TYPE": kind, "ROW_NUMBERS": text, "FOUND": found}
    main = files("slimsvm.ship").joinpath("boards", board.source).read_text(encoding="utf-8")
    # the table of rows is constant: in flash, where AVR reads it a row at a time
    begin = re.search(r"int main\(void\)\n\{|void reset\(void\)\n\{", main)
    assert begin is not None
    printed = PRINTED.replace("TELL", tell)
    main = main[: begin.start()] + printed + main[begin.start() :]
    main = re.sub(r"found = \(int\)model_predict\(rows\[i\]\);", "tell(rows[i]);", main)
    defines = "".join(f"#define {key} {word}\n" for key, word in words.items())
    (folder / "main.c").write_text(defines + main)
    options = ["main.c", "model.c", "-o", "program.elf", "-Wl,--gc-sections", "-lm", "-ffp-contract=off"]
    if board.source == "cortex.c":
        (folder / "link.ld").write_bytes(files("slimsvm.ship").joinpath("boards", "cortex.ld").read_bytes())
        options += ["-nostartfiles", "-T", "link.ld", "--specs=nosys.specs"]
    subprocess.run([*board.compiler, *options], cwd=folder, check=True, capture_output=True)
    done = subprocess.run(
        [*board.emulator, "program.elf"], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    told = re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)
    bits = np.array([int(word, 16) for word in re.findall(r"^([0-9a-f]{8})\.?$", told, re.MULTILINE)], np.uint32)
    numbers = bits.view(np.float32) if found == "float" else bits.view(np.int32)
    if held is not None and value:
        return numbers.astype(np.float32) * np.float32(held.unit) + np.float32(held.offset)
    return artefact.classes[numbers] if artefact.classes.size else numbers


def told(chosen: Sequence[Case], tell: Callable[[Case, str], None]) -> Iterator[str]:
    """Run cases in turn and yield what each one showed."""
    for case in chosen:
        try:
            outcome = run(case)
        except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
            outcome = f"fails: {type(error).__name__} {str(error)[-200:]}"
        tell(case, outcome)
        yield outcome


def table(known: dict[tuple[str, ...], str]) -> str:
    """Return outcomes as a page: how many cases of each export and target show what."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for case, outcome in known.items():
        rows.setdefault((f"{case[0]} {case[1]}", case[5]), Counter())[outcome.partition(":")[0]] += 1
    kinds = sorted({kind for counts in rows.values() for kind in counts}, key=lambda kind: (kind != "same", kind))
    lines = [
        "# Exports on their targets",
        "",
        f"{len(known):,} of {len(cases()):,} cases, by `make targets SHARE={len(known) / len(cases()):.2g}`. A case is an",
        "exporter with a precision, a kernel, a goal, a preparation of rows and a target. Labels are compared with",
        "Python's, of 1,000 rows, or of 60 in an emulator or in Python. Refused are models that an exporter does not have.",
        "",
        "| export | target | " + " | ".join(kinds) + " |",
        "|---" * (len(kinds) + 2) + "|",
    ]
    for (export, target), counts in sorted(rows.items()):
        lines.append(f"| {export} | {target} | " + " | ".join(str(counts[kind] or "") for kind in kinds) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the cases that the options name, and print how many show what."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="where to write a table of the outcomes")
    options = parser.parse_args()
    known = {}
    if options.file is not None and options.file.exists():
        known = {tuple(entry[:-1]): entry[-1] for entry in map(json.loads, options.file.read_text().splitlines())}
    if options.file is None:
        chosen = covering(options.seed)
    else:
        rng = np.random.default_rng(options.seed)
        chosen = [case for case in cases() if rng.random() < options.share and tuple(case) not in known]

    def keep(case: Case, outcome: str) -> None:
        known[tuple(case)] = outcome
        if options.file is not None:
            with options.file.open("a") as file:
                file.write(json.dumps([*case, outcome]) + "\n")
        if not outcome.startswith(("same", "refused", "not run")):
            print(*case, outcome, file=sys.stderr, flush=True)

    for _ in told(chosen, keep):
        pass
    words = [outcome.partition(":")[0] for outcome in known.values()]
    print({word: words.count(word) for word in sorted(set(words))})
    if options.table is not None:
        options.table.write_text(table(known))
    return 0 if not {"differs", "fails"} & set(words) else 1


if __name__ == "__main__":
    raise SystemExit(main())
