"""The file of rows: what it refuses, and how it says so."""

import pytest
from sklearn.datasets import load_iris

from slimsvm.tradeoffs import open_data, read_rows, tradeoff
from slimsvm.tradeoffs.datasets import DATASETS
from slimsvm.tradeoffs.rows import last_study

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def file(tmp_path):
    tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=tmp_path / "rows.csv", name="iris")
    return tmp_path / "rows.csv"


def changed(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return file


def test_rows_of_another_format_are_refused(file):
    changed(file, "\n1,", "\n99,")
    with pytest.raises(ValueError, match="rows of format 99, and this version of slimsvm reads format 1"):
        read_rows(file)


def test_rows_of_another_version_are_not_continued(file):
    version = read_rows(file)[0]["slimsvm"]
    changed(file, f",{version},", ",0.0.9,")
    with pytest.raises(ValueError, match=r"has rows of slimsvm 0\.0\.9, and this is .* force=True"):
        tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=file)
    assert read_rows(file)[0]["slimsvm"] == "0.0.9"  # left as it was


@pytest.mark.parametrize(("text", "words"), [("", "no rows"), ("a,b\n", "no rows"), ("a,b\n1,2\n", "format none")])
def test_files_without_rows_are_refused(tmp_path, text, words):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_rows(tmp_path / "rows.csv")


def test_an_empty_file_is_filled(tmp_path):
    (tmp_path / "rows.csv").touch()
    tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=tmp_path / "rows.csv")
    assert len(read_rows(tmp_path / "rows.csv")) == 2


def test_a_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(ValueError, match="slimsvm tradeoff DATA -o"):
        read_rows(tmp_path / "rows.csv")


def test_missing_columns_and_bad_numbers_are_named(file):
    with pytest.raises(ValueError, match="lacks the columns error"):
        read_rows(changed(file, "us,error,se", "us,wrong,se"))
    changed(file, "us,wrong,se", "us,error,se")
    with pytest.raises(ValueError, match="row 1 has 'many' in the column n_train"):
        read_rows(changed(file, ",112,", ",many,"))


def test_a_file_may_hold_several_studies(file):
    tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=file, C=7.0)
    rows = read_rows(file)
    assert len(rows) == 4
    assert last_study(rows) == rows[2:]


@pytest.mark.parametrize("name", DATASETS)
def test_named_data_sets_need_no_file(name):
    rows, labels = open_data(name)
    assert rows.shape[0] == labels.size > 100


def test_an_unknown_name_lists_the_names(tmp_path):
    with pytest.raises(ValueError, match=r"no file didgits, and no data set of that name; .* breast_cancer, digits"):
        open_data("didgits")
    with pytest.raises(ValueError, match=r"there is no folder .*missing; give a file .* digits"):
        open_data(tmp_path / "missing" / "a8a.libsvm")
    with pytest.raises(ValueError, match="is a folder; give a file in it"):
        open_data(tmp_path)


def test_a_file_is_read_by_its_ending(tmp_path):
    (tmp_path / "digits").write_text("1 1:2\n-1 1:3\n")
    assert open_data(tmp_path / "digits")[0].shape == (2, 1)
