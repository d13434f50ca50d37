"""The bytes of exported C that `fit` and `info` count are those of a compiler."""

import subprocess

import numpy as np
import pytest

from slimsvm import SlimSVC, export, load
from slimsvm.c_bytes import laid_out
from slimsvm.ship.c import CExporter
from slimsvm.ship.source import artefact_of as slim_artefact
from slimsvm.studio.cli import commands
from tools.c_code import compiled_bytes, drawn, source_of, usual, without_numbers
from tools.c_code_tables import artefact_of, frame, preparations
from tools.targets import missing

#: how many bytes more may be counted than a compiler makes of usual models, and of others
MOST_MORE, MOST_MORE_OTHERS = 64, 450


def counted_and_made(sample):
    source = source_of(sample)
    made = compiled_bytes(without_numbers(source.text()).encode())
    return source.cost.bytes, made, source.facts


@pytest.mark.skipif(bool(missing("gcc")), reason="needs gcc")
def test_usual_models_take_the_bytes_that_are_counted():
    known = list(usual())
    for number in np.random.default_rng(0).choice(len(known), 20, replace=False):
        sizes = {"points": 25, "classes": 5 + number % 4} if number % 2 else {}
        counted, made, facts = counted_and_made(known[number]._replace(**sizes))
        assert made <= counted <= made + MOST_MORE + (56 if facts[0].startswith("coded") else 0), facts


@pytest.mark.skipif(bool(missing("gcc")), reason="needs gcc")
def test_other_models_take_at_most_the_bytes_that_are_counted():
    known = list(drawn(np.random.default_rng(0)))
    for number in np.random.default_rng(1).choice(len(known), 30, replace=False):
        counted, made, facts = counted_and_made(known[number])
        assert made <= counted <= made + MOST_MORE_OTHERS, facts


@pytest.mark.skipif(bool(missing("gcc")), reason="needs gcc")
def test_a_budget_in_bytes_is_what_size_reports(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 6))
    svc = SlimSVC("1 KB", reducer="spsvm", random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    export(svc, tmp_path / "m.c", precision=svc.model_.precision)
    subprocess.run(["gcc", "-Os", "-c", "m.c", "-o", "m.o"], cwd=tmp_path, check=True)
    told = subprocess.run(["size", "m.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert 800 < sum(map(int, told.splitlines()[1].split()[:2])) <= 1024


@pytest.mark.skipif(bool(missing("gcc")), reason="needs gcc")
def test_the_preparation_of_a_table_takes_at_most_the_bytes_that_are_counted():
    fitted = list(preparations())
    for number in np.random.default_rng(0).choice(len(fitted), 8, replace=False):
        artefact = artefact_of(*fitted[number], "sign")  # the parts were measured with other decisions
        source = CExporter()._source(artefact, "model")
        made = compiled_bytes(source.text().encode())
        assert made <= source.cost.bytes <= 1.1 * made + 700, source.cost.facts


@pytest.mark.skipif(bool(missing("gcc")), reason="needs gcc")
def test_a_budget_in_bytes_counts_the_preparation_of_a_table(tmp_path):
    table = frame(3, 2, 0, 200).drop(columns="number 2").assign(label=lambda X: X["number 0"] * X["number 1"] > 4)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["train", tmp_path / "t.csv", "--label", "label", "-b", "3 KB", "-o", tmp_path / "m.slim"]
    assert commands.run([str(word) for word in words]) == 0
    source = CExporter()._source(slim_artefact(load(tmp_path / "m.slim")), "m")
    assert 2000 < compiled_bytes(source.text().encode()) <= source.cost.bytes <= 3072


def test_a_full_model_that_takes_more_bytes_is_shrunk_though_projected_ones_of_its_size_would_fit():
    X = np.random.default_rng(0).normal(size=(60, 40))
    svc = SlimSVC("1 KB", random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    assert CExporter().cost(slim_artefact(svc)).bytes <= 1024


def test_tables_begin_at_multiples_of_8_16_and_32_bytes():
    assert laid_out([(40, 4), (3, 1), (7, 1)]) == 32 + 40
    assert laid_out([(8, 4), (3, 1)]) == 8 + 8
    assert laid_out([(4, 4), (20, 1), (3, 1)]) == 16 + 20 + 4
    assert laid_out([(100, 4), (64, 2)]) == 164
