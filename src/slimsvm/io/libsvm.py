"""LIBSVM model files, read and written.

A file holds pairs of classes (see `pairs`); numbers are written so that they read back exactly. Scaling that cannot be
folded into the points goes to a file beside it for LIBSVM's own tool: `svm-scale -r model.range rows`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ..estimators import SlimSVC, classifier_of
from ..gram import SPARSE_DENSITY
from ..kernels import make_kernel
from ..model import Expansion
from ..multiclass import OneVsOne
from .artefact import Array, Artefact, Scaling
from .container import short
from .pairs import Layout, layout_of, pair_columns
from .sklearn import Imported

#: our names for LIBSVM's kernels
KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
TYPES = ("c_svc", "nu_svc")


@dataclass(frozen=True)
class LIBSVMExporter:
    """A model for svm-predict and all that reads LIBSVM's models."""

    ending: ClassVar[str] = ".libsvm"

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:  # noqa: ARG002
        """The model file, and ranges for svm-scale where features are scaled."""
        names = {ours: theirs for theirs, ours in KERNELS.items()}
        if artefact.kernel not in names:
            raise ValueError(f"the libsvm export has no {artefact.kernel!r} kernel; it has {sorted(names)}")
        a = artefact.compact()
        if a.votes and getattr(a.coding, "break_ties", False):
            warnings.warn(
                "LIBSVM gives a tie in votes to the first class, where this model looks at its outputs", stacklevel=3
            )
        layout = layout_of(a)
        text = "\n".join([*_header(a, layout, names[a.kernel]), "SV", *_point_lines(a, layout), ""])
        files = {self.ending: text.encode()}
        return files if a.scaling is None else files | {".range": _ranges(a.scaling).encode()}


def _header(a: Artefact, layout: Layout, kernel: str) -> list[str]:
    parameters = [f"{name} {a.parameters[name]!r}" for name in ("degree", "gamma", "coef0") if name in a.parameters]
    return [
        "svm_type c_svc",
        f"kernel_type {kernel}",
        *parameters,
        f"nr_class {a.classes.size}",
        f"total_sv {layout.index.size}",
        f"rho {_words(-layout.bias)}",
        f"label {' '.join(_labels(a.classes[layout.order]))}",
        f"nr_sv {' '.join(map(str, layout.counts))}",
    ]


def _labels(classes: Array) -> list[str]:
    if classes.dtype.kind not in "biuf" or (classes.astype(np.int32) != classes).any():
        raise ValueError(
            f"LIBSVM's labels are whole numbers of 32 bits, not {short(classes.tolist())}; encode y as 0, 1, ..."
        )
    return [str(int(label)) for label in classes]


def _words(values: Array) -> str:
    return " ".join(map(repr, values.tolist()))


def _point_lines(a: Artefact, layout: Layout) -> Iterator[str]:
    points = [_sparse_words(point) for point in a.points]
    for place, number in enumerate(layout.index):
        yield f"{_words(layout.coef[:, place])} {points[number]}"


def _sparse_words(point: Array) -> str:
    places = np.flatnonzero(point)
    return " ".join(
        f"{place}:{value!r}" for place, value in zip((places + 1).tolist(), point[places].tolist(), strict=True)
    )


def _ranges(scaling: Scaling) -> str:
    """What svm-scale restores: it maps each feature's range to [-1, 1]."""
    if scaling.clips:
        raise ValueError(
            "LIBSVM's svm-scale does not clip features; set clip=False in the scaler, or scale the rows before"
        )
    low, high = scaling.centre - 1 / scaling.scale, scaling.centre + 1 / scaling.scale
    lines = [f"{number} {_words(np.array(ends))}" for number, ends in enumerate(zip(low, high, strict=True), start=1)]
    return "\n".join(["x", "-1 1", *lines, ""])


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> SlimSVC:
    """The classifier in a LIBSVM model file; `n_features` where rows have more features than the file names."""
    try:
        return classifier_of(_imported(Path(path).read_text(encoding="ascii"), n_features))
    except (IndexError, KeyError, ValueError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"cannot load {os.fspath(path)!r} as a LIBSVM model: {reason}") from error


def _imported(text: str, n_features: int | None) -> Imported:
    head, separator, body = text.partition("\nSV")
    header = {words[0]: words[1:] for words in map(str.split, head.splitlines()) if words}
    if not separator or header.get("svm_type", [""])[0] not in TYPES:
        raise ValueError(
            f"it has svm_type {short(header.get('svm_type'))} {'' if separator else 'and no SV'}; there are {TYPES}"
        )
    kernel = header["kernel_type"][0]
    if kernel not in KERNELS:
        raise ValueError(f"it has the kernel {short(kernel)}; there are {sorted(KERNELS)}")
    given = {"gamma": float(header.get("gamma", ["1"])[0]), "coef0": float(header.get("coef0", ["0"])[0])}
    params: dict[str, Any] = {"kernel": KERNELS[kernel], "degree": int(header.get("degree", ["3"])[0]), **given}
    labels = np.array(header["label"], dtype=np.int64)
    counts = np.array(header["nr_sv"], dtype=np.int64)
    coef, points = _points(body.splitlines()[1:], labels.size, n_features)
    if counts.size != labels.size or counts.sum() != coef.shape[1]:
        raise ValueError(
            f"nr_sv is {counts.tolist()}, and there are {coef.shape[1]} lines of points of {labels.size} classes"
        )
    columns, bias = _in_order(pair_columns(coef, counts), -np.array(header["rho"], dtype=np.float64), labels)
    model = Expansion(make_kernel(**params), points, columns, bias)
    return Imported(model, OneVsOne(labels.size), np.sort(labels), points.shape[1], params)


def _points(lines: list[str], n_classes: int, n_features: int | None) -> tuple[Array, Any]:
    """Coefficients (k - 1, m) and points of the lines after SV."""
    coef, values, features, starts = [], [], [], [0]
    for number, line in enumerate(filter(None, map(str.strip, lines)), start=1):
        words = line.split()
        pairs = [word.split(":") for word in words[n_classes - 1 :]]
        if len(words) < n_classes - 1 or any(len(pair) != 2 or int(pair[0]) < 1 for pair in pairs):
            raise ValueError(
                f"point {number} is {short(line)}, not {n_classes - 1} coefficients and feature:value from 1 on"
            )
        coef.append([float(word) for word in words[: n_classes - 1]])
        features += [int(pair[0]) - 1 for pair in pairs]
        values += [float(pair[1]) for pair in pairs]
        starts.append(len(values))
    width = max(features, default=0) + 1
    if n_features is not None and n_features < width:
        raise ValueError(f"it has a feature {width}, beyond the {n_features} that were asked for")
    points = csr_array((values, features, starts), shape=(len(coef), n_features or width), dtype=np.float64)
    dense = points.nnz > SPARSE_DENSITY * len(coef) * points.shape[1]
    return np.array(coef).reshape(-1, n_classes - 1).T, points.toarray() if dense else points


def _in_order(columns: Array, bias: Array, labels: Array) -> tuple[Array, Array]:
    """Columns and bias for sorted labels, from those of the file's order: pairs change places and signs."""
    if bias.size != columns.shape[1] or np.unique(labels).size != labels.size:
        raise ValueError(f"it has {bias.size} rho for {columns.shape[1]} pairs of the labels {labels.tolist()}")
    rank = np.argsort(np.argsort(labels))
    place = {pair: number for number, pair in enumerate(combinations(range(labels.size), 2))}
    target, sign = [], []
    for i, j in combinations(rank.tolist(), 2):
        target.append(place[min(i, j), max(i, j)])
        # a column is for the first class of its pair, and for the second of two classes
        sign.append(1.0 if (i < j) == (labels.size > 2) else -1.0)
    ordered, ordered_bias = np.empty_like(columns), np.empty_like(bias)
    ordered[:, target], ordered_bias[target] = columns * sign, bias * sign
    return ordered, ordered_bias
