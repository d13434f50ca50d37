"""Fuzz the reader of images in C under sanitizers: `python -m tools.fuzz_images SECONDS [SEED]`.

Images of every kind are changed at random, half of them with a checksum that fits again, and copied to memory of exactly
their size; those that load predict rows. A read outside the image, an overflow or a hang ends the run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.calibration import Isotonic, Sigmoid, Temperature
from slimsvm.goals import OneVsOne, OneVsOneDag, OneVsRest, Regression
from slimsvm.goals.values import Novelty
from slimsvm.kernels.spec import SPECS
from slimsvm.scaling import Scaling
from slimsvm.ship.artefact import NO_CLASSES, Artefact
from slimsvm.ship.coded import Coded
from slimsvm.ship.image import PRECISIONS, image_of

from .images import READERS

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "slim.c"
static uint32_t state;
static uint32_t next(void) { state ^= state << 13; state ^= state >> 17; return state ^= state << 5; }
int main(int count, char **words)
{
    const double seconds = atof(words[1]);
    unsigned long rounds = 0, loaded = 0;
    const time_t begin = time(NULL);
    state = (uint32_t)atoi(words[2]) * 2654435761u + 1;
    while (rounds % 256 || difftime(time(NULL), begin) < seconds) {
        FILE *file = fopen(words[3 + next() % (uint32_t)(count - 3)], "rb");
        static uint8_t seed[1 << 16];
        size_t size = fread(seed, 1, sizeof seed, file);
        fclose(file);
        const uint32_t changes = next() % 8;
        for (uint32_t i = 0; i < changes; i++) {
            const size_t at = next() % 3 ? next() % 80 % size : next() % size;
            switch (next() % 4) {
            case 0: seed[at] = (uint8_t)next(); break;
            case 1: seed[at] ^= (uint8_t)(1u << next() % 8); break;
            case 2: seed[at] = next() % 2 ? 0xFF : 0; break;
            default: memmove(seed + at, seed + at + (at + 1 < size), size - at - (at + 1 < size));
            }
        }
        if (next() % 8 == 0)
            size = next() % (size + 1);
        if (size >= 16 && next() % 4 != 0) {
            const uint32_t length = next() % 2 ? (uint32_t)size : u32(seed + 8);
            for (int i = 0; i < 4; i++)
                seed[8 + i] = (uint8_t)(length >> 8 * i);
            const uint32_t crc = length >= 16 && length <= size ? crc32(seed + 16, length - 16) : 0;
            for (int i = 0; i < 4; i++)
                seed[12 + i] = (uint8_t)(crc >> 8 * i);
        }
        uint8_t *image = malloc(size ? size : 1);
        memcpy(image, seed, size);
        slim_model m;
        if (slim_load(&m, image, size) == SLIM_OK) {
            loaded++;
            float *x = malloc(m.features * sizeof(float)), *work = malloc(slim_work(&m) * sizeof(float));
            float *out = malloc((m.scores + m.classes + 2) * sizeof(float));
            for (uint32_t i = 0; i < m.features; i++)
                x[i] = (float)(next() % 1000) / 250 - 2;
            volatile int found = slim_predict(&m, x, work);
            slim_scores(&m, x, out, work);
            slim_proba(&m, x, out, work);
            for (uint32_t k = 0; k < m.classes; k++) {
                size_t length;
                const char *label = slim_label(&m, k, &length);
                for (size_t i = 0; i < length; i++)
                    found += label[i];
            }
            free(x), free(work), free(out);
        }
        free(image);
        rounds++;
    }
    printf("%lu images, %lu of them loaded, no fault\n", rounds, loaded);
    return 0;
}
"""


def seeds(folder: Path) -> list[Path]:
    """Write images of every kernel, goal, precision and map."""
    rng, paths = np.random.default_rng(0), []
    pairs = OneVsOne(3), OneVsOne(4, break_ties=True), OneVsOneDag(4)
    goals: list[Any] = [OneVsRest(2), OneVsRest(3), *pairs, Regression(), Novelty()]
    maps = [None, Sigmoid(np.ones(1), np.zeros(1)), Temperature(1.0),
            Isotonic(np.array([-1.0, 0.0, 1.0]), np.array([0.1, 0.5, 0.9]), np.array([0, 3]))]  # fmt: skip
    for number, precision in enumerate(PRECISIONS * 8):
        goal, kernel = goals[number % len(goals)], list(SPECS)[number % len(SPECS)]
        classes = np.arange(goal.n_classes) if goal.n_classes else NO_CLASSES
        parameters = {each.name: each.default for each in SPECS[kernel].parameters}
        points, coef = rng.random((5, 4)), rng.normal(size=(5, goal.outputs))
        map_ = maps[number % len(maps)] if goal.n_classes == 2 else None
        ends = (np.zeros(4), np.ones(4), -np.ones(4), np.ones(4))
        scaling = Scaling(*ends) if number % 3 else None
        a = Artefact(kernel, parameters, points, coef, np.zeros(goal.outputs), goal, classes, scaling, map_)
        if number % 5 == 0 and kernel != "chi2":
            a = replace(a, projection=rng.normal(size=(6, 4)), scaling=None)
        paths.append(folder / f"{number}.bin")
        paths[-1].write_bytes(image_of(Coded.of(a, precision)))
    return paths


def fuzz(seconds: float, seed: int = 1) -> str:
    """Return what a run of so many seconds says; raise CalledProcessError if it finds a fault."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.c").write_text(MAIN)
        sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g"]
        command = ["gcc", *sanitizers, f"-I{READERS}", str(folder / "main.c"), "-o", str(folder / "program")]
        subprocess.run(command, check=True)
        words = [str(folder / "program"), str(seconds), str(seed), *map(str, seeds(folder))]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    print(fuzz(float(sys.argv[1]), *map(int, sys.argv[2:])))
