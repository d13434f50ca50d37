"""The ES module in a real browser; tests/test_export.py runs it in Node for every kernel and layout."""

import http.server
import json
import re
import subprocess
import threading
from functools import partial

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, assert_agrees, model_of

from slimsvm import export
from tools.targets import Outcome, missing

PAGE = """<!doctype html><meta charset="utf-8"><pre id="out">waiting</pre><script type="module">
import * as made from "./made.mjs";
const rows = await (await fetch("rows.json")).json();
const { classes = [], features, predict, scores } = made;
const result = { classes, features, labels: rows.map(predict), scores: scores ? rows.map(scores) : null };
document.getElementById("out").textContent = JSON.stringify(result);
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path):
    """A folder and its address on this machine."""
    folder = tmp_path / "site"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(bool(missing("chromium")), reason="chromium is not installed")
@pytest.mark.parametrize("layout", ["words", "votes", "regression", "novelty"])
def test_a_browser_gives_the_scores_of_python(served, tmp_path, layout):
    folder, address = served
    model = model_of(layout=layout, scaler="clipped")
    export(model, folder / "made.mjs")
    (folder / "rows.json").write_text(json.dumps(ROWS.tolist()))
    (folder / "index.html").write_text(PAGE)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"]
    command = ["chromium", *flags, "--virtual-time-budget=10000", "--dump-dom", f"{address}/index.html"]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = json.loads(re.search(r'<pre id="out">(.*?)</pre>', page, re.DOTALL)[1].replace("&amp;", "&"))
    assert found["features"] == 7
    assert found["classes"] == LAYOUTS[layout][0].tolist()
    scores = None if found["scores"] is None else np.array(found["scores"])
    assert_agrees(model, Outcome(np.array(found["labels"]), scores))
