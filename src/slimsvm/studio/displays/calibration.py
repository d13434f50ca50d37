"""How reliable probabilities are: the share of correct predictions against their probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import Array, Matrix
from .axes import new_axes


class CalibrationDisplay:
    """Share of correct predictions against the probability of the predicted class, for any number of classes.

    scikit-learn's display of the same name draws one class of two. On the diagonal, 80 % of the rows that are predicted
    with a probability of 0.8 are correct.

    Parameters
    ----------
    predicted : array of shape (n_bins,)
        The mean probability of the predicted class in each bin.
    right : array of shape (n_bins,)
        The share of correct predictions in each bin.
    counts : array of shape (n_bins,)
        The rows of each bin.
    name : str, default=None
        The name in the legend.

    Attributes
    ----------
    error : float
        The expected calibration error: the mean distance from the diagonal, weighted by rows.
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    line_, diagonal_ : Line2D
        The model's line and that of a calibrated model.

    Examples
    --------
    >>> from slimsvm.displays import CalibrationDisplay
    >>> display = CalibrationDisplay(predicted=[0.6, 0.9], right=[0.5, 0.9], counts=[20, 80])
    >>> round(display.error, 3)
    0.02
    """

    def __init__(self, *, predicted: Any, right: Any, counts: Any, name: str | None = None) -> None:
        self.predicted, self.right = np.asarray(predicted, dtype=float), np.asarray(right, dtype=float)
        self.counts, self.name = np.asarray(counts), name

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float(np.average(np.abs(self.predicted - self.right), weights=self.counts))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Matrix, y: Any, *, n_bins: int = 10, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> CalibrationDisplay:
        """Draw the probabilities of a fitted classifier for rows that it was not trained on."""
        if not hasattr(estimator, "predict_proba"):
            kind = type(estimator).__name__
            raise ValueError(f"this {kind} has no probabilities; fit it with calibration='sigmoid', say")
        proba, name = estimator.predict_proba(X), name or type(estimator).__name__
        return cls.from_predictions(y, proba, estimator.classes_, n_bins=n_bins, name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        proba: Any,
        classes: Any,
        *,
        n_bins: int = 10,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Draw probabilities (n, k) of classes for rows with labels y, in bins of equally many rows."""
        y, proba, classes = np.asarray(y), np.asarray(proba, dtype=float), np.asarray(classes)
        if proba.shape != (y.size, classes.size) or not y.size:
            raise ValueError(f"{y.size} labels and {classes.size} classes do not fit probabilities of shape {proba.shape}")
        if n_bins < 1:
            raise ValueError(f"n_bins must be 1 at least, not {n_bins}")
        top, right = proba.max(axis=1), classes[proba.argmax(axis=1)] == y
        return cls(**_bins(top, right, n_bins), name=name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> CalibrationDisplay:
        """Draw; further arguments are those of `Axes.plot`."""
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        (self.diagonal_,) = self.ax_.plot([0, 1], [0, 1], ":", color="0.5", label="calibrated")
        label = f"{self.name or 'model'}, {100 * self.error:.1f} points off on average"
        (self.line_,) = self.ax_.plot(self.predicted, self.right, **{"marker": "o", "ms": 4, "label": label, **kwargs})
        self.ax_.set(xlabel="probability of the predicted class", ylabel="share of right predictions", ylim=(0, 1.02))
        self.ax_.grid(alpha=0.3)
        self.ax_.legend()
        return self


def _bins(top: Array, right: Array, n_bins: int) -> dict[str, Array]:
    """Return the means and counts of bins of equally many rows, by rising probability."""
    order = np.argsort(top, kind="stable")
    parts = [part for part in np.array_split(order, n_bins) if part.size]
    means = {"predicted": top, "right": right.astype(float)}
    binned = {name: np.array([values[part].mean() for part in parts]) for name, values in means.items()}
    return binned | {"counts": np.array([part.size for part in parts])}
