"""Load images in the readers of C, Rust and MicroPython, and return what they predict, which tests compare."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import slimsvm

from .targets import STRICT

Array = np.ndarray
READERS = Path(slimsvm.__file__).parent / "ship" / "readers"
#: a program that loads an image, and writes for each row the prediction, its label, the scores and the probabilities
C_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "slim.h"
int main(int count, char **words)
{
    static unsigned char image[1 << 24];
    FILE *file = fopen(words[1], "rb");
    const size_t size = file ? fread(image + 1, 1, sizeof image - 1, file) : 0; /* at an odd address */
    slim_model m;
    const slim_status status = slim_load(&m, image + 1, size);
    if (status != SLIM_OK || count < 3)
        return 10 + (int)status;
    float *x = malloc(m.features * sizeof(float)), *work = malloc(slim_work(&m) * sizeof(float));
    float *scores = malloc((m.scores + m.classes + 2) * sizeof(float));
    FILE *rows = fopen(words[2], "rb");
    while (fread(x, sizeof(float), m.features, rows) == m.features) {
        const int32_t found = slim_predict(&m, x, work);
        fwrite(&found, sizeof found, 1, stdout);
        slim_scores(&m, x, scores, work);
        fwrite(scores, sizeof(float), m.scores, stdout);
        if (slim_proba(&m, x, scores, work) == 0)
            fwrite(scores, sizeof(float), m.classes, stdout);
    }
    for (uint32_t k = 0; k < m.classes; k++) {
        size_t length;
        const char *label = slim_label(&m, k, &length);
        fprintf(stderr, "%.*s\\n", (int)length, label);
    }
    return 0;
}
"""
RUST_MAIN = """
#[path = "READER"]
mod slim;
use std::io::Write;
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let data = std::fs::read(&words[1]).unwrap();
    let m = match slim::Model::new(&data) {
        Ok(m) => m,
        Err(error) => std::process::exit(11 + error as i32),
    };
    let rows = std::fs::read(&words[2]).unwrap();
    let mut work = vec![0f32; m.work()];
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for row in rows.chunks_exact(4 * m.features) {
        let x: Vec<f32> = row.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        out.write_all(&m.predict(&x, &mut work).to_le_bytes()).unwrap();
        let mut scores = vec![0f32; m.scores_len()];
        m.scores(&x, &mut scores, &mut work);
        let mut proba = vec![0f32; m.classes.max(2)];
        if m.proba(&x, &mut proba, &mut work) {
            scores.extend_from_slice(&proba[..m.classes]);
        }
        for score in scores {
            out.write_all(&score.to_le_bytes()).unwrap();
        }
    }
    for k in 0..m.classes {
        eprintln!("{}", std::str::from_utf8(m.label(k)).unwrap());
    }
}
"""
PYTHON_MAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import slim
try:
    model = slim.Model(open(sys.argv[2], "rb").read())
except ValueError as error:
    sys.exit("refused: " + str(error))
rows = json.loads(open(sys.argv[3]).read())
print(json.dumps([[model.predict(row), list(model.scores(row)), model.proba(row) if model.map else []] for row in rows]))
"""


class RefusedError(Exception):
    """A reader does not take an image; the text is its status."""


def build_c(folder: Path, compiler: Sequence[str] = ("gcc", "-ffp-contract=off")) -> Path:
    """Return a program around the reader in C."""
    (folder / "main.c").write_text(C_MAIN)
    program = folder / "reader_c"
    sources = [str(folder / "main.c"), str(READERS / "slim.c")]
    command = [*compiler, *STRICT, f"-I{READERS}", *sources, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def build_rust(folder: Path) -> Path:
    """Return a program around the reader in Rust, which by itself compiles without std."""
    (folder / "alone.rs").write_text(f'#![no_std]\n#[path = "{READERS / "slim.rs"}"]\npub mod slim;\n')
    (folder / "main.rs").write_text(RUST_MAIN.replace("READER", str(READERS / "slim.rs")))
    program = folder / "reader_rust"
    alone = ["rustc", "--edition=2021", "-D", "warnings", "--crate-type=lib", str(folder / "alone.rs")]
    subprocess.run([*alone, "-o", str(folder / "libalone.rlib")], check=True)
    subprocess.run(["rustc", "--edition=2021", "-O", folder / "main.rs", "-o", program], check=True)
    return program


def run_reader(program: Path, image: Path, rows: Array, scores: int, classes: int = 0) -> tuple[Array, Array, list[str]]:
    """Return the predictions, the scores with the probabilities, and the labels that a compiled reader gives."""
    place = image.with_suffix(".rows")
    place.write_bytes(np.ascontiguousarray(rows, np.float32).tobytes())
    done = subprocess.run([program, image, place], capture_output=True, check=False)
    if done.returncode:
        raise RefusedError(f"status {done.returncode - 10}: {done.stderr.decode()[:300]}")
    found = np.frombuffer(done.stdout, [("label", np.int32), ("scores", np.float32, (scores + classes,))])
    return found["label"], found["scores"], done.stderr.decode().splitlines()


def run_python(image: Path, rows: Array, python: Sequence[str]) -> Any:
    """Return [prediction, scores, probabilities] of each row from the reader in MicroPython, or in another Python."""
    place, main = image.with_suffix(".json"), image.with_name("main.py")
    place.write_text(json.dumps(rows.tolist()))
    main.write_text(PYTHON_MAIN)
    done = subprocess.run([*python, main, READERS, image, place], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError((done.stderr + done.stdout)[-400:])
    return json.loads(done.stdout)


def pythons() -> dict[str, Sequence[str]]:
    """Return the commands that run the reader in Python: MicroPython where it is installed."""
    import sys

    return {name: command for name, command in {"python": [sys.executable], "micropython": ["micropython"]}.items()
            if shutil.which(command[0])}  # fmt: skip
