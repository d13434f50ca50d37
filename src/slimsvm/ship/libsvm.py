"""LIBSVM model files, written; `files.models` reads them.

A file holds pairs of classes (`libsvm_layout`), a regressor or a one-class SVM, and its numbers read back exactly. Scaling
that cannot be folded into the points goes to a second file for LIBSVM's own tool: `svm-scale -r model.range rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ..calibration import Sigmoid
from ..goals import Decision
from ..kernels.spec import SPECS
from ..scaling import Scaling
from ..text import short, warn_user
from .artefact import Array, Artefact
from .libsvm_layout import Layout, layout_of
from .sparse import SparsePoints

#: slimsvm's names of LIBSVM's kernels
LIBSVM_KERNELS = [name for name, spec in SPECS.items() if spec.libsvm]
#: warnings for decisions that LIBSVM makes differently
OTHER_DECISIONS = {
    Decision.SCORED_VOTES: "gives a tie in votes to the first class; this model breaks ties by its outputs",
    Decision.DAG: "this model decides by a DAG: a row in which no class wins all of its pairs may get another label",
}
#: LIBSVM's names of the problems; pairs of classes are all others
SVM_TYPES = {Decision.VALUE: "epsilon_svr", Decision.SIDE: "one_class"}


@dataclass(frozen=True)
class LIBSVMExporter:
    """A model for svm-predict and other readers of LIBSVM's models."""

    ending: ClassVar[str] = ".libsvm"

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:  # noqa: ARG002
        """Return the model file, and ranges for svm-scale if features are scaled."""
        artefact.check_rows("the libsvm export")
        artefact.check_one_target("a LIBSVM file")
        if artefact.kernel not in LIBSVM_KERNELS:
            raise ValueError(f"the libsvm export has no {artefact.kernel!r} kernel; it has {sorted(LIBSVM_KERNELS)}")
        if artefact.widths is not None:
            raise ValueError(
                "a LIBSVM file has one gamma for all support vectors, and this model has a learned width for each; export "
                "it to C, JavaScript, ONNX or JSON, or make one without: reducer=Slim(metric='fixed'), or metric='scales'"
            )
        artefact.check_plain("a LIBSVM file")
        a = artefact.compact()
        if a.decision in OTHER_DECISIONS:
            warn_user(f"LIBSVM counts votes, and {OTHER_DECISIONS[a.decision]}")
        if a.calibration is not None and not _holds(a):
            warn_user(
                "a LIBSVM file holds the probabilities of two classes by a sigmoid only; this one is written without them, "
                "and labels follow the scores",
            )
        layout = layout_of(a)
        text = "\n".join([*_header(a, layout), "SV", *_point_lines(a, layout), ""])
        files = {self.ending: text.encode()}
        return files if a.scaling is None else files | {".range": _ranges(a.scaling).encode()}


def _header(a: Artefact, layout: Layout) -> list[str]:
    parameters = [f"{name} {a.parameters[name]!r}" for name in ("degree", "gamma", "coef0") if name in a.parameters]
    header = [
        f"svm_type {SVM_TYPES.get(a.decision, 'c_svc')}",
        f"kernel_type {SPECS[a.kernel].libsvm}",
        *parameters,
        f"nr_class {a.classes.size or 2}",  # LIBSVM writes 2 for models without classes
        f"total_sv {layout.index.size}",
        f"rho {_words(0.0 - layout.bias)}",
    ]
    if not a.classes.size:
        return header
    label, counts = " ".join(_labels(a.classes[layout.order])), " ".join(map(str, layout.counts))
    return [*header, f"label {label}", *_sigmoid(a), f"nr_sv {counts}"]


def _holds(a: Artefact) -> bool:
    """Return whether a file can hold the model's probabilities."""
    return a.classes.size == 2 and isinstance(a.calibration, Sigmoid)


def _sigmoid(a: Artefact) -> list[str]:
    """Return LIBSVM's probA and probB: p = 1 / (1 + exp(A f + B)) for the first label, which is our second class."""
    if not isinstance(a.calibration, Sigmoid) or not _holds(a):
        return []
    return [f"probA {_words(-a.calibration.slope)}", f"probB {_words(-a.calibration.shift)}"]


def _labels(classes: Array) -> list[str]:
    if classes.dtype.kind not in "biuf" or (classes.astype(np.int32) != classes).any():
        raise ValueError(
            f"LIBSVM's labels are whole numbers of 32 bits, not {short(classes.tolist())}; encode y as 0, 1, ..."
        )
    return [str(int(label)) for label in classes]


def _words(values: Array) -> str:
    return " ".join(map(repr, values.tolist()))


def _point_lines(a: Artefact, layout: Layout) -> Iterator[str]:
    if isinstance(a.points, SparsePoints):
        starts, columns, values = a.points.starts.tolist(), a.points.columns, a.points.values
        points = [_sparse_words(columns[i:j], values[i:j]) for i, j in pairwise(starts)]
    else:
        points = [_sparse_words(places := np.flatnonzero(point), point[places]) for point in a.points]
    for place, number in enumerate(layout.index):
        yield f"{_words(layout.coef[:, place])} {points[number]}"


def _sparse_words(places: Array, values: Array) -> str:
    return " ".join(f"{place}:{value!r}" for place, value in zip((places + 1).tolist(), values.tolist(), strict=True))


def _ranges(scaling: Scaling) -> str:
    """Return the ranges that svm-scale maps to [-1, 1]."""
    if scaling.clips:
        raise ValueError(
            "LIBSVM's svm-scale does not clip features; set clip=False in the scaler, or scale the rows before"
        )
    low, high = scaling.centre - 1 / scaling.scale, scaling.centre + 1 / scaling.scale
    lines = [f"{number} {_words(np.array(ends))}" for number, ends in enumerate(zip(low, high, strict=True), start=1)]
    return "\n".join(["x", "-1 1", *lines, ""])
