"""The model as a function: NumPy and the compiled core, nothing else, and no validation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._core import core
from .artefact import Array, Artefact
from .json import read_json


class Runtime:
    """Labels of rows: `run(row)` is a label, `run(rows)` an array of them; `run.scores` has what decision_function has.

    Rows are taken as they are: numbers, as many as the model has features. What is called from several threads shares
    nothing but constant tables, and the interpreter is free while kernels are evaluated.
    """

    def __init__(self, artefact: Artefact) -> None:
        if artefact.kernel not in core.FORMS:
            raise ValueError(f"the runtime has no {artefact.kernel!r} kernel; it has {sorted(core.FORMS)}")
        a = artefact.compact()
        self.coding, self.classes, self.scaling = a.coding, a.classes, a.scaling
        given = a.parameters
        self._form = core.FORMS[a.kernel], given.get("gamma", 1.0), given.get("coef0", 0.0), int(given.get("degree", 1))
        self._points, self._coef, self._bias = (
            np.ascontiguousarray(t, dtype=np.float64) for t in (a.points, a.coef, a.bias)
        )

    def __call__(self, rows: Any) -> Any:
        """The label of a row, or those of rows."""
        rows = np.asarray(rows, dtype=np.float64)
        labels = self.classes[self.coding.decode(self._outputs(rows))]
        return labels[0] if rows.ndim == 1 else labels

    def scores(self, rows: Any) -> Any:
        """The scores of a row or of rows: one for two classes, else one per class."""
        rows = np.asarray(rows, dtype=np.float64)
        scores = self.coding.scores(self._outputs(rows))
        return scores[0] if rows.ndim == 1 else scores

    def _outputs(self, rows: Array) -> Array:
        if rows.ndim == 1:
            rows = rows[None]
        if self.scaling is not None:
            rows = self.scaling(rows)
        out = np.empty((rows.shape[0], self._bias.size))
        core.expansion(*self._form, np.ascontiguousarray(rows), self._points, self._coef, self._bias, out)
        return out


def runtime(model: Any) -> Runtime:
    """A fitted model, or one in a file (.slim, .json or LIBSVM's), as a fast function of rows.

    A JSON file (`slimsvm.export(model, "model.json")`) is read without scikit-learn and scipy.
    """
    if isinstance(model, str | os.PathLike):
        if os.fspath(model).endswith(".json"):
            return Runtime(read_json(model))
        from ..files.models import load

        model = load(model)
    if isinstance(model, Artefact):
        return Runtime(model)
    from .source import artefact_of

    return Runtime(artefact_of(model))
