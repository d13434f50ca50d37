"""Rows of equal bytes as a table, and how often slim is first."""

from benchmarks.equal_bytes_shown import markdown


def row(contender, error, data="magic", **more):
    figures = {"error": error, "standard_error": 0.5, "microseconds": 1.5}
    return {"data": data, "kilobytes": 4, "contender": contender} | figures | more


def test_sets_into_which_few_points_fit_are_not_counted():
    rows = [
        row("slim", 10.4, fitting=40, points=6),
        row("lightgbm", 10.0),
        row("slim", 30.0, "mnist", fitting=5, points=5),
        row("mlp", 12.0, "mnist"),
        row("slim", 10.6, "a8a", fitting=20, points=20),
        row("mlp", 10.0, "a8a"),
        row("slim", 70.0, "abalone", goal="values"),
        row("mlp", 60.0, "abalone", goal="values"),
        {"data": "usps", "kilobytes": 4, "contender": "slim", "skipped": "too few bytes"},
    ]
    text = markdown(rows)
    assert "| magic, 4 | 10.40 ± 0.50, 1.5 µs | **10.00** ± 0.50, 1.5 µs | – |" in text
    assert "4 KB, slim: first or within a standard error of the first on 1 of 2 data sets with classes." in text
