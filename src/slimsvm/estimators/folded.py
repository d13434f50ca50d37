"""The models of all folds of a cross-validation, for all values of C of a kernel (`solvers.folded_path`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..goals import Goal, OneVsOne
from ..kernels import Array, Kernel, Matrix
from ..model import Expansion, Status
from ..pairs import PairCoefficients, PairTargets, pairs_of
from ..rows.homes import open_rows
from ..rows.host import in_memory
from ..rows.protocol import Meter, Rows
from ..rows.threads import Spaces, blocks, thread_count
from ..run import Run, silent
from ..solvers.folded_path import FoldedPath, FoldedProblem, Memory, Solved
from ..solvers.tube import PairedRows

#: the share of the memory for kernel values that the kernel matrix of all rows may take; the threads share the rest
MATRIX = 0.7
#: outputs of the pairs of classes in memory at a time, 256 MiB
MOST_OUTPUTS = 1 << 25


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

    def spaces(self, dtype: np.dtype) -> Spaces:
        """Return memory for kernel values, which one kernel after the other uses."""
        return self.held.setdefault(dtype, Spaces(dtype))


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
    megabytes = n**2 * rows.dtype.itemsize / 2**20
    spaces = data.spaces(rows.dtype)
    if megabytes > MATRIX * data.cache_mb:
        tell(
            f"the kernel matrix would take {megabytes:,.0f} MiB, more than {MATRIX:.0%} of cache_mb={data.cache_mb:g}, so "
            "its values are computed again where they are needed"
        )
        yield from _solver(data, rows, Cs, data.cache_mb, run).models()
        return
    tell(f"the kernel matrix takes {megabytes:,.0f} MiB and is kept for all folds and all C")
    with spaces.of(n**2) as space:
        yield from _solver(data, in_memory(rows, space), Cs, data.cache_mb - megabytes, run).models()


def _solver(data: FoldedRows, rows: Rows, Cs: Array, megabytes: float, run: Run) -> _Solver:
    """Return the solver with its memory: half of it for the threads, and half for what the folds of a problem share."""
    parts = 2 * thread_count()
    together = (
        2 if data.goal.outputs == 1 or not isinstance(data.goal, OneVsOne) else parts
    )  # pairs have threads of their own
    memory = Memory(megabytes / parts, megabytes / together, data.spaces(rows.dtype))
    return _Solver(data, rows, Cs, memory, run)


@dataclass(frozen=True)
class _Solver:
    data: FoldedRows
    rows: Rows
    Cs: Array
    memory: Memory
    run: Run

    def models(self) -> Iterator[FoldedModels]:
        """Yield the models of all folds for rising values of C."""
        if self.data.goal.outputs == 1:
            return self.single()
        return self.pairs() if isinstance(self.data.goal, OneVsOne) else self.columns()

    def path(self, problem: FoldedProblem, run: Run) -> Iterator[Solved]:
        """Return the solutions of one problem of two classes, or of one regression."""
        return FoldedPath(problem, self.data.tol, self.memory, run).solutions(self.Cs)

    def problem(self, targets: Array) -> FoldedProblem:
        """Return the problem of one output on all rows."""
        if not self.data.goal.real:
            return FoldedProblem(self.rows, targets, targets, self.data.weights)
        signs, epsilon = np.repeat([1.0, -1.0], targets.size), self.data.goal.epsilon  # type: ignore[attr-defined]
        linear = np.concatenate([targets - epsilon, targets + epsilon])
        return FoldedProblem(PairedRows(self.rows), signs, linear, np.tile(self.data.weights, 2))  # type: ignore[arg-type]

    def single(self) -> Iterator[FoldedModels]:
        """Yield the models of one output."""
        n, tests = self.rows.n, self.data.tests
        targets = self.data.goal.encode(self.data.labels)[:, 0]
        for number, found in enumerate(self.path(self.problem(targets), self.run)):
            dual = found.signed.reshape(found.signed.shape[0], -1, n).sum(axis=1)
            outputs = [(found.responses[fold, :n][test] + found.bias[fold])[:, None] for fold, test in enumerate(tests)]
            self.run.report((number + 1) / self.Cs.size)
            yield self.of(number, outputs, dual[:, :, None], found.bias[:, None], found.gap.max(), found.status)

    def columns(self) -> Iterator[FoldedModels]:
        """Yield the models of one output for each class."""
        targets, tests = self.data.goal.encode(self.data.labels), self.data.tests
        solved: list[list[Solved]] = []
        for column, y in enumerate(targets.T):
            part = self.run.of(column, targets.shape[1])
            solved.append(list(self.path(self.problem(np.ascontiguousarray(y)), part)))
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
        """Yield the models of one output for each pair of classes."""
        data, count = self.data, self.Cs.size
        targets = PairTargets(data.labels, data.goal.n_classes)
        folds, q, k = data.weights.shape[0], targets.shape[1], targets.n_classes
        dual = np.zeros((count, folds, data.labels.size, k - 1), dtype=self.rows.dtype)
        bias, gaps = np.zeros((count, folds, q)), np.zeros((count, q))
        status, done = [Status.CONVERGED], np.zeros(q, dtype=bool)

        def solve(pair: int) -> None:
            index, y = targets.column(pair)
            first, second = (int(side[pair]) for side in targets.pairs)
            size = targets.groups[first].size
            problem = FoldedProblem(self.rows.subset(index), y, y, np.ascontiguousarray(data.weights[:, index]))
            for number, found in enumerate(self.path(problem, self.run.quiet())):
                dual[number][:, index[:size], second - 1] = found.signed[:, :size]
                dual[number][:, index[size:], first] = found.signed[:, size:]
                bias[number, :, pair], gaps[number, pair] = found.bias, found.gap.max()
                status.append(found.status)
                done[pair] = number + 1 == count
            self.run.report(0.8 * done.mean())

        self.rows.share_out(solve, q)
        if not done.all():  # the time is over: a model has all pairs
            return
        worst, at_once = Status.worst(status), max(MOST_OUTPUTS // (data.labels.size * q), 1)
        for part in blocks(count, at_once):
            for number, outputs in enumerate(self.pair_outputs(dual[part], bias[part], targets), part.start):
                model = partial(_pair_model, self.rows, targets, dual[number], bias[number])
                sizes = dual[number].any(axis=2).sum(axis=1)
                yield FoldedModels(float(self.Cs[number]), outputs, sizes, float(gaps[number].max()), worst, model)

    def pair_outputs(self, dual: Array, bias: Array, targets: PairTargets) -> Iterator[list[Array]]:
        """Yield the outputs of the rows of each fold, (rows, q), for one value of C after the other."""
        count, folds = dual.shape[:2]
        k = targets.n_classes
        found = [np.tile(bias[:, fold, None], (1, test.size, 1)) for fold, test in enumerate(self.data.tests)]

        def add(fold: int) -> None:
            test = self.data.tests[fold]
            for group, members in enumerate(targets.groups):
                support = members[dual[:, fold, members].any(axis=(0, 2))]
                if not support.size or not test.size:
                    continue
                V = dual[:, fold, support].transpose(1, 0, 2).reshape(support.size, -1)
                product = (self.rows.block(test, support) @ V).reshape(test.size, count, k - 1)
                found[fold][:, :, pairs_of(group, k)] += product.transpose(1, 0, 2)

        self.rows.share_out(add, folds)
        for number in range(count):
            yield [each[number] for each in found]


def _pair_model(rows: Rows, targets: PairTargets, dual: Array, bias: Array, fold: int) -> Expansion:
    """Return the expansion of the coefficients (folds, n, k - 1) of a fold, its points sorted by class."""
    against = dual[fold]
    support = [group[against[group].any(axis=1)] for group in targets.groups]
    index = np.concatenate(support)
    coef = PairCoefficients(against[index].astype(np.float64), np.array([each.size for each in support]))
    return Expansion(rows.kernel, rows.take(index), coef, bias[fold])  # type: ignore[arg-type]
