"""What an exported C model takes on a processor: flash, RAM and stack by compiling, cycles or instructions by running.

AVR runs in simavr, and its cycles are counted. Cortex-M runs in qemu-system-arm, and its instructions are counted: about
its cycles on a Cortex-M0 for integers, and fewer than its cycles for loads and branches.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from .artefact import Array, Artefact
from .balance import typical_rows
from .c import CExporter
from .integers import Integers

#: rows that are predicted
ROWS = 4
#: a program that calls a model
CALLS = """#include <stdint.h>
#include "model.h"
static volatile float x[MODEL_FEATURES];
int main(void) { volatile int f = (int)model_predict((const void *)x); (void)f; for (;;); }
"""


@dataclass(frozen=True)
class Board:
    """A processor: its compiler, and how its programs run."""

    compiler: tuple[str, ...]
    emulator: tuple[str, ...]
    source: str
    unit: str
    clock: float = 0.0  # of the counter, for instructions of 1 ns

    @property
    def missing(self) -> list[str]:
        """The programs that are not installed."""
        return [tool for tool in (self.compiler[0], self.emulator[0]) if shutil.which(tool) is None]


QEMU = ("qemu-system-arm", "-nographic", "-semihosting", "-icount", "shift=0", "-M")
ARM = ("arm-none-eabi-gcc", "-mthumb", "-std=gnu99", "-Os", "-ffunction-sections", "-fdata-sections")
BOARDS = {
    "avr": Board(
        ("avr-gcc", "-mmcu=atmega1284p", "-DF_CPU=16000000UL", "-std=gnu99", "-Os", "-ffunction-sections"),
        ("simavr", "-m", "atmega1284p", "-f", "16000000"),
        "avr.c",
        "cycles",
    ),
    "cortex-m0": Board((*ARM, "-mcpu=cortex-m0"), (*QEMU, "microbit", "-kernel"), "cortex.c", "instructions", 16e6),
    "cortex-m4": Board(
        (*ARM, "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
        (*QEMU, "mps2-an386", "-kernel"),
        "cortex.c",
        "instructions",
        25e6,
    ),
}


#: forms of a C model
FORMS = {precision: CExporter(precision) for precision in ("float32", "int8", "int4")}
FORMS["int8, integers only"] = CExporter("int8", integers=True)


@dataclass(frozen=True)
class BoardCost:
    """What a model takes on a processor; steps are cycles or instructions of a prediction, None where it cannot run."""

    flash: int
    ram: int
    stack: int
    steps: float | None
    unit: str


def in_words(artefact: Artefact, target: str, rows: Array | None = None) -> list[tuple[str, str]]:
    """Return the names of the forms of a C model with what each takes, or why there is none, in words."""
    found = []
    for name, exporter in FORMS.items():
        try:
            cost = board_cost(artefact, target, exporter, rows)
        except ValueError as error:
            found.append((name, str(error)))
            continue
        steps = "" if cost.steps is None else f", {cost.steps:,.0f} {cost.unit} a row"
        found.append((name, f"flash {cost.flash:,}, RAM {cost.ram:,}, stack {cost.stack:,} bytes{steps}"))
    return found


def board_cost(artefact: Artefact, target: str, exporter: CExporter, rows: Array | None = None) -> BoardCost:
    """Return what the C model of an exporter takes; raise ValueError that names the tools that are not installed."""
    board_of(target)
    rows = np.atleast_2d(typical_rows(artefact) if rows is None else rows)[:ROWS]
    sources = {f"model{ending}": data for ending, data in exporter.render(artefact, "model").items()}
    kind, numbers = "float", rows.astype(np.float32)
    if exporter.integers:
        held = Integers.of(artefact, exporter.precision, None if exporter.rows is None else np.asarray(exporter.rows))
        kind, numbers = f"int{held.row_bits}_t", held.quantise(rows)
    return cost_of(sources, target, kind, numbers)


def board_of(target: str) -> Board:
    """Return the processor of that name; raise ValueError if there is none, or no compiler for it."""
    if target not in BOARDS:
        raise ValueError(f"there is no target {target!r}; there are {list(BOARDS)}")
    if shutil.which(BOARDS[target].compiler[0]) is None:
        raise ValueError(f"{target} needs {BOARDS[target].compiler[0]}, which is not installed")
    return BOARDS[target]


def cost_of(sources: Mapping[str, bytes], target: str, kind: str, rows: Array, *options: str) -> BoardCost:
    """Return what a model takes whose `model.h` declares model_predict(row) and MODEL_FEATURES, for rows of this type.

    Flash is the length of code and constants with the functions of the C library that only the model needs. The model is
    `model.c`, or `model.cpp`.
    """
    board = board_of(target)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, data in sources.items():
            (folder / place).write_bytes(data)
        own = "model.cpp" if "model.cpp" in sources else "model.c"
        _compile(board, folder, ["-c", own, "-o", "model.o", "-fstack-usage", *options])
        text, data_, bss = _size(board, folder / "model.o")
        frames = [int(line.split("\t")[1]) for line in (folder / "model.su").read_text().splitlines()]
        steps = None if board.missing else _steps(board, folder, kind, rows)
        return BoardCost(text + data_ + _library(board, folder), data_ + bss, sum(frames), steps, board.unit)


def _compile(board: Board, folder: Path, words: Sequence[str]) -> None:
    done = subprocess.run([*board.compiler, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{board.compiler[0]} does not compile this model: {done.stderr.strip()[-300:]}")


def _size(board: Board, path: Path) -> tuple[int, int, int]:
    """Return the bytes of code and constants, of data and of zeroed memory in an object or a program."""
    tool = board.compiler[0].replace("gcc", "size")
    told = subprocess.run([tool, path], capture_output=True, text=True, check=True).stdout.splitlines()[1]
    text, data, bss = map(int, told.split()[:3])
    return text, data, bss


def _library(board: Board, folder: Path) -> int:
    """Return the bytes of the library functions that the model calls: what it adds to an empty program, less its own."""
    end = "void _exit(int s) { (void)s; for (;;); }\n" * (board.source == "cortex.c")
    (folder / "empty.c").write_text(f"int main(void) {{ for (;;); }}\n{end}")
    (folder / "calls.c").write_text(CALLS + end)
    _compile(board, folder, ["empty.c", "-o", "empty.elf", "-Wl,--gc-sections", "-lm"])
    _compile(board, folder, ["calls.c", "model.o", "-o", "calls.elf", "-Wl,--gc-sections", "-lm"])
    sizes = [sum(_size(board, folder / each)[:2]) for each in ("calls.elf", "empty.elf", "model.o")]
    return max(sizes[0] - sizes[1] - sizes[2], 0)


def _steps(board: Board, folder: Path, kind: str, rows: Array) -> float:
    """Return the cycles or instructions of a prediction, the mean of some rows."""
    repeats = 8
    text = ", ".join("{ " + ", ".join(map(repr, row)) + " }" for row in rows.tolist())
    defines = f"#define ROWS {len(rows)}\n#define REPEATS {repeats}\n#define ROW_TYPE {kind}\n#define ROW_NUMBERS {text}\n"
    main = files(__package__).joinpath("boards", board.source).read_text(encoding="utf-8")
    (folder / "main.c").write_text(defines + main)
    words = ["main.c", "model.o", "-o", "program.elf", "-Wl,--gc-sections", "-lm"]
    if board.source == "cortex.c":
        (folder / "link.ld").write_bytes(files(__package__).joinpath("boards", "cortex.ld").read_bytes())
        words += ["-nostartfiles", "-T", "link.ld", "--specs=nosys.specs"]
    _compile(board, folder, words)
    done = subprocess.run(
        [*board.emulator, "program.elf"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    told = re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)  # simavr prints in colours, and a point for a new line
    counts = re.findall(r"^(\d+)\.?$", told, re.MULTILINE)
    if not counts:
        raise ValueError(f"{board.emulator[0]} gave no count: {(done.stdout + done.stderr).strip()[-300:]}")
    count = float(counts[-1])
    return count if not board.clock else count * 1e9 / board.clock / (repeats * len(rows))
