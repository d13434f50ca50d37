"""table_preparation: transformers of scikit-learn that turn a table into rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from .recognition import MOST_CATEGORIES, ColumnsOf, columns_of, days, is_frame, values_of


def table_preparation(
    *, numeric: Sequence[Any] = (), categorical: Sequence[Any] = (), drop: Sequence[Any] = ()
) -> ColumnTransformer:
    """Return transformers that prepare a table for a kernel machine, not yet fitted.

    Numbers and dates (as days since 1970) are imputed by the median, with a feature that says so, and standardised. Words
    and categories become a feature each; rare ones share one with categories that training has not seen. Columns of free
    text, of one value and of none are left out with a warning.

    Parameters
    ----------
    numeric, categorical, drop : sequence of str or int, default=()
        Columns that are to be used as numbers or as categories, or not at all, whatever they hold; by name, or by number
        in an array.

    Returns
    -------
    ColumnTransformer
        Of scikit-learn's own transformers, to be put into a Pipeline before a model. All of it is saved and exported.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from slimsvm import SlimSVC, table_preparation
    >>> X = np.array([["red", 1.5], ["blue", None], ["red", 2.5], ["blue", 0.5]], dtype=object)
    >>> model = make_pipeline(table_preparation(), SlimSVC()).fit(X, [1, 0, 1, 0])
    >>> model.predict(np.array([["red", None]], dtype=object))
    array([1])
    """
    given = tuple(numeric), tuple(categorical), tuple(drop)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    words = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, min_frequency=2, sparse_output=False
    )
    return ColumnTransformer(
        [
            ("numbers", numbers, ColumnsOf("number", *given)),
            ("words", words, ColumnsOf("word", *given)),
            (
                "dates",
                make_pipeline(FunctionTransformer(days), *(step for _, step in numbers.steps)),
                ColumnsOf("date", *given),
            ),
        ],
        sparse_threshold=0.0,
    )


def is_table(X: Any) -> bool:
    """Return whether rows need `table_preparation`: they have words, dates or holes."""
    if issparse(X):
        return False
    if is_frame(X):
        return any(values_of(X, name).dtype.kind not in "biuf" or _has_holes(values_of(X, name)) for name in columns_of(X))
    X = np.asarray(X)
    return X.dtype.kind not in "biuf" or _has_holes(X)


def _has_holes(values: Any) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).any())
