"""ONNX: plain operators for any kernel and layout, or one SVMClassifier or SVMRegressor (`converter` is for skl2onnx).

The outputs are `label` (int64 or strings) and `scores`, one column per class as in skl2onnx: [-f, f] for two classes.
With a calibration there are `probabilities` too, and the label has the largest. A regressor has one output `value`,
and novelty detection `label` (+1 or -1) and `scores`, each of one column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from ..calibration import LEAST, Calibration
from ..goals import Decision, OneVsOne
from ..kernels.spec import SPECS, spec_of
from ..scaling import Array, Scaling
from ..text import short
from .artefact import Artefact
from .libsvm_layout import layout_of
from .literals import check_float32
from .sparse import SparsePoints, needs_double, own_sums, smallest


def add_probabilities(g: Graph, calibration: Calibration, scores: str, n_classes: int) -> str:
    """Add `probabilities` (n, k) to a graph, from scores (n, k), which are [-f, f] for two classes."""
    if n_classes == 2:
        scores = g.add("Gather", scores, g.constant("second", np.array([1])), axis=1)
    p = MAPS[calibration.name](g, calibration, scores, n_classes)
    least, most = (g.constant(f"p_{name}", np.array(end)) for name, end in (("least", LEAST), ("most", 1 - LEAST)))
    p = g.add("Min", g.add("Max", p, least), most)
    if n_classes == 2:
        return g.add("Concat", g.add("Sub", g.constant("certain", np.array(1.0)), p), p, name="probabilities", axis=1)
    total = g.add("ReduceSum", p, g.constant("classes_axis", np.array([1])), keepdims=1)
    return g.add("Div", p, total, name="probabilities")


def _sigmoid(g: Graph, calibration: Any, scores: str, n_classes: int) -> str:  # noqa: ARG001
    scaled = g.add("Mul", scores, g.constant("slope", calibration.slope))
    return g.add("Sigmoid", g.add("Add", scaled, g.constant("shift", calibration.shift)))


def _temperature(g: Graph, calibration: Any, scores: str, n_classes: int) -> str:
    scaled = g.add("Div", scores, g.constant("temperature", np.array(calibration.temperature)))
    return g.add("Sigmoid", scaled) if n_classes == 2 else g.add("Softmax", scaled, axis=1)


def _isotonic(g: Graph, calibration: Any, scores: str, n_classes: int) -> str:  # noqa: ARG001
    """Add the curve of each score: the value at its first knot, plus each piece's rise times the share passed."""
    found, zero = [], g.constant("none", np.array(0.0))
    for k in range(calibration.starts.size - 1):
        knots = slice(int(calibration.starts[k]), int(calibration.starts[k + 1]))
        x, y = calibration.scores[knots], calibration.values[knots]
        column = g.add("Gather", scores, g.constant(f"column_{k}", np.array([k])), axis=1)
        if x.size == 1:
            flat = g.add("Mul", column, zero)
            found.append(g.add("Add", flat, g.constant(f"base_{k}", y[:1])))
            continue
        passed = g.add("Div", g.add("Sub", column, g.constant(f"knots_{k}", x[:-1])), g.constant(f"widths_{k}", np.diff(x)))
        share = g.add("Min", g.add("Max", passed, zero), g.constant("all", np.array(1.0)))
        rises, base = g.constant(f"rises_{k}", np.diff(y)[:, None]), g.constant(f"base_{k}", y[:1])
        found.append(g.add("Gemm", share, rises, base))
    return found[0] if len(found) == 1 else g.add("Concat", *found, axis=1)


MAPS: dict[str, Callable[[Any, Any, str, int], str]] = {
    "sigmoid": _sigmoid,
    "isotonic": _isotonic,
    "temperature": _temperature,
}


OPSET = 17
#: the numbers of element types in ONNX
TYPES: dict[Any, int] = {np.float32: 1, np.uint8: 2, np.uint16: 4, np.int64: 7, np.float64: 11, np.uint32: 12}
FLAVORS = ("plain", "svm")
#: slimsvm's names of the kernels of an SVMClassifier or SVMRegressor
SVM_KERNELS = [name for name, spec in SPECS.items() if spec.onnx]


def require(module: str) -> Any:
    """Return an optional module, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"the ONNX export needs {module}: pip install 'slimsvm[onnx]'") from error


@dataclass(frozen=True)
class Node:
    """One operator, its inputs and outputs by name."""

    op: str
    inputs: list[str]
    outputs: list[str]
    domain: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)


class Graph:
    """The nodes and constants of a model, for a model file or skl2onnx's container; `sparse` if most points are 0."""

    def __init__(self, dtype: type[np.floating[Any]]) -> None:
        self.dtype, self.sparse = dtype, False
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}

    def constant(self, name: str, values: Any) -> str:
        """Add an array, floats in the graph's precision, and return its name."""
        array = np.asarray(values)
        self.constants[name] = array.astype(self.dtype) if array.dtype.kind == "f" else array
        return name

    def points(self, name: str, values: Array) -> str:
        """Add a matrix of points; if they are `sparse` and that is smaller, as their nonzeros, which it is made of."""
        places = np.flatnonzero(values)
        last = values.shape[1]
        rows, columns = (smallest(part) for part in np.divmod(places, last))
        entry = rows.itemsize + columns.itemsize + np.dtype(self.dtype).itemsize
        if not self.sparse or places.size * entry >= values.size * np.dtype(self.dtype).itemsize:
            return self.constant(name, values)
        numbers = self.constant(f"{name}_values", values.ravel()[places])
        index = [
            self.add("Cast", self.constant(f"{name}_{part}", each), to=TYPES[np.int64])
            for part, each in (("rows", rows), ("columns", columns))
        ]
        whole = self.add("Mul", index[0], self.constant(f"{name}_width", np.array([last])))
        flat = self.add("Add", whole, index[1])
        zeros = self.add(
            "Expand", self.constant(f"{name}_zero", np.zeros(1)), self.constant(f"{name}_size", np.array([values.size]))
        )
        filled = self.add("ScatterElements", zeros, flat, numbers, axis=0)
        return self.add("Reshape", filled, self.constant(f"{name}_shape", np.array(values.shape)))

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its first output."""
        output = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(Node(op, list(inputs), [output], attributes=attributes))
        return output


@dataclass(frozen=True)
class Result:
    """An output of the model; `columns` is empty if it has one axis, a number or word for each row."""

    name: str
    dtype: Any
    columns: tuple[int, ...]


def results(a: Artefact, dtype: type[np.floating[Any]]) -> list[Result]:
    """Return the outputs of a model of this precision."""
    if a.decision in (Decision.VALUE, Decision.VALUES):
        return [Result("value", dtype, (a.outputs,))]
    if a.decision is Decision.SIDE:
        return [Result("label", np.int64, (1,)), Result("scores", dtype, (1,))]
    label = object if _named(a.classes) else np.int64
    found = [Result("label", label, ()), Result("scores", dtype, (a.classes.size,))]
    return found if a.calibration is None else [*found, Result("probabilities", dtype, (a.classes.size,))]


@dataclass(frozen=True)
class ONNXExporter:
    """`precision` is float32 or float64; `flavor` "svm" is one SVMClassifier or SVMRegressor.

    These operators hold float32, and pairs of classes instead of one output per class.
    """

    ending: ClassVar[str] = ".onnx"
    precision: str = "float32"
    flavor: str = "plain"

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float64"):
            raise ValueError(f"unknown precision {self.precision!r} of ONNX; there are float32 and float64")
        if self.flavor not in FLAVORS:
            raise ValueError(f"unknown flavor {self.flavor!r} of ONNX; there are {list(FLAVORS)}")
        if self.flavor == "svm" and self.precision != "float32":
            raise ValueError("ONNX's own SVMs hold float32; for float64 take flavor='plain'")

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:
        """Return the model file."""
        onnx = require("onnx")
        graph = Graph(np.dtype(self.precision).type)
        build(graph, artefact, "X", self.flavor)
        tensor = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.precision))
        info = onnx.helper.make_tensor_value_info
        kind_of = onnx.helper.np_dtype_to_tensor_dtype
        outputs = [info(r.name, kind_of(np.dtype(r.dtype)), ["N", *r.columns]) for r in results(artefact, graph.dtype)]
        body = onnx.helper.make_graph(
            [onnx.helper.make_node(n.op, n.inputs, n.outputs, domain=n.domain, **n.attributes) for n in graph.nodes],
            stem,
            [info("X", tensor, ["N", artefact.features])],
            outputs,
            [_tensor(onnx, name, values) for name, values in graph.constants.items()],
        )
        opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
        names = {"producer_name": "slimsvm", "producer_version": version("slimsvm")}
        model = onnx.helper.make_model(body, opset_imports=opsets, ir_version=8, **names)
        onnx.checker.check_model(model)
        return {self.ending: model.SerializeToString()}


def _tensor(onnx: Any, name: str, values: Array) -> Any:
    if values.dtype == object:
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, values.shape, [text.encode() for text in values])
    return onnx.numpy_helper.from_array(values, name)


def _named(classes: Array) -> bool:
    return classes.dtype.kind in "OUS"


def _labels(classes: Array) -> Array:
    if _named(classes):
        return np.array([str(label) for label in classes], dtype=object)
    if (classes.astype(np.int64) != classes).any():
        raise ValueError(f"ONNX labels are whole numbers or strings, not {short(classes.tolist())}; encode y as 0, 1, ...")
    return classes.astype(np.int64)


# The function in operators.


def build(graph: Graph, artefact: Artefact, x: str, flavor: str = "plain") -> None:
    """Add the nodes from the rows `x` to `label` and `scores`, or to `value`."""
    spec_of(artefact.kernel, "the onnx export")
    artefact.check_rows("the onnx export")
    a = artefact.compact()
    if graph.dtype == np.float32:
        check_float32(a)
    outputs = (_svm if flavor == "svm" else _expansion)(graph, a, x)
    if a.decision in (Decision.VALUE, Decision.VALUES):
        return
    if a.decision is Decision.SIDE:
        _side(graph, outputs)
        return
    decisive = _votes(graph, a, outputs) if a.by_pairs else outputs
    if a.calibration is not None:
        decisive = add_probabilities(graph, a.calibration, "scores", a.classes.size)
    number = graph.add("ArgMax", decisive, axis=1, keepdims=0)  # the first of equal ones
    graph.add("Gather", graph.constant("classes", _labels(a.classes)), number, name="label")


def _outputs_name(a: Artefact) -> str:
    """Return the name of the expansion's outputs, which may be a result of the model."""
    return "outputs" if a.by_pairs else "value" if a.decision in (Decision.VALUE, Decision.VALUES) else "scores"


def _side(g: Graph, scores: str) -> None:
    """Add `label`, +1 from a score of 0 on and -1 below."""
    inside = g.add("GreaterOrEqual", scores, g.constant("border", np.array(0.0)))
    sides = [g.constant(name, np.array(side, dtype=np.int64)) for name, side in (("usual", 1), ("novel", -1))]
    g.add("Where", inside, *sides, name="label")


def _expansion(g: Graph, a: Artefact, x: str) -> str:
    """Add the outputs, as [-f, f] for two classes."""
    if a.projection is not None:
        x = g.add("MatMul", _scaled(g, x, a.scaling), g.constant("projection", a.projection))
        a = replace(a, scaling=None, projection=None)
    total = _sparse_total if isinstance(a.points, SparsePoints) else TOTALS[a.spec.total.name]
    values = VALUES[a.spec.value.name](g, a, total(g, a, x))
    sides = [-1.0, 1.0] if a.decision is Decision.SIGN else [1.0]
    coef, bias = (np.concatenate([side * part for side in sides], axis=-1) for part in (a.coef, a.bias))
    return g.add("Gemm", values, g.constant("coef", coef), g.constant("bias", bias), name=_outputs_name(a))


def _scaled(g: Graph, x: str, scaling: Scaling | None) -> str:
    """Add clip((x - centre) * scale, low, high), without the steps that change nothing."""
    if scaling is None:
        return x
    x = g.add("Sub", x, g.constant("centre", scaling.centre)) if scaling.centre.any() else x
    x = g.add("Mul", x, g.constant("scale", scaling.scale)) if (scaling.scale != 1).any() else x
    if scaling.clips:
        x = g.add("Min", g.add("Max", x, g.constant("low", scaling.low)), g.constant("high", scaling.high))
    return x


def _sparse_total(g: Graph, a: Artefact, x: str) -> str:
    """Add the total of sparse points, in double precision where float32 would lose digits."""
    assert isinstance(a.points, SparsePoints)
    x = _scaled(g, x, a.scaling)
    if g.dtype == np.float64 or not needs_double(a.spec, a.parameters, own_sums(a.spec, a.points), a.widths):
        return _total_of_columns(g, a, a.points, x)
    dtype, g.dtype = g.dtype, np.float64
    total = _total_of_columns(g, a, a.points, g.add("Cast", x, to=TYPES[np.float64]))
    g.dtype = dtype
    return g.add("Cast", total, to=TYPES[dtype])


def _total_of_columns(g: Graph, a: Artefact, points: SparsePoints, x: str) -> str:
    """Add the total of the columns in which a point is nonzero, and what rows have in the others."""
    table, own = points.by_column(), OWN_SUMS.get(a.spec.total.name)
    some = x
    if table.columns.size < a.features:
        columns = g.add("Cast", g.constant("columns", smallest(table.columns)), to=TYPES[np.int64])
        some = g.add("Gather", x, columns, axis=1)
    g.sparse = True
    total = TOTALS[a.spec.total.name](g, replace(a, points=table.narrow(), scaling=None), some)
    if own is None or some == x:
        return total
    rest = g.add("Sub", *(g.add(own, rows, axes=[1], keepdims=1) for rows in (x, some)))
    gamma = g.constant("gamma_of_rest", np.asarray(a.parameters["gamma"] * _widths(a)))
    return g.add("Sub", total, g.add("Mul", rest, gamma))


#: the sum of a row alone (`sparse`), as an operator
OWN_SUMS = {"squares": "ReduceSumSquare", "manhattan": "ReduceL1", "chi_squared": "ReduceL1"}

# The argument of the kernel's value function, for each sum over features: gamma <x, z> + coef0 for inner products, -gamma
# times the sum for distances.


def _inner(g: Graph, a: Artefact, x: str) -> str:
    """Add gamma <x, z> + coef0; the points are multiplied by gamma."""
    points = g.points("points", a.table.T * a.parameters.get("gamma", 1.0))
    x = _scaled(g, x, a.scaling)
    if not a.parameters.get("coef0"):
        return g.add("MatMul", x, points)
    return g.add("Gemm", x, points, g.constant("coef0", np.array([a.parameters["coef0"]])))


def _squares(g: Graph, a: Artefact, x: str) -> str:
    """Add 2 gamma <x, z> - gamma |z|^2 - gamma |x|^2, with the mean of the points as origin if precision requires it.

    With widths, each point has its own gamma.
    """
    gamma = a.parameters["gamma"] * _widths(a)
    origin = a.table.mean(axis=0) * _loses_digits(g, a)
    points = a.table - origin
    x = _scaled(g, x, _moved(a, origin))
    own = g.add("MatMul", g.add("Mul", x, x), g.constant("gamma", np.full((a.features, 1), a.parameters["gamma"])))
    own = own if a.widths is None else g.add("Mul", own, g.constant("widths", a.widths))
    norms = g.constant("norms", -gamma * (points**2).sum(axis=1))
    return g.add("Sub", g.add("Gemm", x, g.points("points", 2 * gamma * points.T), norms), own)


def _widths(a: Artefact) -> Array | float:
    return 1.0 if a.widths is None else a.widths


def _loses_digits(g: Graph, a: Artefact) -> bool:
    """Return whether rounding the terms of the exponent would change scores visibly; sparse points are not moved."""
    if g.sparse:
        return False
    largest = a.parameters["gamma"] * float((_widths(a) * (a.table**2).sum(axis=1)).max())
    return largest * np.sqrt(a.features) * float(np.finfo(g.dtype).eps) > 1e-6


def _moved(a: Artefact, mean: Array) -> Scaling:
    """Return the artefact's scaling with another origin for the scaled rows."""
    origin = Scaling.affine(mean, np.ones_like(mean))
    return origin if a.scaling is None else a.scaling.then(origin)


def _each_pair(g: Graph, a: Artefact, x: str) -> tuple[str, str]:
    """Return rows (n, 1, d) and points (m, d), which broadcast to all differences."""
    x = _scaled(g, x, a.scaling)
    return g.add("Unsqueeze", x, g.constant("middle_axis", np.array([1]))), g.points("points", a.table)


def _negative_sum(g: Graph, a: Artefact, terms: str) -> str:
    total = g.add("ReduceSum", terms, g.constant("last_axis", np.array([2])), keepdims=0)
    return g.add("Mul", total, g.constant("gamma", np.asarray(-a.parameters["gamma"] * _widths(a))))


def _manhattan(g: Graph, a: Artefact, x: str) -> str:
    return _negative_sum(g, a, g.add("Abs", g.add("Sub", *_each_pair(g, a, x))))


def _chi_squared(g: Graph, a: Artefact, x: str) -> str:
    rows, points = _each_pair(g, a, x)
    difference = g.add("Sub", rows, points)
    # if both features are 0, so is the difference, which is divided by the smallest number
    total = g.add("Max", g.add("Add", rows, points), g.constant("least", np.array(float(np.finfo(np.float32).tiny))))
    return _negative_sum(g, a, g.add("Div", g.add("Mul", difference, difference), total))


TOTALS: dict[str, Callable[[Graph, Artefact, str], str]] = {
    "inner": _inner,
    "squares": _squares,
    "manhattan": _manhattan,
    "chi_squared": _chi_squared,
}


def _power(g: Graph, a: Artefact, s: str) -> str:
    return g.add("Pow", s, g.constant("degree", np.array(float(a.parameters["degree"]))))


VALUES: dict[str, Callable[[Graph, Artefact, str], str]] = {
    "identity": lambda _g, _a, s: s,
    "exp": lambda g, _a, s: g.add("Exp", s),
    "power": _power,
    "tanh": lambda g, _a, s: g.add("Tanh", s),
}


def _votes(g: Graph, a: Artefact, outputs: str) -> str:
    """Add `scores`, votes plus the sum of outputs scaled below half a vote; return the values that decide the class."""
    signs = OneVsOne(a.classes.size).signs
    by_pair = g.constant("signs", signs.T)
    won = g.add("Cast", g.add("Greater", outputs, g.constant("border", np.array(0.0))), to=TYPES[g.dtype])
    # a pair votes for its first class or for its second
    votes = g.add("Gemm", won, by_pair, g.constant("seconds", (signs < 0).sum(axis=1).astype(float)))
    confidence = g.add("MatMul", outputs, by_pair)
    one, three = g.constant("one", np.array(1.0)), g.constant("three", np.array(3.0))
    squeezed = g.add("Div", confidence, g.add("Mul", g.add("Add", g.add("Abs", confidence), one), three))
    if a.decision is Decision.DAG:
        votes = g.add("Add", votes, _bonus(g, a.classes.size, outputs))
    scores = g.add("Add", votes, squeezed, name="scores")
    return scores if a.decision is Decision.SCORED_VOTES else votes


def _bonus(g: Graph, k: int, outputs: str) -> str:
    """Add k for the class that a DAG decides for, and 0 for the others, (n, k)."""
    zero = g.constant("even", np.array(0.0))
    starts = g.constant("starts", np.array([i * (2 * k - i - 1) // 2 for i in range(k)]))  # columns of the pairs (i, i + 1)

    def lost(column: str) -> str:
        return g.add("Cast", g.add("Not", g.add("Greater", column, zero)), to=TYPES[np.int64])

    first = lost(g.add("Gather", outputs, g.constant("ends", np.array([k - 2])), axis=1))  # class 0 against the last one
    for left in range(k - 2, 0, -1):  # rows at `first` have the classes first .. first + left
        pair = g.add("Add", g.add("Gather", starts, first), g.constant(f"beyond_{left}", np.array([left - 1])))
        first = g.add("Add", first, lost(g.add("GatherElements", outputs, pair, axis=1)))
    left_over = g.add("Equal", first, g.constant("numbers", np.arange(k)))
    return g.add("Mul", g.add("Cast", left_over, to=TYPES[g.dtype]), g.constant("bonus", np.array(float(k))))


# ONNX's own SVMs.


def _svm(g: Graph, a: Artefact, x: str) -> str:
    """Add the outputs by one operator."""
    name = "SVMClassifier" if a.classes.size else "SVMRegressor"
    if a.kernel not in SVM_KERNELS:
        raise ValueError(f"an {name} has no {a.kernel!r} kernel; it has {sorted(SVM_KERNELS)}. Take flavor='plain'")
    if a.widths is not None:
        raise ValueError(
            f"an {name} has one gamma for all points, and this model has a learned width for each; take flavor='plain', or "
            "make a model without: reducer=Slim(metric='fixed')"
        )
    a.check_plain(f"an {name}")
    if a.decision is Decision.LARGEST:
        raise ValueError(
            "an SVMClassifier holds pairs of classes, and this model has an output per class; take flavor='plain'"
        )
    layout, outputs = layout_of(a), _outputs_name(a)
    attributes = {
        "kernel_type": a.spec.onnx,
        "kernel_params": [float(a.parameters.get(name, 0.0)) for name in ("gamma", "coef0", "degree")],
        "support_vectors": a.table[layout.index].ravel().tolist(),
        "coefficients": layout.coef.ravel().tolist(),
        "rho": layout.bias.tolist(),
        "post_transform": "NONE",
    }
    if a.classes.size:
        # its scores are the outputs of pairs, or [-f, f] in ONNX Runtime
        attributes |= {"vectors_per_class": layout.counts.tolist(), "classlabels_ints": list(range(a.classes.size))}
        names = ["svm_label", outputs]
    else:
        attributes |= {"n_supports": layout.index.size}
        names = [outputs]
    g.nodes.append(Node(name, [_scaled(g, x, a.scaling)], names, "ai.onnx.ml", attributes))
    return outputs
