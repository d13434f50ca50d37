"""Learning on the device: the loops of `partial_fit` in float32, row by row, within a fixed memory. Needs NumPy only.

`learning.c` makes the same operations in the same order, so that C and `runtime(model, update=True)` hold the same model
after the same rows, to the last bit. The loops of `trainers.bsgd` and `papers.forgetron_rbp` are in float64: their model
differs by rounding, as long as no margin is so close to its threshold that rounding decides.

The function is f = unit * sum_j coef_j k(z_j, .) + offset. Its points are in seats; there is one seat more than the budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..goals import Decision
from ..kernels.spec import EXP, SPECS
from ..learning import Learning
from .artefact import Array, Artefact
from .coded import TERMS, Coded, exponential
from .literals import as_float32, check_float32

F = np.float32
#: the trainers whose models learn on
LEARNERS = ("bsgd", "forgetron", "rbp")
#: ways to remove a point; projection inverts a kernel matrix, which float32 does not hold
REMOVALS = ("merging", "removal")
#: norms within this factor of the least one count as equal, and the oldest of their points leaves
SAME = F(1.00000095)
#: what each mistake of the Forgetron adds to the damage that removals may do
ALLOWED = F(15 / 32)
#: most steps of Newton's method for the place of a merged point, and its relative precision
NEWTON, CLOSE = 24, F(2e-7)


def rule_of(a: Artefact) -> str:
    """Return the rule by which a model learns on."""
    assert a.learning is not None
    of_classes = {"forgetron": "FORGETRON", "rbp": "RANDOM"}.get(a.learning.trainer, "DESCENT")
    return {Decision.VALUE: "REGRESSION", Decision.SIDE: "NOVELTY"}.get(a.decision, of_classes)


def check_learning(a: Artefact) -> Learning:
    """Return how a model learns on; raise ValueError that says what can where it cannot."""
    if a.learning is None or (a.goal.real and a.outputs > 1):
        raise ValueError(
            f"update=True is for models that learn row by row, of trainer={' or '.join(map(repr, LEARNERS))}, with the "
            "support vectors that the trainer left; this one is of another trainer, was shrunk or compressed, or is of a "
            "file without its stream. Fit SlimSVC(100, trainer='bsgd'), say, or SlimSVR or SlimOneClassSVM with "
            "trainer='bsgd'"
        )
    if a.kernel not in SPECS:
        raise ValueError(f"update=True has no {a.kernel} kernel; it has {sorted(SPECS)}")
    if a.learning.maintenance not in ("", *REMOVALS):
        raise ValueError(
            f"update=True has no maintenance={a.learning.maintenance!r}, which inverts a kernel matrix; train with "
            f"trainer=BSGD({a.learning.budget}, maintenance='removal'), or with kernel='rbf', whose default is merging"
        )
    a.check_rows("update=True")
    if a.calibration is not None or a.spread is not None:
        raise ValueError(
            "update=True has no probabilities and no intervals, which would not follow the updates; fit the model with "
            "calibration=None"
        )
    check_float32(a)
    return a.learning


class LearningRuntime:
    """Predict rows and learn from rows one by one, as C does that was exported with update=True: all bits are the same.

    `run(rows)` predicts, `run.scores(rows)` is decision_function, and `run.update(row, label)` learns. `points` and `coef`
    are those of f = unit * sum_j coef_j k(z_j, .) + offset.
    """

    def __init__(self, artefact: Artefact) -> None:
        self._learning = known = check_learning(artefact)
        self._rule, self._goal, self.classes = rule_of(artefact), artefact.goal, artefact.classes
        self.features = artefact.features
        self._coded = Coded.plain(replace(artefact, points=artefact.table, coef=known.coef, bias=0 * artefact.bias))
        m, q = known.coef.shape
        self._size, self._seats = m, np.zeros((self.features, known.budget + 1), F)
        self._seats[:, :m] = self._coded.a.table.T
        self._coef, self._born = np.zeros((known.budget + 1, q), F), np.zeros(known.budget + 1, np.uint32)
        self._coef[:m], self._born[:m] = self._coded.a.coef, known.born
        self.seen, self._moves, self._slack = known.seen, known.moves, F(known.slack)
        self._oldest = known.moves % known.budget if m == known.budget else 0
        self._offset = as_float32(artefact.bias, "bias")[0] if artefact.goal.real else F(0)
        self._lam, self._late, self._epsilon, self._nu = (
            F(number or 0) for number in (known.lam, known.late, known.epsilon, known.nu)
        )
        self._rng = known.generator() if self._rule == "RANDOM" else None
        self._term = TERMS[artefact.spec.total.name]
        self._exp = artefact.spec.value is EXP

    # The function.

    @property
    def points(self) -> Array:
        """The points, as scaled rows, (m, d)."""
        return self._seats[:, : self._size].T.copy()

    @property
    def coef(self) -> Array:
        """The coefficients of the points, (m, q)."""
        return self._coef[: self._size].copy()

    @property
    def unit(self) -> np.float32:
        """The factor of the sum."""
        return F(1) if self._rule in ("FORGETRON", "RANDOM") else F(1) / self._scale(max(self.seen, 1))

    @property
    def offset(self) -> np.float32:
        """The number added to the sum."""
        return self._offset

    def __call__(self, rows: Any) -> Any:
        """Return the prediction of a row, or the predictions of rows."""
        found = self._goal.decode(self._outputs(rows).astype(np.float64))
        found = self.classes[found] if self.classes.size else found
        return found[0] if np.ndim(rows) == 1 else found

    def scores(self, rows: Any) -> Any:
        """Return the scores of a row or of rows: one per class for three classes or more, else one."""
        scores = self._goal.scores(self._outputs(rows))
        return scores[0] if np.ndim(rows) == 1 else scores

    def _outputs(self, rows: Any) -> Array:
        given = np.atleast_2d(np.asarray(rows, dtype=F))
        if given.ndim != 2 or given.shape[1] != self.features:
            raise ValueError(f"a row has {given.shape[-1]} features, and the model takes {self.features}")
        a = replace(self._coded.a, points=self._seats[:, : self._size].T, coef=self._coef[: self._size])
        return self.unit * replace(self._coded, a=a).outputs(given) + self._offset

    # An update.

    def update(self, row: Any, label: Any = None) -> bool:
        """Learn from a row and its label, a class or a value, and return whether the row became a point.

        A novelty detector takes no label.

        Raises
        ------
        ValueError
            For a row of another length or with numbers that are not finite, and for a label that the model does not know.
            The model does not change.
        """
        own = self._label(label)
        x = np.asarray(row, dtype=F)
        if x.shape != (self.features,):
            raise ValueError(f"update takes one row of {self.features} features, not an array of shape {x.shape}")
        x = self._coded.prepared(x[None])[0]
        if not np.isfinite(x).all():
            raise ValueError("update takes finite features; this row has NaN or infinity, or features beyond float32")
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            return self._learn(x, own)

    def _label(self, label: Any) -> Any:
        if self._rule == "NOVELTY":
            return None
        if self._rule == "REGRESSION":
            if label is None or not np.isfinite(value := F(label)):
                raise ValueError(f"update takes a row and its value, a finite number, not {label!r}")
            return value
        known = np.flatnonzero(self.classes == label)
        if not known.size:
            raise ValueError(f"label {label!r} is not among the classes of this model, {self.classes.tolist()}")
        return int(known[0])

    def _learn(self, x: Array, own: Any) -> bool:
        seat = self._size
        self._seats[:, seat] = x
        out = _summed(self._kernel(x, seat)[:, None] * self._coef[:seat])
        values = self._rule in ("REGRESSION", "NOVELTY")
        move = self._value_move(out[0], own) if values else self._class_move(out, own)
        if move is None:
            return False
        self._coef[seat] = move
        if self._rule == "FORGETRON":
            self._slack -= ALLOWED
        if self._rule in ("FORGETRON", "RANDOM") and seat == self._learning.budget:
            self._replace(seat)
            return True
        self._moves += 1
        self._born[seat] = self._moves
        self._size += 1
        if self._size > self._learning.budget:
            self._maintain()
        return True

    def _scale(self, seen: int) -> np.float32:
        return self._lam * (F(seen) + self._late)

    def _value_move(self, total: np.float32, target: Any) -> np.float32 | None:
        """Return the coefficient of the new row, None without one; move the offset of a novelty detector."""
        self._see()
        scale = self._scale(self.seen)
        value = total / scale
        if self._rule == "NOVELTY":
            outside = value < -self._offset
            self._offset = self._offset + (F(1) - self._nu) / scale if outside else self._offset - self._nu / scale
            return F(1) if outside else None
        residual = target - self._offset - value
        beyond = abs(residual) - self._epsilon
        if not beyond > 0:
            return None
        own = self._own()
        full = scale * beyond / own
        size = full if own > 0 and full < 1 else F(1)
        return -size if residual < 0 else size

    def _class_move(self, out: Array, own: int) -> Array | None:
        """Return the coefficients of the new row, None without any."""
        rival = -1
        if out.size == 1:
            margin = out[0] if own else -out[0]
        else:
            others = out.copy()
            others[own] = -np.inf
            rival = int(others.argmax())
            margin = out[own] - out[rival]
        required, step = F(0), F(1)
        if self._rule == "DESCENT":
            required = self._scale(self.seen)
            self._see()
            step = F(1) if self._learning.weights is None else F(self._learning.weights[own])
        if not margin <= required:
            return None
        if self._rule != "DESCENT":
            square, kernel = F(1 if out.size == 1 else 2), self._own()
            step = F(1) / _root(square * kernel if kernel > 0 else square)
        move = np.zeros(out.size, F)
        if out.size == 1:
            move[0] = step if own else -step
        else:
            move[own], move[rival] = step, -step
        return move

    def _see(self) -> None:
        self.seen = min(self.seen + 1, 2**32 - 1)

    def _kernel(self, x: Array, m: int) -> Array:
        """Return the kernel values of a prepared row and the points of the first m seats."""
        return self._coded.of_totals(self._totals(x, m))

    def _totals(self, x: Array, m: int) -> Array:
        return _summed(self._term(x[:, None], self._seats[:, :m]))

    def _own(self) -> np.float32:
        """Return the kernel value of the new row and itself."""
        seat = self._seats[:, self._size]
        return F(self._coded.of_totals(_summed(self._term(seat, seat)[:, None]))[0])

    def _products(self, p: int, m: int) -> Array:
        """Return the inner products of the coefficients of a seat and of each of the first m seats."""
        return _summed(self._coef[p, :, None] * self._coef[:m].T)

    def _squares(self, m: int) -> Array:
        return _summed((self._coef[:m] * self._coef[:m]).T)

    # What leaves.

    def _move(self, to: int, source: int) -> None:
        self._seats[:, to], self._coef[to], self._born[to] = self._seats[:, source], self._coef[source], self._born[source]

    def _replace(self, seat: int) -> None:
        """Put the new point into the seat of one that leaves: the oldest, or one at random."""
        if self._rule == "RANDOM":
            assert self._rng is not None
            self._move(int(self._rng.integers(self._learning.budget)), seat)
            return
        self._coef *= self._shrinkage(self._oldest)
        self._move(self._oldest, seat)
        self._oldest = (self._oldest + 1) % self._learning.budget

    def _shrinkage(self, seat: int) -> np.float32:
        """Return the factor by which f shrinks before a point leaves, and add up the damage (`forgetron_rbp`)."""
        m = self._size + 1
        values, products = self._kernel(self._seats[:, seat], m), self._products(seat, m)
        value = F(_summed((values * products)[:, None])[0])
        square = max(products[seat] * values[seat], F(0))
        a, b, c = square - F(2) * value, F(2) * _root(square), self._slack
        phi = F(1) if a + b + c <= 0 else F(-2) * c / (b + _root(b * b - F(4) * a * c))
        self._slack = c + (a * phi * phi + b * phi)
        return phi

    def _maintain(self) -> None:
        p, last = self._least(), self._size - 1
        if self._learning.maintenance == "merging":
            self._merge(p)
        if p != last:
            self._move(p, last)
        self._size = last

    def _least(self) -> int:
        """Return the seat of the point whose term has the least norm; of equal ones the oldest."""
        m = self._size
        norms = self._squares(m)
        if not self._exp:
            seats = self._seats[:, :m]
            norms = norms * self._coded.of_totals(_summed(self._term(seats, seats)))
        return int(np.where(norms <= norms.min() * SAME, self._born[:m], np.iinfo(np.uint32).max).argmin())

    def _merge(self, p: int) -> None:
        """Make the best partner of a point the best point between the two (`solvers.maintenance.merge`)."""
        m = self._size
        squares, products = self._squares(m), self._products(p, m)
        far = self._coded.gamma * self._totals(self._seats[:, p], m)
        a, h = np.full(m, squares[p]), _shares(squares[p], products, squares, far)
        rest = F(1) - h
        joint = exponential(-far * (rest * rest)) * exponential(-far * (h * h))
        loss = F(2) * products * joint * _growth(F(-2) * far * (h * rest)) - a * _growth(F(-2) * far * (rest * rest))
        loss = loss - squares * _growth(F(-2) * far * (h * h))
        loss[p] = np.inf
        best = int(loss.argmin())
        h, rest, far = h[best], rest[best], far[best]
        u, v = exponential(np.stack([-far * (rest * rest), -far * (h * h)]))
        self._seats[:, best] = h * self._seats[:, p] + rest * self._seats[:, best]
        self._coef[best] = u * self._coef[p] + v * self._coef[best]


def _summed(terms: Array) -> Array:
    """Return the sums over the first axis, one term after the other."""
    if not len(terms):
        return np.zeros(terms.shape[1:], F)
    terms[0] += F(0)  # as a sum that begins with 0
    return np.asarray(np.add.accumulate(terms, axis=0)[-1])


def _root(x: np.float32) -> np.float32:
    """Return the square root by Newton's method, from an estimate that halves the exponent."""
    if not x > 0:
        return F(0)
    y = np.uint32(0x1FBD1DF5 + (int(np.float32(x).view(np.uint32)) >> 1)).view(F)
    for _ in range(4):
        y = F(0.5) * (y + x / y)
    return F(y)


def _growth(x: Array) -> Array:
    """Return exp(x) - 1 for x <= 0."""
    p = np.full(x.shape, F(2.48015876e-5))
    for factor in (1.98412701e-4, 1.38888892e-3, 8.33333377e-3, 4.16666679e-2, 0.166666672, 0.5, 1):
        p = p * x + F(factor)
    return np.where(x < F(-0.5), exponential(x) - F(1), p * x)


def _shares(a: np.float32, c: Array, b: Array, far: Array) -> Array:
    """Return the share of a point in the best point between it and each other one (`learning.c`: merge_share)."""
    r = exponential(-far)
    running = ~((a * r + c) * r <= F(1e-16) * b)
    low, high, found = np.zeros_like(far), np.full_like(far, F(0.5)), np.zeros_like(far)
    for _ in range(NEWTON):
        if not running.any():
            break
        h = found
        r = exponential(far * (F(2) * h - F(1)))
        value = (a * r * (F(1) - h) + c * (F(1) - F(2) * h)) * r - b * h
        low, high = np.where(value > 0, h, low), np.where(value > 0, high, h)
        slope = F(4) * far * a * r * (F(1) - h) - a * r + F(2) * c * (far * (F(1) - F(2) * h) - F(1))
        slope = slope * r - b
        step = np.where(slope < 0, h - value / slope, F(-1))
        step = np.where((low <= step) & (step <= high), step, F(0.5) * (low + high))
        found = np.where(running, step, h)
        running = running & ~(np.abs(step - h) <= CLOSE * high)
    return found
