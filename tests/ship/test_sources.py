"""The sources of exported code: tools read them as they are, and what is written of them is the same program."""

import re
import subprocess

import numpy as np
import pytest
from shipped import ROWS, model_of
from test_sparse import sparse_model

from slimsvm.ship.c_source import FLASH, CSource, SparseCSource
from slimsvm.ship.quantise import quantise
from slimsvm.ship.source import artefact_of
from slimsvm.ship.template import filled, holds, source
from tools.targets import missing, run_c


def source_of(kind):
    sparse, layout, precision = {
        "sums": (False, "rest", "float32"),
        "walk": (False, "dag", "float32"),
        "integers": (False, "votes", "int8"),
        "nonzeros": (True, "two", "float32"),
    }[kind]
    artefact = artefact_of(
        (sparse_model if sparse else model_of)(layout=layout, scaler="standard" if not sparse else "none")
    )
    if sparse:
        return artefact, SparseCSource.of(artefact, "made", precision)
    a = artefact.compact()
    return artefact, CSource(a, "made", precision, None if precision == "float32" else quantise(a, 8))


def macros(made):
    """The names and words of a model, as a preprocessor takes them."""
    kinds = {kind: number for number, kind in enumerate(sorted(set(re.findall(r"[!=]= ([A-Z_]+)", source("model.c")))), 1)}
    values = {name: kinds.get(value, 0) if isinstance(value, str) else int(value) for name, value in made.branches.items()}
    words = {name: word for name, word in made.words.items() if word != name}
    return "".join(f"#define {name} {value}\n" for name, value in (kinds | values | words).items() if name != "CLASSES")


@pytest.mark.parametrize("kind", ["sums", "walk", "integers", "nonzeros"])
def test_a_compiler_reads_the_source_of_c_as_it_is(kind, tmp_path):
    if reason := missing("gcc"):
        pytest.skip(reason)
    artefact, made = source_of(kind)
    front = [made.constants(), "\n".join(made.prototypes()), made.tables()]
    (tmp_path / "made.h").write_text(made.header())
    outcomes = []
    for text in (made.text(), "\n".join([*front, macros(made), source("model.c")])):
        (tmp_path / "made.c").write_text(text)
        outcomes.append(run_c(tmp_path / "made.c", artefact, ROWS))
    np.testing.assert_array_equal(outcomes[0].labels, outcomes[1].labels)
    np.testing.assert_array_equal(outcomes[0].scores, outcomes[1].scores)


@pytest.mark.skipif(bool(missing("node")), reason="node is not installed")
def test_node_reads_the_source_of_javascript_as_it_is(tmp_path):
    (tmp_path / "model.mjs").write_text(source("model.mjs"))
    subprocess.run(["node", "--check", tmp_path / "model.mjs"], check=True)


def test_exported_code_is_free_of_notices_and_of_branches():
    _, made = source_of("sums")
    for text in (made.text(), made.header()):
        assert "0BSD" in text
    text = made.text().replace("\n".join(FLASH), "")
    assert not re.search(r"^#(if|elif|endif)", text, re.MULTILINE)


def test_branches_nest_and_words_are_whole():
    text = "#if A\n#if B == ONE\nfirst word\n#else\nsecond words\n#endif\n#elif C || D\nthird word\n#else\nlast\n#endif\n"
    chosen = [filled(text, names, {"word": "1"}) for names in ({"A": 1, "B": "ONE"}, {"A": 1, "B": "TWO"})]
    chosen += [filled(text, {"A": 0, "C": 0, "D": d}, {"word": "", "third": "3"}) for d in (1, 0)]
    assert chosen == ["first 1\n", "second words\n", "3 \n", "last\n"]
    assert holds("A && B != ONE", {"A": 1, "B": "TWO"})
