"""Models inside the page: their exports, compressed, as many as the page has room for."""

from __future__ import annotations

import base64
import gzip
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...files.native import save
from ...ship.c import CExporter
from ...ship.javascript import JavaScriptExporter
from ...ship.json import JSONExporter
from ...ship.source import artefact_of
from ..tradeoff.measure import machine_of

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
