"""The file of rows: what it refuses, and how it says so."""

import csv
import io

import pytest
from sklearn.datasets import load_iris

from slimsvm import report
from slimsvm.studio.tradeoff import open_data, read_rows, read_tradeoff, smallest_good, tradeoff
from slimsvm.studio.tradeoff.datasets import DATASETS
from slimsvm.studio.tradeoff.rows import last_study, settings_of

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


@pytest.mark.parametrize(
    ("text", "words"), [("", "no rows"), ("a,b\n1,2\n", "no file of slimsvm tradeoff"), ("format,b\n,2\n", "format none")]
)
def test_files_without_rows_are_refused(tmp_path, text, words):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_rows(tmp_path / "rows.csv")


def test_an_empty_file_is_filled(tmp_path):
    (tmp_path / "rows.csv").touch()
    tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=tmp_path / "rows.csv")
    assert len(read_rows(tmp_path / "rows.csv")) == 2


@pytest.mark.parametrize("content", [b"\\begin{document}\nno line end", b"\x00" * 100, b"a,b\n", b"a,b\n1,2\n3", b"x"])
def test_a_file_of_something_else_stays_as_it_is(tmp_path, content):
    (tmp_path / "thesis.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"thesis\.csv.* Give another file, or force=True \(--force\) to replace this one"):
        tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=tmp_path / "thesis.csv")
    assert (tmp_path / "thesis.csv").read_bytes() == content


def test_a_file_whose_columns_have_another_order_is_not_continued(file):
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    with file.open("w") as target:
        writer = csv.DictWriter(target, sorted(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    before = file.read_bytes()
    with pytest.raises(ValueError, match="another order or other line ends"):
        tradeoff(X, Y, methods=["nystroem"], budgets=[4], file=file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("length", [5, "header", "row"])
def test_a_file_that_was_cut_off_is_continued(file, length):
    content = file.read_bytes()
    header = content.index(b"\n") + 1
    file.write_bytes(content[: {"header": header, "row": header + 9}.get(length, length)])
    tradeoff(X, Y, methods=["nystroem"], budgets=[3], file=file, name="iris")
    assert [row["method"] for row in read_rows(file)] == ["full", "nystroem"]


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
    rows, labels, names = open_data(name)
    assert rows.shape[0] == labels.size > 100
    assert names is None or len(names) == rows.shape[1]


def test_an_unknown_name_lists_the_names(tmp_path):
    with pytest.raises(ValueError, match=r"no file didgits, and no data set of that name; .* breast_cancer, diabetes"):
        open_data("didgits")
    with pytest.raises(ValueError, match=r"there is no folder .*missing; give a file .* digits"):
        open_data(tmp_path / "missing" / "a8a.libsvm")
    with pytest.raises(ValueError, match="is a folder; give a file in it"):
        open_data(tmp_path)


def test_a_file_is_read_by_its_ending(tmp_path):
    (tmp_path / "digits").write_text("1 1:2\n-1 1:3\n")
    assert open_data(tmp_path / "digits")[0].shape == (2, 1)


def with_cell(file, column, cell, row=2):
    """Write another cell into a row."""
    lines = list(csv.reader(io.StringIO(file.read_text(), newline="")))
    lines[row][lines[0].index(column)] = cell
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    file.write_text(text.getvalue())
    return file


@pytest.mark.parametrize(
    "cell", ["/etc/passwd", "../a.slim", "a/b.slim", "..\\a.slim", "C:a.slim", "a", "\x00.slim", ".slim"]
)
def test_models_lie_in_the_folder_beside_the_rows(file, cell):
    with pytest.raises(ValueError, match=r"in the column model, where the name of a \.slim file in the folder of models"):
        read_tradeoff(with_cell(file, "model", cell))


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("size", "1_1"),
        ("size", "-1"),
        ("size", "٣"),
        ("budget", "9" * 30),
        ("seed", "1.0"),
        ("error", "0_1"),
        ("us", "much"),
        ("error", "inf"),
        ("se", "1e300"),
        ("path", "2:0.5 4"),
        ("path", "2:0.5 x:0.5"),
    ],
)
def test_numbers_are_read_strictly(file, column, cell):
    with pytest.raises(ValueError, match=f"row 2 has .* in the column {column}, where"):
        read_rows(with_cell(file, column, cell))


@pytest.mark.parametrize("column", ["error", "size", "us", "seed"])
def test_a_finished_run_has_its_figures(file, column):
    with pytest.raises(ValueError, match=f"row 2 has nothing in the column {column}"):
        read_rows(with_cell(file, column, ""))


@pytest.mark.parametrize("settings", ["[" * 100_000, '{"test_size": []}', '{"test_size": 7}', '{"test_size": "half"}'])
def test_settings_of_a_file_may_be_anything(file, settings, tmp_path):
    for row in (1, 2):
        with_cell(file, "settings", settings, row)
    found = read_tradeoff(file)
    if settings.startswith("["):
        assert settings_of(found.rows[0]) == {}
    else:
        with pytest.raises(ValueError, match=r"test_size .*, which is no share of the rows"):
            report(found, X, Y, tmp_path / "page.html")


def test_names_of_methods_may_be_long(file, tmp_path):
    found = read_tradeoff(with_cell(file, "method", "9" * 400))
    assert [path.name for path in report(found, X, Y, tmp_path / "page.html")] == ["page.html", "page.md"]


def test_a_run_without_a_budget_is_no_choice_among_budgets(file):
    rows = read_rows(with_cell(with_cell(file, "budget", ""), "validation_error", "0.5"))
    assert smallest_good(rows, "nystroem") is None
