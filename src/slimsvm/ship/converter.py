"""A converter for skl2onnx, which then converts any Pipeline with a SlimSVC in it.

from slimsvm.ship.converter import register

register()
model = skl2onnx.to_onnx(pipeline, X[:1])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators import SlimSVC
from .onnx import TYPES, Graph, build, require
from .source import artefact_of


def register() -> None:
    """Register the converter of SlimSVC with skl2onnx; a second call changes nothing."""
    shapes = require("skl2onnx.common.shape_calculator").calculate_linear_classifier_output_shapes
    options = {"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]}
    require("skl2onnx").update_registered_converter(SlimSVC, "SlimSVC", shapes, convert, options=options)


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a fitted SlimSVC to skl2onnx's container."""
    types = require("skl2onnx.common.data_types")
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    graph = Graph(np.float64 if double else np.float32)
    rows = graph.add("Cast", "X", to=TYPES[graph.dtype])
    build(graph, artefact_of(operator.raw_operator), rows)
    names = {"X": operator.inputs[0].full_name, "label": operator.outputs[0].full_name}
    names["scores"] = operator.outputs[1].full_name
    for name in [*graph.constants, *(output for node in graph.nodes for output in node.outputs)]:
        names.setdefault(name, scope.get_unique_variable_name(f"slimsvm_{name}"))
    for name, values in graph.constants.items():
        _add_constant(container, names[name], values)
    for node in graph.nodes:
        inputs, outputs = ([names[name] for name in some] for some in (node.inputs, node.outputs))
        unique = scope.get_unique_operator_name(f"SlimSVC{node.op}")
        container.add_node(node.op, inputs, outputs, op_domain=node.domain, name=unique, **node.attributes)


def _add_constant(container: Any, name: str, values: np.ndarray) -> None:
    strings = require("onnx").TensorProto.STRING
    kind = strings if values.dtype == object else TYPES[values.dtype.type]
    content = [text.encode() for text in values] if values.dtype == object else values.ravel().tolist()
    container.add_initializer(name, kind, list(values.shape), content)
