"""Small models of several kinds as C: slim, boosted trees, a neural network, and Nystroem features with a linear model.

Each contender makes a model whose C, compiled for size, is within a number of bytes. `choices` are what it may be tuned by;
`fit` gives the C source and the same function in Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from platform import machine
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.rivals import code_bytes
from slimsvm import SlimSVC, SlimSVR
from slimsvm.costs import table_bytes
from slimsvm.estimators import machine_of
from slimsvm.goals import OneVsRest, Regression
from slimsvm.importers.imported import Imported
from slimsvm.kernels import RBF
from slimsvm.model import Expansion
from slimsvm.reducers.slim import METRICS, Slim
from slimsvm.ship.artefact import NO_CLASSES
from slimsvm.ship.c import CExporter
from slimsvm.ship.literals import float_literal, table
from slimsvm.ship.source import artefact_of

Array = np.ndarray
#: shares of what fits into the bytes that contenders choose from: points, rounds of trees or hidden units
SHARES = (1.0, 0.25)
#: the precisions of tables that contenders choose from
PRECISIONS = ("int8", "int16", "float32")
#: rows that set the range of integer tables, and the share of them that may be beyond it at either end of a feature
RANGE_ROWS, BEYOND = 4096, 0.001
#: rows at most on which slim chooses the size of a model
VALIDATION_ROWS = 4096
#: gcc for x86 aligns tables to 32 bytes unless told otherwise; microcontrollers do not
COMPACT = ("-malign-data=abi",) if machine() in ("x86_64", "AMD64") else ()


class TooFewBytesError(ValueError):
    """No model of a contender is within the bytes."""


@dataclass(frozen=True)
class Data:
    """Rows as they are measured, with class numbers or target values, and a scaler for models that need one."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    scaler: Any = None  # not fitted; None where features are on one scale already

    @property
    def real(self) -> bool:
        """Whether the targets are values."""
        return self.y.dtype.kind == "f"

    @property
    def outputs(self) -> int:
        """Outputs of a model: one for two classes and for values."""
        classes = 1 if self.real else int(self.y.max()) + 1
        return 1 if classes <= 2 else classes


@dataclass(frozen=True)
class Shipped:
    """A model as C, whose function `model_predict` gives a class number or a value, and in Python."""

    source: bytes
    predict: Callable[[Array], Array]
    facts: dict[str, Any] = field(default_factory=dict)  # what a row tells of it


@dataclass(frozen=True)
class Contender:
    """A kind of model."""

    name: str

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return the values of each setting, the usual one first; settings that matter most come first."""
        raise NotImplementedError

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return a model of at most so many bytes, found in about so many seconds."""
        raise NotImplementedError


def c_bytes(source: bytes) -> int:
    """Return the bytes of code and constants of a source, compiled for size, without gaps between tables."""
    return code_bytes(source, "gcc", *COMPACT)


# Kernel machines, written by slimsvm's own exporter.


@cache
def _kernel_code(features: int, outputs: int, precision: str, scaled: bool, real: bool, widths: bool) -> int:
    """Return the bytes of code of an exported kernel machine, by one of two points."""
    from sklearn.preprocessing import StandardScaler

    from slimsvm.metric import Metric

    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, features))
    metric = Metric(None, np.array([0.5, 2.0])) if widths else None
    model = _machine(RBF(0.1), points, rng.normal(size=(2, outputs)), np.zeros(outputs), real, metric)
    scaler = StandardScaler().fit(rng.normal(size=(9, features)) * np.arange(1, features + 1))
    source = _c_of(make_pipeline(scaler, model) if scaled else model, precision, None)
    own = table_bytes(RBF(0.1), 2, features, outputs, precision, widths=widths) + (8 * features if scaled else 0)
    return c_bytes(source) - own


def points_within(data: Data, size: int, precision: str, *, widths: bool, factors: bool) -> int:
    """Return how many points fit into so many bytes of tables and code."""
    d, scaled = data.X.shape[1], data.scaler is not None or factors
    fixed = _kernel_code(d, data.outputs, precision, scaled, data.real, widths) + (8 * d if scaled else 0)
    one, two = (table_bytes(RBF(1.0), m, d, data.outputs, precision, widths=widths) for m in (1, 2))
    count = (size - fixed - one) // (two - one) + 1
    if count < 1:
        raise TooFewBytesError(f"one point of {d} features takes {fixed + one} bytes of {precision} tables and code")
    return int(count)


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


@dataclass(frozen=True)
class SlimContender(Contender):
    """slim from the labels alone, with one of its metrics or several to choose from."""

    metrics: tuple[str, ...] = ("fixed",)

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return metrics, widths of the kernel, costs of errors, shares of the points that fit, and precisions."""
        return {
            "metric": self.metrics,
            "gamma": (1.0, 4.0, 0.25, 16.0),
            "C": (10.0, 1.0, 100.0, 0.1),
            "share": SHARES,
            "precision": PRECISIONS,
        }

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return the best of the path to as many points as fit, or to a share of them."""
        metric, precision = settings["metric"], settings["precision"]
        learned = Slim(metric=metric).learned(RBF(1.0))
        fitting = points_within(data, size, precision, widths="widths" in learned, factors="factors" in learned)
        count = min(max(int(settings["share"] * fitting), 1), len(data.X) - 1)
        reducer = Slim(metric=metric, time_limit=seconds)
        scaler = None if data.scaler is None else clone(data.scaler).fit(data.X)
        rows = data.X if scaler is None else scaler.transform(data.X)
        gamma = settings["gamma"] / (rows.shape[1] * max(float(rows.var()), 1e-12))
        kind = SlimSVR if data.real else SlimSVC
        given = {"gamma": gamma, "C": settings["C"], "validation_fraction": min(0.2, VALIDATION_ROWS / len(rows))}
        machine = kind(count, trainer=None, reducer=reducer, random_state=0, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning))  # the time is limited, as it should be
            machine.fit(rows, data.y)
        model = _in_pipeline(scaler, machine)
        source = _c_of(model, precision, _range_rows(data))
        return Shipped(source, model.predict, {"points": machine.model_.size, "fitting": fitting})


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


# Boosted trees, as a table of nodes.

NODE_BYTES, ROOT_BYTES = 8, 2
TREES = """#include <stdint.h>
/* The left child of a node is the next one; a leaf has the feature 65535, and its value is added. */
static const struct {{ float value; uint16_t feature, right; }} nodes[{count}] = {{
{nodes}
}};
static const uint16_t roots[{trees}] = {{
{roots}
}};
static const float base[{outputs}] = {{
{base}
}};
{kind} model_predict(const float *x)
{{
    float out[{outputs}];
    for (int k = 0; k < {outputs}; k++)
        out[k] = base[k];
    for (int t = 0; t < {trees}; t++) {{
        int n = roots[t];
        while (nodes[n].feature != 65535)
            n += x[nodes[n].feature] <= nodes[n].value ? 1 : nodes[n].right;
        out[t % {outputs}] += nodes[n].value;
    }}
{decision}
}}
"""
LARGEST = """    int best = 0;
    for (int k = 1; k < {outputs}; k++)
        if (out[k] > out[best])
            best = k;
    return best;"""


def decision(data: Data) -> str:
    """Return the statements from outputs to a prediction."""
    if data.real:
        return "    return out[0];"
    return "    return out[0] > 0;" if data.outputs == 1 else LARGEST.format(outputs=data.outputs)


@dataclass(frozen=True)
class Tree:
    """One tree: nodes as (value or threshold, feature or -1, left, right)."""

    nodes: list[tuple[float, int, int, int]]

    def lines(self) -> list[str]:
        """Return the nodes in the order in which each is followed by its left child."""
        order: list[int] = []
        waiting = [0]
        while waiting:
            node = waiting.pop()
            order.append(node)
            if self.nodes[node][1] >= 0:
                waiting += [self.nodes[node][3], self.nodes[node][2]]
        place = {node: number for number, node in enumerate(order)}
        return [self._line(node, place) for node in order]

    def _line(self, node: int, place: dict[int, int]) -> str:
        value, feature, _, right = self.nodes[node]
        if feature < 0:
            return f"    {{{float_literal(value)}, 65535, 0}}"
        return f"    {{{float_literal(_below(value))}, {feature}, {place[right] - place[node]}}}"


def _below(threshold: float) -> float:
    """Return the largest float32 up to a threshold: the same float32 rows are up to it."""
    narrow = np.float32(threshold)
    return float(narrow if float(narrow) <= threshold else np.nextafter(narrow, np.float32(-np.inf)))


def trees_in_c(data: Data, trees: Sequence[Tree], base: Array) -> bytes:
    """Return the C of a sum of trees."""
    lines = [tree.lines() for tree in trees]
    roots = np.concatenate([[0], np.cumsum([len(each) for each in lines])])[:-1]
    text = TREES.format(
        count=sum(map(len, lines)),
        nodes=",\n".join(line for each in lines for line in each),
        trees=len(trees),
        roots=table(roots.astype(np.int64)),
        outputs=data.outputs,
        base=table(base.astype(np.float32)),
        kind="float" if data.real else "int",
        decision=decision(data),
    )
    return text.encode()


@cache
def _tree_code(outputs: int, real: bool) -> int:
    """Return the bytes of the code that walks trees."""
    rows = np.zeros((1, 1))
    y = np.zeros(1) if real else np.array([outputs - 1 if outputs > 1 else 1])
    data = Data("", rows, y, rows, y)
    source = trees_in_c(data, [Tree([(0.5, 0, 1, 2), (1.0, -1, 0, 0), (2.0, -1, 0, 0)])] * 2, np.ones(outputs))
    return c_bytes(source) - 6 * NODE_BYTES - 2 * ROOT_BYTES - 4 * outputs


@dataclass(frozen=True)
class TreeContender(Contender):
    """Boosted trees: as many rounds as fit into the bytes."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return sizes of the trees, lengths of the steps, rows of a leaf, and shares of the rounds that fit."""
        return {"leaves": (8, 4, 16, 3, 31, 6, 2), "rate": (0.3, 0.1, 0.6, 1.0), "least": (20, 5), "share": SHARES}

    def rounds(self, data: Data, size: int, leaves: int) -> int:
        """Return how many rounds of full trees are within the bytes."""
        left = size - _tree_code(data.outputs, data.real) - 4 * data.outputs
        one = data.outputs * ((2 * leaves - 1) * NODE_BYTES + ROOT_BYTES)
        if left < one:
            raise TooFewBytesError(f"one round of trees of {leaves} leaves takes {one} bytes of {left}")
        return int(left // one)

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:  # noqa: ARG002
        """Return the trees."""
        rounds = min(max(int(settings["share"] * self.rounds(data, size, settings["leaves"])), 1), 2000)
        trees, base, predict = self.grown(data, rounds, settings)
        facts = {"nodes": sum(len(tree.nodes) for tree in trees), "rounds": rounds}
        return Shipped(trees_in_c(data, trees, base), predict, facts)

    def grown(
        self, data: Data, rounds: int, settings: dict[str, Any]
    ) -> tuple[list[Tree], Array, Callable[[Array], Array]]:
        """Return the trees, what they are added to, and the model in Python."""
        raise NotImplementedError


class HistGradientBoosting(TreeContender):
    """scikit-learn's."""

    def grown(
        self, data: Data, rounds: int, settings: dict[str, Any]
    ) -> tuple[list[Tree], Array, Callable[[Array], Array]]:
        """Return the trees."""
        kind = HistGradientBoostingRegressor if data.real else HistGradientBoostingClassifier
        model = kind(
            max_iter=rounds,
            max_leaf_nodes=settings["leaves"],
            learning_rate=settings["rate"],
            min_samples_leaf=settings["least"],
            early_stopping=False,
            random_state=0,
        ).fit(data.X, data.y)
        trees = [
            Tree(
                [
                    (float(n["value"]), -1, 0, 0)
                    if n["is_leaf"]
                    else (float(n["num_threshold"]), int(n["feature_idx"]), int(n["left"]), int(n["right"]))
                    for n in predictor.nodes
                ]
            )
            for each in model._predictors
            for predictor in each
        ]
        return trees, np.ravel(model._baseline_prediction), model.predict


class LightGBM(TreeContender):
    """LightGBM's."""

    def grown(
        self, data: Data, rounds: int, settings: dict[str, Any]
    ) -> tuple[list[Tree], Array, Callable[[Array], Array]]:
        """Return the trees."""
        import lightgbm

        goal: dict[str, Any] = {"objective": "regression" if data.real else "binary"}
        if data.outputs > 1:
            goal = {"objective": "multiclass", "num_class": data.outputs}
        given = goal | {
            "num_leaves": settings["leaves"],
            "learning_rate": settings["rate"],
            "min_data_in_leaf": settings["least"],
            "verbosity": -1,
            "seed": 0,
            "deterministic": True,
        }
        booster = lightgbm.train(given, lightgbm.Dataset(data.X, data.y, free_raw_data=False), rounds)
        trees = [Tree(_flat(each["tree_structure"])) for each in booster.dump_model()["tree_info"]]

        def predict(X: Array) -> Array:
            found = np.asarray(booster.predict(X, raw_score=True))
            if data.real:
                return found
            return (found > 0).astype(int) if data.outputs == 1 else found.argmax(axis=1)

        return trees, np.zeros(data.outputs), predict


def _flat(root: dict[str, Any]) -> list[tuple[float, int, int, int]]:
    """Return LightGBM's nested nodes as a list."""
    nodes: list[Any] = []

    def add(node: dict[str, Any]) -> int:
        place = len(nodes)
        if "split_feature" not in node:
            nodes.append((float(node["leaf_value"]), -1, 0, 0))
            return place
        nodes.append(None)
        left, right = add(node["left_child"]), add(node["right_child"])
        nodes[place] = (float(node["threshold"]), int(node["split_feature"]), left, right)
        return place

    add(root)
    return nodes


# A neural network of one hidden layer.

NETWORK = """#include <stdint.h>
{tables}
{kind} model_predict(const float *x)
{{
    float hidden[{units}], out[{outputs}];
    for (int j = 0; j < {units}; j++) {{
        float s = 0;
        for (int i = 0; i < {features}; i++)
            s += {row} * first[j * {features} + i];
        s = s * {first_unit} + first_bias[j];
        hidden[j] = s > 0 ? s : 0;
    }}
    for (int k = 0; k < {outputs}; k++) {{
        float s = 0;
        for (int j = 0; j < {units}; j++)
            s += hidden[j] * second[k * {units} + j];
        out[k] = s * {second_unit} + second_bias[k];
    }}
{decision}
}}
"""


@dataclass(frozen=True)
class Network:
    """Weights (units, d) and (q, units) with their biases, and the scaling of rows."""

    first: Array
    first_bias: Array
    second: Array
    second_bias: Array
    centre: Array | None
    scale: Array | None

    def outputs(self, X: Array) -> Array:
        """Return the outputs of rows."""
        rows = X if self.centre is None else (X - self.centre) * self.scale
        return np.maximum(rows @ self.first.T + self.first_bias, 0) @ self.second.T + self.second_bias

    def in_c(self, data: Data, precision: str) -> bytes:
        """Return the C; int8 weights have one step a layer."""
        (first, first_unit), (second, second_unit) = (_weights(W, precision) for W in (self.first, self.second))
        arrays: dict[str, Array] = {"first": first, "second": second}
        arrays |= {"first_bias": self.first_bias.astype(np.float32), "second_bias": self.second_bias.astype(np.float32)}
        if self.centre is not None and self.scale is not None:
            arrays |= {"centre": self.centre.astype(np.float32), "scale": self.scale.astype(np.float32)}
        kinds = {name: "float" if values.dtype.kind == "f" else "int8_t" for name, values in arrays.items()}
        texts = [f"static const {kinds[name]} {name}[{v.size}] = {{\n{table(v)}\n}};" for name, v in arrays.items()]
        text = NETWORK.format(
            tables="\n".join(texts),
            kind="float" if data.real else "int",
            units=len(self.first),
            features=self.first.shape[1],
            outputs=len(self.second),
            row="x[i]" if self.centre is None else "(x[i] - centre[i]) * scale[i]",
            first_unit=float_literal(first_unit),
            second_unit=float_literal(second_unit),
            decision=decision(data),
        )
        return text.encode()


def _weights(W: Array, precision: str) -> tuple[Array, float]:
    if precision == "float32":
        return W.astype(np.float32), 1.0
    step = float(np.abs(W).max()) / 127 or 1.0
    return np.rint(W / step).astype(np.int8), step


@cache
def _network_bytes(features: int, outputs: int, units: int, precision: str, scaled: bool, real: bool) -> int:
    """Return the bytes of a network's C, by one of random weights: compilers would leave out tables of equal numbers."""
    draw = np.random.default_rng(0).normal
    ends = (draw(size=features), draw(size=features)) if scaled else (None, None)
    network = Network(
        draw(size=(units, features)), draw(size=units), draw(size=(outputs, units)), draw(size=outputs), *ends
    )
    y = np.zeros(1) if real else np.array([outputs - 1 if outputs > 1 else 1])
    return c_bytes(network.in_c(Data("", np.zeros((1, 1)), y, np.zeros((1, 1)), y), precision))


@dataclass(frozen=True)
class NetworkContender(Contender):
    """scikit-learn's MLP with one hidden layer, trained by Adam until the validation loss no longer falls."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return lengths of steps, penalties, shares of the units that fit, and precisions."""
        return {
            "rate": (3e-3, 1e-3, 1e-2),
            "alpha": (1e-4, 1e-2),
            "share": SHARES,
            "precision": ("int8", "float32"),
        }

    def units(self, data: Data, size: int, precision: str) -> int:
        """Return how many hidden units fit."""
        d, q = data.X.shape[1], data.outputs
        one = (d + q) * (1 if precision == "int8" else 4) + 4
        count = 8 + (size - _network_bytes(d, q, 8, precision, data.scaler is not None, data.real)) // one
        while count > 0 and _network_bytes(d, q, count, precision, data.scaler is not None, data.real) > size:
            count -= 1  # compilers round the length of some tables up
        if count < 1:
            raise TooFewBytesError(f"one hidden unit takes {one} bytes of {precision} tables besides the code, of {size}")
        return int(count)

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return the network."""
        units = max(int(settings["share"] * self.units(data, size, settings["precision"])), 1)
        scaler = None if data.scaler is None else clone(data.scaler).fit(data.X)
        rows = data.X if scaler is None else scaler.transform(data.X)
        middle, spread = (float(data.y.mean()), float(data.y.std())) if data.real else (0.0, 1.0)
        y = (data.y - middle) / spread if data.real else data.y
        kind = MLPRegressor if data.real else MLPClassifier
        steps = {"alpha": settings["alpha"], "learning_rate_init": settings["rate"], "random_state": 0}
        model = kind(hidden_layer_sizes=(units,), **steps)
        _train(model, rows, y, seconds, () if data.real else np.arange(int(data.y.max()) + 1))
        (first, second), (a, b) = model.coefs_, model.intercepts_
        centre, scale = (None, None) if scaler is None else (scaler.mean_, 1 / scaler.scale_)
        network = Network(first.T, a, spread * second.T, spread * b + middle, centre, scale)
        rounded = network
        if settings["precision"] == "int8":
            parts = (_weights(W, "int8") for W in (network.first, network.second))
            first, second = (codes * step for codes, step in parts)
            rounded = replace(network, first=first, second=second)

        def predict(X: Array) -> Array:
            found = rounded.outputs(np.asarray(X, dtype=np.float64))
            if data.real:
                return found[:, 0]
            return (found[:, 0] > 0).astype(int) if data.outputs == 1 else found.argmax(axis=1)

        return Shipped(network.in_c(data, settings["precision"]), predict, {"units": units})


def _train(model: Any, X: Array, y: Array, seconds: float, classes: Any) -> None:
    """Go through the rows until the time is over or the error on a tenth of them has not fallen for ten passes."""
    end, order = perf_counter() + seconds, np.random.default_rng(2).permutation(len(X))
    watched, rest = order[: max(len(X) // 10, 1)], order[max(len(X) // 10, 1) :]
    given = {} if len(classes) == 0 else {"classes": classes}
    best, since, kept = -np.inf, 0, None
    while perf_counter() < end and since < 10:
        model.partial_fit(X[rest], y[rest], **given)
        score = model.score(X[watched], y[watched])
        since += 1
        if score > best:
            best, since, kept = score, 0, ([W.copy() for W in model.coefs_], [b.copy() for b in model.intercepts_])
    if kept is not None:
        model.coefs_, model.intercepts_ = kept


CONTENDERS: dict[str, Contender] = {
    each.name: each
    for each in (
        SlimContender("slim", ("both", "fixed", "widths")),
        *(SlimContender(f"slim-{metric}", (metric,)) for metric in METRICS),
        HistGradientBoosting("hist-gradient-boosting"),
        LightGBM("lightgbm"),
        NetworkContender("mlp"),
        NystroemContender("nystroem"),
    )
}
