"""slim.py: models of slimsvm as images, in MicroPython (and CPython). SPDX-License-Identifier: 0BSD

import slim

model = slim.Model(open("model.bin", "rb").read())
label = model.predict(row)
"""

from array import array
from struct import unpack_from

try:
    from binascii import crc32
except ImportError:

    def crc32(data):
        """Return the CRC-32 of bytes."""
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF


LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2 = range(6)
SIGN, LARGEST, VOTES, SCORED_VOTES, DAG, VALUE, SIDE = range(7)
NO_MAP, LOGISTIC, ISOTONIC, TEMPERATURE = range(4)
LEAST = 1e-7
MOST = 1 << 24


def exponential(x):
    """Return exp(x): a polynomial about the nearest power of 2, as all readers compute it."""
    x = (x if x < 88 else 88) if x > -87 else -87
    n = int(x * 1.44269504 + (-0.5 if x < 0 else 0.5))
    r = (x - n * 0.693359375) + n * 2.12194440e-4
    p = 1 / 720
    for factor in (1 / 120, 1 / 24, 1 / 6, 0.5, 1, 1):
        p = p * r + factor
    return p * 2.0**n


def logistic(x):
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + exponential(-x))


def index_of_largest(values):
    """Return the place of the largest value, the first of equal ones."""
    best = 0
    for k in range(1, len(values)):
        if values[k] > values[best]:
            best = k
    return best


class Table:
    """Numbers of an image: float32, or codes with a low end and a step for each column or row."""

    def __init__(self, image, rows, columns, bits):
        self.columns, self.bits, self.by_column = columns, bits, columns <= rows
        if bits == 32:
            self.codes = image.floats(rows * columns)
            return
        self.codes = image.take((rows * columns * bits + 7) // 8)
        if bits == 16:
            self.codes = array("H", (self.codes[i] | self.codes[i + 1] << 8 for i in range(0, len(self.codes), 2)))
        pairs = min(rows, columns)
        self.low, self.step = image.floats(pairs), image.floats(pairs)

    def row(self, j):
        """Return the numbers of a row."""
        start, codes, bits = j * self.columns, self.codes, self.bits
        if bits == 32:
            return codes[start : start + self.columns]
        found = array("f", bytes(4 * self.columns))
        for i in range(self.columns):
            e, pair = start + i, i if self.by_column else j
            code = codes[e >> 1] >> 4 * (e & 1) & 15 if bits == 4 else codes[e]
            found[i] = self.low[pair] + self.step[pair] * code
        return found


class Image:
    """The bytes of an image and the place of the next array."""

    def __init__(self, data):
        self.data, self.at = memoryview(data), 64
        if len(data) < 64 or bytes(self.data[:4]) != b"SLMI":
            raise ValueError("no image of slimsvm, or too short")
        version, head, length, checksum = unpack_from("<HHII", data, 4)
        if (version, head) != (1, 64):
            raise ValueError(f"an image of version {version}; this reader knows version 1")
        if not 64 <= length <= len(data):
            raise ValueError(f"an image of {length} bytes, of which {len(data)} are there")
        if crc32(bytes(self.data[16:length])) & 0xFFFFFFFF != checksum:
            raise ValueError("the checksum is wrong")
        self.data = self.data[:length]

    def take(self, size):
        """Return the next bytes."""
        if size > len(self.data) - self.at:
            raise ValueError("lengths that do not fit together")
        found = self.data[self.at : self.at + size]
        self.at += (size + 3) // 4 * 4
        return found

    def floats(self, count):
        """Return the next numbers."""
        return array("f", unpack_from(f"<{count}f", self.take(4 * count), 0))


class Model:
    """A model in an image: `predict(row)` is a label, +1 or -1, or a value."""

    def __init__(self, data):
        image = Image(data)
        self.kernel, self.decision, self.map, bits, flags = unpack_from("<5B", data, 16)
        if self.kernel > CHI2 or self.decision > SIDE or self.map > TEMPERATURE or bits not in (4, 8, 16, 32) or flags > 15:
            raise ValueError("a kernel, a decision or a precision that this reader does not know")
        counts = unpack_from("<6I", data, 24)
        if max(counts) >= MOST or min(counts[:4]) == 0:
            raise ValueError("counts that are not those of a model")
        self.features, self.columns, self.size, self.outputs, k, knots = counts
        self.gamma, self.coef0, self.degree, self.temperature = unpack_from("<ffIf", data, 48)
        self._check(k, flags)
        d = self.features
        self.scaling = [image.floats(d) for _ in range(2)] if flags & 1 else None
        self.ends = [image.floats(d) for _ in range(2)] if flags & 2 else None
        self.projection = Table(image, d, self.columns, bits) if flags & 4 else None
        self.points = Table(image, self.size, self.columns, bits)
        self.widths = image.floats(self.size) if flags & 8 else None
        self.coef = Table(image, self.size, self.outputs, bits)
        self.bias = image.floats(self.outputs)
        self.pairs = VOTES <= self.decision <= DAG
        scores = k if self.pairs else self.outputs
        if self.map == LOGISTIC:
            self.curve = image.floats(scores), image.floats(scores)
        elif self.map == ISOTONIC:
            at, values = image.floats(knots), image.floats(knots)
            starts = unpack_from(f"<{scores + 1}I", image.take(4 * scores + 4), 0)
            self.curve = at, values, starts
            if starts[0] or starts[-1] != knots or any(starts[i] >= starts[i + 1] for i in range(scores)):
                raise ValueError("knots that do not fit together")
        self.classes = self._labels(image, k) if k else None

    def _check(self, k, flags):
        outputs = {SIGN: 1, LARGEST: k, VALUE: 1, SIDE: 1}.get(self.decision, k * (k - 1) // 2)
        fits = k == 2 if self.decision == SIGN else k == 0 if self.decision in (VALUE, SIDE) else k > 2
        columns = self.columns <= self.features if flags & 4 else self.columns == self.features
        if (
            not fits
            or not columns
            or self.outputs != outputs
            or self.degree > 1024
            or (self.map and not k)
            or flags & 3 == 2
        ):
            raise ValueError("counts that do not fit together")

    def _labels(self, image, k):
        kind, labels = unpack_from("<I", image.take(4), 0)[0], []
        for _ in range(k):
            if image.at + 2 > len(image.data):
                raise ValueError("labels that end too early")
            size = unpack_from("<H", image.data, image.at)[0]
            text = bytes(image.data[image.at + 2 : image.at + 2 + size])
            if len(text) < size:
                raise ValueError("labels that end too early")
            image.at += 2 + size
            text = text.decode()
            labels.append(int(text) if kind == 0 else float(text) if kind == 1 else text == "1" if kind == 3 else text)
        return labels

    def prepare(self, row):
        """Return a row in the coordinates of the points."""
        if len(row) != self.features:
            raise ValueError(f"a row has {len(row)} features, and the model takes {self.features}")
        row = array("f", row)
        if self.scaling:
            centre, scale = self.scaling
            for i in range(self.features):
                row[i] = (row[i] - centre[i]) * scale[i]
        if self.ends:
            low, high = self.ends
            for i in range(self.features):
                row[i] = low[i] if row[i] < low[i] else high[i] if row[i] > high[i] else row[i]
        if not self.projection:
            return row
        found = array("f", bytes(4 * self.columns))
        for i in range(self.features):
            t = row[i]
            if t:
                part = self.projection.row(i)
                for r in range(self.columns):
                    found[r] += t * part[r]
        return found

    def value(self, x, j):
        """Return the kernel value of a prepared row and point j."""
        z, kernel, s = self.points.row(j), self.kernel, 0.0
        for i in range(self.columns):
            d = x[i] - z[i]
            if kernel == RBF:
                s += d * d
            elif kernel == LAPLACIAN:
                s += abs(d)
            elif kernel == CHI2:
                s += d * d / (x[i] + z[i]) if x[i] + z[i] else 0
            else:
                s += x[i] * z[i]
        if kernel == LINEAR:
            return s
        if kernel == POLY:
            return (self.gamma * s + self.coef0) ** self.degree
        if kernel == SIGMOID:
            t = self.gamma * s + self.coef0
            share = exponential(-2 * abs(t))
            return (1 - share) / (1 + share) if t >= 0 else (share - 1) / (1 + share)
        return exponential(-self.gamma * (self.widths[j] if self.widths else 1) * s)

    def values(self, row):
        """Return the outputs of a row."""
        x, out = self.prepare(row), list(self.bias)
        for j in range(self.size):
            v, coef = self.value(x, j), self.coef.row(j)
            for k in range(self.outputs):
                out[k] += v * coef[k]
        return out

    def _tally(self, out):
        votes, confidence, pair = [0] * len(self.classes), [0.0] * len(self.classes), 0
        for i in range(len(votes)):
            for j in range(i + 1, len(votes)):
                votes[i if out[pair] > 0 else j] += 1
                confidence[i] += out[pair]
                confidence[j] -= out[pair]
                pair += 1
        return votes, confidence

    def _winner(self, out):
        first, last = 0, len(self.classes) - 1
        while first < last:
            pair = first * (2 * len(self.classes) - first - 1) // 2 + last - first - 1
            if out[pair] > 0:
                last -= 1
            else:
                first += 1
        return first

    def scores(self, row):
        """Return the scores of a row: the largest wins; a single one is above 0 for the second class."""
        return self._scores(self.values(row))

    def _scores(self, out):
        if not self.pairs:
            return out
        votes, confidence = self._tally(out)
        scores = [vote + c / (3 * (abs(c) + 1)) for vote, c in zip(votes, confidence)]
        if self.decision == DAG:
            scores[self._winner(out)] += len(self.classes)
        return scores

    def _curve(self, x, k):
        at, values, starts = self.curve
        i, last = starts[k], starts[k + 1] - 1
        if not x > at[i]:
            return values[i]
        while i < last and x >= at[i + 1]:
            i += 1
        if i == last:
            return values[last]
        return values[i] + (x - at[i]) / (at[i + 1] - at[i]) * (values[i + 1] - values[i])

    def proba(self, row):
        """Return the probability of each class."""
        if not self.map:
            raise ValueError("this model has no probabilities")
        scores = self.scores(row)
        top = max(scores)
        if self.map == LOGISTIC:
            found = [logistic(self.curve[0][k] * score + self.curve[1][k]) for k, score in enumerate(scores)]
        elif self.map == ISOTONIC:
            found = [self._curve(score, k) for k, score in enumerate(scores)]
        elif len(scores) == 1:
            found = [logistic(scores[0] / self.temperature)]
        else:
            found = [exponential((score - top) / self.temperature) for score in scores]
        found = [min(max(p, LEAST), 1 - LEAST) for p in found]
        if len(found) == 1:
            return [1 - found[0], found[0]]
        total = sum(found)
        return [p / total for p in found]

    def predict(self, row):
        """Return the label of a row, +1 or -1 for novelty detection, or a value."""
        if self.map:
            return self.classes[index_of_largest(self.proba(row))]
        out = self.values(row)
        if self.decision == VALUE:
            return out[0]
        if self.decision == SIDE:
            return 1 if out[0] >= 0 else -1
        if self.decision == SIGN:
            return self.classes[int(out[0] > 0)]
        if self.decision == DAG:
            return self.classes[self._winner(out)]
        if self.decision == VOTES:
            return self.classes[index_of_largest(self._tally(out)[0])]
        return self.classes[index_of_largest(self._scores(out))]
