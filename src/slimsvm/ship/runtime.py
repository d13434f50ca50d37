"""The model as a fast function of rows. Needs NumPy and the compiled core only, and does not validate rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._core import core
from ..goals import Decision
from ..kernels.spec import core_arguments, spec_of
from .artefact import Array, Artefact
from .json import read_json
from .slim import read_slim
from .sparse import SparseKernel, SparsePoints, SparseRows


class Runtime:
    """Predict rows: `run(row)` is a prediction, `run(rows)` an array of them; `run.scores` is decision_function.

    Predictions are labels, values for a regressor, and +1 or -1 for novelty detection. The scores of a regressor are its
    values. `run.proba` is predict_proba, if the model has a calibration.

    Rows are arrays, or scipy's CSR arrays (any object with indptr, indices, data and shape). A model behind a vectorizer
    takes a text, or a list of texts; one behind the preparation of a table takes a dict by the names of its columns, a list
    of them, a data frame, or arrays of all columns.

    Of rows only the length is tested: give finite numbers. Several threads may call one Runtime;
    the interpreter lock is released while kernels are evaluated.
    """

    def __init__(self, artefact: Artefact) -> None:
        spec_of(artefact.kernel, "the runtime")
        a = artefact.compact()
        self.words, self.preparation, self.features = a.words, a.preparation, a.features
        self.goal, self.classes, self.scaling, self.calibration = a.goal, a.classes, a.scaling, a.calibration
        self._spread = a.spread
        self._form = core_arguments(a.kernel, a.parameters)
        self._coef, self._bias = (np.ascontiguousarray(t, dtype=np.float64) for t in (a.coef, a.bias))
        self._kernel: SparseKernel | None = None
        if isinstance(a.points, SparsePoints):
            self._kernel = SparseKernel(a.spec, a.parameters, a.points, a.widths)
        else:
            self._points = np.ascontiguousarray(a.points, dtype=np.float64)
        self._widths = None if a.widths is None else np.ascontiguousarray(a.widths, dtype=np.float64)
        # as a product with m outputs, kernel values of m points take as long
        self._single = a.decision is Decision.DAG and a.size + a.classes.size < a.outputs

    def __call__(self, rows: Any) -> Any:
        """Return the prediction of a row, or the predictions of rows."""
        rows = self._rows(rows)
        if self.calibration is not None:
            found = self.calibration(self.goal.scores(self._outputs(rows))).argmax(axis=1)
        elif self._single:
            found = self._walked(rows)
        else:
            found = self.goal.decode(self._outputs(rows))
        found = self.classes[found] if self.classes.size else found
        return found[0] if rows.ndim == 1 else found

    def scores(self, rows: Any) -> Any:
        """Return the scores of a row or of rows: one per class for three classes or more, else one."""
        rows = self._rows(rows)
        scores = self.goal.scores(self._outputs(rows))
        return scores[0] if rows.ndim == 1 else scores

    def proba(self, rows: Any) -> Any:
        """Return the probabilities of the classes for a row or for rows."""
        if self.calibration is None:
            raise ValueError("this model has no probabilities; fit it with calibration='sigmoid', say")
        rows = self._rows(rows)
        p = self.calibration(self.goal.scores(self._outputs(rows)))
        return p[0] if rows.ndim == 1 else p

    def interval(self, rows: Any, coverage: float = 0.8) -> Any:
        """Return the ends of an interval for a row or for rows, as `SlimSVR.predict_interval` does."""
        if self._spread is None:
            raise ValueError("this model has no intervals; fit it with calibration='conformal'")
        reach, values = self._spread.half_width(coverage), np.asarray(self(rows))
        return np.stack([values - reach, values + reach], axis=-1)

    def _rows(self, rows: Any) -> Array | SparseRows:
        """Return rows as an array, or by their nonzeros if they are sparse or texts."""
        if self.words is not None:
            one = isinstance(rows, str)
            parts = self.words([rows] if one else rows)
            return SparseRows(*parts, (self.features,) if one else (parts[0].size - 1, self.features))
        if self.preparation is not None:
            return self.preparation(rows)
        rows = SparseRows.of_csr(rows) if hasattr(rows, "indptr") else np.asarray(rows, dtype=np.float64)
        if not rows.ndim or rows.shape[-1] != self.features:
            given = rows.shape[-1] if rows.ndim else "no"
            raise ValueError(f"a row has {given} features, and the model takes {self.features}")
        return rows

    def _outputs(self, rows: Array | SparseRows) -> Array:
        return self._sums(rows, self._coef, self._bias)

    def _walked(self, rows: Array | SparseRows) -> Array:
        """Return the classes of rows by a DAG, from all kernel values and only the outputs that each row needs."""
        size = self._coef.shape[0]
        values = self._sums(rows, np.eye(size), np.zeros(size))
        return self.goal.walk(  # type: ignore[attr-defined]
            values.shape[0], lambda some, column: values[some] @ self._coef[:, column] + self._bias[column]
        )

    def _sums(self, rows: Array | SparseRows, coef: Array, bias: Array) -> Array:
        """Return the sums over points of kernel values times coefficients, for a row or for rows."""
        if self._kernel is not None:
            return self._sparse_sums(self._kernel, rows, coef, bias)
        rows = rows.dense() if isinstance(rows, SparseRows) else rows
        if rows.ndim == 1:
            rows = rows[None]
        if self.scaling is not None:
            rows = self.scaling(rows)
        out = np.empty((rows.shape[0], bias.size))
        rows = np.ascontiguousarray(rows)
        core.expansion(*self._form, rows, self._points, coef, bias, out, self._widths)
        return out

    def _sparse_sums(self, kernel: SparseKernel, rows: Array | SparseRows, coef: Array, bias: Array) -> Array:
        """Return the same sums for sparse points."""
        given = rows if isinstance(rows, SparseRows) else SparseRows.of(np.atleast_2d(rows))
        return kernel(given if self.scaling is None else given.scaled(self.scaling.scale)) @ coef + bias


def runtime(model: Any) -> Runtime:
    """Return a fitted model, or one in a file, as a fast function of rows without checks of its input.

    Parameters
    ----------
    model : estimator or path
        A model that `export` takes, or a .slim, .json or LIBSVM file. A JSON file (`slimsvm.export(model, "model.json")`)
        is read without scikit-learn and scipy, and so is a .slim file.

    Returns
    -------
    Runtime
        A function of a row or of rows: labels, values, or 1 and -1 of a novelty detector.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import slimsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> run = slimsvm.runtime(slimsvm.SlimSVC(4, random_state=0).fit(X, y))
    >>> run(X[:2]).tolist()
    [0, 0]
    """
    if isinstance(model, str | os.PathLike):
        model = _read(model)
    if isinstance(model, Artefact):
        return Runtime(model)
    from .source import artefact_of

    return Runtime(artefact_of(model))


def _read(path: str | os.PathLike[str]) -> Any:
    """Return the artefact in a file if it can be read without scikit-learn, else an estimator."""
    if os.fspath(path).endswith(".json"):
        return read_json(path)
    artefact = read_slim(path)
    if artefact is not None:
        return artefact
    from ..files.models import load

    return load(path)
