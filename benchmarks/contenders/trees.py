"""Boosted trees as contenders: a stream of bits, one table of the splits that they share, and the loop that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from slimsvm.ship.literals import float_literal, table

from .base import SHARES, Array, Contender, Data, Shipped, decision
from .descent import most_within, prediction

#: values of a leaf are whole multiples of one step, up to this many in each direction
TOP = 127
#: training rows by which the step of the leaves is chosen
STEP_ROWS = 4096
TREES = """#include <stdint.h>
/* A tree, depth first: 0 and {split_bits} bits, the number of a split, before its two children; or 1 and 8 bits, a leaf. */
static const uint8_t bits[{count}] = {{
{bits}
}};
static const float threshold[{splits}] = {{
{thresholds}
}};
static const {index} feature[{splits}] = {{
{features}
}};
static unsigned at;
static unsigned take(int n)
{{
    unsigned value = 0;
    for (; n > 0; n--, at++)
        value = value << 1 | (bits[at >> 3] >> (at & 7) & 1);
    return value;
}}
{kind} model_predict(const float *x)
{{
    float out[{outputs}];
    int sum[{outputs}] = {{0}};
    at = 0;
    for (int t = 0; t < {trees}; t++) {{
        int found = 0;
        for (int left = 1, wanted = 1; left > 0;) {{     /* subtrees to come; as many when the next child is read */
            int here = left == wanted;
            if (take(1)) {{
                int leaf = (int)take(8) - 128;
                left--;
                if (here)
                    found = leaf, wanted = 0;
            }} else {{
                unsigned split = take({split_bits});
                left++;
                if (here)
                    wanted = x[feature[split]] <= threshold[split] ? left : left - 1;
            }}
        }}
        sum[t % {outputs}] += found;
    }}
    static const float base[{outputs}] = {{
{base}
    }};
    for (int k = 0; k < {outputs}; k++)
        out[k] = base[k] + {step} * sum[k];
{decision}
}}
"""


@dataclass(frozen=True)
class Tree:
    """One tree: nodes as (value or threshold, feature or -1, left, right)."""

    nodes: list[tuple[float, int, int, int]]

    @property
    def splits(self) -> set[tuple[int, float]]:
        """Its different splits, as features with thresholds."""
        return {(feature, value) for value, feature, _, _ in self.nodes if feature >= 0}

    def bits(self, numbers: dict[tuple[int, float], int], width: int, step: float) -> str:
        """Return its nodes, depth first."""
        found, waiting = [], [0]
        while waiting:
            value, feature, left, right = self.nodes[waiting.pop()]
            if feature < 0:
                found.append(f"1{int(np.clip(np.rint(value / step), -TOP, TOP)) + 128:08b}")
            else:
                found.append(f"0{numbers[feature, value]:0{width}b}" if width else "0")
                waiting += [right, left]
        return "".join(found)


def _below(threshold: float) -> float:
    """Return the largest float32 up to a threshold: the same float32 rows are up to it."""
    narrow = np.float32(threshold)
    return float(narrow if float(narrow) <= threshold else np.nextafter(narrow, np.float32(-np.inf)))


def steps_of(trees: Sequence[Tree]) -> list[float]:
    """Return steps to choose from: for all leaves, or with the largest ones cut off, of which a few may be far out."""
    leaves = [abs(value) for tree in trees for value, feature, _, _ in tree.nodes if feature < 0]
    return [float(np.quantile(leaves, share)) / TOP or 1.0 for share in (1.0, 0.999, 0.99, 0.95)]


def trees_in_c(data: Data, trees: Sequence[Tree], base: Array, step: float) -> bytes:
    """Return the C of a sum of trees: a stream of bits, and one table of the splits that they share."""
    splits = sorted(set().union(*(tree.splits for tree in trees))) or [(0, 0.0)]
    width = (len(splits) - 1).bit_length()
    numbers = {split: number for number, split in enumerate(splits)}
    stream = "".join(tree.bits(numbers, width, step) for tree in trees)
    packed = np.packbits([int(bit) for bit in stream], bitorder="little")
    text = TREES.format(
        count=packed.size,
        bits=table(packed.astype(np.int64)),
        splits=len(splits),
        split_bits=width,
        thresholds=table(np.array([_below(threshold) for _, threshold in splits], dtype=np.float32)),
        index="uint8_t" if data.X.shape[1] <= 256 else "uint16_t",
        features=table(np.array([feature for feature, _ in splits], dtype=np.int64)),
        trees=len(trees),
        outputs=data.outputs,
        base=table(base.astype(np.float32)),
        step=float_literal(step),
        kind="float" if data.real else "int",
        decision=decision(data),
    )
    return text.encode()


@dataclass(frozen=True)
class TreeContender(Contender):
    """Boosted trees: as many rounds as fit into the bytes; few thresholds a feature make short streams."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return sizes of the trees, lengths of the steps, thresholds a feature, rows of a leaf, shares of the rounds."""
        return {
            "leaves": (8, 4, 16, 3, 31, 6, 2),
            "rate": (0.3, 0.1, 0.6, 1.0),
            "bins": (32, 16, 64, 255),
            "least": (20, 5),
            "share": SHARES,
        }

    def most_rounds(self, data: Data, size: int, leaves: int) -> int:
        """Return more rounds than can fit: a tree has at least so many bits."""
        return max(8 * size // (data.outputs * (2 * leaves - 1 + 8 * leaves + 3 * (leaves - 1))), 1)

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:  # noqa: ARG002
        """Return the trees of the first rounds, as many as fit."""
        rounds = min(self.most_rounds(data, size, settings["leaves"]), 2000)
        trees, base = self.grown(data, rounds, settings)
        q = data.outputs
        fitting = most_within(size, lambda n: trees_in_c(data, trees[: n * q], base, 1.0), "round", most=len(trees) // q)
        kept = trees[: q * max(int(settings["share"] * fitting), 1)]
        some = np.random.default_rng(0).permutation(len(data.X))[:STEP_ROWS]

        def error(step: float) -> float:
            found = prediction(data, _sums(kept, q, data.X[some], step) + base)
            return float(np.mean((found - data.y[some]) ** 2 if data.real else found != data.y[some]))

        step = min(steps_of(kept), key=error)
        facts = {"nodes": sum(len(tree.nodes) for tree in kept), "rounds": len(kept) // q}
        source = trees_in_c(data, kept, base, step)
        return Shipped(source, lambda X: prediction(data, _sums(kept, q, X, step) + base), facts)

    def grown(self, data: Data, rounds: int, settings: dict[str, Any]) -> tuple[list[Tree], Array]:
        """Return the trees of so many rounds, and what they are added to."""
        raise NotImplementedError


def _sums(trees: Sequence[Tree], outputs: int, X: Array, step: float) -> Array:
    """Return the sums of the rounded leaves of rows, (n, q)."""
    rows = np.arange(len(X))
    found = np.zeros((len(X), outputs))
    for number, tree in enumerate(trees):
        value, feature, left, right = (np.array(column) for column in zip(*tree.nodes, strict=True))
        place = np.zeros(len(X), dtype=np.int64)
        while (inner := feature[place] >= 0).any():
            low = X[rows, np.maximum(feature[place], 0)] <= value[place]
            place = np.where(inner, np.where(low, left[place], right[place]), place)
        found[:, number % outputs] += step * np.clip(np.rint(value[place] / step), -TOP, TOP)
    return found


class HistGradientBoosting(TreeContender):
    """scikit-learn's."""

    def grown(self, data: Data, rounds: int, settings: dict[str, Any]) -> tuple[list[Tree], Array]:
        """Return the trees."""
        kind = HistGradientBoostingRegressor if data.real else HistGradientBoostingClassifier
        model = kind(
            max_iter=rounds,
            max_leaf_nodes=settings["leaves"],
            learning_rate=settings["rate"],
            min_samples_leaf=settings["least"],
            max_bins=settings["bins"],
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
        return trees, np.ravel(model._baseline_prediction)


class LightGBM(TreeContender):
    """LightGBM's."""

    def grown(self, data: Data, rounds: int, settings: dict[str, Any]) -> tuple[list[Tree], Array]:
        """Return the trees."""
        import lightgbm

        goal: dict[str, Any] = {"objective": "regression" if data.real else "binary"}
        if data.outputs > 1:
            goal = {"objective": "multiclass", "num_class": data.outputs}
        given = goal | {
            "num_leaves": settings["leaves"],
            "learning_rate": settings["rate"],
            "min_data_in_leaf": settings["least"],
            "max_bin": settings["bins"],
            "verbosity": -1,
            "seed": 0,
            "deterministic": True,
        }
        booster = lightgbm.train(given, lightgbm.Dataset(data.X, data.y, free_raw_data=False), rounds)
        trees = [Tree(_flat(each["tree_structure"])) for each in booster.dump_model()["tree_info"]]
        return trees, np.zeros(data.outputs)


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
