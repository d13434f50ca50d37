"""Pipelines that begin with a vectorizer: in JavaScript, files and the runtime, texts lead to the same predictions."""

import json
import re
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from slimsvm import SlimSVC, compress, export, load, runtime, save
from slimsvm.files.container import pack_file, unpack_file
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.javascript import expression
from slimsvm.ship.slim import read_slim
from slimsvm.words import PLAIN, Words
from tools.targets import missing, run_js_on

with_node = pytest.mark.skipif(bool(missing("node")), reason="node is not installed")
#: words whose case, length or borders differ between languages and programs
STRANGE = [
    "straße",
    "ΣΊΣΥΦΟΣ",
    "İstanbul",
    "ﬁn",
    "don't",
    "naïve",
    "i̇x",
    "Ǆungla",
    "x_1",
    "Ⅻ",
    "٣٤",
    "漢字",
    "नमस्ते",
    "étude",
    "👍ok",
    "a１b",
    "½cup",
    "ab\u200bcd",
    "\x85",
    "ſo",
    "K",
]
STOP_WORDS = ["the", "and", "of", "straße"]
VECTORIZERS = {
    "counts": CountVectorizer(),
    "binary": CountVectorizer(binary=True, lowercase=False, dtype=np.float32),
    "tf-idf": TfidfVectorizer(),
    "runs": TfidfVectorizer(ngram_range=(1, 2), stop_words=STOP_WORDS, sublinear_tf=True, norm="l1", max_features=400),
    "english": TfidfVectorizer(stop_words="english", ngram_range=(2, 3), use_idf=False),
    "letters": TfidfVectorizer(token_pattern=r"[a-zA-Zß'/-]+|\b\d{1,3}\b", norm=None),
    "given": CountVectorizer(vocabulary={"church": 1, "engine": 0, "the": 2}, stop_words=STOP_WORDS, token_pattern=r"\w+"),
}


def made_texts(n=160, seed=0):
    """Texts of two groups: words of a Zipf law, of which a few belong to a group, in any case, with strange words."""
    rng = np.random.default_rng(seed)
    common = [*STOP_WORDS, *(f"{a}{b}" for a in "kalmeripo" for b in ("ton", "rum", "ity", "ax", "12", "é"))]
    groups = [["church", "faith", "gospel", "Σίσυφος"], ["engine", "brake", "wheel", "straße"]]
    weights = 1 / np.arange(1, len(common) + 1)
    texts, y = [], rng.integers(0, 2, n)
    for group in y:
        words = [*rng.choice(common, 12, p=weights / weights.sum()), *rng.choice(groups[group], 3), *rng.choice(STRANGE, 2)]
        words = [word.upper() if rng.random() < 0.2 else word for word in rng.permutation(words).tolist()]
        texts.append(str(rng.choice([" ", ", ", "\n"])).join(words) + "!")
    return texts, np.array(["religion", "autos"])[y]


def pipeline_of(vectorizer, *steps, **settings):
    texts, y = made_texts()
    return make_pipeline(vectorizer, *steps, SlimSVC(**{"budget": 12, "random_state": 0} | settings)).fit(texts, y)


TEXTS = [*made_texts(60, 1)[0], "", "the", "!!!", *STRANGE, " ".join(STRANGE), " ".join(STRANGE).upper()]


def assert_ships(model, folder, texts=TEXTS):
    """A file, the runtime and JavaScript give Python's labels and scores."""
    expected = model.decision_function(texts)
    save(model, folder / "text.slim")
    np.testing.assert_array_equal(load(folder / "text.slim").decision_function(texts), expected)
    assert read_slim(folder / "text.slim") is not None
    for run in (runtime(model), runtime(folder / "text.slim")):
        np.testing.assert_allclose(run.scores(texts).ravel(), expected, atol=1e-9)
        np.testing.assert_array_equal(run(texts), model.predict(texts))
        assert run(texts[0]) == model.predict(texts[:1])[0]
    if missing("node"):
        return
    export(model, folder / "text.mjs", force=True)
    found = run_js_on(folder / "text.mjs", texts)
    np.testing.assert_allclose(found.scores[:, 0], expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(found.labels, model.predict(texts))


@pytest.mark.parametrize("name", VECTORIZERS)
def test_every_vectorizer_ships(name, tmp_path):
    assert_ships(pipeline_of(VECTORIZERS[name]), tmp_path)


@pytest.mark.parametrize(
    "steps",
    [[TfidfTransformer(sublinear_tf=True)], [TfidfTransformer(), MaxAbsScaler()], [StandardScaler(with_mean=False)]],
    ids=["weights", "weights, scaler", "scaler"],
)
def test_steps_after_the_vectorizer_go_along(steps, tmp_path):
    assert_ships(pipeline_of(CountVectorizer(), *steps), tmp_path)


@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {"calibration": "sigmoid"}, {"kernel": "laplacian"}], ids=str)
def test_every_kernel_takes_texts(settings, tmp_path):
    assert_ships(pipeline_of(TfidfVectorizer(), **settings), tmp_path)


def test_many_words_are_sparse_points(tmp_path):
    """Above 4,096 features points are tables of nonzeros."""
    texts, y = made_texts(80)
    texts = [
        f"{text} {' '.join(f'word{number}' for number in range(80 * row, 80 * row + 80))}" for row, text in enumerate(texts)
    ]
    model = make_pipeline(TfidfVectorizer(), SlimSVC(12, random_state=0)).fit(texts, y)
    assert_ships(model, tmp_path, [*TEXTS, *texts[:5]])
    assert len((tmp_path / "text.mjs").read_bytes()) < 12 * model[0].idf_.size * 4


def test_compress_takes_texts(tmp_path):
    texts, y = made_texts()
    full = make_pipeline(TfidfVectorizer(), SlimSVC()).fit(texts, y)
    assert_ships(compress(full, texts, y, budget=8, random_state=0), tmp_path)


@with_node
def test_javascript_refuses_what_is_no_text(tmp_path):
    export(pipeline_of(TfidfVectorizer()), tmp_path / "text.mjs")
    assert "export type Row = string;" in (tmp_path / "text.d.mts").read_text()
    for row in (["a", "b"], 7, {"indices": [], "values": []}):
        with pytest.raises(subprocess.CalledProcessError) as failed:
            run_js_on(tmp_path / "text.mjs", [row])
        assert "TypeError: a row is a text" in failed.value.stderr
    with pytest.raises(TypeError, match="a text or a list of texts"):
        runtime(pipeline_of(TfidfVectorizer()))([1.5])


@with_node
@pytest.mark.parametrize(
    "pattern", [r"(?u)\b\w\w+\b", r"\b\w+\b", r"\S+", r"\B\w", r"[\w'/.-]+", r"\d+|[^\s\d,!]{2,}?", r"x\.\-?\/"]
)
def test_patterns_find_the_same_words_in_javascript(pattern, tmp_path):
    """On every character that this Python knows, between letters, digits and spaces."""
    known = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    text = "".join(f"a{c}{c}1 x.-/{c} " for c in known)
    (tmp_path / "text.json").write_text(json.dumps(text))
    code = f"""
    const text = JSON.parse(require("node:fs").readFileSync({str(tmp_path / "text.json")!r}, "utf8"));
    console.log(JSON.stringify(text.match(/{expression(pattern)}/gu)));"""
    done = subprocess.run(["node", "-"], input=code, capture_output=True, check=True, text=True)
    assert json.loads(done.stdout) == re.findall(pattern, text)


@pytest.mark.parametrize(
    "pattern", [r"(\w)+", r"(?:a|b)*", r"(?i)\w+", r"\w++", r".+", r"[\W]", r"a\n", "[a\n]", r"\p", "[[:alpha:]]", ""]
)
def test_other_patterns_are_refused(pattern):
    assert not PLAIN.fullmatch(pattern)


OTHERS = {
    "analyzer='char'": CountVectorizer(analyzer="char"),
    "tokenizer=": CountVectorizer(tokenizer=str.split, token_pattern=None),
    "preprocessor=": CountVectorizer(preprocessor=str.strip),
    "strip_accents='unicode'": TfidfVectorizer(strip_accents="unicode"),
    "token_pattern=": TfidfVectorizer(token_pattern=r"(\w)\w*"),
}


@pytest.mark.parametrize("words", OTHERS)
def test_other_vectorizers_are_refused_with_the_way_out(words, tmp_path):
    model = pipeline_of(OTHERS[words])
    for ship in (runtime, lambda m: export(m, tmp_path / "m.mjs"), lambda m: save(m, tmp_path / "m.slim")):
        with pytest.raises(ValueError, match=rf"cannot ship a vectorizer with {words}.*pipeline\[1:\]"):
            ship(model)
    assert list(tmp_path.iterdir()) == []
    export(model[1:], tmp_path / "m.mjs")


def test_a_hashing_vectorizer_is_refused(tmp_path):
    model = pipeline_of(HashingVectorizer(n_features=64))
    with pytest.raises(ValueError, match="cannot ship a Pipeline with a HashingVectorizer"):
        export(model, tmp_path / "m.mjs")


@pytest.mark.parametrize("target", [name for name, kind in EXPORTERS.items() if kind.ending and name != "js"])
def test_other_targets_name_the_way_out(target, tmp_path):
    if target == "onnx":
        pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"begins with a vectorizer of texts. Write JavaScript \(.mjs\), save it as .slim"):
        export(pipeline_of(TfidfVectorizer()), tmp_path / f"m{EXPORTERS[target].ending}")


def changed_file(path, change):
    """Write a file again with another vectorizer."""
    header, arrays = unpack_file(path.read_bytes())
    change(header["model"]["steps"][0][1])
    del header["arrays"]
    path.write_bytes(b"".join(pack_file(header, arrays)))


HARM = {
    "input": lambda step: step["params"].update(input="filename"),
    "token_pattern": lambda step: step["params"].update(token_pattern="(a+)+$"),
    "no regular expression": lambda step: step["params"].update(token_pattern="[z-a]"),
    "ngram_range": lambda step: step["params"].update(ngram_range={"tuple": [0, 10**9]}),
    "strange settings": lambda step: step["params"].update(ngram_range=7),
    "lists a word twice": lambda step: step["fitted"]["vocabulary_"]["strings"].__setitem__(0, "church"),
    "idf": lambda step: step["fitted"].update(idf_=[1.0]),
    "strange": lambda step: step["fitted"].pop("idf_"),
    "without a vocabulary": lambda step: step["fitted"].pop("vocabulary_"),
    "of numbers": lambda step: step["params"].update(dtype="O"),
    "norm": lambda step: step["params"].update(norm="max"),
    "number of features": lambda step: [
        step["fitted"]["vocabulary_"]["strings"].append("zzz"),
        step["params"].update(use_idf=False),
    ],
    "not at the head": lambda step: step.update(type="TfidfTransformer", params={}),
}


@pytest.mark.parametrize("words", HARM)
def test_damaged_vectorizers_are_refused(words, tmp_path):
    path = tmp_path / "text.slim"
    save(pipeline_of(TfidfVectorizer()), path)
    changed_file(path, HARM[words])
    with pytest.raises(ValueError, match=words):
        load(path)
    assert read_slim(path) is None or words == "of numbers"  # which the runtime needs not know


def test_words_are_told_from_text_at_once():
    words = Words.of(CountVectorizer(), ["aa", "bb"])
    starts, columns, values = words(["aa bb aa", "cc"])
    assert (starts.tolist(), columns.tolist(), values.tolist()) == ([0, 2, 2], [0, 1], [2.0, 1.0])


@pytest.mark.parametrize("command", ["predict", "compress"])
def test_the_command_line_says_that_a_model_takes_texts(command, tmp_path):
    save(pipeline_of(TfidfVectorizer()), tmp_path / "text.slim")
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n")
    more = ["-b", "4", "-o", "small.slim"] if command == "compress" else []
    line = [sys.executable, "-m", "slimsvm", command, "text.slim", "rows.csv", *more]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "slimsvm.runtime" in done.stderr
