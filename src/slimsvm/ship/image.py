"""Images: a model as bytes that programs load from flash, from a file or from the network, without new code.

An image is little-endian and has no pointers. Its head of 64 bytes is followed by arrays that begin at multiples of 4:

     0  "SLMI", version (2 bytes), 64 (2), length of the image (4), CRC-32 of everything from byte 16 on (4)
    16  kernel, decision, map to probabilities, bits of a number, flags (a byte each), 3 bytes of 0
    24  features, columns of points, points, outputs, classes, knots (4 bytes each)
    48  gamma, coef0 (float32), degree (4 bytes), temperature (float32)
    64  flag 1: centre, scale of each feature; flag 2: its low and high end; flag 4: projection (features, columns)
        points (points, columns); flag 8: widths; coefficients (points, outputs); bias
        slope and shift of each score, or knots: scores, values and starts
        for classes: the kind of labels (4 bytes), and each label as its length (2 bytes) and text

A table of 32 bits has float32. Another one has codes, of 4 bits two in a byte, and then low ends and steps in float32: of
each column, or of each row if there are fewer (`rounding`). Readers compute as `coded` does, in float32.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..calibration import Isotonic, Sigmoid, Temperature
from ..goals import GOALS, Decision
from ..goals.classes import OneVsOne
from ..kernels.spec import SPECS, check_parameters, spec_of
from ..rounding import Table
from ..scaling import Scaling
from .artefact import NO_CLASSES, Array, Artefact
from .coded import CODE_BITS, Coded

MAGIC, VERSION, HEAD = b"SLMI", 1, 64
DECISIONS: list[Decision] = [decision for decision in Decision if decision is not Decision.VALUES]
MAPS = [None, "sigmoid", "isotonic", "temperature"]
#: kinds of labels
WHOLE, REAL, TEXT, TRUTH = range(4)
CLIPS, PROJECTED, WIDTHS, SCALED = 2, 4, 8, 1
#: the most of any count, so that no product of two leaves 64 bits
MOST = 1 << 24
PRECISIONS = ["float32", *CODE_BITS]


@dataclass(frozen=True)
class ImageExporter:
    """One image. `precision` is float32, int16, int8 or int4, by default that for which the model was made."""

    ending: ClassVar[str] = ".bin"
    precision: str | None = None

    def __post_init__(self) -> None:
        if self.precision not in (None, *PRECISIONS):
            raise ValueError(f"unknown precision {self.precision!r} of images; there are {PRECISIONS}")

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:  # noqa: ARG002
        """Return the image."""
        spec_of(artefact.kernel, "an image")
        artefact.check_rows("an image")
        artefact.check_one_target("an image")
        return {self.ending: image_of(Coded.of(artefact, self.precision or artefact.precision))}


def image_of(coded: Coded) -> bytes:
    """Return the image of a model."""
    a = coded.a
    parts: list[Array] = []
    scaling, map_ = a.scaling, a.calibration
    if scaling is not None:
        end = np.finfo(np.float32).max
        ends = [np.clip(part, -end, end) for part in (scaling.low, scaling.high)] if scaling.clips else []
        parts += [scaling.centre, scaling.scale, *ends]
    parts += [] if coded.projection is None else _table(coded.projection)
    parts += _table(coded.points)
    parts += [] if coded.width_numbers is None else [coded.width_numbers]
    parts += [*_table(coded.coef), a.bias]
    knots = 0
    if isinstance(map_, Sigmoid):
        parts += [map_.slope, map_.shift]
    elif isinstance(map_, Isotonic):
        knots = map_.scores.size
        parts += [map_.scores, map_.values, map_.starts.astype(np.uint32)]
    body = b"".join(_padded(_plain(part)) for part in parts) + _labels(a.classes)
    kinds = [a.spec.form, DECISIONS.index(a.decision), MAPS.index(None if map_ is None else map_.name), coded.bits]
    flags = SCALED * (scaling is not None) + PROJECTED * (a.projection is not None) + WIDTHS * (a.widths is not None)
    flags += CLIPS * (scaling is not None and scaling.clips)
    counts = [a.features, a.columns, a.size, a.outputs, a.classes.size, knots]
    if max(counts) >= MOST:
        raise ValueError(f"an image has counts below {MOST}, and this model has {max(counts)}")
    numbers = [float(coded.gamma), a.parameters.get("coef0", 0.0), int(a.parameters.get("degree", 0))]
    rest = struct.pack("<5B3x6I2fIf", *kinds, flags, *counts, *numbers, getattr(map_, "temperature", 1.0)) + body
    return MAGIC + struct.pack("<2H2I", VERSION, HEAD, len(rest) + 16, zlib.crc32(rest)) + rest


def _table(table: Table | Array) -> list[Array]:
    return [table.packed, table.low, table.step] if isinstance(table, Table) else [table]


def _plain(values: Array) -> bytes:
    narrow = values.astype(np.float32) if values.dtype.kind == "f" else values
    return narrow.astype(narrow.dtype.newbyteorder("<")).tobytes()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _labels(classes: Array) -> bytes:
    """Return the kind of the labels and their texts."""
    if not classes.size:
        return b""
    kind = {"b": TRUTH, "i": WHOLE, "u": WHOLE, "f": REAL}.get(classes.dtype.kind, TEXT)
    texts = [(str(label) if kind in (TEXT, REAL) else str(int(label))).encode() for label in classes.tolist()]
    if max(map(len, texts)) > 0xFFFF:
        raise ValueError("an image has labels of at most 65,535 bytes; fit the model with shorter ones")
    return struct.pack("<I", kind) + _padded(b"".join(struct.pack("<H", len(text)) + text for text in texts))


# Reading.


class _Parts:
    """The arrays of an image, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, HEAD

    def take(self, count: int, dtype: str = "<f4") -> Array:
        """Return the next numbers."""
        size = count * np.dtype(dtype).itemsize
        if size > len(self.data) - self.at:
            raise ValueError("its lengths do not fit its size")
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += size + -size % 4
        return found

    def table(self, rows: int, columns: int, bits: int) -> Array:
        """Return the numbers of the next table, in float32."""
        if bits == 32:
            return self.take(rows * columns).reshape(rows, columns)
        codes = self.take(*_codes(rows * columns, bits))
        if bits == 4:
            codes = np.column_stack([codes & 15, codes >> 4]).ravel()[: rows * columns]
        pairs = min(rows, columns)
        return Table(codes.reshape(rows, columns), self.take(pairs), self.take(pairs), bits).values


def _codes(count: int, bits: int) -> tuple[int, str]:
    return (count, "<u2") if bits == 16 else (-(-count * bits // 8), "u1")


def read_image(path: str | os.PathLike[str]) -> Coded:
    """Return the model in an image; raise ValueError that says what is wrong with a damaged one."""
    try:
        with np.errstate(all="ignore"):  # numbers that are not finite are refused
            return model_of(Path(path).read_bytes())
    except (LookupError, OverflowError, UnicodeDecodeError, ValueError, struct.error) as error:
        raise ValueError(f"cannot read {os.fspath(path)!r} as an image that slimsvm exported: {error}") from None


def model_of(data: bytes) -> Coded:
    """Return the model of an image."""
    if len(data) < HEAD or data[:4] != MAGIC:
        raise ValueError("it does not begin as an image does, or is too short")
    version, head, length, checksum = struct.unpack_from("<2H2I", data, 4)
    if (version, head) != (VERSION, HEAD):
        raise ValueError(f"it is of version {version}, and this slimsvm reads version {VERSION}; export the model again")
    if not HEAD <= length <= len(data):
        raise ValueError(f"it should have {length} bytes, and {len(data)} are there; copy the whole file")
    if zlib.crc32(data[16:length]) != checksum:
        raise ValueError("its checksum is wrong; copy the file again")
    return _model(data[:length])


def _model(data: bytes) -> Coded:
    form, decision, map_, bits, flags, *rest = struct.unpack_from("<5B3x6I2fIf", data, 16)
    d, columns, m, q, k, knots, gamma, coef0, degree, temperature = rest
    if form >= len(SPECS) or decision >= len(DECISIONS) or map_ >= len(MAPS) or bits not in (4, 8, 16, 32) or flags > 15:
        raise ValueError("it has a kernel, a decision or a precision that this slimsvm does not know")
    if not min(d, columns, m, q) > 0 or max(d, columns, m, q, k, knots) >= MOST:
        raise ValueError("its counts are not those of a model")
    if not _fits(DECISIONS[decision], q, k) or (d < columns if flags & PROJECTED else d != columns):
        raise ValueError("its counts do not fit together")
    parts, spec = _Parts(data), list(SPECS.values())[form]
    scaling = None
    if flags & SCALED:
        centre, scale = parts.take(d), parts.take(d)
        low, high = (parts.take(d), parts.take(d)) if flags & CLIPS else (np.full(d, -np.inf), np.full(d, np.inf))
        scaling = Scaling(*(part.astype(np.float64) for part in (centre, scale, low, high)))
    projection = parts.table(d, columns, bits).astype(np.float64) if flags & PROJECTED else None
    points = parts.table(m, columns, bits)
    widths = parts.take(m).astype(np.float64) if flags & WIDTHS else None
    coef, bias = parts.table(m, q, bits), parts.take(q).astype(np.float64)
    scores = k if k > 2 else 1
    calibration: Any = None
    if MAPS[map_] == "sigmoid":
        calibration = Sigmoid(*(parts.take(scores).astype(np.float64) for _ in range(2)))
    elif MAPS[map_] == "isotonic":
        at, height = (parts.take(knots).astype(np.float64) for _ in range(2))
        calibration = Isotonic(at, height, parts.take(scores + 1, "<u4").astype(np.int64))
    elif map_:
        calibration = Temperature(temperature)
    values = {"gamma": float(gamma), "coef0": float(coef0), "degree": degree}
    parameters = {parameter.name: values[parameter.name] for parameter in spec.parameters}
    check_parameters(spec.name, parameters)
    goal, classes = _goal(DECISIONS[decision], k), _read_labels(parts, k) if k else NO_CLASSES
    a = Artefact(
        spec.name,
        parameters,
        points.astype(np.float64),
        coef.astype(np.float64),
        bias,
        goal,
        classes,
        scaling,
        calibration,
        widths,
        projection=projection,
    )
    a.check()
    return Coded(a, points, coef, projection, None)


def _fits(decision: Decision, outputs: int, k: int) -> bool:
    """Return whether outputs and classes are those of the decision."""
    if decision in (Decision.VALUE, Decision.SIDE, Decision.SIGN):
        return outputs == 1 and k == (2 if decision is Decision.SIGN else 0)
    return k > 2 and outputs == (k if decision is Decision.LARGEST else k * (k - 1) // 2)


def _goal(decision: Decision, k: int) -> Any:
    if decision in (Decision.VALUE, Decision.SIDE):
        return next(kind for kind in GOALS.values() if kind.real and kind().decision is decision)()
    if decision in (Decision.VOTES, Decision.SCORED_VOTES):
        return OneVsOne(k, break_ties=decision is Decision.SCORED_VOTES)
    found = [kind(k) for kind in GOALS.values() if not kind.real]
    return next(goal for goal in found if goal.decision is decision)


def _read_labels(parts: _Parts, k: int) -> Array:
    kind, texts = int(parts.take(1, "<u4")[0]), []
    for _ in range(k):
        if parts.at + 2 > len(parts.data):
            raise ValueError("its labels end too early")
        size = struct.unpack_from("<H", parts.data, parts.at)[0]
        text = parts.data[parts.at + 2 : parts.at + 2 + size]
        if len(text) < size:
            raise ValueError("its labels end too early")
        texts.append(text.decode())
        parts.at += 2 + size
    if kind == TRUTH:
        return np.array([text == "1" for text in texts])
    return np.array([{WHOLE: int, REAL: float}.get(kind, str)(text) for text in texts])
