"""Kernel machines as contenders: slim, and Nystroem features with a linear model, written by slimsvm's own exporter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from slimsvm import SlimSVC, SlimSVR
from slimsvm.c_bytes import NO_SCALER, Room, ScalerTables, Shape
from slimsvm.estimators import machine_of
from slimsvm.goals import OneVsRest, Regression
from slimsvm.importers.models import Imported
from slimsvm.kernels import RBF, Kernel, Laplacian
from slimsvm.metric import Metric
from slimsvm.model import Expansion
from slimsvm.ship.artefact import NO_CLASSES
from slimsvm.ship.c import CExporter
from slimsvm.ship.source import artefact_of
from slimsvm.slim.method import Slim

from .base import SHARES, Array, Contender, Data, Shipped, TooFewBytesError, c_bytes
from .descent import SLACK

#: rows that set the range of integer tables, and the share of them that may be beyond it at either end of a feature
RANGE_ROWS, BEYOND = 4096, 0.001
#: where slim begins to look for a decay
USUAL_C = 10.0
#: rows at most on which slim chooses the size of a model
VALIDATION_ROWS = 4096
#: the kernels that slim chooses from
KERNELS: dict[str, type[Kernel]] = {"rbf": RBF, "laplacian": Laplacian}
#: rows of the quick model
PROBED = 2000
#: the most standard deviations between the two values of a feature
MOST_SPREADS = 4.0
#: bytes of a scaler in front of a model, for each feature and for its code
SCALER_BYTES, SCALER_CODE = 8, 64
#: seconds that are left when slim's search ends, for its last step and the C
LAST_SECONDS = 0.5


def points_within(data: Data, size: int, precision: str, *, widths: bool, factors: bool, kernel: str = "rbf") -> int:
    """Return how many points fit into so many bytes of tables and code."""
    goal = Regression() if data.real else OneVsRest(max(data.outputs, 2))
    scaler = NO_SCALER if data.scaler is None else ScalerTables(data.X.shape[1])
    shape = Shape.of(kernel, data.X.shape[1], goal, widths=widths, factors=factors, scaler=scaler)
    count = Room(size - SLACK, (precision,), shape).points(precision, size)
    if count < 1:
        least = shape.bytes(1, precision)
        raise TooFewBytesError(f"one point of {shape.features} features takes {least} bytes of {precision} tables and code")
    return count


def _machine(kernel: Any, points: Array, coef: Array, bias: Array, real: bool, metric: Any = None) -> Any:
    """Return a kernel machine of ours with that function; classes are numbers."""
    goal = Regression() if real else OneVsRest(2 if bias.size == 1 else bias.size)
    classes = NO_CLASSES if real else np.arange(goal.n_classes)
    return machine_of(Imported(Expansion(kernel, points, coef, bias, metric), goal, classes, points.shape[1], {}))


def _c_of(model: Any, precision: str, rows: Array | None) -> bytes:
    """Return the exported C; rows set the range of integers."""
    exporter = CExporter(precision) if precision == "float32" else CExporter(precision, rows=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # tuning sees what coarse tables cost
        return exporter.render(artefact_of(model), "model")[".c"]


def _in_pipeline(scaler: Any, model: Any) -> Any:
    return model if scaler is None else make_pipeline(scaler, model)


def _range_rows(data: Data) -> Array:
    rows = data.X[np.random.default_rng(1).permutation(len(data.X))[:RANGE_ROWS]].astype(np.float64)
    return np.clip(rows, *np.quantile(rows, [BEYOND, 1 - BEYOND], axis=0))


def _powers_of_two(X: Array) -> Array:
    """Return a scale for each feature, a power of 2, by which factors can be divided without rounding.

    A rare feature of two values is not made large: coarse tables would multiply its rounding.
    """
    spread = X.std(axis=0, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    two = ((low == X) | (high == X)).all(axis=0)
    spread = np.where(two, np.maximum(spread, (high - low) / MOST_SPREADS), spread)
    return np.exp2(np.rint(np.log2(np.where(spread > 0, spread, 1.0))))


@dataclass(frozen=True)
class SlimContender(Contender):
    """slim from the labels alone, with one of its metrics or several to choose from; slim finds points, rank and bits."""

    metrics: tuple[str, ...] = ("auto",)

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return the metrics, and widths of a fixed kernel; slim itself chooses decay, size, rank and bits."""
        widths: dict[str, Sequence[Any]] = {"gamma": (1.0, 4.0, 0.25)} if "fixed" in self.metrics else {}
        return {"metric": self.metrics, **widths}

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return the model that fills the bytes; a quick one shows how its code differs here from what slim counts."""
        begun, scale = perf_counter(), None if data.scaler is None else _powers_of_two(data.X)
        absorbed = scale is None or settings["metric"] == "both"
        room = size if absorbed else size - SCALER_BYTES * data.X.shape[1] - SCALER_CODE
        probe = replace(data, X=data.X[:PROBED], y=data.y[:PROBED])
        more = 0
        if len(np.unique(probe.y)) == len(np.unique(data.y)) or data.real:
            quick = self._machine(probe, room, settings, scale, Slim(metric=settings["metric"], steps=1), None)
            shape = Shape.of("rbf", data.X.shape[1], quick.goal_).of_model(quick.model_)
            counted = shape.bytes(quick.model_.size, quick.model_.precision) + size - room
            more = counted - c_bytes(self._shipped(probe, quick, scale, absorbed).source) - SLACK
        seconds = max(seconds - (perf_counter() - begun) - LAST_SECONDS, 0.5 * seconds)
        found = self._machine(data, room + more, settings, scale, Slim(metric=settings["metric"]), seconds)
        shipped = self._shipped(data, found, scale, absorbed)
        while c_bytes(shipped.source) > size and found.model_.size > 1:  # the code is longer than that of the probe
            order = np.argsort(np.square(found.model_.coef).sum(axis=1))
            found.model_ = found.model_.part(np.sort(order[1:]))
            shipped = self._shipped(data, found, scale, absorbed)
        return shipped

    def _machine(
        self, data: Data, size: int, settings: dict[str, Any], scale: Array | None, reducer: Slim, seconds: float | None
    ) -> Any:
        """Return the fitted machine on scaled rows, of so many bytes as slim counts them."""
        rows = data.X if scale is None else data.X / scale
        gamma = settings.get("gamma", 1.0) / (rows.shape[1] * max(float(rows.var()), 1e-12))
        machine = (SlimSVR if data.real else SlimSVC)(
            f"{size} B",
            gamma=gamma,
            C=USUAL_C,
            trainer=None,
            reducer=reducer,
            time_limit=seconds,
            validation_fraction=min(0.2, VALIDATION_ROWS / len(rows)),
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning))  # the time is limited, as it should be
            try:
                return machine.fit(rows, data.y)
            except ValueError as failure:
                raise TooFewBytesError(str(failure)) from failure

    def _shipped(self, data: Data, machine: Any, scale: Array | None, absorbed: bool) -> Shipped:
        """Return the C of a machine; factors take in the scale of the rows, others have a scaler in front."""
        model, found = machine, machine.model_
        if scale is not None and absorbed:
            learned = Metric(found.factors / scale, found.widths)
            model = _machine(found.kernel, found.points * scale, found.coef, found.bias, data.real, learned)
            model.model_ = replace(model.model_, precision=found.precision)
        elif scale is not None:
            scaler = StandardScaler(with_mean=False).fit(data.X)
            scaler.scale_ = scale
            model = make_pipeline(scaler, machine)
        rank = 0 if found.projection is None else found.projection.shape[1]
        facts = {"points": found.size, "rank": rank, "precision": found.precision}
        return Shipped(_c_of(model, found.precision, _range_rows(data)), model.predict, facts)


@dataclass(frozen=True)
class NystroemContender(Contender):
    """Random training rows as points, with the coefficients of a linear model on Nystroem's features."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return widths of the kernel, costs of errors, shares and precisions; 8 bits are few for large coefficients."""
        return {
            "gamma": (1.0, 4.0, 0.25, 16.0),
            "C": (10.0, 1.0, 100.0, 0.1),
            "share": SHARES,
            "precision": ("int16", "float32", "int8"),
        }

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:  # noqa: ARG002
        """Return a kernel machine."""
        precision = settings["precision"]
        fitting = points_within(data, size, precision, widths=False, factors=False)
        count = min(max(int(settings["share"] * fitting), 1), len(data.X))
        scaler = None if data.scaler is None else clone(data.scaler).fit(data.X)
        rows = data.X if scaler is None else scaler.transform(data.X)
        gamma = settings["gamma"] / (rows.shape[1] * max(float(rows.var()), 1e-12))
        features = Nystroem(gamma=gamma, n_components=count, random_state=0).fit(rows)
        linear = Ridge(1 / settings["C"]) if data.real else LinearSVC(C=settings["C"], dual=False, max_iter=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            linear.fit(features.transform(rows), data.y)
        coef = features.normalization_.T @ np.atleast_2d(linear.coef_).T
        bias = np.atleast_1d(np.asarray(linear.intercept_, dtype=np.float64))
        machine = _machine(RBF(gamma), features.components_, coef, bias, data.real)
        model = _in_pipeline(scaler, machine)
        return Shipped(_c_of(model, precision, _range_rows(data)), model.predict, {"points": count})
