"""ProtoNN and Bonsai as contenders: published models of a few kilobytes in a sparse learned projection of the rows.

C. Gupta et al., "ProtoNN: compressed and accurate kNN for resource-scarce devices", ICML 2017: outputs
sum_j B_j exp(-|W x - z_j|^2). A. Kumar, S. Goyal and M. Varma, "Resource-efficient machine learning in 2 KB RAM for the
Internet of Things", ICML 2017: a tree whose nodes k on the way of a row add (W_k' z) tanh(sigma V_k' z) for z = P x. Both
keep the largest entries of their projection (iterative hard thresholding, here in one step), and are trained as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from .base import Array, Contender, Data, Shipped, decision
from .descent import (
    Descent,
    Parameters,
    Prepared,
    codes_in_c,
    codes_of,
    in_c,
    loss_gradient,
    most_within,
    prediction,
    row_in_c,
)

#: rows whose covariance and centres begin the projection and the prototypes
FIRST_ROWS = 20_000
#: how sharp Bonsai's tanh is, and how sharp its splits become
SIGMA, SHARPEST = 1.0, 64.0
SPARSE = """    float z[{rank}];
    for (int r = 0, at = 0; r < {rank}; r++) {{
        float s = 0;
        for (int i = -1, n = filled[r]; n > 0; n--) {{
            i += gap[at];
            s += ({row}) * entry[at++];
        }}
        z[r] = s * entry_step[r] - shift[r];
    }}
"""
DENSE = """    float z[{rank}];
    for (int r = 0; r < {rank}; r++) {{
        float s = 0;
        for (int i = 0; i < {features}; i++)
            s += ({row}) * entry[r * {features} + i];
        z[r] = s * entry_step[r] - shift[r];
    }}
"""
PROTOTYPES = """#include <stdint.h>
#include <math.h>
{tables}
{kind} model_predict(const float *x)
{{
{projection}    float out[{outputs}];
    for (int k = 0; k < {outputs}; k++)
        out[k] = bias[k];
    for (int j = 0; j < {points}; j++) {{
        float distance = 0;
        for (int r = 0; r < {rank}; r++) {{
            float apart = z[r] - point(r * {points} + j) * point_step[r];
            distance += apart * apart;
        }}
        float near = expf(-distance);
        for (int k = 0; k < {outputs}; k++)
            out[k] += near * label(k * {points} + j) * label_step[k];
    }}
{decision}
}}
"""
BONSAI = """#include <stdint.h>
#include <math.h>
{tables}
static float dot(int column, const float *z)
{{
    float s = 0;
    for (int r = 0; r < {rank}; r++)
        s += z[r] * node(column * {rank} + r);
    return s * node_step[column];
}}
{kind} model_predict(const float *x)
{{
{projection}    float out[{outputs}];
    for (int k = 0; k < {outputs}; k++)
        out[k] = bias[k];
    for (int n = 0;;) {{
        for (int k = 0; k < {outputs}; k++)
            out[k] += dot(n * {columns} + k, z) * tanhf(dot(n * {columns} + {outputs} + k, z));
        if (n >= {inner})
            break;
        n = 2 * n + (dot({nodes} * {columns} + n, z) > 0 ? 1 : 2);
    }}
{decision}
}}
"""


def first_projection(prepared: Prepared, rank: int) -> Array:
    """Return the main axes of the rows, (d, rank), scaled so that distances of projected rows are about 2."""
    rows = prepared.X[np.random.default_rng(0).permutation(len(prepared.X))[:FIRST_ROWS]].astype(np.float64)
    _, axes = np.linalg.eigh(rows.T @ rows)
    W = axes[:, ::-1][:, :rank]
    return (W / np.sqrt((rows @ W).var(axis=0).sum())).astype(np.float32)


def projection_in_c(P: Array, prepared: Prepared) -> tuple[str, str]:
    """Return the tables of a projection (d, rank) with codes of 8 bits, and the statements that project a row.

    A sparse one has the gaps between its features, and a gap beyond 255 features is filled with entries of 0.
    """
    codes, step = codes_of(P, 8)
    centre = prepared.centre * (1.0 if prepared.scale is None else prepared.scale)
    scales, row = row_in_c(prepared)
    shift = (centre @ (codes * step)).astype(np.float32)
    tables = [in_c("entry_step", step), in_c("shift", shift), *([scales] if scales else [])]
    words = {"rank": P.shape[1], "features": P.shape[0], "row": row}
    if 2 * np.count_nonzero(codes) > codes.size:
        return "\n".join([in_c("entry", codes.T.ravel()), *tables]), DENSE.format(**words)
    gaps: list[int] = []
    entries: list[int] = []
    filled: list[int] = []
    for column in codes.T:
        before, count = -1, len(gaps)
        for feature in np.flatnonzero(column):
            while feature - before > 255:
                gaps, entries, before = [*gaps, 255], [*entries, 0], before + 255
            gaps, entries, before = [*gaps, int(feature) - before], [*entries, int(column[feature])], int(feature)
        filled.append(len(gaps) - count)
    tables += [
        f"static const uint8_t gap[{max(len(gaps), 1)}] = {{{', '.join(map(str, gaps or [1]))}}};",
        in_c("entry", np.array(entries or [0], dtype=np.int8)),
        f"static const uint16_t filled[{len(filled)}] = {{{', '.join(map(str, filled))}}};",
    ]
    return "\n".join(tables), SPARSE.format(**words)


def largest_entries(share: float, rank: int, features: int) -> Callable[[Parameters], dict[str, Array]]:
    """Return the choice of the entries of the projection that are kept, the same number in all."""
    count = max(int(share * rank * features), rank)

    def chosen(parameters: Parameters) -> dict[str, Array]:
        size = np.abs(parameters["P"])
        return {"P": size >= np.partition(size.ravel(), -count)[-count]}

    return chosen


@dataclass(frozen=True)
class Projected(Contender):
    """What both have in common: a sparse projection, and as many prototypes or as deep a tree as fits."""

    def fit(self, data: Data, size: int, settings: dict[str, Any], seconds: float) -> Shipped:
        """Return the model."""
        prepared, (d, q) = Prepared.of(data), (data.X.shape[1], data.outputs)
        rank, density = min(settings["rank"], d), settings["density"]
        start = self.start(data, prepared, rank, size, settings)
        chosen = largest_entries(density, rank, d)
        tables = {name: 8 if name == "P" else settings["bits"] for name, W in start.items() if W.ndim == 2}

        def gradients(parameters: Parameters, rows: Array, gone: float) -> Parameters:
            return self.gradients(data, parameters, prepared.X[rows], prepared.y[rows], gone)

        found = Descent(start, tables, settings["rate"], 0.0).run(
            gradients, len(data.X), seconds, chosen if density < 1 else None
        )

        def predict(X: Array) -> Array:
            outputs = self.outputs(found, prepared.inside(X), q)
            return prediction(data, outputs * prepared.spread + prepared.middle)

        return Shipped(self.in_c(data, prepared, found, settings["bits"]), predict, {"rank": rank, **self.facts(found)})

    def masked(self, P: Array, density: float) -> Array:
        """Return a projection with as many entries as the trained one will have."""
        return P * largest_entries(density, P.shape[1], P.shape[0])({"P": P})["P"] if density < 1 else P

    def start(self, data: Data, prepared: Prepared, rank: int, size: int, settings: dict[str, Any]) -> Parameters:
        """Return the initial parameters of the largest model that fits."""
        raise NotImplementedError

    def outputs(self, parameters: Parameters, X: Array, outputs: int) -> Array:
        """Return the outputs of prepared rows."""
        raise NotImplementedError

    def gradients(self, data: Data, parameters: Parameters, X: Array, y: Array, gone: float) -> Parameters:
        """Return the gradients of the loss of some rows."""
        raise NotImplementedError

    def in_c(self, data: Data, prepared: Prepared, parameters: Parameters, bits: int) -> bytes:
        """Return the C."""
        raise NotImplementedError

    def facts(self, parameters: Parameters) -> dict[str, Any]:
        """Return what a row tells of the model."""
        raise NotImplementedError


class ProtoNN(Projected):
    """Prototypes in a projection."""

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return dimensions of the projection, shares of its entries, bits, rates, and how wide kernels begin."""
        return {
            "rank": (8, 16, 4, 32),
            "density": (1.0, 0.2, 0.05),
            "bits": (8, 4),
            "rate": (1e-2, 3e-3, 3e-2),
            "width": (8.0, 2.0, 30.0),
        }

    def start(self, data: Data, prepared: Prepared, rank: int, size: int, settings: dict[str, Any]) -> Parameters:
        """Return k-means centres of projected rows, as many of each class."""
        rng, q = np.random.default_rng(0), data.outputs
        P = first_projection(prepared, rank) * np.float32(np.sqrt(settings["width"] / 2))

        def parameters(points: int) -> Parameters:
            Z, B = rng.normal(size=(points, rank)), rng.normal(size=(points, q))
            return {"P": P, "Z": Z.astype(np.float32), "B": B.astype(np.float32), "b": np.zeros(q, np.float32)}

        def source(points: int) -> bytes:
            made = parameters(points)
            return self.in_c(data, prepared, made | {"P": self.masked(P, settings["density"])}, settings["bits"])

        count = min(most_within(size, source, "prototype"), len(data.X) // 2)
        rows = rng.permutation(len(data.X))[:FIRST_ROWS]
        z, y = prepared.X[rows] @ P, prepared.y[rows]
        classes = [np.arange(rows.size)] if data.real else [np.flatnonzero(y == k) for k in np.unique(y)]
        shares = [count // len(classes) + (k < count % len(classes)) for k in range(len(classes))]
        parts = zip(classes, shares, strict=True)
        Z = [
            KMeans(min(m, own.size), n_init=1, max_iter=10, random_state=0).fit(z[own]).cluster_centers_
            for own, m in parts
            if m
        ]
        points = np.vstack(Z).astype(np.float32)
        found = parameters(len(points))
        return found | {"Z": points, "B": 0.01 * found["B"]}

    def outputs(self, parameters: Parameters, X: Array, outputs: int) -> Array:  # noqa: ARG002
        """Return sum_j B_j exp(-|P'x - z_j|^2) + b."""
        return (
            np.vstack([self._near(parameters, X[i : i + 8192])[1] @ parameters["B"] for i in range(0, len(X), 8192)])
            + parameters["b"]
        )

    def _near(self, parameters: Parameters, X: Array) -> tuple[Array, Array]:
        z, Z = X @ parameters["P"], parameters["Z"]
        distances = np.square(z).sum(axis=1)[:, None] + np.square(Z).sum(axis=1) - 2 * z @ Z.T
        return z, np.exp(-np.maximum(distances, 0))

    def gradients(self, data: Data, parameters: Parameters, X: Array, y: Array, gone: float) -> Parameters:  # noqa: ARG002
        """Return the gradients of the loss of some rows."""
        z, near = self._near(parameters, X)
        slope = loss_gradient(data, near @ parameters["B"] + parameters["b"], y)
        by_distance = -(slope @ parameters["B"].T) * near
        Z = parameters["Z"]
        by_z = 2 * (by_distance.sum(axis=1)[:, None] * z - by_distance @ Z)
        by_Z = 2 * (by_distance.sum(axis=0)[:, None] * Z - by_distance.T @ z)
        return {"P": X.T @ by_z, "Z": by_Z, "B": near.T @ slope, "b": slope.sum(axis=0)}

    def in_c(self, data: Data, prepared: Prepared, parameters: Parameters, bits: int) -> bytes:
        """Return the C."""
        bias, B = parameters["b"] * prepared.spread + prepared.middle, parameters["B"] * prepared.spread
        projection, statements = projection_in_c(parameters["P"], prepared)
        tables = [
            projection,
            codes_in_c("point", parameters["Z"], bits),
            codes_in_c("label", B, bits),
            in_c("bias", bias.astype(np.float32)),
        ]
        points, rank = parameters["Z"].shape
        return PROTOTYPES.format(
            tables="\n".join(tables),
            kind="float" if data.real else "int",
            projection=statements,
            outputs=data.outputs,
            points=points,
            rank=rank,
            decision=decision(data),
        ).encode()

    def facts(self, parameters: Parameters) -> dict[str, Any]:
        """Return the number of prototypes."""
        return {"points": len(parameters["Z"])}


class Bonsai(Projected):
    """A shallow tree in a projection, every node of which predicts.

    The columns of its table are W_k and V_k of every node k, and then the direction of each split.
    """

    def choices(self) -> dict[str, Sequence[Any]]:
        """Return depths, dimensions of the projection, shares of its entries, bits and rates."""
        return {
            "rank": (8, 16, 4, 32, 64),
            "depth": (2, 3, 1, 4, 5, 0),
            "density": (1.0, 0.2, 0.05),
            "bits": (8, 4),
            "rate": (1e-2, 3e-3, 3e-2),
        }

    def start(self, data: Data, prepared: Prepared, rank: int, size: int, settings: dict[str, Any]) -> Parameters:
        """Return small random nodes; the depth must fit."""
        rng, q, depth = np.random.default_rng(0), data.outputs, settings["depth"]
        nodes, inner = 2 ** (depth + 1) - 1, 2**depth - 1
        T = rng.normal(size=(rank, nodes * 2 * q + inner)).astype(np.float32)
        found = {"P": first_projection(prepared, rank) * np.float32(np.sqrt(rank)), "T": T, "b": np.zeros(q, np.float32)}

        def source(_: int) -> bytes:
            sparse = found | {"P": self.masked(found["P"], settings["density"])}
            return self.in_c(data, prepared, sparse, settings["bits"])

        most_within(size, source, f"tree of depth {depth}", most=1)
        return found | {"T": 0.3 * T}

    def _parts(self, parameters: Parameters, X: Array, q: int) -> tuple[Array, Array, Array, Array, int]:
        """Return z, the values W'z, tanh(V'z) of every node (n, nodes, q), the splits (n, inner), and the inner nodes."""
        columns = parameters["T"].shape[1]
        inner = (columns - 2 * q) // (4 * q + 1)
        z = X @ parameters["P"]
        values = z @ parameters["T"]
        by_node = values[:, : columns - inner].reshape(len(X), 2 * inner + 1, 2, q)
        return z, by_node[:, :, 0], np.tanh(SIGMA * by_node[:, :, 1]), values[:, columns - inner :], inner

    def outputs(self, parameters: Parameters, X: Array, outputs: int) -> Array:
        """Return the sums along the way of each row."""
        _, linear, bent, splits, inner = self._parts(parameters, X, outputs)
        at, rows = np.zeros(len(X), dtype=np.int64), np.arange(len(X))
        found = parameters["b"] + linear[:, 0] * bent[:, 0]
        while at[0] < inner:
            at = 2 * at + np.where(splits[rows, at] > 0, 1, 2)
            found = found + linear[rows, at] * bent[rows, at]
        return found

    def gradients(self, data: Data, parameters: Parameters, X: Array, y: Array, gone: float) -> Parameters:
        """Return the gradients with soft splits, which sharpen in the course of training."""
        q, sharpness = data.outputs, SHARPEST**gone
        z, linear, bent, splits, inner = self._parts(parameters, X, q)
        side = np.tanh(sharpness * splits)
        share = np.ones((len(X), 2 * inner + 1), dtype=X.dtype)
        for k in range(inner):
            share[:, 2 * k + 1], share[:, 2 * k + 2] = (share[:, k] * (1 + s) / 2 for s in (side[:, k], -side[:, k]))
        slope = loss_gradient(data, parameters["b"] + np.einsum("nk,nkq->nq", share, linear * bent), y)
        by_share = np.einsum("nq,nkq->nk", slope, linear * bent)
        by_splits = np.zeros_like(splits)
        for k in reversed(range(inner)):
            left, right = by_share[:, 2 * k + 1], by_share[:, 2 * k + 2]
            by_share[:, k] += left * (1 + side[:, k]) / 2 + right * (1 - side[:, k]) / 2
            by_splits[:, k] = share[:, k] * (left - right) / 2 * sharpness * (1 - side[:, k] ** 2)
        weighted = slope[:, None, :] * share[:, :, None]
        by_values = np.stack([weighted * bent, weighted * linear * SIGMA * (1 - bent**2)], axis=2).reshape(len(X), -1)
        by_values = np.hstack([by_values, by_splits])
        by_z = by_values @ parameters["T"].T
        return {"P": X.T @ by_z, "T": z.T @ by_values, "b": slope.sum(axis=0)}

    def in_c(self, data: Data, prepared: Prepared, parameters: Parameters, bits: int) -> bytes:
        """Return the C."""
        q, T = data.outputs, parameters["T"].copy()
        inner = (T.shape[1] - 2 * q) // (4 * q + 1)
        linear = T[:, : T.shape[1] - inner].reshape(len(T), -1, 2, q)
        linear[:, :, 0] *= prepared.spread
        linear[:, :, 1] *= SIGMA
        bias = parameters["b"] * prepared.spread + prepared.middle
        projection, statements = projection_in_c(parameters["P"], prepared)
        tables = [
            projection,
            codes_in_c("node", T, bits),
            in_c("bias", bias.astype(np.float32)),
        ]
        return BONSAI.format(
            tables="\n".join(tables),
            kind="float" if data.real else "int",
            projection=statements,
            outputs=q,
            columns=2 * q,
            rank=len(T),
            inner=inner,
            nodes=2 * inner + 1,
            decision=decision(data),
        ).encode()

    def facts(self, parameters: Parameters) -> dict[str, Any]:
        """Return the number of columns of the nodes' table."""
        return {"columns": parameters["T"].shape[1]}
