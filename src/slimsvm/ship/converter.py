"""Converters for skl2onnx, which then converts any Pipeline with a SlimSVC, SlimSVR or SlimOneClassSVM in it.

from slimsvm.ship.converter import register

register()
model = skl2onnx.to_onnx(pipeline, X[:1])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators import SlimOneClassSVM, SlimSVC, SlimSVR
from .onnx import TYPES, Graph, build, require, results
from .source import artefact_of


def register() -> None:
    """Register the converters with skl2onnx; a second call changes nothing."""
    shapes = require("skl2onnx.common.shape_calculator")
    add = require("skl2onnx").update_registered_converter
    options = {"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]}
    add(SlimSVC, "SlimSVC", shapes.calculate_linear_classifier_output_shapes, convert, options=options)
    add(SlimSVR, "SlimSVR", shapes.calculate_linear_regressor_output_shapes, convert)
    add(SlimOneClassSVM, "SlimOneClassSVM", _label_and_score, convert)


def _label_and_score(operator: Any) -> None:
    """Set the shapes of the outputs as skl2onnx does for OneClassSVM."""
    n = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = require("skl2onnx.common.data_types").Int64TensorType([n, 1])
    operator.outputs[1].type.shape = [n, 1]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a fitted estimator to skl2onnx's container."""
    types = require("skl2onnx.common.data_types")
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    graph = Graph(np.float64 if double else np.float32)
    rows = graph.add("Cast", "X", to=TYPES[graph.dtype])
    artefact = artefact_of(operator.raw_operator)
    build(graph, artefact, rows)
    outputs = [output.full_name for output in operator.outputs]
    own = [result.name for result in results(artefact, graph.dtype)]
    if artefact.calibration is not None:
        own = ["label", "probabilities"]  # skl2onnx has two outputs
    names = {"X": operator.inputs[0].full_name, **dict(zip(own, outputs, strict=True))}
    for name in [*graph.constants, *(output for node in graph.nodes for output in node.outputs)]:
        names.setdefault(name, scope.get_unique_variable_name(f"slimsvm_{name}"))
    for name, values in graph.constants.items():
        _add_constant(container, names[name], values)
    for node in graph.nodes:
        inputs, outputs = ([names[name] for name in some] for some in (node.inputs, node.outputs))
        unique = scope.get_unique_operator_name(f"{operator.type}{node.op}")
        container.add_node(node.op, inputs, outputs, op_domain=node.domain, name=unique, **node.attributes)


def _add_constant(container: Any, name: str, values: np.ndarray) -> None:
    strings = require("onnx").TensorProto.STRING
    kind = strings if values.dtype == object else TYPES[values.dtype.type]
    content = [text.encode() for text in values] if values.dtype == object else values.ravel().tolist()
    container.add_initializer(name, kind, list(values.shape), content)
