"""The demo: a full and a small model of scikit-learn's handwritten digits, compared."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ...estimators import SlimSVC, fit_reporting
from ..tradeoff.measure import microseconds_per_row, table_cost


def demo_rows(budget: int, report: Callable[[str, float], None]) -> tuple[tuple[str, ...], list[tuple[str, ...]], SlimSVC]:
    """Return the head and rows of the comparison, and the small model."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    head = ("model", "support vectors", "bytes", "test accuracy", "µs per prediction")
    rows: list[tuple[str, ...]] = []
    model = SlimSVC(C=10, random_state=0)
    for name, size in (("full", None), ("slim", budget)):
        model = fit_reporting(SlimSVC(size, C=10, random_state=0), X, y, report=report)
        cells = f"{model.model_.size:,}", f"{table_cost(model)['bytes']:,}"
        accuracy = f"{100 * model.score(X_test, y_test):.1f} %"
        rows.append(
            (
                name,
                *cells,
                accuracy,
                f"{microseconds_per_row(model, X_test):.1f}",
            )
        )
    return head, rows, model
