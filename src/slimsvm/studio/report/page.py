"""The HTML page: a template with style, scripts and data in it, so that one file opens from the disk."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

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
