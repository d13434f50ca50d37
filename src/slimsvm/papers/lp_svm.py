"""The linear-programming SVM: few support vectors by the 1-norm of the coefficients (Bradley & Mangasarian 1998).

    min  sum_j |c_j| + C sum_i w_i max(0, 1 - y_i f(x_i)),     f(x) = sum_j k(x, x_j) c_j + b
    max  sum_i u_i      0 <= u_i <= C w_i,   sum_i y_i u_i = 0,   |sum_i k(x_i, x_j) y_i u_i| <= 1 for every j   (its dual)

The optimum is a corner of the dual: it has no more support vectors than rows with 0 < u_i < C w_i. A problem of few rows is
solved directly, by HiGHS's dual simplex method on the dual. Two techniques keep a problem of many rows small:

- Column generation: columns with a price |K'(y u)|_j above 1 are added. An interior point method finds u, since its
  well-centred prices need few rounds. Every u, scaled back until all prices are at most 1, is a lower bound on the optimum,
  and every c an upper bound.
- Grouping of rows: the rows of a group are replaced by their mean, with the sum of their weights. By Jensen's inequality
  this bounds the objective from below, with equality if all rows of each group are on the same side of the margin. Other
  groups are split (Park & Klabjan 2016, aggregate and iterative disaggregate).

HiGHS then finds the corner on the columns that remain. The matrix of all rows and columns stays in the home of the rows;
only the small matrix of groups and columns is on the host.

The interior point method is a primal-dual one on the given columns:

    max_u  sum_i u_i     0 <= u_i <= cap_i,   -1 <= t <= 1,   t = K'(y u),   sum_i y_i u_i = 0

The multipliers of the two equations are the coefficients c and the bias b of f = K c + b. Each step solves a linear system
with one equation per column (Mehrotra 1992). Solutions to a low precision lie in the middle of the optimal ones. That suits
column generation: prices from a corner make it add the wrong columns (Gondzio, Gonzalez-Brevis & Munari 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linprog

from ..kernels import Array
from ..limits import Deadline, Effort, Limits, check_time_limit
from ..model import Status
from ..rows.protocol import Rows
from ..run import BY_ITSELF, GapProgress, Run
from ..solvers.bias import best_bias
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution

#: coefficients below this share of the largest one are set to 0; a larger share removes more support vectors
NOTHING = 1e-7
#: tolerances of HiGHS, well below any gap that a user asks for
FEASIBLE = 1e-9
#: gap of the last interior point solution, and the share of the largest coefficient above which a column is used;
#: a larger share leaves fewer columns for the simplex method, and may remove one that it needs
EXACT, USED = 1e-8, 1e-5
#: rows nearest to the margin that get a group each, and rows that leave split groups in a round; more of them need fewer
#: rounds of larger problems
ALONE, SPLIT_OFF = 2000, 500
#: a pass over all rows looks at the clock this many times
PARTS = 16
#: cosine of two columns above which they are not added in the same round, and price below which a column is removed
ALIKE, CHEAP = 0.9, 0.9


@dataclass(frozen=True)
class LP(BinaryTrainer):
    """SVM with the 1-norm of the coefficients and a bias, to a relative duality gap of `tol`.

    Problems of up to `direct` rows are solved as one linear program. Others use column generation with `batch` columns a
    round, and keep the kernel values of a few hundred columns in memory. `max_iter` limits the iterations of each output,
    those of the simplex and the interior point method together (-1: no limit), and `time_limit` its seconds. A run that
    reaches a limit returns the best model so far. A warm start begins with the columns of the last model instead of all or
    random ones.
    """

    starts_warm: ClassVar[bool] = True

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    time_limit: float | None = None
    direct: int = 1000
    batch: int = 200
    alone: ClassVar[int] = ALONE
    split_off: ClassVar[int] = SPLIT_OFF

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if self.batch < 1:
            raise ValueError(f"batch must be 1 column at least, not {self.batch!r}")

    def solve(self, problem: Binary) -> Solution:
        """Solve one output, as one linear program or as a sequence of small ones."""
        effort = Limits(self.max_iter, self.time_limit).start(problem.run.deadline)
        lp = LpProblem(problem.rows, problem.y, self.C * problem.weights, self.split_off, problem.run)
        if problem.start is not None and problem.start.any():
            lp.begin_from(problem.start)
        if problem.y.size <= self.direct:
            status = self.direct_corner(lp, effort)
        else:
            if not lp.columns.size:
                some = problem.rng.permutation(problem.y.size)[: self.batch]
                lp.add(apart(problem.rows, some, self.batch))
            status = self.generated_corner(lp, effort)
        problem.run.report(1.0)
        return Solution(lp.coef, lp.bias, effort.spent, lp.gap, status)

    def direct_corner(self, lp: LpProblem, effort: Effort) -> Status:
        """Find the corner on the columns of a start, add those that are too expensive, and repeat; or on all columns."""
        if not lp.columns.size:
            lp.add(np.arange(lp.y.size))
        while True:
            status = corner(lp, self.tol, effort)
            if status is not Status.STALLED or lp.columns.size == lp.y.size:
                return status
            outside = np.setdiff1d(np.arange(lp.y.size), lp.columns)
            dear = outside[np.abs(lp.latest[outside]) > 1]
            lp.add(dear if dear.size else outside)

    def generated_corner(self, lp: LpProblem, effort: Effort) -> Status:
        """Generate columns to half of the gap allowed, then find the corner on them to the whole of it."""
        status = generate(lp, self, 0.5 * self.tol, effort)
        if status not in (Status.CONVERGED, Status.STALLED):
            return status
        narrow(lp, effort)
        return corner(lp, self.tol, effort)


class LpProblem:
    """The problem of all rows on the present columns, the best model, and the bounds on the optimum over all columns."""

    def __init__(self, rows: Rows, y: Array, cap: Array, split_off: int = SPLIT_OFF, run: Run = BY_ITSELF) -> None:
        self.rows, self.y, self.cap, self.split_off, self.run = rows, y, cap, split_off, run
        self.columns = np.empty(0, dtype=np.intp)
        self.K = rows.against(rows.take(self.columns))
        self.group = np.arange(y.size)
        # without coefficients, predicting the heavier class is best
        sides = cap[y < 0].sum(), cap[y > 0].sum()
        self.coef, self.bias, self.upper = np.zeros(y.size), float(np.sign(sides[1] - sides[0])), float(2 * min(sides))
        self.u, self.prices = np.zeros(y.size), np.zeros(y.size)  # feasible, and K'(y u)
        self.latest = self.prices  # of the last u, feasible or not

    @property
    def gap(self) -> float:
        """The difference of the bounds, relative to the upper one."""
        return float(max(self.upper - self.u.sum(), 0.0) / self.upper)

    def begin_from(self, coef: Array) -> None:
        """Begin with the columns and the coefficients of an earlier run; the bias is the best one for them."""
        self.add(np.flatnonzero(coef))
        c = coef[self.columns]
        self.take(c, best_bias(self.K.times(c[:, None]).ravel(), self.y, self.cap), within=1.0)

    def add(self, columns: Array) -> None:
        """Add columns."""
        self.columns = np.append(self.columns, columns)
        if columns.size:
            self.K.append(self.rows.take(columns))

    def keep(self, which: Array) -> None:
        """Remove the other columns."""
        kept = np.flatnonzero(which)
        self.columns = self.columns[kept]
        self.K.keep(kept)

    def grouped(self) -> tuple[Array, Array, Array]:
        """Return the mean kernel values, the labels and the summed caps of the groups of rows."""
        first = np.unique(self.group, return_index=True)[1]
        return self.K.group_means(self.group, self.cap), self.y[first], np.bincount(self.group, self.cap)

    def spread(self, u: Array) -> Array:
        """Return u of the rows for that of the groups; both have the same prices and the same feasibility."""
        return (u / np.bincount(self.group, self.cap))[self.group] * self.cap

    def margins(self, c: Array, b: float) -> Array:
        """Return y f(x) of every row."""
        return self.y * (self.K.times(c[:, None]).ravel() + b)

    def take(self, c: Array, b: float, *, within: float) -> float:
        """Return the gap of a model, and make it the best one if its gap is at most `within`."""
        c = np.where(np.abs(c) > NOTHING * np.abs(c).max(initial=0.0), c, 0.0)
        objective = float(np.abs(c).sum() + self.cap @ np.maximum(1 - self.margins(c, b), 0.0))
        gap = (objective - self.u.sum()) / objective
        if gap <= within:
            self.coef, self.bias, self.upper = np.zeros(self.y.size), float(b), objective
            self.coef[self.columns] = c
        self.run.record(gap=self.gap)
        return float(gap)

    def price(self, u: Array, deadline: Deadline) -> tuple[Array, Array] | None:
        """Return the prices K'(y u) of all columns, and how far one can go from the feasible u to this one for each.

        A column limits the way at the point where its price exceeds 1. The point that all columns allow becomes the new
        feasible u if its objective is higher. Prices take a pass over all rows; None if the deadline ends it.
        """
        prices = self._prices(u, deadline)
        if prices is None:
            return None
        self.latest, dear = prices, np.abs(prices) > 1
        reach = np.full(self.y.size, np.inf)
        reach[dear] = np.maximum((np.sign(prices) - self.prices)[dear] / (prices - self.prices)[dear], 0.0)
        origins = [(np.zeros_like(u), np.zeros_like(u)), (self.u, self.prices)]
        for (u0, p0), far in zip(origins, (1 / np.abs(prices).max(initial=1.0), min(reach.min(), 1.0)), strict=True):
            if u0.sum() + far * (u - u0).sum() > self.u.sum():
                self.u, self.prices = u0 + far * (u - u0), p0 + far * (prices - p0)
        return prices, reach

    def _prices(self, u: Array, deadline: Deadline) -> Array | None:
        """Return K'(y u), from the kernel values in memory if these are all, else a part of the rows at a time."""
        prices = np.zeros(self.y.size)
        if self.columns.size == self.y.size:
            prices[self.columns] = self.K.back((self.y * u)[:, None]).ravel()
            return prices
        for active in np.array_split(np.flatnonzero(u), PARTS):
            if deadline.over:
                return None
            if active.size:
                prices += self.rows.product_of(active, (self.y * u)[active, None]).ravel()
        return prices

    def bundle(self, z: Array, alone: int, kind: Array | int = 0) -> None:
        """Group the rows by class, side of the margin and kind; the `alone` rows nearest to the margin get a group each."""
        label = 4 * np.broadcast_to(kind, z.shape) + 2 * (z < 1) + (self.y > 0)
        nearest = np.argsort(np.abs(1 - z))[:alone]
        label[nearest] = label.max() + 1 + np.arange(nearest.size)
        self.group = np.unique(label, return_inverse=True)[1]

    def split(self, z: Array) -> bool:
        """Split the groups with rows on both sides of the margin; return whether there are any.

        The `split_off` rows of them nearest to the margin get a group each.
        """
        loss, mean_loss = (np.bincount(self.group, self.cap * part) for part in (np.maximum(1 - z, 0.0), 1 - z))
        mixed = (loss - np.maximum(mean_loss, 0.0) > FEASIBLE * (1 + loss))[self.group]
        label = 2 * self.group + (mixed & (z < 1))
        rows = np.flatnonzero(mixed)
        off = rows[np.argsort(np.abs(1 - z[rows]))[: self.split_off]]
        label[off] = 2 * self.y.size + np.arange(off.size)
        self.group = np.unique(label, return_inverse=True)[1]
        return bool(mixed.any())


def generate(lp: LpProblem, settings: LP, tol: float, effort: Effort) -> Status:
    """Add columns and split groups in rounds until the gap is `tol`."""
    eps, first, clear_at, progress = 0.1, not lp.coef.any(), 1.0, GapProgress(tol, largest=1.0)
    if first:  # margins are not known yet: any groups of limited size will do
        lp.bundle(np.zeros(lp.y.size), 0, np.arange(lp.y.size) % settings.alone)
    else:
        lp.bundle(lp.margins(lp.coef[lp.columns], lp.bias), settings.alone, lp.K.nearest())
    while (reached := effort.reached()) is None:
        u, c, b = interior_point(*lp.grouped(), eps, effort)
        priced = lp.price(lp.spread(u), effort.deadline)
        lp.take(c, b, within=lp.gap)
        if priced is None:
            continue
        prices, reach = priced
        lp.run.report(progress.update(lp.gap))
        if lp.gap <= tol:
            return Status.CONVERGED
        z = lp.margins(c, b)
        changed = first or lp.split(z)
        if first:
            lp.bundle(z, settings.alone, lp.K.nearest())
            first = False
        if lp.gap <= clear_at:  # removing columns in every round could add and remove the same column for ever
            lp.keep(np.abs(prices[lp.columns]) > CHEAP)
            clear_at = 0.9 * lp.gap
        new = columns_to_add(lp, prices, reach, settings.batch)
        lp.add(new)
        if not new.size and not changed and eps < 0.01 * tol:
            return Status.STALLED
        eps = 0.1 * max(lp.gap, tol) if new.size or changed else 0.1 * eps
    return reached


def columns_to_add(lp: LpProblem, prices: Array, reach: Array, batch: int) -> Array:
    """Return the columns that limit the way from the feasible u most, or the most expensive ones while the gap is large."""
    order = reach if lp.gap < 0.3 else np.where(np.isfinite(reach), -np.abs(prices), np.inf)
    order[lp.columns] = np.inf
    candidates = np.flatnonzero(np.isfinite(order))
    return apart(lp.rows, candidates[np.argsort(order[candidates])][: 4 * batch], batch)


def apart(rows: Rows, candidates: Array, count: int) -> Array:
    """Return the first `count` candidates that are not similar to an earlier one."""
    block = np.abs(rows.block(candidates))
    size = np.sqrt(np.diagonal(block))
    alike = block > ALIKE * np.outer(size, size)
    chosen: list[int] = []
    free = np.ones(candidates.size, dtype=bool)
    for i in range(candidates.size):
        if free[i] and len(chosen) < count:
            chosen.append(i)
            free &= ~alike[i]
    return candidates[chosen]


def narrow(lp: LpProblem, effort: Effort) -> None:
    """Keep the columns of an almost exact solution, and group the rows by its margins: a small problem for the simplex."""
    u, c, b = interior_point(*lp.grouped(), EXACT, effort)
    lp.price(lp.spread(u), effort.deadline)
    lp.take(c, b, within=lp.gap)
    z = lp.margins(c, b)
    lp.keep(np.abs(c) > USED * np.abs(c).max(initial=0.0))
    # a corner has at most one free row per column; the other rows are a reserve
    lp.bundle(z, 5 * lp.columns.size // 4 + 50)


def corner(lp: LpProblem, tol: float, effort: Effort) -> Status:
    """Find the optimal corner on the present columns; groups of rows are split until the gap is `tol`."""
    while (reached := effort.reached()) is None:
        found = simplex(*lp.grouped(), effort)
        if isinstance(found, Status):
            return found
        u, c, b = found
        priced = lp.price(lp.spread(u), effort.deadline)
        if lp.take(c, b, within=max(tol, lp.gap)) <= tol:
            return Status.CONVERGED
        if priced is None:
            continue
        if not lp.split(lp.margins(c, b)):
            return Status.STALLED
    return reached


def simplex(K: Array, y: Array, cap: Array, effort: Effort) -> tuple[Array, Array, float] | Status:
    """Return u, c and b at a corner of the dual, by HiGHS, or the status that explains why there are none.

    A bounded variable t for the price of each column takes half as many rows as the constraint |K'(y u)| <= 1.
    """
    n, k = K.shape
    equations = np.zeros((k + 1, n + k))
    equations[:k, :n], equations[k, :n] = (K * y[:, None]).T, y
    equations[np.arange(k), n + np.arange(k)] = -1.0
    options = {"presolve": False, "primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE}
    if np.isfinite(effort.left):
        options["maxiter"] = int(effort.left)
    if effort.deadline.left is not None:
        options["time_limit"] = effort.deadline.left
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
    # 1: a limit; 4: numerical difficulties. 2 and 3 are impossible: u = 0 is feasible and all variables are bounded
    return (effort.reached() or Status.TIME_LIMIT) if result.status == 1 else Status.STALLED


#: share of the way to the nearest bound that a step goes; a larger one converges faster and centres less
NEARLY = 0.99


def lp_objective(K: Array, y: Array, cap: Array, x: Array) -> float:
    """Return |c|_1 + sum_i cap_i max(0, 1 - y_i f_i) for x = (c, b)."""
    return float(np.abs(x[:-1]).sum() + cap @ np.maximum(1 - y * (K @ x[:-1] + x[-1]), 0.0))


def balanced(u: Array, y: Array) -> Array:
    """Return u with the heavier class scaled down, so that sum y u = 0."""
    sides = np.where(y > 0, u[y > 0].sum(), u[y < 0].sum())
    return u * sides.min() / sides


def interior_point(K: Array, y: Array, cap: Array, eps: float, effort: Effort) -> tuple[Array, Array, float]:
    """Return u, c and b with a relative duality gap and violations of at most `eps`, or those at the limits of `effort`."""
    k = K.shape[1]
    u = balanced(cap / 2, y)
    t = np.clip(K.T @ (y * u), -0.9, 0.9)
    x, Z = np.zeros(k + 1), np.ones(2 * (y.size + k))  # x holds c and b
    while (
        effort.reached() is None and min(u.min(), (cap - u).min(), 1 - np.abs(t).max(initial=0.0)) > 0
    ):  # rounding must not make it 0
        effort.spent += 1
        system = Newton(K, y, cap, u, t, x, Z)
        if system.violation(lp_objective(K, y, cap, x)) <= eps or not system.factorised:
            break
        dx, du, dt, dZ, primal, dual = system.step()
        u, t, x, Z = u + primal * du, t + primal * dt, x + dual * dx, Z + dual * dZ
    return balanced(u, y), x[:k], float(x[k])


class Newton:
    """Newton's equations at one iterate, for a given target of S Z and for violations of 0.

    S holds the distances to the bounds u >= 0, u <= cap, t >= -1 and t <= 1, and Z the multipliers of these bounds.
    """

    def __init__(self, K: Array, y: Array, cap: Array, u: Array, t: Array, x: Array, Z: Array) -> None:
        self.K, self.y, self.u, self.Z = K, y, u, Z
        self.S = np.concatenate([u, cap - u, 1 + t, 1 - t])
        z_low, z_high, v_low, v_high = self.parts(Z)
        self.for_u = 1 + z_low - z_high - y * (K @ x[:-1] + x[-1])
        self.for_t = x[:-1] + v_low - v_high
        self.for_c = np.append(t - K.T @ (y * u), -(y @ u))
        low, high, below, above = self.parts(Z / self.S)
        self.D, self.E = 1 / (low + high), 1 / (below + above)
        self.factor = self._factor()

    def parts(self, both: Array) -> tuple[Array, Array, Array, Array]:
        """Return S or Z by its four kinds of bounds."""
        n, k = self.K.shape
        return both[:n], both[n : 2 * n], both[2 * n : 2 * n + k], both[2 * n + k :]

    def _factor(self) -> tuple[Array, bool] | None:
        k = self.K.shape[1]
        scaled = np.empty((self.y.size, k + 1))  # K and a column of ones for the bias
        scaled[:, :k], scaled[:, k] = self.K, 1.0
        scaled *= np.sqrt(self.D)[:, None]
        M = scaled.T @ scaled
        M[np.arange(k), np.arange(k)] += self.E
        try:
            return cho_factor(M, lower=False, overwrite_a=True)
        except (LinAlgError, ValueError):  # not positive definite or not finite, by rounding
            return None

    @property
    def factorised(self) -> bool:
        """Whether the system could be factorised in floating point."""
        return self.factor is not None

    def violation(self, objective: float) -> float:
        """Return the largest of the relative gap and the violations of the equations of c and b."""
        total = float(self.u.sum())
        gap = abs(objective - total) / objective
        return max(gap, float(np.abs(self.for_c[:-1]).max(initial=0.0)), float(abs(self.for_c[-1])) / total)

    def direction(self, target: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return the changes of (c, b), u, t, S and Z that change S Z by `target`, to first order."""
        low, high, below, above = self.parts(target / self.S)
        g = self.for_u + low - high
        h = self.for_t + below - above
        q = self.y * self.D * g
        right = np.append(self.K.T @ q - self.E * h, q.sum()) - self.for_c
        x = cho_solve(self.factor, right)
        du = self.D * (g - self.y * (self.K @ x[:-1] + x[-1]))
        dt = self.E * (x[:-1] + h)
        dS = np.concatenate([du, -du, dt, -dt])
        return x, du, dt, dS, (target - self.Z * dS) / self.S

    def step(self) -> tuple[Array, Array, Array, Array, float, float]:
        """Return Mehrotra's predictor-corrector step: changes of (c, b), u, t and Z, and the lengths for (u, t) and Z."""
        S, Z = self.S, self.Z
        *_, dS, dZ = self.direction(-S * Z)
        mean = S @ Z / S.size
        ahead = (S + room(S, dS) * dS) @ (Z + room(Z, dZ) * dZ) / S.size
        x, du, dt, dS, dZ = self.direction((ahead / mean) ** 3 * mean - S * Z - dS * dZ)
        return x, du, dt, dZ, room(S, dS), room(Z, dZ)


def room(x: Array, change: Array) -> float:
    """Return the longest step along the change, at most 1, that keeps x above 0."""
    falling = change < 0
    return min(1.0, NEARLY * float((x[falling] / -change[falling]).min(initial=np.inf)))
