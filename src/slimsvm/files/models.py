"""Models in files of any format, which the first bytes decide."""

from __future__ import annotations

import os
from typing import Any, TextIO

from ..estimators import machine_of
from ..estimators.machines import Fitted
from ..importers.libsvm import import_libsvm
from .native import load as load_native


def load(path: str | os.PathLike[str]) -> Fitted:
    """Return the fitted model in a .slim file or a LIBSVM model file, which its first bytes tell.

    Parameters
    ----------
    path : path
        The file. A LIBSVM file names no features after the last one of any support vector; if rows have more, give their
        number to `slimsvm.files.models.read_libsvm`.

    Returns
    -------
    SlimSVC, SlimSVR, SlimOneClassSVM, Pipeline or TransformedTargetRegressor
        What was saved; from a .slim file it predicts as the model that was saved, to the last bit.
    """
    return read_libsvm(path) if is_libsvm(path) else load_native(path)


def read_libsvm(path: str | os.PathLike[str] | TextIO, n_features: int | None = None) -> Any:
    """Return the classifier, regressor or novelty detector in a LIBSVM model file, by its path or open as text.

    `n_features` is for rows with more features than the file names. Files of other programs often contain a LIBSVM model as
    text, and a linear scaling of features and scores. Put the scaling into scikit-learn's wrappers, which `compress` keeps.
    With slopes a and intercepts b, so that features become a x + b:

    >>> import io
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> text = "svm_type nu_svr\\nkernel_type rbf\\ngamma 0.5\\nnr_class 2\\ntotal_sv 1\\nrho -0.5\\nSV\\n2 1:0.25 2:1\\n"
    >>> svr = read_libsvm(io.StringIO(text))
    >>> a, b = np.array([0.5, 2.0]), np.array([0.0, -1.0])
    >>> scaler = MinMaxScaler().fit([-b / a, (1 - b) / a])  # rows that become 0 and 1
    >>> make_pipeline(scaler, svr).predict([[0.5, 1.0]])
    array([2.5])

    For scores that the model has scaled to a y + b, use a TransformedTargetRegressor.
    """
    machine = machine_of(import_libsvm(path, n_features))
    machine.from_libsvm_ = True  # `compress` keeps to what such a file holds
    return machine


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a LIBSVM model."""
    with open(path, "rb") as file:
        return file.read(len(b"svm_type")) == b"svm_type"
