"""K(rows, points) on a device of an array library, and Newton's systems that are summed, factored and solved there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Array, Matrix
from ..metric import Metric
from .array_metric import MetricPoints
from .backends import FLOAT32, FLOAT64, Backend, Held
from .curvatures import FEW_ROWS, JITTER, MORE, RunningCurvature, RunningCurvatures, factor_definite, not_finite, running
from .kernel_matrix import KernelMatrix
from .protocol import Curvatures, Dual, Factor, WorkingBlock

#: systems with at least this many unknowns are solved on the device; the host is faster with fewer
LARGE_SYSTEM = 512


class ArrayMatrix(KernelMatrix):
    """K(rows, points) of `ArrayRows`; float64 from the first point on that is too far out for float32."""

    on: Backend

    def __init__(self, rows: Any, points: Matrix, *, placed: bool, exact: bool) -> None:
        self.held = rows.held
        super().__init__(rows, points, placed=placed, exact=exact)

    def _fill(self, points: Matrix, metric: Metric | None = None) -> None:
        A, B = self._pair(points)
        n, m = self.rows.n, points.shape[0]
        self.given, self.dtype, self.size = A, A.dtype, m
        self.evaluate = self.rows.evaluator(B) if metric is None else self._in(metric, points, A.dtype)
        self.K = self.memory = None  # freed before new memory is allocated
        K = self.on.empty_or_none((n, m), A.dtype)

        def work(some: slice) -> None:
            K[some, :] = self._evaluated(some, None)

        if K is not None:
            self.on.tiled(n if m else 0, m + self.rows.d, work)
            self.K = self.memory = K

    def _in(self, metric: Metric, placed: Array, dtype: np.dtype) -> Callable[[Held], Any]:
        """Return a function that evaluates a tile in a metric."""
        kernel, xp = self.kernel, self.on.xp  # the function must not hold the matrix, which holds it
        there = MetricPoints.of(self.on, kernel, placed, metric, dtype)
        return lambda part: there.values_of(kernel, part.values, xp)

    def _evaluated(self, some: slice, rows: Array | None) -> Any:
        part = self.given.part(some) if rows is None else self.on.subset(self.given, rows[some])
        values = self.evaluate(part)
        self.rows.meter.add(values.shape[0] * self.size)
        return values

    def _pair(self, points: Matrix) -> tuple[Held, Held]:
        """Return the rows and points on the device."""
        if not self.placed:
            return self.rows.pair(points)
        there = self.on.points(points, self.held.dtype)
        if self.held.dtype == FLOAT32:
            allowed = max(self.rows.precision.float32_error, self.rows.rounding(self.rows.held))
            if self.rows.rounding(there) > allowed:
                self.on.needs_float64("a point is too far from the rows for float32")
                self.held, there = self.on.converted(self.held, FLOAT64), self.on.points(points, FLOAT64)
        return self.held, there

    def _features(self) -> Any:
        return self.held.values

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:  # noqa: ARG002
        """Return curvatures of `count` outputs, on the device if it has float64."""
        return DeviceCurvatures(self, count) if self.on.has_float64 else RunningCurvatures(self, count)

    def curvature_on_device(self, rows: Array, weights: Array, since: int = 0) -> Any:
        """Return `curvature` on the device."""
        return self._total(*self._squares(rows, weights, since)[:4])

    def _each(self, work: Callable[[slice], None]) -> None:
        self.on.tiled(self.rows.n, self.size, work)

    def _summed(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, ...], cost: int) -> Array:  # noqa: ARG002
        if self.on.has_float64:
            return self.on.fetch(self._total(count, width, sums, shape))
        total = np.zeros(shape)

        def work(some: slice) -> None:
            total[...] += self.on.fetch(sums(some))

        self.on.tiled(count if total.size else 0, 2 * width, work)
        return total

    def _total(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, ...]) -> Any:
        """Return the total of sums over tiles of range(count) on the device."""
        total = self.on.zeros(shape, self.on.sum_dtype)

        def work(some: slice) -> None:
            total[...] += self.on.cast(sums(some), self.on.sum_dtype)

        self.on.tiled(count if min(shape) else 0, 2 * width, work)
        return total


@dataclass(frozen=True)
class DeviceFactor:
    """The inverse of the lower Cholesky factor L of a matrix H = L L'. The array API has no triangular solver."""

    on: Backend
    inverse: Any

    @property
    def size(self) -> int:
        return int(self.inverse.shape[0])

    def solve(self, right: Array) -> Array:
        """Return H^-1 right for one vector."""
        return self.on.fetch(self.inverse.T @ (self.inverse @ self.on.send(right, self.on.sum_dtype)))


class DeviceCurvatures:
    """The sums of several outputs for the points of a handle on a device with float64."""

    at_once = 64  # more would need more memory for their systems

    def __init__(
        self, against: ArrayMatrix, count: int, *, large_system: int = LARGE_SYSTEM, few_rows: int = FEW_ROWS
    ) -> None:
        self.on, self.large_system = against.on, large_system
        bordered = partial(_bordered, self.on.xp)  # a method of this object would refer back to it: a cycle
        self.each = [RunningCurvature(against, against.curvature_on_device, bordered, few_rows) for _ in range(count)]

    def factors(self, outputs: Array, residual: Array, weights: Array, R: Array) -> list[Factor]:
        """Return the factor of each output's sum plus R: large ones on the device, others on the host."""
        sums = running(self.each, outputs, residual, weights)
        if R.shape[0] < self.large_system:
            return [factor_definite(self.on.fetch(H), R) for H in sums]
        regulariser = self.on.send(R, self.on.sum_dtype)
        return [factor_on_device(self.on, H + regulariser) for H in sums]


def _bordered(xp: Any, values: Any, border: Any) -> Any:
    """Return a matrix on the device with more columns, and the same as rows."""
    return xp.concat([xp.concat([values, border[: values.shape[0], :]], axis=1), border.T], axis=0)


def factor_on_device(on: Backend, total: Any) -> DeviceFactor:
    """Return the factor of a matrix on the device, with the least ridge that makes it definite (`factor_definite`)."""
    unit = on.send(np.eye(total.shape[0]), on.sum_dtype)
    largest, share = float(on.xp.max(on.xp.linalg.diagonal(total))) or 1.0, JITTER
    while share * largest < np.inf:
        lower = on.cholesky(total + share * largest * unit)
        if lower is not None:
            return DeviceFactor(on, on.xp.linalg.inv(lower))
        share *= MORE
    raise not_finite()


if TYPE_CHECKING:
    from .array import ArrayRows


#: of a working set's rows, one in so many violates most in each direction; the others are of the last set
NEW_SHARE = 4


class ArrayDual:
    """The vectors of a dual problem on a GPU, by torch: a round of SMO sends a few changes and gets a working set back.

    Responses, bounds and the choice of the working set stay on the device. The host waits once a round: for the working
    set, its gradients and its block of kernel values. These take many small operations, which are recorded once and then
    replayed.
    """

    def __init__(self, rows: ArrayRows, problem: Dual, working: Array) -> None:
        import torch

        on, size = rows.backend, working.size
        self.torch, self.rows, self.on, self.size = torch, rows, on, size
        closed = np.where([problem.grows, problem.shrinks], 0.0, -np.inf)
        self.linear, self.f = self._own(problem.linear), self._own(problem.responses)
        #: what is added to the scores of rows in both directions, which leaves out those that cannot move, and c
        self.sides = self._own(np.vstack([closed, problem.signed]))
        self.working, self.new = self._own(working).to(torch.int64), max(size // NEW_SHARE, 1)
        self.sign = self._own(np.array([[1.0], [-1.0]]))
        self.order = torch.arange(2 * self.new + size, device=on.device)
        self.right = rows.form()
        self.numbers, self.block = on.empty((2 * size + 3,), FLOAT64), on.empty((size, size), rows.dtype)
        self.fetched, self.memory = (
            on.host_memory(there.numel(), dtype) for there, dtype in ((self.numbers, FLOAT64), (self.block, rows.dtype))
        )
        self.sent = on.host_memory(5 * size, FLOAT64)
        self.looks, self.graph = 0, None

    def _own(self, array: Array) -> Any:
        """Return a float64 copy of a host array on the device."""
        there = self.on.send(array, FLOAT64)
        return there if self.on.is_cuda else there.clone()

    def look(self) -> WorkingBlock:
        size = self.size
        self.rows.meter.add(size * size)
        if self.looks == 1:  # the first time, libraries choose their functions
            self.graph = captured(self.on, self._look)
        self.looks += 1
        if self.graph is None:
            self._look()
        else:
            self.graph.replay()
        self._fetch(self.numbers, self.fetched)
        self._fetch(self.block, self.memory)
        if self.on.is_cuda:
            self.torch.cuda.current_stream(self.on.device).synchronize()
        grow, shrink, twice = self.fetched[:3].tolist()
        v, working = self.fetched[3:].reshape(2, size)
        return WorkingBlock(
            max(grow + shrink, 0.0), 0.5 * twice, working.astype(np.int64), v, self.memory.reshape(size, size)
        )

    def _look(self) -> None:
        """Write the numbers of a look, the next working set and its block, on the device."""
        v = self.linear - self.f
        score = v * self.sign + self.sides[:2]
        self.working.copy_(self._chosen(score))
        twice = (self.sides[2] * (self.linear + v)).sum().reshape(1)
        gradients, places = v.index_select(0, self.working), self.working.to(v.dtype)
        self.torch.cat([score.amax(dim=1), twice, gradients, places], out=self.numbers)
        A, values = self._rows(self.working), self._values(self.working, summed=False)

        def work(some: slice) -> None:
            self.block[some] = values(A.part(some))

        self.on.tiled(self.size, self.size + self.rows.d, work)

    def _chosen(self, score: Any) -> Any:
        """Return the rows that violate most, in both directions, and then those of the last working set.

        Of rows that occur twice the first one counts. Rows that cannot move in a direction do not count for it.
        """
        torch = self.torch
        best, rows = torch.topk(score.to(torch.float32), self.new, dim=1, sorted=False)
        candidates, last = torch.cat([rows.reshape(-1), self.working]), self.order.numel()
        order = self.order.clone()
        order[: 2 * self.new].masked_fill_(best.reshape(-1) == -torch.inf, last)
        first = torch.full((score.shape[1],), last, device=score.device)
        first.scatter_reduce_(0, candidates, order, "amin")
        counts = (first.index_select(0, candidates) == order) & (order < last)
        place = (counts.cumsum(0) - 1).masked_fill_(~counts, self.size).clamp_(max=self.size)
        return torch.empty(self.size + 1, dtype=torch.int64, device=score.device).scatter_(0, place, candidates)[:-1]

    def _rows(self, index: Any) -> Held:
        """Return rows whose numbers are on the device."""
        held = self.rows.held
        return Held(held.lifted.index_select(0, index), held.d, held.radius, held.dtype)

    def _values(self, index: Any, *, summed: bool) -> Callable[[Held], Any]:
        """Return a function from rows to their kernel values with rows whose numbers are on the device."""
        on, dtype = self.on, self.rows.dtype
        if self.right is None:
            return self.rows.evaluator(self._rows(index), dtype, summed=summed)
        right = self.right.index_select(0, index).T
        return lambda A: on.exp(on.cast(A.lifted @ right, dtype), at_most_1=not summed)

    def _fetch(self, array: Any, out: Array) -> None:
        """Queue a copy to host memory."""
        self.torch.from_numpy(out).copy_(array.reshape(-1), non_blocking=True)

    def move(self, index: Array, change: Array, signed: Array, grows: Array, shrinks: Array) -> None:
        rows, on = self.rows, self.on
        rows.meter.add(rows.n * index.size)
        sent = self._sent(index, change, np.where(grows, 0.0, -np.inf), np.where(shrinks, 0.0, -np.inf), signed)
        places, sums = sent[0].to(self.torch.int64), rows.sum_precision(rows.dtype)
        weights, values, added = on.cast(sent[1], sums), self._values(places, summed=True), list[tuple[slice, Any]]()

        def work(some: slice) -> None:
            added.append((some, on.cast(values(rows.held.part(some)), sums) @ weights))

        on.tiled(rows.n if index.size else 0, index.size + rows.d, work)
        for some, part in added:
            self.f[some] += part
        self.sides.index_copy_(1, places, sent[2:])

    def _sent(self, *lines: Array) -> Any:
        """Return lines of numbers on the device, through host memory that the last look has left free."""
        here = self.sent[: len(lines) * lines[0].size].reshape(len(lines), -1)
        np.stack(lines, out=here)
        return self.torch.from_numpy(here).to(self.on.device, non_blocking=True, copy=True)

    def responses(self) -> Array:
        return self.on.fetch(self.f)


def captured(on: Backend, work: Callable[[], None]) -> Any:
    """Return a CUDA graph of some work that was done before, without doing it again; None where nothing can be recorded.

    It does not give the device's spare memory back first, which would take longer than short runs.
    """
    if not on.is_cuda:
        return None
    import torch

    graph, side, here = torch.cuda.CUDAGraph(), torch.cuda.Stream(on.device), torch.cuda.current_stream(on.device)
    side.wait_stream(here)
    try:
        with torch.cuda.stream(side):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
    except RuntimeError:  # operations that cannot be recorded, too little memory
        return None
    here.wait_stream(side)
    return graph
