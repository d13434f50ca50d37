"""The models of all folds of a cross-validation, for all values of C of a kernel, which share kernel values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._core import core
from ..goals import Goal, OneVsOne
from ..kernels import Array, Kernel, Matrix
from ..model import Expansion, Status
from ..pairs import PairCoefficients, PairTargets, pairs_of
from ..rows.homes import open_rows
from ..rows.host import MatrixRows
from ..rows.protocol import Meter, Rows
from ..rows.threads import Spaces, ThreadPool, blocks, thread_count
from ..run import Run, silent
from ..solvers.folded_path import FoldedPath, FoldedProblem, Memory, fold_by_fold
from ..solvers.matrix_path import Copies, MatrixProblem, Solved, solutions
from ..solvers.tube import PairedRows

#: the share of the memory for kernel values that the kernel matrix of all rows may take; the threads share the rest
MATRIX = 0.7
#: problems of one output with at most this many variables are solved in compiled code with the whole kernel matrix
MOST_WHOLE = 4096
#: values of C are close if each is at most this many times the one before; more: folds share steps where that takes longer
CLOSE = 2.0
#: outputs of the pairs of classes in memory at a time, 64 MiB
MOST_OUTPUTS = 1 << 23


@dataclass(frozen=True)
class FoldedRows:
    """Rows with labels, and for each fold the weights in training, (folds, n), and the rows that it is tested on."""

    X: Matrix
    labels: Array
    goal: Goal
    weights: Array
    tests: list[Array]
    device: str
    cache_mb: float
    tol: float
    held: dict[np.dtype, Spaces] = field(default_factory=dict)

    @property
    def in_pairs(self) -> bool:
        """Whether there is an output for each pair of several classes."""
        return isinstance(self.goal, OneVsOne) and self.goal.outputs > 1

    def spaces(self, dtype: np.dtype) -> Spaces:
        """Return memory for kernel values, which one kernel after the other uses."""
        return self.held.setdefault(dtype, Spaces(dtype))

    def in_order(self, order: Array) -> FoldedRows:
        """Return the same problem for rows in another order, without the rows themselves."""
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        weights, tests = np.ascontiguousarray(self.weights[:, order]), [place[test] for test in self.tests]
        return replace(self, labels=self.labels[order], weights=weights, tests=tests)


@dataclass(frozen=True)
class FoldedModels:
    """The models of all folds for one C: their outputs for the rows of the fold, and how large and how exact they are."""

    C: float
    outputs: list[Array]  # (rows of the fold, q), with the bias
    sizes: Array  # support vectors
    gap: float
    status: Status
    model: Callable[[int], Expansion]


def folded_models(
    data: FoldedRows, kernel: Kernel, Cs: Array, meter: Meter, run: Run, tell: Callable[[str], None] = silent
) -> Iterator[FoldedModels]:
    """Yield the models for rising values of C, until the time is over; say where kernel values are kept."""
    error = data.tol / (float(Cs[-1]) * float(data.weights.max()))
    n = data.labels.size
    rows = open_rows(kernel, data.X, device=data.device, meter=meter, cache_mb=0.0, error=error, ids=np.arange(n))
    if data.in_pairs:  # the rows of a class, and their kernel values, are then beside each other
        order = np.argsort(data.labels, kind="stable")
        rows, data = rows.subset(order), data.in_order(order)
    solver = Solver(data, rows, None, Cs, data.cache_mb, run)
    if not solver.shares:
        tell("values of C are so far apart that each fold is solved by itself, and starts from its last solution")
        yield from solver.models()
        return
    megabytes = n**2 * rows.dtype.itemsize / 2**20
    if megabytes > MATRIX * data.cache_mb:
        tell(
            f"the kernel matrix would take {megabytes:,.0f} MiB, more than {MATRIX:.0%} of cache_mb={data.cache_mb:g}, so "
            "its values are computed again where they are needed"
        )
        yield from solver.models()
        return
    tell(f"the kernel matrix takes {megabytes:,.0f} MiB and is kept for all folds and all C")
    with data.spaces(rows.dtype).of(n**2) as space:
        K = rows.block(np.arange(n), out=space)
        yield from replace(solver, K=K, megabytes=data.cache_mb - megabytes).models()


@dataclass(frozen=True)
class Solver:
    """The problems of all outputs, on rows whose kernel matrix K is in memory or not."""

    data: FoldedRows
    rows: Rows
    K: Array | None
    Cs: Array
    megabytes: float
    run: Run

    def models(self) -> Iterator[FoldedModels]:
        """Yield the models of all folds for rising values of C."""
        if self.data.in_pairs:
            return self.pairs()
        return self.single() if self.data.goal.outputs == 1 else self.columns()

    def most(self, parts: int) -> int:
        """Return the rows among which kernel values fit in one of so many parts of the memory; at least a few."""
        return max(int(np.sqrt(self.megabytes / parts * 2**20 / self.rows.dtype.itemsize)), 64)

    def path(self, targets: Array, run: Run) -> Iterator[Solved]:
        """Return the solutions of one output."""
        n, y, linear, weights = targets.size, targets, targets, self.data.weights
        if self.data.goal.real:
            epsilon = self.data.goal.epsilon  # type: ignore[attr-defined]
            y, linear = np.repeat([1.0, -1.0], n), np.concatenate([targets - epsilon, targets + epsilon])
            weights = np.tile(weights, 2)
        if self.K is None or not self.few:
            once: Any = self.rows if self.K is None else MatrixRows(self.rows, self.K, ThreadPool())
            twice: Any = PairedRows if self.data.goal.real else lambda rows: rows
            problem = FoldedProblem(twice(once), y, linear, weights)
            if not self.shares:
                each = lambda: twice(self.rows.subset(np.arange(n)))  # noqa: E731
                return fold_by_fold(problem, each, self.Cs, self.data.tol, run)
            threads = 2 * thread_count()  # half of the memory is for what folds share
            memory = Memory(self.megabytes / threads, self.megabytes / 2, self.data.spaces(self.rows.dtype))
            return FoldedPath(problem, self.data.tol, memory, run).solutions(self.Cs)
        starts = np.zeros(y.size // n, dtype=np.intp)
        ranges = core.Ranges(starts, np.full(starts.size, n, dtype=np.intp))
        copies = Copies(y.size, min(self.most(thread_count()), y.size), self.rows.dtype)
        whole = MatrixProblem(self.K, ranges, y, linear, weights, self.data.tol)
        return solutions(whole, self.Cs, copies, self.rows.share_out, run)

    @property
    def few(self) -> bool:
        """Whether there are so few variables that problems are solved in one call."""
        return self.rows.n * (2 if self.data.goal.real else 1) <= MOST_WHOLE

    @property
    def shares(self) -> bool:
        """Whether folds share kernel values: pairs, few rows, or values of C whose solutions differ little."""
        return self.data.in_pairs or self.few or bool((self.Cs[1:] <= CLOSE * self.Cs[:-1]).all())

    def single(self) -> Iterator[FoldedModels]:
        """Yield the models of one output."""
        n, tests = self.rows.n, self.data.tests
        targets = np.ascontiguousarray(self.data.goal.encode(self.data.labels)[:, 0], dtype=np.float64)
        for number, found in enumerate(self.path(targets, self.run)):
            dual = found.signed.reshape(found.signed.shape[0], -1, n).sum(axis=1)
            outputs = [(found.responses[fold, :n][test] + found.bias[fold])[:, None] for fold, test in enumerate(tests)]
            self.run.report((number + 1) / self.Cs.size)
            yield self.of(number, outputs, dual[:, :, None], found.bias[:, None], found.gap.max(), found.status)

    def columns(self) -> Iterator[FoldedModels]:
        """Yield the models of one output for each class."""
        targets, tests = self.data.goal.encode(self.data.labels), self.data.tests
        solved: list[list[Solved]] = []
        for column, y in enumerate(targets.T):
            solved.append(list(self.path(np.ascontiguousarray(y), self.run.of(column, targets.shape[1]))))
        for number in range(min(map(len, solved))):
            found = [each[number] for each in solved]
            outputs = [
                np.stack([each.responses[fold, test] + each.bias[fold] for each in found], axis=1)
                for fold, test in enumerate(tests)
            ]
            dual, bias = np.stack([each.signed for each in found], axis=2), np.stack([each.bias for each in found], axis=1)
            gap, status = max(each.gap.max() for each in found), Status.worst([each.status for each in found])
            yield self.of(number, outputs, dual, bias, gap, status)

    def of(self, number: int, outputs: list[Array], dual: Array, bias: Array, gap: float, status: Status) -> FoldedModels:
        """Return the models with coefficients (folds, n, q)."""

        def model(fold: int) -> Expansion:
            support = np.flatnonzero(dual[fold].any(axis=1))
            return Expansion(self.rows.kernel, self.rows.take(support), dual[fold][support], bias[fold])

        sizes = dual.any(axis=2).sum(axis=1)
        return FoldedModels(float(self.Cs[number]), outputs, sizes, float(gap), status, model)

    def pairs(self) -> Iterator[FoldedModels]:
        """Yield the models of one output for each pair of classes; the rows are sorted by class."""
        data, count = self.data, self.Cs.size
        targets = PairTargets(data.labels, data.goal.n_classes)
        folds, q, k = data.weights.shape[0], targets.shape[1], targets.n_classes
        dual = np.zeros((count, folds, data.labels.size, k - 1), dtype=self.rows.dtype)
        bias, gaps, done = np.zeros((count, folds, q)), np.zeros((count, folds, q)), np.zeros(q, dtype=bool)
        sizes = np.array([group.size for group in targets.groups])
        starts, spaces = np.cumsum(sizes) - sizes, data.spaces(self.rows.dtype)
        most = int(np.sort(sizes)[-2:].sum())
        copies = Copies(most, min(most, self.most(2 * thread_count())), self.rows.dtype)

        def solve(pair: int) -> None:
            if self.run.over:
                return
            sides = np.array([side[pair] for side in targets.pairs])
            index, y = targets.column(pair)
            weights, state = np.ascontiguousarray(data.weights[:, index]), np.empty((2, count, folds, index.size))
            ends = np.empty((2, count, folds))
            with copies.of() as copy, spaces.of(0 if self.K is not None else index.size**2) as space:
                if self.K is not None:
                    K, ranges = self.K, core.Ranges(starts[sides], sizes[sides])
                else:
                    K, ranges = self.rows.block(index, out=space), core.Ranges(np.zeros(1, np.intp), np.array([index.size]))
                copy.clear()
                problem = MatrixProblem(K, ranges, y, y, weights, data.tol)
                problem.solve(self.Cs, 0, slice(None), (state[0], state[1], ends[0], ends[1]), copy)
            signed, (first, second) = state[0] * y, sides.tolist()
            dual[:, :, index[: sizes[first]], second - 1] = signed[:, :, : sizes[first]]
            dual[:, :, index[sizes[first] :], first] = signed[:, :, sizes[first] :]
            bias[:, :, pair], gaps[:, :, pair] = ends
            done[pair] = True
            self.run.report(0.8 * done.mean())

        self.rows.share_out(solve, q)
        if not done.all():  # the time is over: a model has all pairs
            return
        status = Status.CONVERGED if (gaps <= data.tol).all() else Status.STALLED
        at_once = max(MOST_OUTPUTS // (data.labels.size * q), 1)
        for part in blocks(count, at_once):
            for number, outputs in enumerate(self.pair_outputs(dual[part], bias[part], targets), part.start):
                model = partial(_pair_model, self.rows, targets, dual[number], bias[number])
                used = dual[number].any(axis=2).sum(axis=1)
                yield FoldedModels(float(self.Cs[number]), outputs, used, float(gaps[number].max()), status, model)

    def pair_outputs(self, dual: Array, bias: Array, targets: PairTargets) -> Iterator[list[Array]]:
        """Yield the outputs of the rows of each fold, (rows, q), for one value of C after the other."""
        count, folds = dual.shape[:2]
        k = targets.n_classes
        found = [np.empty((count, targets.shape[1], test.size)) for test in self.data.tests]
        for fold, each in enumerate(found):
            each[:] = bias[:, fold, :, None]

        def add(fold: int) -> None:
            test = self.data.tests[fold]
            for group, members in enumerate(targets.groups):
                support = members[dual[:, fold, members].any(axis=(0, 2))]
                if not support.size or not test.size:
                    continue
                V = dual[:, fold, support].transpose(0, 2, 1).reshape(-1, support.size)
                product = (V @ self.values(support, test)).reshape(count, k - 1, test.size)
                found[fold][:, pairs_of(group, k)] += product

        self.rows.share_out(add, folds)
        for number in range(count):
            yield [each[number].T for each in found]

    def values(self, index: Array, columns: Array) -> Array:
        """Return kernel values between some rows."""
        rows = self.rows if self.K is None else MatrixRows(self.rows, self.K, ThreadPool())
        return rows.block(index, columns)


def _pair_model(rows: Rows, targets: PairTargets, dual: Array, bias: Array, fold: int) -> Expansion:
    """Return the expansion of the coefficients (folds, n, k - 1) of a fold, its points sorted by class."""
    against = dual[fold]
    support = [group[against[group].any(axis=1)] for group in targets.groups]
    index = np.concatenate(support)
    coef = PairCoefficients(against[index].astype(np.float64), np.array([each.size for each in support]))
    return Expansion(rows.kernel, rows.take(index), coef, bias[fold])  # type: ignore[arg-type]
