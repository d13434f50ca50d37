"""Every reader meets mutants for some seconds (30 in CI, ten minutes in `make fuzz`); the fuzzer notices what it should."""

import os

import numpy as np
import pytest
from traps import READERS as TRAPS

import tools.fuzz.__main__ as fuzzer
from tools.fuzz.mutations import hostile_value, mutate_array, mutate_tree, mutate_words
from tools.fuzz.reader import mutant
from tools.fuzz.readers import READERS

SECONDS = float(os.environ.get("SLIMSVM_FUZZ_SECONDS", "8"))


@pytest.mark.parametrize("name", READERS)
def test_no_mutant_breaks_a_reader(name, tmp_path):
    report = fuzzer.fuzz(f"tools.fuzz.readers:{name}", SECONDS, seed=1, found=tmp_path)
    assert not report.findings, report.findings[0]
    assert report.mutants > 0


EXPECTED = {
    "crash": "status -",
    "hang": "it hangs",
    "memory": "MemoryError",
    "another error": "KeyError",
    "an error that names no file": "ValueError: bad",
    "a warning": "RuntimeWarning",
    "a file elsewhere": "opens",
    "a pickle": "pickle.find_class",
    "code in a text": "runs code of <string>",
    "a process, and the guard's error is caught": "os.system",
}


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_trap_is_a_finding_with_its_file(name, tmp_path, hurried):  # noqa: ARG001
    report = fuzzer.fuzz(f"traps:{name}", 20.0, found=tmp_path, most=1, patience=2.0)
    assert EXPECTED[name] in report.findings[0]
    assert (tmp_path / f"{name}-0-0.bin").read_bytes() == b"bad"
    assert not (tmp_path.parent / "elsewhere.txt").exists()


def test_a_clear_refusal_is_no_finding(tmp_path, hurried):  # noqa: ARG001
    report = fuzzer.fuzz("traps:refuses", 1.0, found=tmp_path)
    assert not report.findings
    assert report.mutants > report.read == 0


def test_every_trap_is_expected():
    assert set(TRAPS) == {*EXPECTED, "refuses"}


@pytest.mark.parametrize("name", READERS)
def test_most_mutants_differ_from_the_file_they_come_from(name):
    reader, rng = READERS[name], np.random.default_rng(0)
    content = next(iter(reader.seeds()))
    before = reader.to_bytes(content)
    mutants = [reader.to_bytes(mutant(reader, rng, content)) for _ in range(50)]
    assert reader.to_bytes(content) == before
    assert len(set(mutants) - {before}) > 40


def test_mutations_take_anything():
    rng = np.random.default_rng(0)
    arrays = [np.zeros(0), np.array(3.0), np.eye(3), np.array(["a", "bc"]), np.array([True]), np.arange(4, dtype=np.uint8)]
    for _ in range(300):
        tree = hostile_value(rng)
        mutate_tree(rng, tree)
        lines = [["a", "1:2"], []] if rng.random() < 0.5 else []
        mutate_words(rng, lines)
        assert isinstance(mutate_array(rng, arrays[int(rng.integers(len(arrays)))]), np.ndarray)
