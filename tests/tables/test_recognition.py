"""What the columns of a table hold, and tables that nothing can be learned from."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from slimsvm import SlimSVC, table_preparation
from slimsvm.tables.preparation import is_table
from slimsvm.tables.recognition import days_of, kind_of

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2, 3], "number"),
        ([True, False, True], "number"),
        ([1, None, 2.5], "number"),
        ([1.0, 1.0, None], "number"),
        (["a", "b", None], "word"),
        (["a", "a", None], "word"),
        (pd.to_datetime(["2020-01-01", None, "2021-01-01"]), "date"),
        ([datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)], "date"),
        ([None, None], "nothing"),
        ([np.nan, np.nan], "nothing"),
        (["a", "a"], "nothing"),
        ([3, 3], "nothing"),
        ([f"name {number}" for number in range(100)], "nothing"),
    ],
)
def test_columns_are_recognised_by_their_values(cells, kind):
    assert kind_of(np.asarray(cells), "x").name == kind


@pytest.mark.parametrize("cells", [["a", 1, 2], [[1], [2, 3]], [{}, {}], [b"a", b"b"], [1j, 2j]])
def test_columns_of_mixed_types_and_of_lists_are_refused_by_name(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    with pytest.raises(ValueError, match=r"column 'x' has cells of several types or of none that is known, .*"):
        kind_of(column, "x")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (np.char.add("k", np.arange(10**6).astype(str)).astype(object), "1,000,000 different words .*: free text"),
        (np.arange(99).astype(str).astype(object), "99 different words in 99 rows: numbers as text, to be made numbers"),
        (np.full(5, None), "has no values"),
        (np.full(5, "a", dtype=object), "has one value only"),
    ],
)
def test_columns_that_nothing_can_be_learned_from_say_why(cells, reason):
    assert re.search(reason, kind_of(cells, "x").reason)


def test_infinite_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="column 'x' has infinite numbers"):
        kind_of(np.array([1.0, np.inf]), "x")


def test_dates_with_and_without_zones_are_days_in_utc():
    zone = datetime.timezone(datetime.timedelta(hours=6))
    cells = ["1970-01-02", datetime.datetime(1970, 1, 2, 6, tzinfo=zone), np.datetime64("1970-01-02"), 1, None, pd.NaT]
    np.testing.assert_array_equal(days_of(np.array(cells, dtype=object)), [1, 1, 1, 1, np.nan, np.nan])
    with pytest.raises(TypeError, match="no date"):
        days_of([None, {}])


def frame(n=60):
    rng = np.random.default_rng(0)
    when = pd.Series(pd.date_range("2020-01-01", periods=n, tz="Europe/Paris"))
    return pd.DataFrame(
        {
            "number": pd.Series(rng.normal(size=n)).where(rng.uniform(size=n) < 0.8),
            "whole": pd.array(np.where(rng.uniform(size=n) < 0.8, 1, 2), dtype="Int64"),
            "flag": rng.uniform(size=n) < 0.5,
            "kind": pd.Categorical(rng.choice(["a", "b"], size=n)),
            "when": when.where(rng.uniform(size=n) < 0.9),
            "name": [f"row {number}" for number in range(n)],
            "empty": np.nan,
        }
    )


def test_a_data_frame_of_every_type_is_prepared_and_what_is_left_out_is_named():
    X = frame()
    with pytest.warns(UserWarning, match=r"left out: 'name' has 60 different words.*'empty' has no values"):
        rows = table_preparation().fit_transform(X)
    assert rows.shape == (60, 2 + 1 + 1 + 2 + 2)
    assert np.isfinite(rows).all()
    assert is_table(X)
    assert not is_table(X[["flag"]])
    assert is_table(X[["number"]])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_prepared_as_those_of_pandas(library):
    frames = pytest.importorskip(library)
    X = frame()[["number", "flag", "kind"]]
    other = frames.from_pandas(X) if library == "polars" else frames.Table.from_pandas(X)
    wanted = table_preparation().fit_transform(X)
    np.testing.assert_allclose(table_preparation().fit_transform(other), wanted, atol=1e-12)
    assert is_table(other)


def test_new_rows_may_have_columns_in_any_order_more_of_them_and_words_never_seen_but_no_fewer():
    X = frame()[["number", "kind"]].astype({"kind": str})
    prepared = table_preparation().fit(X)
    wanted = prepared.transform(X)
    np.testing.assert_array_equal(prepared.transform(X[["kind", "number"]].assign(more=1)), wanted)
    assert not prepared.transform(X.assign(kind="new"))[:, -2:].any()
    with pytest.raises(ValueError, match=r"columns are missing: .'kind'."):
        prepared.transform(X[["number"]])


def test_columns_are_what_the_caller_says():
    X = frame()[["number", "whole", "kind"]]
    prepared = table_preparation(categorical=["whole"], drop=["number"]).fit(X)
    assert prepared.transform(X).shape[1] == 4
    with pytest.raises(ValueError, match=r"no columns \['size'\]"):
        table_preparation(numeric=["size"]).fit(X)


def test_a_table_of_one_row_is_refused_by_the_model_and_not_by_a_crash():
    from sklearn.pipeline import make_pipeline

    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match=r"minimum of 2 is required"):
        make_pipeline(table_preparation(), SlimSVC()).fit(frame(1), [1])
