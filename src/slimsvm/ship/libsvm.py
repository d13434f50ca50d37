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
from ..files.container import short
from ..importers.pairs import Layout, layout_of, pair_columns
from ..importers.sklearn import Imported
from ..kernels import make_kernel
from ..model import Expansion
from ..multiclass import OneVsOne
from ..rows.precision import SPARSE_DENSITY
from .artefact import Array, Artefact, Scaling

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
        f"rho {_words(0.0 - layout.bias)}",
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
    head, _, body = text.partition("\nSV\n")
    header = {words[0]: words[1:] for words in map(str.split, head.splitlines()) if words}
    params = _parameters(header)
    labels, counts = (np.array(header[name], dtype=np.int64) for name in ("label", "nr_sv"))
    lines = [line.strip().split(maxsplit=labels.size - 1) for line in body.splitlines() if line.strip()]
    if counts.size != labels.size or counts.sum() != len(lines):
        raise ValueError(f"nr_sv is {counts.tolist()}, and after SV there are {len(lines)} points of {labels.size} classes")
    coef = np.array([line[: labels.size - 1] for line in lines], dtype=np.float64).reshape(-1, labels.size - 1)
    columns, bias = _in_order(pair_columns(coef.T, counts), -np.array(header["rho"], dtype=np.float64), labels)
    texts, columns = _merged([line[-1] if len(line) == labels.size else "" for line in lines], columns)
    points = _rows(texts, n_features)
    model = Expansion(make_kernel(**params), points, columns, bias)
    return Imported(model, OneVsOne(labels.size), np.sort(labels), points.shape[1], params)


def _parameters(header: dict[str, list[str]]) -> dict[str, Any]:
    """The kernel and its parameters, as SlimSVC has them."""
    kind, kernel = header["svm_type"][0], header["kernel_type"][0]
    if kind not in TYPES:
        raise ValueError(f"it has the svm_type {short(kind)}; there are {list(TYPES)}")
    if kernel not in KERNELS:
        raise ValueError(f"it has the kernel {short(kernel)}; there are {sorted(KERNELS)}")
    # a file has the parameters that its kernel has; for the others any will do
    gamma, coef0, degree = (header.get(name, ["1"])[0] for name in ("gamma", "coef0", "degree"))
    return {"kernel": KERNELS[kernel], "gamma": float(gamma), "coef0": float(coef0), "degree": int(degree)}


def _merged(texts: list[str], columns: Array) -> tuple[list[str], Array]:
    """Each point once, with the coefficients of all its copies."""
    place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    merged = np.zeros((len(place), columns.shape[1]))
    np.add.at(merged, [place[text] for text in texts], columns)
    return list(place), merged


def _rows(texts: list[str], n_features: int | None) -> Any:
    """Rows of `feature:value`, features from 1 on; CSR where most values are 0."""
    values: list[float] = []
    features: list[int] = []
    starts = [0]
    for word in (word for text in texts for word in [*text.split(), ""]):
        feature, _, value = word.partition(":")
        if not word:  # the end of a row
            starts.append(len(values))
        elif feature.isdigit() and int(feature):
            features.append(int(feature) - 1)
            values.append(float(value))
        else:
            raise ValueError(f"it has {short(word)} in a point, where feature:value is wanted, with features from 1 on")
    width = max(features, default=0) + 1
    if n_features is not None and n_features < width:
        raise ValueError(f"it has a feature {width}, beyond the {n_features} that were asked for")
    rows = csr_array((values, features, starts), shape=(len(texts), n_features or width), dtype=np.float64)
    return rows.toarray() if rows.nnz > SPARSE_DENSITY * rows.shape[0] * rows.shape[1] else rows


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
