"""The model as a fast function of rows. Needs NumPy and the compiled core only, and does not validate rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import core
from ..goals import Decision
from ..kernels.spec import core_arguments, spec_of
from .artefact import Array, Artefact
from .coded import Coded
from .image import read_image
from .json import read_json
from .slim import read_slim
from .sparse import SparseKernel, SparsePoints, SparseRows

if TYPE_CHECKING:
    from .integers import Integers
    from .learning import LearningRuntime


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

    def __init__(self, artefact: Artefact, coded: Coded | None = None) -> None:
        spec_of(artefact.kernel, "the runtime")
        a = artefact.compact()
        self.words, self.preparation, self.features = a.words, a.preparation, a.features
        self.goal, self.classes, self.scaling, self.calibration = a.goal, a.classes, a.scaling, a.calibration
        self._coordinates = a.coordinates
        self._spread = a.spread
        self._form = core_arguments(a.kernel, a.parameters)
        self._coef, self._bias = (np.ascontiguousarray(t, dtype=np.float64) for t in (a.coef, a.bias))
        self._kernel: SparseKernel | None = None
        if isinstance(a.points, SparsePoints):
            self._kernel = SparseKernel(a.spec, a.parameters, a.points, a.widths)
        else:
            self._points = np.ascontiguousarray(a.points, dtype=np.float64)
        # a model for tables of 4 bits, or of an image, is computed as exported code does
        self._coded = coded or (Coded.of(artefact, "int4") if artefact.precision == "int4" else None)
        self._widths = None if a.widths is None else np.ascontiguousarray(a.widths, dtype=np.float64)
        # as a product with m outputs, kernel values of m points take as long
        self._single = self._coded is None and a.decision is Decision.DAG and a.size + a.classes.size < a.outputs

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
        if self._kernel is not None and self._coded is None:
            return self._sparse_sums(self._kernel, rows, coef, bias)
        rows = rows.dense() if isinstance(rows, SparseRows) else rows
        if rows.ndim == 1:
            rows = rows[None]
        if self._coded is not None and coef is self._coef:
            return self._coded.outputs(rows).astype(np.float64)
        rows = self._coordinates(rows)
        out = np.empty((rows.shape[0], bias.size))
        rows = np.ascontiguousarray(rows)
        core.expansion(*self._form, rows, self._points, coef, bias, out, self._widths)
        return out

    def _sparse_sums(self, kernel: SparseKernel, rows: Array | SparseRows, coef: Array, bias: Array) -> Array:
        """Return the same sums for sparse points."""
        given = rows if isinstance(rows, SparseRows) else SparseRows.of(np.atleast_2d(rows))
        return kernel(given if self.scaling is None else given.scaled(self.scaling.scale)) @ coef + bias


class IntegerRuntime:
    """Predict rows of floats by integers only, as C does that was exported with integers=True: every label is the same.

    `quantise(rows)` are the rows as integers, and `scores` are integers too; values are floats.
    """

    def __init__(self, held: Integers) -> None:
        self.held, self.features, self.classes = held, held.a.features, held.a.classes

    def __call__(self, rows: Any) -> Any:
        """Return the prediction of a row, or the predictions of rows."""
        found = self.held.predict(self.quantise(np.atleast_2d(rows)))
        if self.held.a.decision is Decision.VALUE:
            found = found.astype(np.float32) * np.float32(self.held.unit) + np.float32(self.held.offset)
        found = self.classes[found] if self.classes.size else found
        return found[0] if np.ndim(rows) == 1 else found

    def scores(self, rows: Any) -> Any:
        """Return the integer scores of a row or of rows: one per class for three classes or more, else one."""
        scores = self.held.scores(self.quantise(np.atleast_2d(rows)))
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        return scores[0] if np.ndim(rows) == 1 else scores

    def quantise(self, rows: Any) -> Array:
        """Return a row or rows as integers; features beyond the range are at its ends."""
        rows = np.asarray(rows)
        if not rows.ndim or rows.shape[-1] != self.features:
            raise ValueError(f"a row has {rows.shape[-1:] or 'no'} features, and the model takes {self.features}")
        return self.held.quantise(rows)


def runtime(
    model: Any, *, integers: bool = False, precision: str | None = None, rows: Any = None, update: bool = False
) -> Runtime | IntegerRuntime | LearningRuntime:
    """Return a fitted model, or one in a file, as a fast function of rows without checks of its input.

    Parameters
    ----------
    model : estimator or path
        A model that `export` takes, or a .slim, .json, .bin or LIBSVM file. A JSON file
        (`slimsvm.export(model, "model.json")`) is read without scikit-learn and scipy, and so are .slim and .bin files.
    integers : bool, default=False
        Compute as C does that is exported with integers=True and the same `precision` and `rows`.
    precision : {"int4", "int8", "int16"}, default=None
        That of the integers; by default the model's own, or int8.
    rows : array-like, default=None
        Raw rows like those to predict, whose range the integers cover.
    update : bool, default=False
        Return a function whose `update(row, label)` learns, as C does that is exported with update=True, in float32. The
        model is one of trainer="bsgd", "forgetron" or "rbp", and does not change.

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
    if isinstance(model, Coded):
        if not update:
            return Runtime(model.a, model)
        model = model.a
    if not isinstance(model, Artefact):
        from .source import artefact_of

        model = artefact_of(model)
    if update and (integers or precision is not None or rows is not None):
        raise ValueError("update=True learns in float32; leave integers=, precision= and rows= out")
    if integers:
        from .integers import Integers

        return IntegerRuntime(Integers.of(model, precision, rows))
    if update:
        from .learning import LearningRuntime

        return LearningRuntime(model)
    if precision is not None or rows is not None:
        raise ValueError("precision= and rows= are for integers=True; a model has its own precision")
    return Runtime(model)


def _read(path: str | os.PathLike[str]) -> Any:
    """Return the artefact in a file if it can be read without scikit-learn, else an estimator."""
    if os.fspath(path).endswith(".json"):
        return read_json(path)
    if os.fspath(path).endswith(".bin"):
        return read_image(path)
    artefact = read_slim(path)
    if artefact is not None:
        return artefact
    from ..files.models import load

    return load(path)
