"""Folders for Arduino and CMake: they compile as those tools compile them, and predict as the C export does."""

import subprocess

import numpy as np
import pytest
from shipped import ROWS, model_of

from slimsvm import export
from slimsvm.ship.source import artefact_of
from tools.targets import missing, run_c

#: what the example of an Arduino library needs of Arduino
STUB = """#pragma once
#include <stdint.h>
struct Printer { void begin(long) {} template <class T> void println(T) {} };
extern Printer Serial;
enum { A0 };
int analogRead(int);
void delay(int);
"""


@pytest.mark.skipif(bool(missing("gcc", "g++")), reason="gcc is not installed")
@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("layout", ["rest", "regression"])
def test_an_arduino_library_compiles_with_its_example(layout, integers, tmp_path):
    model = model_of(layout=layout)
    files = export(model, tmp_path / "made", "arduino", **({"integers": True, "rows": ROWS} if integers else {}))
    assert {path.relative_to(tmp_path / "made").as_posix() for path in files} >= {
        "library.properties",
        "src/made.c",
        "src/made.h",
        "examples/made/made.ino",
    }
    assert "includes=made.h" in (tmp_path / "made" / "library.properties").read_text()
    (tmp_path / "Arduino.h").write_text(STUB)
    example = tmp_path / "made" / "examples" / "made" / "made.ino"
    command = ["g++", "-fsyntax-only", "-Wall", "-Werror", f"-I{tmp_path}", f"-I{tmp_path / 'made' / 'src'}"]
    subprocess.run([*command, "-include", "Arduino.h", "-x", "c++", example], check=True)
    if not integers:
        outcome = run_c(tmp_path / "made" / "src" / "made.c", artefact_of(model), ROWS)
        np.testing.assert_allclose(outcome.labels, model.predict(ROWS), rtol=1e-4, atol=1e-4)


def test_a_component_builds_with_cmake(tmp_path):
    export(model_of(), tmp_path / "made", "cmake", precision="int8")
    text = (tmp_path / "made" / "CMakeLists.txt").read_text()
    assert "idf_component_register(SRCS src/made.c" in text
    assert "zephyr_library_sources(src/made.c)" in text
    assert "REQUIRES made" in (tmp_path / "made" / "README.md").read_text()
    if reason := missing("cmake", "gcc"):
        pytest.skip(reason)
    subprocess.run(["cmake", "-S", tmp_path / "made", "-B", tmp_path / "build"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)


def test_a_folder_is_replaced_by_force_only(tmp_path):
    export(model_of(), tmp_path / "made", "cmake")
    with pytest.raises(FileExistsError, match="force"):
        export(model_of(), tmp_path / "made", "cmake")
    export(model_of(), tmp_path / "made", "cmake", force=True)
