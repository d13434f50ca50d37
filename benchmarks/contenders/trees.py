"""Boosted trees as contenders: a table of nodes and the loop that walks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from slimsvm.c_bytes import ALIGNED
from slimsvm.ship.literals import float_literal, table

from .base import SHARES, Array, Contender, Data, Shipped, TooFewBytesError, c_bytes, decision

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
        left = size - _tree_code(data.outputs, data.real) - 4 * data.outputs - 2 * ALIGNED
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
