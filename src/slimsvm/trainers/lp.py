"""The linear-programming SVM: few support vectors by the 1-norm of the coefficients (Bradley & Mangasarian 1998).

    min  sum_j |c_j| + C sum_i w_i max(0, 1 - y_i f(x_i)),     f(x) = sum_j k(x, x_j) c_j + b
    max  sum_i u_i      0 <= u_i <= C w_i,   sum_i y_i u_i = 0,   |sum_i k(x_i, x_j) y_i u_i| <= 1 for every j   (its dual)

The optimum is a corner of the dual: no more support vectors than rows with 0 < u_i < C w_i. Few rows are solved directly,
by HiGHS's dual simplex on the dual. With many rows, two things keep the problem small:

- Columns are generated: those whose price |K'(y u)|_j exceeds 1 join, and u is found by an interior point method, whose
  middle-of-the-road prices need few rounds. Every u, moved back to where all prices are 1 at most, bounds the optimum from
  below, and every c from above.
- Rows of one class and one side of the margin are one row, their mean, with the sum of their weights: by Jensen's
  inequality this bounds the objective from below, with equality where all of a group are on the same side. Groups that
  are not are split (Park & Klabjan 2016, aggregate and iterative disaggregate).

HiGHS then takes the corner among the columns that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ..kernels import Array
from ..limits import check_time_limit
from ..model import Status
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.interior import Effort, interior_point
from .frames.per_output import Binary, BinaryTrainer, Solution

#: coefficients below this share of the largest one are 0
NOTHING = 1e-7
#: HiGHS's tolerances, well below any gap asked for
FEASIBLE = 1e-9
#: the gap to which the interior point method tells columns that are used from others, by this share of the largest
EXACT, USED = 1e-8, 1e-5
#: rows nearest to the margin that stay alone when the others are grouped, and that leave split groups in a round
ALONE, SPLIT_OFF = 2000, 500
#: columns that are as alike as this do not join in the same round; prices below this leave
ALIKE, CHEAP = 0.9, 0.9


@dataclass(frozen=True)
class LP(BinaryTrainer):
    """SVM with the 1-norm of the coefficients and a bias, to a relative duality gap of `tol`.

    Up to `direct` rows are solved as one linear program, others by column generation, `batch` columns a round, whose kernel
    columns are kept in memory (n times a few hundred float64). `max_iter` limits the iterations of each output, of simplex
    and interior point method together (-1: no limit), `time_limit` its seconds; the best model so far is then returned.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    time_limit: float | None = None
    direct: int = 1000
    batch: int = 200

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if self.batch < 1:
            raise ValueError(f"batch must be 1 column at least, not {self.batch!r}")

    def solve(self, problem: Binary) -> Solution:
        """One linear program, or many small ones."""
        effort = Effort(self.max_iter, self.time_limit)
        machine = Machine(problem.rows, problem.y, self.C * problem.weights)
        if problem.y.size <= self.direct:
            machine.add(np.arange(problem.y.size))
            status = corner(machine, self.tol, effort)
        else:
            some = problem.rng.permutation(problem.y.size)[: self.batch]
            machine.add(apart(problem.rows, some, self.batch))
            with one_blas_thread():  # the crew has threads enough
                status = self.generated_corner(machine, effort, problem.report)
        problem.report(1.0)
        return Solution(machine.coef, machine.bias, effort.spent, machine.gap, status)

    def generated_corner(self, machine: Machine, effort: Effort, report: Callable[[float], None]) -> Status:
        """Half of the gap allowed is for the columns, the other half for the groups of rows at the corner."""
        status = generate(machine, self.batch, 0.5 * self.tol, effort, report)
        if status not in (Status.CONVERGED, Status.STALLED):
            return status
        narrow(machine, effort)
        return corner(machine, self.tol, effort)


class Machine:
    """The problem of all rows on the columns so far, the best model, and the bounds on the optimum of all columns."""

    def __init__(self, gram: Rows, y: Array, cap: Array) -> None:
        self.gram, self.y, self.cap = gram, y, cap
        self.columns, self.K = np.empty(0, dtype=np.intp), np.empty((y.size, 0))
        self.group = np.arange(y.size)
        # without coefficients, the heavier class is best
        sides = cap[y < 0].sum(), cap[y > 0].sum()
        self.coef, self.bias, self.upper = np.zeros(y.size), float(np.sign(sides[1] - sides[0])), float(2 * min(sides))
        self.u, self.prices = np.zeros(y.size), np.zeros(y.size)  # feasible, and K'(y u)

    @property
    def gap(self) -> float:
        """The distance of the bounds, relative to the upper one."""
        return float(max(self.upper - self.u.sum(), 0.0) / self.upper)

    def add(self, columns: Array) -> None:
        """Let columns join."""
        self.columns = np.append(self.columns, columns)
        self.K = np.hstack([self.K, self.gram.block(np.arange(self.y.size), columns)])

    def keep(self, which: Array) -> None:
        """Let the other columns leave."""
        self.columns, self.K = self.columns[which], self.K[:, which]

    def grouped(self) -> tuple[Array, Array, Array]:
        """Kernel values, labels and caps of the groups of rows: means, and sums of the caps."""
        cap = np.bincount(self.group, self.cap)
        means = csr_array((self.cap / cap[self.group], (self.group, np.arange(self.y.size))), shape=(cap.size, self.y.size))
        return means @ self.K, np.sign(means @ self.y), cap

    def spread(self, u: Array) -> Array:
        """u of each row for that of the groups, as feasible as it."""
        return (u / np.bincount(self.group, self.cap))[self.group] * self.cap

    def margins(self, c: Array, b: float) -> Array:
        """y f(x) of every row."""
        return self.y * (self.K @ c + b)

    def take(self, c: Array, b: float, *, within: float) -> float:
        """Keep this model if its gap would be at most `within`; returns that gap."""
        c = np.where(np.abs(c) > NOTHING * np.abs(c).max(initial=0.0), c, 0.0)
        objective = float(np.abs(c).sum() + self.cap @ np.maximum(1 - self.margins(c, b), 0.0))
        gap = (objective - self.u.sum()) / objective
        if gap <= within:
            self.coef, self.bias, self.upper = np.zeros(self.y.size), float(b), objective
            self.coef[self.columns] = c
        return float(gap)

    def price(self, u: Array) -> tuple[Array, Array]:
        """The prices K'(y u) of all columns, and how far one can go from the feasible u to this one before each exceeds 1.

        Going as far as all allow gives the new feasible u, if that is worth more.
        """
        if self.columns.size == self.y.size:
            prices = np.empty(self.y.size)
            prices[self.columns] = self.K.T @ (self.y * u)
        else:
            rows = np.flatnonzero(u)
            prices = self.gram.product_of(rows, (self.y * u)[rows, None]).ravel()
        dear = np.abs(prices) > 1
        reach = np.full(self.y.size, np.inf)
        reach[dear] = np.maximum((np.sign(prices) - self.prices)[dear] / (prices - self.prices)[dear], 0.0)
        origins = [(np.zeros_like(u), np.zeros_like(u)), (self.u, self.prices)]
        for (u0, p0), far in zip(origins, (1 / np.abs(prices).max(initial=1.0), min(reach.min(), 1.0)), strict=True):
            if u0.sum() + far * (u - u0).sum() > self.u.sum():
                self.u, self.prices = u0 + far * (u - u0), p0 + far * (prices - p0)
        return prices, reach

    def bundle(self, z: Array, alone: int, kind: Array | int = 0) -> None:
        """Group the rows by class, side of the margin and kind, but for the `alone` rows nearest to the margin."""
        label = 4 * np.broadcast_to(kind, z.shape) + 2 * (z < 1) + (self.y > 0)
        nearest = np.argsort(np.abs(1 - z))[:alone]
        label[nearest] = label.max() + 1 + np.arange(nearest.size)
        self.group = np.unique(label, return_inverse=True)[1]

    def split(self, z: Array) -> bool:
        """Split the groups that lie on both sides of the margin; whether there are any."""
        loss, mean_loss = (np.bincount(self.group, self.cap * part) for part in (np.maximum(1 - z, 0.0), 1 - z))
        mixed = (loss - np.maximum(mean_loss, 0.0) > FEASIBLE * (1 + loss))[self.group]
        label = 2 * self.group + (mixed & (z < 1))
        rows = np.flatnonzero(mixed)
        off = rows[np.argsort(np.abs(1 - z[rows]))[:SPLIT_OFF]]
        label[off] = 2 * self.y.size + np.arange(off.size)
        self.group = np.unique(label, return_inverse=True)[1]
        return bool(mixed.any())


def generate(machine: Machine, batch: int, tol: float, effort: Effort, report: Callable[[float], None]) -> Status:
    """Rounds of new columns and smaller groups until the gap is `tol`."""
    eps, first, clear_at = 0.1, True, 1.0
    while not (over := effort.over()):
        u, c, b = interior_point(*machine.grouped(), eps, effort, machine.gram.crew)
        prices, reach = machine.price(machine.spread(u))
        machine.take(c, b, within=machine.gap)
        report(progress(machine.gap, tol))
        if machine.gap <= tol:
            return Status.CONVERGED
        z = machine.margins(c, b)
        changed = first or machine.split(z)
        if first:  # all rows were alone; now there are margins to group them by
            machine.bundle(z, ALONE, machine.K.argmax(axis=1))
            first = False
        if machine.gap <= clear_at:  # not in every round, or a column might leave and join for ever
            machine.keep(np.abs(prices[machine.columns]) > CHEAP)
            clear_at = 0.9 * machine.gap
        new = wanted(machine, prices, reach, batch)
        machine.add(new)
        if not new.size and not changed and eps < 0.01 * tol:
            return Status.STALLED
        eps = 0.1 * max(machine.gap, tol) if new.size or changed else 0.1 * eps
    return over


def progress(gap: float, tol: float) -> float:
    """The share of the way from a gap of 1 to `tol`, on a logarithmic scale."""
    return 1.0 if gap <= tol else float(np.log(gap) / np.log(tol))


def wanted(machine: Machine, prices: Array, reach: Array, batch: int) -> Array:
    """Columns to join: the first to stand in the way from the feasible u, or the dearest while that is far from good."""
    order = reach if machine.gap < 0.3 else np.where(np.isfinite(reach), -np.abs(prices), np.inf)
    order[machine.columns] = np.inf
    candidates = np.flatnonzero(np.isfinite(order))
    return apart(machine.gram, candidates[np.argsort(order[candidates])][: 4 * batch], batch)


def apart(gram: Rows, candidates: Array, count: int) -> Array:
    """The first `count` candidates that are not much like an earlier one."""
    block = np.abs(gram.block(candidates))
    size = np.sqrt(np.diagonal(block))
    alike = block > ALIKE * np.outer(size, size)
    chosen: list[int] = []
    free = np.ones(candidates.size, dtype=bool)
    for i in range(candidates.size):
        if free[i] and len(chosen) < count:
            chosen.append(i)
            free &= ~alike[i]
    return candidates[chosen]


def narrow(machine: Machine, effort: Effort) -> None:
    """Leave the columns that an almost exact solution uses, and its groups of rows: a small problem for the simplex."""
    u, c, b = interior_point(*machine.grouped(), EXACT, effort, machine.gram.crew)
    machine.price(machine.spread(u))
    machine.take(c, b, within=machine.gap)
    z = machine.margins(c, b)
    machine.keep(np.abs(c) > USED * np.abs(c).max(initial=0.0))
    # a corner has one free row a column at most; the others are for doubt
    machine.bundle(z, 5 * machine.columns.size // 4 + 50)


def corner(machine: Machine, tol: float, effort: Effort) -> Status:
    """The optimal corner among the machine's columns, with groups of rows that are split until the gap is `tol`."""
    while not (over := effort.over()):
        found = simplex(*machine.grouped(), effort)
        if isinstance(found, Status):
            return found
        u, c, b = found
        machine.price(machine.spread(u))
        if machine.take(c, b, within=max(tol, machine.gap)) <= tol:
            return Status.CONVERGED
        if not machine.split(machine.margins(c, b)):
            return Status.STALLED
    return over


def simplex(K: Array, y: Array, cap: Array, effort: Effort) -> tuple[Array, Array, float] | Status:
    """u, c and b at a corner of the dual, by HiGHS, or why there are none.

    A variable t for the prices of the columns, with bounds of its own, halves the rows that |K'(y u)| <= 1 would take.
    """
    n, k = K.shape
    equations = np.zeros((k + 1, n + k))
    equations[:k, :n], equations[k, :n] = (K * y[:, None]).T, y
    equations[np.arange(k), n + np.arange(k)] = -1.0
    options = {"presolve": False, "primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE}
    if np.isfinite(effort.iterations):
        options["maxiter"] = int(effort.iterations)
    if np.isfinite(effort.seconds):
        options["time_limit"] = effort.seconds
    result = linprog(
        np.concatenate([-np.ones(n), np.zeros(k)]),
        A_eq=equations,
        b_eq=np.zeros(k + 1),
        bounds=np.column_stack([np.append(np.zeros(n), -np.ones(k)), np.append(cap, np.ones(k))]),
        method="highs-ds",
        options=options,
    )
    effort.spent += int(result.nit)
    if result.status == 0:
        c = -result.eqlin.marginals
        return result.x[:n], c[:k], float(c[k])
    # 1: a limit; 4: numerical trouble. 2 and 3 are impossible: u = 0 is feasible and all variables are bounded
    return (effort.over() or Status.TIME_LIMIT) if result.status == 1 else Status.STALLED
