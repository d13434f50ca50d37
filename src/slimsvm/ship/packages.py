"""Folders with an exported C model as the tools of firmware expect it: an Arduino library, and a CMake component.

PlatformIO reads Arduino libraries; Zephyr and ESP-IDF build the CMake component.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar

from ..goals import Decision
from .artefact import Artefact
from .c import CExporter
from .literals import identifier
from .template import LICENCE

PROPERTIES = """name={name}
version=0.1.0
author=slimsvm {version}
maintainer=the author of the model
sentence={summary}
paragraph=A kernel machine as constant tables and one loop, which allocates nothing.
category=Data Processing
url=https://pypi.org/project/slimsvm
architectures=*
includes={name}.h
license=0BSD
"""
EXAMPLE = """// {licence}
#include <{name}.h>

{row}
void setup()
{{
    Serial.begin(115200);
}}

void loop()
{{
    for (int i = 0; i < {upper}_FEATURES; i++)
        x[i] = analogRead(A0); // a row as the model was trained on
    {quantise}Serial.println({prediction});
    delay(1000);
}}
"""
CMAKE = """# {name}: a model of slimsvm. {licence}
if(ESP_PLATFORM)
    idf_component_register(SRCS {sources} INCLUDE_DIRS src)
    return()
endif()
if(ZEPHYR_BASE)
    zephyr_library_named({prefix})
    zephyr_library_sources({sources})
    zephyr_include_directories(src)
    return()
endif()
cmake_minimum_required(VERSION 3.13)
project({prefix} LANGUAGES C)
add_library({prefix} STATIC {sources})
target_include_directories({prefix} PUBLIC src)
set_target_properties({prefix} PROPERTIES C_STANDARD 99)
"""
README = """# {name}

{summary}, written by slimsvm {version}. The declarations are in `src/{name}.h`.

With CMake, two lines:

    add_subdirectory({name})
    target_link_libraries(app PRIVATE {prefix})

With Zephyr, one line in the application's CMakeLists.txt, after find_package(Zephyr):

    add_subdirectory({name})

With ESP-IDF, put this folder into `components/` of the project, and name it where it is used:

    idf_component_register(SRCS main.c REQUIRES {name})
"""


@dataclass(frozen=True)
class _Package(CExporter):
    """A folder whose src/ has the exported C model; settings are those of C."""

    ending: ClassVar[str] = ""

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:
        """Return the files by their place in the folder."""
        prefix, name = identifier(stem), stem
        sources = {f"src/{name}{ending}": data for ending, data in super().render(artefact, stem).items()}
        words = {
            "name": name,
            "prefix": prefix,
            "upper": prefix.upper(),
            "summary": artefact.summary,
            "version": version("slimsvm"),
            "licence": LICENCE,
            "sources": " ".join(each for each in sources if each.endswith(".c")),
        }
        return sources | {each: text.encode() for each, text in self.more(artefact, words).items()}

    def more(self, artefact: Artefact, words: dict[str, str]) -> dict[str, str]:
        """Return the texts beside the sources."""
        raise NotImplementedError


@dataclass(frozen=True)
class ArduinoExporter(_Package):
    """An Arduino library with an example; PlatformIO reads it too."""

    def more(self, artefact: Artefact, words: dict[str, str]) -> dict[str, str]:
        """Return the properties and the example."""
        upper, rows = words["upper"], ["float x[{upper}_FEATURES];\n"]
        quantise, given = "", "x"
        if self.integers:
            bits = self._integers(artefact).row_bits
            rows += [f"int{bits}_t row[{upper}_FEATURES];\n"]
            quantise, given = f"{words['prefix']}_quantise(x, row);\n    ", "row"
        prediction = f"{words['prefix']}_predict({given})"
        if self.integers and artefact.decision is Decision.VALUE:
            prediction = f"{words['prefix']}_value({prediction})"
        if artefact.decision is Decision.VALUES:
            quantise = f"float values[{upper}_TARGETS];\n    {words['prefix']}_predict(x, values);\n    "
            prediction = "values[0]"
        own = {"row": "".join(rows).format(**words), "quantise": quantise, "prediction": prediction}
        example = EXAMPLE.format(**words, **own)
        return {
            "library.properties": PROPERTIES.format(**words),
            f"examples/{words['name']}/{words['name']}.ino": example,
        }


@dataclass(frozen=True)
class CMakeExporter(_Package):
    """A component for CMake, Zephyr and ESP-IDF."""

    def more(self, artefact: Artefact, words: dict[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return the build file and the lines that projects need."""
        return {"CMakeLists.txt": CMAKE.format(**words), "README.md": README.format(**words)}
