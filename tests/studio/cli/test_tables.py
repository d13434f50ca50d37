"""train, predict, compress and export on tables with words, dates and holes."""

import io

import numpy as np
import pandas as pd
import pytest

from slimsvm import load, runtime
from slimsvm.studio.cli import commands as cli

ROWS = 120


def table(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.normal(40, 10, ROWS).round(1), "sex": rng.choice(["male", "female"], ROWS)})
    frame["since"] = pd.Series(pd.date_range("2020-01-01", periods=ROWS)).dt.strftime("%Y-%m-%d")
    frame["town, or city"] = rng.choice(["Ulm", "NA", 'O"Hara'], ROWS)
    frame["name"] = [f"somebody {number}" for number in range(ROWS)]
    frame["grade"] = rng.integers(3, size=ROWS)
    frame["survived"] = np.where((frame["sex"] == "female") ^ (frame["age"] > 60), "yes", "no")
    frame.loc[::9, "age"] = np.nan
    frame.loc[::11, "since"] = ""
    return frame


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_csv("train.csv", index=False)
    table(1).to_csv("test.csv", index=False)

    def run(line, code=0):
        found = cli.run(line.split())
        out = capsys.readouterr()
        assert found == code, out.err
        return out

    return run


def test_a_table_becomes_a_model_whose_preparation_is_in_the_file_and_in_the_exports(run):
    told = run("train train.csv -b 8 --test test.csv").err
    assert "1 of words" not in told
    assert "2 of numbers (age, grade), 2 of words (sex, town, or city), 1 of dates (since)" in told
    assert "left out: name has 120 different words" in told
    found = run("predict model.slim test.csv").out.split()
    assert np.mean(found == table(1)["survived"]) > 0.9
    reordered = table(1)[["survived", "grade", "sex", "town, or city", "since", "age"]]
    reordered.assign(more=1).to_csv("other.csv", index=False)
    assert run("predict model.slim other.csv").out.split() == found
    run("export model.slim -o model.c")
    run("export model.slim -o model.mjs")
    cells = pd.read_csv("test.csv")
    assert runtime("model.slim")(cells).tolist() == found
    assert load("model.slim").predict(cells).tolist() == found
    run("compress model.slim train.csv -b 4")
    assert "ColumnTransformer" in run("info small.slim").out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--drop size", "no column size"),
        ("--drop age --numeric age", "named for two uses"),
        ("--numeric sex", "column 'sex': 'female' is not a finite number"),
        ("--scale minmax", "leave --scale out"),
    ],
)
def test_options_that_cannot_be_met_are_refused(run, options, words):
    code = 1 if "finite" in words else 2
    assert words in " ".join(run(f"train train.csv -b 4 {options}", code=code).err.split())


def test_columns_are_used_as_the_options_say(run):
    told = run("train train.csv -b 4 --categorical grade --drop since,name").err
    assert "1 of numbers (age), 3 of words (sex, town, or city, grade)" in told


def test_a_column_that_the_model_needs_and_a_word_in_the_place_of_a_number_are_refused(run):
    run("train train.csv -b 4")
    table(1).drop(columns="sex").to_csv("other.csv", index=False)
    assert "lacks 1 of the model's features, ['sex']" in run("predict model.slim other.csv", code=1).err
    table(1).assign(age="old").to_csv("other.csv", index=False)
    assert "column 'age': 'old' is not a finite number" in run("predict model.slim other.csv", code=1).err


def test_words_among_many_numbers_are_refused_by_name(run):
    frame = table().assign(weight=np.random.default_rng(0).normal(size=ROWS).round(4).astype(str))
    frame.loc[5, "weight"] = "heavy"
    frame.to_csv("train.csv", index=False)
    assert "'weight' has numbers and 1 words, such as 'heavy'" in run("train train.csv -b 4 --label survived", code=1).err


def test_parquet_files_with_words_are_tables_too(run):
    pytest.importorskip("pyarrow")
    frame = table()
    frame["sex"] = frame["sex"].astype("category")
    frame["since"] = pd.to_datetime(frame["since"])
    frame.to_parquet("train.parquet")
    assert "1 of dates (since)" in run("train train.parquet --label survived -b 8").err
    frame.to_csv("same.csv", index=False)
    assert run("predict model.slim train.parquet").out == run("predict model.slim same.csv").out


def test_a_table_of_numbers_gives_the_model_of_numbers(run):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)).round(3), columns=list("abc"))
    frame.assign(y=(frame["a"] > 0) * 1).to_csv("train.csv", index=False)
    assert "Columns" not in run("train train.csv -b 4").err
    assert "preprocessing                 none" in run("info model.slim").out
    assert io.StringIO(run("predict model.slim train.csv").out).read().count("\n") == 50
