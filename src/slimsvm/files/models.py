"""Models in files of any format, which the first bytes decide."""

from __future__ import annotations

import math
import os
from itertools import combinations
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy.sparse import csr_array

from ..calibration import Sigmoid
from ..estimators import machine_of
from ..estimators.machines import Fitted
from ..goals import Goal, Novelty, OneVsOne, Regression
from ..importers.models import NO_CLASSES, Imported
from ..kernels import Array, make_kernel
from ..kernels.spec import SPECS, check_parameters
from ..model import Expansion
from ..pairs import PairCoefficients
from ..rows.precision import SPARSE_DENSITY
from ..text import short
from .native import load as load_native

#: the most coefficients, points times pairs of classes: 2 GiB
LARGEST = 1 << 28
#: features are numbered by 32 bits
MOST_FEATURES = 2**31 - 1
#: slimsvm's names for LIBSVM's kernels
KERNELS = {spec.libsvm: name for name, spec in SPECS.items() if spec.libsvm}
CLASSIFIERS = ("c_svc", "nu_svc")
#: svm_type -> goal, for models of one output; files have neither nu nor epsilon
REAL: dict[str, Goal] = {"epsilon_svr": Regression(), "nu_svr": Regression(), "one_class": Novelty()}
TYPES = (*CLASSIFIERS, *REAL)


def import_libsvm(file: str | os.PathLike[str] | TextIO, n_features: int | None = None) -> Imported:
    """Return the function in a LIBSVM model file, by its path or open for reading as text.

    `n_features` is for rows with more features than the file names.
    """
    path = file if isinstance(file, str | os.PathLike) else None
    name = "the text" if path is None else repr(os.fspath(path))
    try:
        text = file.read() if path is None else Path(path).read_text(encoding="ascii")  # type: ignore[union-attr]
        return _imported(text, n_features)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"cannot load {name} as a LIBSVM model: {error}") from error


def _imported(text: str, n_features: int | None) -> Imported:
    head, separator, body = text.partition("\nSV\n")
    if not separator:
        raise ValueError("it has no line SV with points after it; it may be truncated")
    header = {words[0]: words[1:] for words in map(str.split, head.splitlines()) if words}
    params, kind = _parameters(header), header["svm_type"][0]
    if kind in REAL:
        return _one_output(header, body, n_features, params, REAL[kind])
    labels = _labels(header)
    lines = [line.strip().split(maxsplit=labels.size - 1) for line in body.splitlines() if line.strip()]
    counts = _counts(header, labels.size, len(lines))
    bias = -_numbers(_entry(header, "rho"), "rho")
    _check_pairs(labels.size, bias.size, len(lines))
    coef = [_numbers(line[: labels.size - 1], "coefficients") for line in lines]
    if any(row.size != labels.size - 1 for row in coef):
        raise ValueError(f"it has points without the {labels.size - 1} coefficients that {labels.size} classes need")
    stacked = np.array(coef, dtype=np.float64).reshape(-1, labels.size - 1)
    columns, bias = _in_order(np.asarray(PairCoefficients(stacked, counts)), bias, labels)
    texts, columns = _merged([line[-1] if len(line) == labels.size else "" for line in lines], columns)
    points = _rows(texts, n_features)
    model = Expansion(make_kernel(**params), points, columns, bias)
    goal, calibration = OneVsOne(labels.size), _calibration(header, labels)
    return Imported(model, goal, np.sort(labels), points.shape[1], params, calibration=calibration)


def _calibration(header: dict[str, list[str]], labels: Array) -> Sigmoid | None:
    """Return the probabilities of two classes. LIBSVM couples those of more classes from pairs: no map of scores.

    LIBSVM has p = 1 / (1 + exp(A f + B)) for the first label. Our score is positive for the larger label.
    """
    if labels.size > 2 or "probA" not in header:
        return None
    A, B = (_numbers(_entry(header, name), name) for name in ("probA", "probB"))
    if A.size != 1 or B.size != 1:
        raise ValueError(f"it has {A.size} probA and {B.size} probB, and two classes have one of each")
    return Sigmoid(-A, -B if labels[0] > labels[1] else B)


def _one_output(
    header: dict[str, list[str]], body: str, n_features: int | None, params: dict[str, Any], goal: Goal
) -> Imported:
    """Return a regressor or a novelty detector: a coefficient for each point."""
    lines = [line.strip().partition(" ") for line in body.splitlines() if line.strip()]
    total = _integers(_entry(header, "total_sv"), "total_sv")[0]
    if total != len(lines):
        raise ValueError(f"total_sv is {total}, and after SV there are {len(lines)} points; it may be truncated")
    rho = _numbers(_entry(header, "rho"), "rho")
    if rho.size != 1:
        raise ValueError(f"it has {rho.size} rho, and a {header['svm_type'][0]} has one")
    coef = _numbers([line[0] for line in lines], "coefficients").reshape(-1, 1)
    texts, coef = _merged([line[2] for line in lines], coef)
    points, kernel = _rows(texts, n_features), make_kernel(**params)
    if isinstance(goal, Novelty):
        params["nu"] = goal.nu
    else:
        # the file has no C, which is the largest coefficient if any is at its bound
        params |= {"C": float(np.abs(coef).max(initial=0.0)) or 1.0, "epsilon": 0.0}
    return Imported(Expansion(kernel, points, coef, -rho), goal, NO_CLASSES, points.shape[1], params)


# The header.


def _entry(header: dict[str, list[str]], name: str) -> list[str]:
    if not header.get(name):
        raise ValueError(f"there is no {name!r} in its header")
    return header[name]


def _numbers(words: list[str], what: str) -> Array:
    """Return finite numbers in plain notation."""
    try:
        values = np.array([float(word) for word in words], dtype=np.float64)
    except ValueError:
        values = np.array([np.nan])
    # float() reads 1_1 as 11
    if not np.isfinite(values).all() or any("_" in word for word in words):
        raise ValueError(f"its {what} are not finite numbers: {short(' '.join(words))}")
    return values


def _integers(words: list[str], what: str) -> list[int]:
    if not all(word.lstrip("+-").isdigit() and len(word) < 20 for word in words):
        raise ValueError(f"its {what} are not whole numbers: {short(' '.join(words))}")
    return [int(word) for word in words]


def _parameters(header: dict[str, list[str]]) -> dict[str, Any]:
    """Return the kernel and its parameters, as SlimSVC has them."""
    kind, kernel = _entry(header, "svm_type")[0], _entry(header, "kernel_type")[0]
    if kind not in TYPES:
        raise ValueError(f"it has the svm_type {short(kind)}; there are {list(TYPES)}")
    if kernel not in KERNELS:
        raise ValueError(f"it has the kernel {short(kernel)}; there are {sorted(KERNELS)}")
    # a file has only the parameters of its kernel; others do not matter
    header = {"gamma": ["1"], "coef0": ["1"], "degree": ["1"]} | header
    gamma, coef0 = (float(_numbers(_entry(header, name), name)[0]) for name in ("gamma", "coef0"))
    params = {"gamma": gamma, "coef0": coef0, "degree": _integers(_entry(header, "degree"), "degree")[0]}
    name = KERNELS[kernel]
    check_parameters(name, {parameter.name: params[parameter.name] for parameter in SPECS[name].parameters})
    return {"kernel": name} | params


def _labels(header: dict[str, list[str]]) -> Array:
    labels = np.array(_integers(_entry(header, "label"), "label"), dtype=np.int64)
    if labels.size < 2 or np.unique(labels).size != labels.size:
        raise ValueError(f"its labels must be two or more different numbers, not {short(labels.tolist())}")
    return labels


def _counts(header: dict[str, list[str]], n_classes: int, n_points: int) -> Array:
    counts = _integers(_entry(header, "nr_sv"), "nr_sv")
    if len(counts) != n_classes or any(count < 0 for count in counts) or sum(counts) != n_points:
        raise ValueError(f"nr_sv is {short(counts)}, and after SV there are {n_points} points of {n_classes} classes")
    return np.array(counts, dtype=np.int64)


def _check_pairs(n_classes: int, n_bias: int, n_points: int) -> None:
    pairs = n_classes * (n_classes - 1) // 2
    if n_bias != pairs:
        raise ValueError(f"it has {n_bias} rho for {pairs} pairs of {n_classes} labels")
    if pairs * max(n_points, n_classes) > LARGEST:
        raise ValueError(f"its {n_points:,} points of {pairs:,} pairs of classes would take more than 2 GiB")


# The points.


def _merged(texts: list[str], columns: Array) -> tuple[list[str], Array]:
    """Return each point once, with the coefficients of all its copies."""
    place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    merged = np.zeros((len(place), columns.shape[1]))
    np.add.at(merged, [place[text] for text in texts], columns)
    return list(place), merged


def _rows(texts: list[str], n_features: int | None) -> Any:
    """Return rows of `feature:value`, features from 1 on and in ascending order; CSR if most values are 0."""
    values: list[float] = []
    features: list[int] = []
    starts = [0]
    for text in texts:
        last = 0
        for word in text.split():
            feature, value = _split(word)
            if feature <= last:
                raise ValueError(
                    f"it has {short(word)} after feature {last} of a point; features must be in ascending order"
                )
            features.append(feature - 1)
            values.append(value)
            last = feature
        starts.append(len(values))
    width = max(features, default=0) + 1
    if n_features is not None and n_features < width:
        raise ValueError(f"it has a feature {width}, beyond the {n_features} that were asked for")
    rows = csr_array((values, features, starts), shape=(len(texts), n_features or width), dtype=np.float64)
    return rows.toarray() if rows.nnz > SPARSE_DENSITY * rows.shape[0] * rows.shape[1] else rows


def _split(word: str) -> tuple[int, float]:
    """Return the feature's number, from 1 on, and its value."""
    feature, _, value = word.partition(":")
    number = int(feature) if feature.isdigit() and len(feature) < 20 else 0
    try:
        amount = float(value)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount) or "_" in value or not 0 < number <= MOST_FEATURES:
        raise ValueError(
            f"it has {short(word)} in a point, where feature:value is needed, with features from 1 to {MOST_FEATURES} and "
            "finite values"
        )
    return number, amount


def _in_order(columns: Array, bias: Array, labels: Array) -> tuple[Array, Array]:
    """Return columns and bias for sorted labels, from those in the file's order: pairs change places and signs."""
    rank = np.argsort(np.argsort(labels))
    place = {pair: number for number, pair in enumerate(combinations(range(labels.size), 2))}
    target, sign = [], []
    for i, j in combinations(rank.tolist(), 2):
        target.append(place[min(i, j), max(i, j)])
        # a column is positive for the first class of its pair; with two classes, for the second
        sign.append(1.0 if (i < j) == (labels.size > 2) else -1.0)
    ordered, ordered_bias = np.empty_like(columns), np.empty_like(bias)
    ordered[:, target], ordered_bias[target] = columns * sign, bias * sign
    return ordered, ordered_bias


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
