"""The page that compares models of equal bytes is made from rows."""

import pytest

from benchmarks.comparison import ROWS, write_page
from benchmarks.equal_bytes_shown import read_rows


def row(contender, error, data="magic", **more):
    figures = {"error": error, "standard_error": 0.5, "bytes": 1000, "microseconds": 1.5, "seconds_given": 20.0}
    return {"data": data, "kilobytes": 1, "contender": contender, "machine": "a machine"} | figures | more


@pytest.fixture
def pictures():
    pytest.importorskip("matplotlib")


@pytest.mark.usefixtures("pictures")
def test_the_lowest_error_is_bold_and_close_ones_are_counted(tmp_path):
    rows = [row("slim-fixed", 10.4), row("lightgbm", 10.0), row("mlp", 12.0), row("mlp", 1.0, data="a8a")]
    text = write_page(rows, tmp_path).read_text()
    assert "| magic | 10.40 ± 0.50, 1.5 µs | **10.00** ± 0.50, 1.5 µs | 12.00 ± 0.50, 1.5 µs |" in text
    assert "| slim, metric fixed | 1 of 1 |" in text
    assert "| small network | 1 of 2 |" in text
    assert "| a8a | – | – | **1.00**" in text


@pytest.mark.usefixtures("pictures")
def test_a_contender_without_a_name_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no name on the page for stump"):
        write_page([row("stump", 1.0)], tmp_path)


@pytest.mark.usefixtures("pictures")
def test_the_page_in_the_docs_is_that_of_its_rows(tmp_path):
    page = write_page(read_rows(ROWS), tmp_path)
    assert page.read_text() == (ROWS.parents[1] / "comparison.md").read_text()
