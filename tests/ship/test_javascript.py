"""What the ES module takes for a row, its types, and the module in a real browser; test_export.py runs every kernel."""

import http.server
import json
import re
import subprocess
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from shipped import LAYOUTS, ROWS, assert_agrees, model_of
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from slimsvm import SlimSVC, export, load, runtime, save
from slimsvm.ship.json import read_json
from slimsvm.ship.slim import read_slim
from slimsvm.ship.source import artefact_of
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


# What is a row, in Node.

with_node = pytest.mark.skipif(bool(missing("node")), reason="node is not installed")


def answers(module, calls):
    """What each call gives, or the name and the message of what it throws."""
    code = f"""
    const made = await import({module.as_uri()!r});
    const answer = (call) => {{ try {{ return call(made); }} catch (e) {{ return `${{e.name}}: ${{e.message}}`; }} }};
    console.log(JSON.stringify([{", ".join(f"(made) => {call}" for call in calls)}].map(answer)));"""
    done = subprocess.run(["node", "--input-type=module", "-"], input=code, capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


NO_ROWS = {
    "[1, 2, 3]": "RangeError: a row of 7 features has 3 values",
    "[1, 2, 3, 4, 5, 6, 7, 8]": "RangeError: a row of 7 features has 8 values",
    "[1, 2, 3, 4, 5, 6, NaN]": "RangeError: feature 6 is NaN, not a finite number",
    "[Infinity, 2, 3, 4, 5, 6, 7]": "RangeError: feature 0 is Infinity, not a finite number",
    "['1', 2, 3, 4, 5, 6, 7]": "TypeError: feature 0 is a string, not a number",
    "[1, , 3, 4, 5, 6, 7]": "TypeError: feature 1 is a undefined, not a number",
    "new BigInt64Array(7)": "TypeError: feature 0 is a bigint, not a number",
    "'seven77'": "TypeError: a row is an array of numbers, a Map, or",
    "{}": "TypeError: a row is an array of numbers, a Map, or",
    "{ a: 1, b: 2 }": "TypeError: a row is an array of numbers, a Map, or",
    "null": "TypeError: a row is an array of numbers, a Map, or",
    "undefined": "TypeError: a row is an array of numbers, a Map, or",
    "7": "TypeError: a row is an array of numbers, a Map, or",
    "new Map([['1', 2]])": "RangeError: there is no feature 1 of 7",
    "new Map([[1.5, 2]])": "RangeError: there is no feature 1.5 of 7",
    "new Map([[1, 'x']])": "TypeError: feature 1 is a string, not a number",
    "{ indices: [1, 7], values: [1, 1] }": "RangeError: there is no feature 7 of 7",
    "{ indices: [1, 1], values: [1, 1] }": "RangeError: a row lists a feature twice",
    "{ indices: [1, 2], values: [1] }": "RangeError: a row of 2 features has 1 values",
    "{ indices: '12', values: [1, 2] }": "TypeError: a row is an array of numbers, a Map, or",
}


def of_sparse_points(model):
    """The same function with points by their nonzeros."""
    model.model_ = type(model.model_)(
        model.model_.kernel, csr_array(model.model_.points), model.model_.coef, model.model_.bias, None
    )
    return model


@with_node
@pytest.mark.parametrize("layout", ["rest", "dag", "regression"])
@pytest.mark.parametrize("points", ["dense", "sparse"])
def test_what_is_no_row_throws(layout, points, tmp_path):
    model = model_of(layout=layout) if points == "dense" else of_sparse_points(model_of(layout=layout))
    export(model, tmp_path / "made.mjs")
    found = answers(tmp_path / "made.mjs", [f"made.predict({row})" for row in NO_ROWS])
    for row, given, wanted in zip(NO_ROWS, found, NO_ROWS.values(), strict=True):
        assert str(given).startswith(wanted), row


@with_node
@pytest.mark.parametrize("steps", [[], [MaxAbsScaler()], [StandardScaler()]], ids=["plain", "maxabs", "standard"])
@pytest.mark.parametrize("features", [40, 5000])
def test_a_model_of_csr_rows_takes_each_kind_of_row(features, steps, tmp_path):
    """Below 4,097 features its points are dense."""
    rng = np.random.default_rng(0)
    X = rng.random((60, features)) * (rng.random((60, features)) < 4 / features + 0.002)
    X[:, 0], y = rng.random(60), rng.integers(0, 2, 60)
    rows = X if steps and isinstance(steps[0], StandardScaler) else csr_array(X)
    model = make_pipeline(*steps, SlimSVC(8, trainer=None, kernel="laplacian", random_state=0)).fit(rows, y)
    export(model, tmp_path / "made.mjs")
    calls = []
    for row in X[:8]:
        index = np.flatnonzero(row)[::-1].tolist()
        values = row[index].tolist()
        pairs = [list(pair) for pair in zip(index, values, strict=True)]
        kinds = [row.tolist(), f"Float64Array.from({row.tolist()})", f"new Map({pairs})"]
        kinds += [f"{{ indices: {index}, values: {values} }}"]
        kinds += [f"{{ indices: Uint16Array.from({index}), values: Float64Array.from({values}) }}"]
        calls += [f"made.scores({row})[0]" for row in kinds]
    found = np.reshape(answers(tmp_path / "made.mjs", calls), (8, 5))
    np.testing.assert_allclose(found, np.repeat(model.decision_function(rows[:8])[:, None], 5, 1), atol=1e-5)


# Types.

EXPORTED = re.compile(r"^export (?:declare )?(?:const|function) (\w+)", re.MULTILINE)
USE = """import { classes, featureNames, features, predict, proba, scores, type Label, type Row } from "./made.mjs";
const row: Row = new Float32Array(features), label: Label = predict(row), first: "no" = classes[0];
const more: number[][] = [proba([1, 2]), scores(new Map([[1, 2]])), scores({ indices: [1], values: [2] })];
const names: readonly ["width", "naïve \\"name\\""] = featureNames;
export { first, label, more, names };
"""


def named_model():
    """A model of two named features, with probabilities."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["width", 'naïve "name"'])
    y = np.where(X["width"] > 0, "yes", "no")
    return make_pipeline(StandardScaler(), SlimSVC(6, calibration="sigmoid", random_state=0)).fit(X, y), X


def test_the_types_are_those_of_the_module(tmp_path):
    model, _ = named_model()
    assert export(model, tmp_path / "made.mjs") == [tmp_path / "made.mjs", tmp_path / "made.d.mts"]
    module, types = ((tmp_path / f"made{ending}").read_text() for ending in (".mjs", ".d.mts"))
    assert sorted(EXPORTED.findall(module)) == sorted(EXPORTED.findall(types))
    for line in ('classes: readonly [\n    "no", "yes"\n];', "features: 2;", "predict(row: Row): Label;"):
        assert line in types
    assert export(model, tmp_path / "made.js") == [tmp_path / "made.js", tmp_path / "made.d.ts"]
    for layout, predicted in {"regression": "number", "novelty": "1 | -1"}.items():
        export(model_of(layout=layout), tmp_path / f"{layout}.mjs")
        module, types = ((tmp_path / f"{layout}{ending}").read_text() for ending in (".mjs", ".d.mts"))
        assert sorted(EXPORTED.findall(module)) == sorted(EXPORTED.findall(types))
        assert f"predict(row: Row): {predicted};" in types


@pytest.mark.skipif(bool(missing("tsc")), reason="tsc is not installed")
def test_a_compiler_finds_the_types(tmp_path):
    export(named_model()[0], tmp_path / "made.mjs")
    (tmp_path / "use.mts").write_text(USE)
    command = ["tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "use.mts"]
    subprocess.run(command, cwd=tmp_path, check=True)


# Names of features.


def test_names_of_features_go_along(tmp_path):
    model, X = named_model()
    names = ("width", 'naïve "name"')
    for name in ("made.c", "made.mjs", "made.json"):
        export(model, tmp_path / name)
    assert '#define MADE_FEATURE_NAMES { "width", "na\\303\\257ve \\042name\\042" }' in (tmp_path / "made.h").read_text()
    assert 'featureNames = [\n    "width", "na\\u00efve \\"name\\""\n];' in (tmp_path / "made.mjs").read_text()
    assert read_json(tmp_path / "made.json").names == names
    save(model, tmp_path / "made.slim")
    assert read_slim(tmp_path / "made.slim").names == names == artefact_of(load(tmp_path / "made.slim")).names
    np.testing.assert_array_equal(runtime(tmp_path / "made.json")(X), model.predict(X))


def test_models_without_names_say_nothing_of_them(tmp_path):
    for name in ("made.c", "made.mjs", "made.json"):
        export(model_of(), tmp_path / name)
    assert not any(word in path.read_text() for path in tmp_path.iterdir() for word in ("NAMES", "eatureNames", '"names"'))


def test_names_of_other_features_are_refused(tmp_path):
    document = json.loads(export(model_of(), tmp_path / "made.json")[0].read_text())
    for names in (["a"], [1] * 7, "abcdefg"):
        (tmp_path / "made.json").write_text(json.dumps(document | {"names": names}))
        with pytest.raises(ValueError, match="names"):
            read_json(tmp_path / "made.json")
