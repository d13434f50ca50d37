"""The HTML page in one file: a template with style, scripts, data and models in it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...files.native import save
from ...ship.c import CExporter
from ...ship.javascript import JavaScriptExporter
from ...ship.json import JSONExporter
from ...ship.source import artefact_of
from ..tradeoff.measure import machine_of

#: the scripts in the order in which the page runs them
SCRIPTS = ("format.js", "chart.js", "picker.js", "shapley.js", "live.js", "main.js")
STYLES = ("uPlot.min.css", "page.css")


def asset(name: str) -> str:
    """Return the text of a file in the folder of assets."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def render(title: str, data: dict[str, Any]) -> str:
    """Return the page."""
    parts = {
        "TITLE": html.escape(title),
        "STYLE": "\n".join(map(asset, STYLES)),
        "LICENCE": asset("uPlot.LICENSE"),
        "LIBRARY": asset("uPlot.iife.min.js"),
        "SCRIPT": "\n".join(map(asset, SCRIPTS)),
        "DATA": as_script(data),
    }
    pieces = asset("page.html").split("@@")  # every second piece is the name of a part
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def as_script(data: Any) -> str:
    """Return JSON in which no text can end the HTML element around it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


Files = dict[str, bytes]


def exported(exporter: Any, model: Any, stem: str) -> Files:
    """Return the files of an exporter."""
    return exporter.render(artefact_of(model), stem)


def slim_file(model: Any, stem: str) -> Files:
    """Return the .slim file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{stem}.slim"
        save(model, path)
        return {".slim": path.read_bytes()}


def module(model: Any, stem: str) -> Files:
    """Return the JavaScript module, without its types."""
    return {".mjs": exported(JavaScriptExporter(), model, stem)[".mjs"]}


#: what the page runs
LIVE = (module,)
#: what the page offers for download
DOWNLOADS = (partial(exported, CExporter()), partial(exported, JSONExporter()), slim_file)


#: the reason of files that are missing for want of room
TOO_LARGE = "they did not fit into this page; slimsvm export writes them from the .slim file in the folder of models"


@dataclass
class EmbeddedModels:
    """The compressed files of each model in the page, up to a limit of bytes."""

    room: int  # bytes of HTML that are left
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    #: why files of a model are missing
    reasons: dict[str, str] = field(default_factory=dict)

    def fits(self, model: Any) -> bool:
        """Return whether a model may fit: each of its numbers takes at least half a byte, also zeros."""
        machine = machine_of(model)
        return machine.model_.size * machine.n_features_in_ <= 2 * self.room

    def add(self, key: str, stem: str, model: Any, makers: Iterable[Callable[[Any, str], Files]]) -> None:
        """Add the files that these functions make of a model; those that do not fit or cannot be exported are left out."""
        if not self.fits(model):
            self.reasons[key] = TOO_LARGE
            return
        for make in makers:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = make(model, stem)
            except (ValueError, OverflowError) as error:
                self.reasons[key] = str(error)
                continue
            texts = {ending: base64.b64encode(gzip.compress(data, 9, mtime=0)).decode() for ending, data in made.items()}
            weight = len(json.dumps(texts))
            if weight <= self.room:
                self.room -= weight
                self.files.setdefault(key, {}).update(texts)
            else:
                self.reasons[key] = TOO_LARGE
