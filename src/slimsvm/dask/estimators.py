"""SlimSVC and SlimSVR on a Dask cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..budget import Budget
from ..checks import check_unmasked
from ..estimators.base import KernelMachine
from ..estimators.svc import SlimSVC, has_probabilities
from ..estimators.svr import SlimSVR
from ..estimators.validation import check_labels, check_positive_weights
from ..kernels import Array, Kernel, resolve_gamma, width_of
from ..rows.homes import HOMES
from . import parts
from .partitions import Partitions
from .rows import check_metric, open_parts

HOMES["dask"] = lambda device: open_parts  # noqa: ARG005


class DaskMachine(KernelMachine):
    """The base of the estimators on a cluster: rows stay on the workers, labels and the model are in the client process."""

    _home = "dask"
    _local: type[KernelMachine]

    def _data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Array, Array, Array]:
        """Return the parts of the rows twice, labels, weights and row numbers."""
        timed = Budget.of(self.budget).microseconds is not None
        for given, what in ((self.scoring is not None, "scoring"), (timed, f"the time in budget={self.budget!r}")):
            if given:
                raise ValueError(f"{what} needs rows in one process; leave it out, and measure the model of to_local()")
        rows = Partitions.of(X)
        check_metric(rows, getattr(self.reducer, "metric", "fixed"))
        n = rows.shape[0]
        labels = vector_of(y, n, "y")
        check_labels(self._labels_are, labels)
        weights = np.ones(n) if sample_weight is None else vector_of(sample_weight, n, "sample_weight").astype(np.float64)
        check_positive_weights(weights)
        self.n_features_in_, self.shape_fit_ = rows.shape[1], rows.shape
        self.__dict__.pop("feature_names_in_", None)
        if all(isinstance(name, str) for name in getattr(X, "columns", [None])):  # scikit-learn's rule
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        return rows, rows, labels, weights, np.arange(n)

    def _width(self, X: Any, weights: Array | None) -> float:  # noqa: ARG002
        """Return gamma; "scale" is that of the rows without weights."""
        return width_of(X.shape[1], X.variance()) if self.gamma == "scale" else resolve_gamma(self.gamma, X)

    def _check_rows(self, kernel: Kernel, X: Any) -> None:
        """Let each worker check its rows."""
        X.gathered(X.held, parts.check_rows, kernel)

    def to_local(self) -> Any:
        """Return the fitted model as a SlimSVC or SlimSVR of this process, to save, export or compress.

        Returns
        -------
        estimator
            With the same parameters, model and path.
        """
        check_is_fitted(self)
        local = self._local(**self.get_params(deep=False))
        local.__dict__ |= self.__dict__
        return local

    def _mapped(self, X: Any, method: str) -> Any:
        """Return the local model's answers for each part of X, or for rows that are not Dask's."""
        local = self.to_local()
        if not hasattr(X, "dask"):
            return getattr(local, method)(X)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; give rows of {local.n_features_in_} features")
        sample = _answers(self._named(np.asarray(self.model_.points[:1])), local, method)
        if hasattr(X, "columns"):
            return X.map_partitions(_answers, local, method, meta=(None, sample.dtype))
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        if sample.ndim == 1:
            return X.map_blocks(_answers, local, method, drop_axis=1, dtype=sample.dtype)
        return X.map_blocks(_answers, local, method, chunks=(X.chunks[0], (sample.shape[1],)), dtype=sample.dtype)

    def _named(self, rows: Array) -> Any:
        """Return rows with the names of the features, if there are names."""
        if not hasattr(self, "feature_names_in_"):
            return rows
        from pandas import DataFrame

        return DataFrame(rows, columns=self.feature_names_in_)

    def predict(self, X: Any) -> Any:
        """Return the prediction for each row, computed where the rows are.

        Parameters
        ----------
        X : dask array, dask data frame or array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        dask array, dask series or ndarray of shape (n_samples,)
            As `X` is: the labels or values.
        """
        return self._mapped(X, "predict")


class DaskSlimSVC(DaskMachine, SlimSVC):
    """`SlimSVC` for the rows of a Dask array or data frame, which stay on the workers of the cluster.

    Parameters, attributes and the optimum are those of `SlimSVC`. In each round the workers send one number per row and
    output, and the rows of the working set; labels are sent once. If a worker is lost, Dask computes its parts again, and
    the fit continues. `scoring` and budgets in microseconds need rows in one process and raise ValueError.

    Examples
    --------
    >>> from slimsvm.dask import DaskSlimSVC
    >>> DaskSlimSVC(budget=50).budget
    50
    """

    _local = SlimSVC

    def decision_function(self, X: Any) -> Any:
        """Return the scores of each row, computed where the rows are.

        Parameters
        ----------
        X : dask array, dask data frame or array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        dask array, dask series or ndarray
            As `X` is; the scores of `SlimSVC.decision_function`.
        """
        return self._mapped(X, "decision_function")

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, computed where the rows are; only with `calibration`.

        Parameters
        ----------
        X : dask array, dask data frame or array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        dask array, dask series or ndarray of shape (n_samples, n_classes)
            As `X` is; the probabilities of `SlimSVC.predict_proba`.
        """
        return self._mapped(X, "predict_proba")


class DaskSlimSVR(DaskMachine, SlimSVR):
    """`SlimSVR` for the rows of a Dask array or data frame, as `DaskSlimSVC` is `SlimSVC`.

    Examples
    --------
    >>> from slimsvm.dask import DaskSlimSVR
    >>> DaskSlimSVR(epsilon=0.2).epsilon
    0.2
    """

    _local = SlimSVR


def vector_of(values: Any, n: int, name: str) -> Array:
    """Return labels or weights in this process, one for each row, from any partitions."""
    given = values.compute() if hasattr(values, "dask") else values
    check_unmasked(name, given)
    vector = column_or_1d(np.asarray(given), warn=True)
    if vector.size != n:
        raise ValueError(f"{name} has {vector.size} entries, but X has {n} rows; give one for each row, in the same order")
    if vector.dtype.kind == "f" and not np.isfinite(vector).all():
        raise ValueError(f"{name} contains NaN or infinity; fill or drop such rows")
    return vector


def _answers(part: Any, local: Any, method: str) -> Array:
    """Return the local model's answers for a part, which may be empty."""
    if part.shape[0]:
        return getattr(local, method)(part)
    return getattr(local, method)(np.zeros((1, local.n_features_in_)))[:0]
