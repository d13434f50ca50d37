"""From rows, models and data to the page and the model card."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ...files.container import write_together
from ...files.endings import check_written
from ...files.native import save
from ...kernels import Matrix
from ...ship.boards import board_of
from ...ship.c import CExporter
from ...ship.javascript import JavaScriptExporter
from ...ship.json import JSONExporter
from ...ship.source import artefact_of
from ...text import short
from ..tradeoff.arguments import checked_rows
from ..tradeoff.datasets import fingerprint, split_rows
from ..tradeoff.measure import machine_of
from ..tradeoff.methods import FULL
from ..tradeoff.result import Tradeoff, read_tradeoff
from ..tradeoff.rows import Row, finished, last_study, settings_of
from ..tradeoff.tasks import task_of_row
from .content import Study, card, content, key_of

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


#: bytes of the page at most
LARGEST_PAGE = 1_450_000
#: characters of the data's and the method's names in names of files, which may have 255 of them
LONGEST_NAME = 60


def report(
    result: Tradeoff | str | os.PathLike[str],
    X: Matrix,
    y: Any = None,
    output: str | os.PathLike[str] = "report.html",
    *,
    test: tuple[Matrix, Any] | None = None,
    method: str | None = None,
    title: str | None = None,
    target: str | None = None,
    force: bool = False,
) -> list[Path]:
    """Write a trade-off as one HTML page that opens from the disk, and a model card in Markdown beside it.

    Parameters
    ----------
    result : Tradeoff or path
        What `slimsvm.tradeoff` returned, or its CSV file. Of several studies in a file, the last is shown.
    X, y : rows and labels
        Those that the trade-off was made of; novelty detection has no labels.
    output : path, default="report.html"
        The page; the card has the ending .md.
    test : tuple of rows and labels, default=None
        The test rows, where the trade-off was given some.
    method : str, default=None
        The method that the page opens with; else the first that is not the full model.
    title : str, default=None
        The title; else the name of the data.
    target : {"avr", "cortex-m0", "cortex-m4"}, default=None
        A processor on which the C models of the method are measured, by its compiler and emulator.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    list of Path
        The page and the card.

    Examples
    --------
    >>> import tempfile, slimsvm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = slimsvm.tradeoff(X, y, methods=["nystroem"], budgets=[2, 4], name="iris")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in slimsvm.report(found, X, y, f"{folder}/iris.html")]
    ['iris.html', 'iris.md']
    """
    page = Path(output)
    check_written("a page", page)
    paths = [page, page.with_suffix(".md")]
    check_free(paths, force)
    if not isinstance(result, Tradeoff):
        result = read_tradeoff(result)
    if target is not None:
        board_of(target)
    study = replace(make_study(result, X, y, test, method, title), target=target)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # rows are arrays here
        text, words = render(study.title, with_models(study)), card(study, page.name)
    write_together(dict(zip(paths, [[text.encode()], [words.encode()]], strict=True)))
    return paths


def check_free(paths: Sequence[Path], force: bool) -> None:
    """Raise an error for files that exist."""
    taken = [str(path) for path in paths if path.exists()]
    if taken and not force:
        raise FileExistsError(
            f"{', '.join(taken)} exists already; give another name, or force=True (--force) to replace it"
        )


def make_study(
    result: Tradeoff, X: Matrix, y: Any, test: tuple[Matrix, Any] | None, method: str | None, title: str | None
) -> Study:
    """Return the last study of a result with its data."""
    if not result.rows:
        raise ValueError("the trade-off has no rows; run slimsvm.tradeoff or slimsvm tradeoff first")
    rows = last_study(result.rows)
    task = task_of_row(rows[-1])
    X, y = checked_rows(X, y, task=task)
    test = None if test is None else checked_rows(*test, width=X.shape[1], task=task)
    computed = fingerprint(X, y, *(test or ()))
    if computed != rows[-1]["fingerprint"]:
        raise ValueError(
            f"these are not the data of the trade-off: their fingerprint is {computed}, and its rows say "
            f"{rows[-1]['fingerprint']} ({rows[-1]['data']}). Give the same rows, labels and test rows, or run it again"
        )
    split = split_rows(X, y, test, _test_size(rows[-1]), rows[0]["seed"], task.has_classes)
    return Study(rows, result, split, _method(rows, method), title or rows[-1]["data"])


def _test_size(row: Row) -> float:
    share = settings_of(row).get("test_size", 0.25)
    if not isinstance(share, float) or not 0 < share < 1:
        raise ValueError(f"the settings of the trade-off have the test_size {short(share)}, which is no share of the rows")
    return share


def _method(rows: Sequence[Row], wanted: str | None) -> str:
    """Return the method that the page opens with."""
    there = list(dict.fromkeys(row["method"] for row in finished(rows)))
    if not there:
        reasons = "; ".join(dict.fromkeys(row["reason"] for row in rows))
        raise ValueError(f"no run of this trade-off has figures: {reasons}")
    if wanted is not None and wanted not in there:
        raise ValueError(f"the rows have no method {wanted!r}; they have {', '.join(there)}")
    return wanted or next((name for name in there if name != FULL), FULL)


def with_models(study: Study) -> dict[str, Any]:
    """Return what the page shows, with as many models as there is room for: those next to the chosen one first."""
    data = content(study) | {"stem": stem_of(study.title)}
    embedded = EmbeddedModels(LARGEST_PAGE - len(render(study.title, data | {"models": {}}).encode()))
    points = sorted(study.points, key=lambda point: _distance(study, point))
    models = {key_of(point): study.model(point) for point in points}
    for mine in (True, False):
        for makers in (LIVE, DOWNLOADS):
            for point in points:
                model = models[key_of(point)]
                if model is not None and (point.method == study.method) == mine:
                    method = re.sub("[^A-Za-z0-9]", "_", point.method)[:LONGEST_NAME]
                    name = f"{data['stem']}-{method}-{point.budget or 'all'}"
                    embedded.add(key_of(point), name, model, makers)
    return data | {"models": embedded.files, "reasons": embedded.reasons}


def _distance(study: Study, point: Any) -> float:
    """Return how far a model is from the chosen one, in doublings of its size."""
    chosen = study.chosen
    return abs(np.log2(max(point.size, 1) / max(chosen.size, 1))) if chosen else 0.0


def stem_of(title: str) -> str:
    """Return a name for files."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", Path(title).stem).strip("-")[:LONGEST_NAME] or "model"
