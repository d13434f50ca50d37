"""Limits on a small model: how many support vectors its budget allows, and which models are within it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ..budget import AUTO, NO_BUDGET, PRECISIONS, Budget, check_precision
from ..c_bytes import BITS, CHEAP_COEFFICIENTS, NO_SCALER, Room, ScalerTables, Shape, largest_where
from ..clock import microseconds
from ..kernels import Array, Precomputed
from ..kernels.spec import SPECS
from ..model import Expansion, Judgement
from ..rounding import rounded
from ..text import warn_user
from .path import Path, Step
from .problem import Problem

#: a precision of fewer bits is taken unless its error is higher by this many standard errors of the difference. More: more
#: points, whose numbers are coarser
HARDLY = 1.0


def itself(estimator: Any) -> Any:
    """Return the estimator."""
    return estimator


@dataclass(frozen=True)
class Around:
    """The steps of a Pipeline before the model, which count in budgets of bytes and time."""

    deployed: Callable[[Any], Any] = itself  # from the model to a Pipeline that predicts raw rows
    raw: Any = None  # rows before the steps; None without any
    scaler: ScalerTables = NO_SCALER  # the C tables of the steps


#: no steps
ALONE = Around()


@dataclass(frozen=True)
class Limits:
    """The budget of small models, the precision of their tables, and what they take bytes and time for."""

    budget: Budget = NO_BUDGET
    precision: str = AUTO
    room: Room | None = None  # what a limit in bytes allows
    shape: Shape | None = None  # of models with the metric that the reducer may learn
    time: Callable[[Expansion], float] = lambda _: 0.0  # microseconds of a prediction
    like: Callable[[int], Expansion] | None = None  # a model of that size, to be timed

    @classmethod
    def of(cls, estimator: Any, problem: Problem, reducer: Any, around: Around) -> Limits:
        """Return the limits of an estimator on models of a reducer."""
        budget = checked_budget(estimator.budget, estimator.precision)
        calibration = getattr(estimator, "calibration", None) if problem.goal.n_classes else None
        shape = shape_of(problem, reducer, calibration or "", around.scaler)
        room = room_for(budget, estimator.precision, shape)
        room = None if room is None else replace(room, ranks=reducer.ranks(problem.kernel, problem.X.shape[1]))
        time = partial(_time, estimator, problem, around)
        return cls(budget, estimator.precision, room, shape, time, partial(_model_like, problem))

    @property
    def open(self) -> tuple[str, ...]:
        """The precisions from which the search chooses; none if the choice is made."""
        return self.room.precisions if self.room is not None and self.precision == AUTO else ()

    def meant(self, model: Expansion) -> Expansion:
        """Return a model for tables of its precision: the reducer's choice, or the one given."""
        return model if model.precision != "float32" or self.precision == AUTO else model.meant_for(self.precision)

    def kept(self, full: Expansion) -> Expansion:
        """Return a full model that is within the limits, for tables of the most bits in which it is."""
        fitting = (name for name in self.open if self.room and self.room.bytes_of(full.meant_for(name)) <= self.room.bytes)
        return full.meant_for(next(fitting, self.open[-1])) if self.open else self.meant(full)

    def decided(self, path: Path, limit: int, judge: Callable[[Expansion], Judgement]) -> Limits:
        """Return the limits with a precision that is hardly worse than others: the one with most points, then fewest bits.

        Models are judged with rounded numbers; `judge` returns the validation error of a model of the path. A reducer may
        have chosen already.
        """
        if not self.open or self.room is None or any(step.model.precision != "float32" for step in path):
            return self
        judged: dict[str, tuple[Judgement, int]] = {}
        for name in self.open:
            steps = tuple(step for step in path if self.room.bytes_of(step.model.meant_for(name)) <= self.room.bytes)
            if steps and steps[0].size <= limit:
                model = replace(path, steps=steps).best(limit).model
                judged[name] = judge(rounded_model(model, name)), model.size
        lowest = min((judgement for judgement, _ in judged.values()), key=lambda judgement: judgement.error)
        alike = {name: size for name, (judgement, size) in judged.items() if not judgement.worse_than(lowest, HARDLY)}
        # sparse points have no tables of 4 bits: all features of a few points would take the room of many
        return replace(self, precision=max(alike, key=lambda name: (alike[name], -BITS[name])))

    def size(self, largest: int, *, full: bool) -> int | None:
        """Return the support vectors that all limits allow; None, with a warning, where the full model is within them.

        `most` is the size of the full model (with `full`), or the number of rows. Impossible budgets raise ValueError with
        the nearest possible ones.
        """
        return size_limit(self.budget, self.room, lambda size: self.time(self.like(size)), largest, full=full)  # type: ignore[misc]

    def counted(self, largest: int, *, full: bool) -> Limits:
        """Return the limits whose room knows the limits on the number of support vectors and on time."""
        if self.room is None:
            return self
        limits = counts(self.budget, lambda size: self.time(self.like(size)), largest, full=full)  # type: ignore[misc]
        return replace(self, room=replace(self.room, count=min(limits.values(), default=None)))

    def reached(self, limit: int, path: Path) -> int:
        """Return the most points of a path: under a limit in bytes, a reducer may find models that take fewer for each."""
        return limit if self.room is None else max(limit, path.sizes[-1])

    def sizes(self, limit: int) -> set[int]:
        """Return the sizes up to a limit that fill the bytes in one of the precisions that are open."""
        sizes = {self.room.points(precision, limit) for precision in self.open} if self.room is not None else set()
        return sizes - {0}

    def without_count(self) -> Limits:
        """Return the other limits, for a model that keeps to the count already."""
        return replace(self, budget=replace(self.budget, count=None))

    def fits(self, model: Expansion) -> bool:
        """Return whether a model is within the limit in bytes, in a precision that it may have."""
        return self.room is None or self.bytes_of(model) <= self.room.bytes

    def bytes_of(self, model: Expansion) -> int:
        """Return the bytes of a model in its precision, or in the one that takes fewest if that is still open."""
        room, model = self.room, self.meant(model)
        precisions = self.open if model.precision == "float32" and self.open else (model.precision,)
        return 0 if room is None else min(room.bytes_of(model.meant_for(name)) for name in precisions)

    def within_bytes(self, path: Path) -> Path:
        """Return the path without models that take more bytes than the budget: those of sparse points may."""
        steps = tuple(step for step in path if self.fits(step.model))
        if not steps and self.room is not None:
            least = min(self.bytes_of(step.model) for step in path)
            raise ValueError(
                f"budget='{self.budget}' is too small: the smallest model takes {least:,} bytes. Give '{least} B' or more"
            )
        return path if len(steps) == len(path) else replace(path, steps=steps)

    def quick_enough(self, path: Path, step: Step) -> Step:
        """Return the step, or the next smaller one that predicts within the allowed time."""
        allowed = self.budget.microseconds
        if allowed is None:
            return step
        smaller = [other for other in path if other.size <= step.size]
        return next((other for other in reversed(smaller) if self.time(other.model) <= allowed), smaller[0])


def rounded_model(model: Expansion, precision: str) -> Expansion:
    """Return a model whose points and coefficients are about as tables of this precision hold them."""
    bits, sparse = BITS[precision], not isinstance(model.points, np.ndarray)
    if bits == 32 or sparse:
        return model
    points, q = model.points * model.factors, model.bias.size
    if bits == 4:
        return replace(model, points=rounded(points, 4) / model.factors, coef=rounded(np.asarray(model.coef), 4))
    cheap = q <= CHEAP_COEFFICIENTS * points.shape[1]
    coef = on_grid(np.asarray(model.coef), 16 if cheap else bits)
    return replace(model, points=on_grid(points, bits) / model.factors, coef=coef)


def on_grid(numbers: Array, bits: int) -> Array:
    """Return numbers rounded to equal steps over their range, as many as integers of so many bits."""
    low, high = float(numbers.min()), float(numbers.max())
    step = (high - low) / (2**bits - 2) or 1.0
    return low + step * np.rint((numbers - low) / step)


def shape_of(problem: Problem, reducer: Any, calibration: str, scaler: ScalerTables) -> Shape:
    """Return what exports take bytes for, with the metric that a reducer may learn."""
    parts: dict[str, Any] = dict.fromkeys(reducer.learned(problem.kernel), True)
    if issparse(problem.X):
        parts["density"] = max(problem.X.nnz / problem.X.shape[0], 1.0)
    return Shape.of(problem.kernel.name, problem.X.shape[1], problem.goal, map=calibration, scaler=scaler, **parts)


def _time(estimator: Any, problem: Problem, around: Around, model: Expansion) -> float:
    """Return the microseconds of a row with a model, the steps of a Pipeline included."""
    fitted = estimator._with_model(model, problem.goal)
    row = _safe_indexing(problem.X if around.raw is None else around.raw, np.arange(1))
    return microseconds(partial(around.deployed(fitted).predict, row))


def _model_like(problem: Problem, size: int) -> Expansion:
    places, outputs = np.arange(size) % problem.X.shape[0], problem.goal.outputs
    points = problem.ids[places][:, None] if isinstance(problem.kernel, Precomputed) else problem.X[places]
    return Expansion(problem.kernel, points, np.ones((size, outputs)), np.zeros(outputs))


def checked_budget(budget: object, precision: object, calibration: object = None) -> Budget:
    """Return the limits that a user gives; raise ValueError for values that are wrong for any data."""
    limits = Budget.of(budget)
    check_precision(precision)
    if limits.bytes is not None and calibration == "isotonic":
        raise ValueError(
            "calibration='isotonic' makes tables whose length is known after the fit only, and the budget has a limit in "
            "bytes; give calibration='sigmoid' or 'temperature', or a number of support vectors"
        )
    return limits


def room_for(budget: Budget, precision: str, shape: Shape) -> Room | None:
    """Return what a limit in bytes allows; None without one."""
    check_tables(shape.kernel, precision, limited=budget.bytes is not None)
    if budget.bytes is None:
        return None
    precisions = [name for name in PRECISIONS if has_tables(shape.kernel, name)] if precision == AUTO else [precision]
    return Room(budget.bytes, tuple(precisions), shape)


def has_tables(kernel: str, precision: str) -> bool:
    """Return whether the C export has tables of this precision for a kernel that it knows."""
    return precision == "float32" or SPECS[kernel].total.integer


def check_tables(kernel: str, precision: str, *, limited: bool) -> None:
    """Raise ValueError where the C export has no such tables, or none at all and there is a limit on its bytes."""
    if kernel not in SPECS:
        if limited:
            raise ValueError(f"bytes are those of exported C, which has no {kernel!r} kernel; it has {', '.join(SPECS)}")
    elif precision != AUTO and not has_tables(kernel, precision):
        raise ValueError(f"the {kernel} kernel has no {precision} tables; give precision='float32'")


def size_limit(
    budget: Budget, room: Room | None, microseconds: Callable[[int], float], largest: int, *, full: bool
) -> int | None:
    """Return the support vectors that all limits allow; None, with a warning, where the full model is within them.

    `most` is the size of the full model (with `full`), or the number of rows; `microseconds` is the time of a prediction
    by size.
    """
    if budget.count is not None and budget.count > largest and not full:
        warn_user(
            f"budget={budget.count} is above the number of rows, {largest}; the model has {largest} support vectors at most"
        )
    limits = counts(budget, microseconds, largest, full=full)
    if room is not None:
        limits[f"budget='{Budget(bytes=room.bytes)}'"] = _within_bytes(room, largest)
    if not limits:
        return None
    words, limit = min(limits.items(), key=lambda item: item[1])
    if limit < largest or not full:
        return limit
    if room is not None and max(room.points(name, largest) for name in room.precisions) < largest:
        return largest - 1  # only models with a projection may be as large
    enough = "is not below" if budget.count is not None else "is enough for"
    warn_user(f"{words} {enough} the {largest} support vectors of the full model, which is returned")
    return None


def counts(budget: Budget, microseconds: Callable[[int], float], largest: int, *, full: bool) -> dict[str, int]:
    """Return the support vectors that the limits on their number and on time allow, each by the limit in words."""
    limits: dict[str, int] = {}
    if budget.count is not None:
        limits[f"budget={budget.count}"] = budget.count if full else min(budget.count, largest)
    if budget.fraction is not None:
        limits[f"budget={budget.fraction}"] = max(1, round(budget.fraction * largest))
    if budget.microseconds is not None:
        words = f"budget='{Budget(microseconds=budget.microseconds)}'"
        limits[words] = _within_time(budget.microseconds, microseconds, largest)
    return limits


def _within_bytes(room: Room, most: int) -> int:
    """Return the largest size whose C is within the budget, in the layout that leaves room for most points."""
    largest = room.largest(most)
    if largest:
        return largest
    shape, least = room.shape, {precision: room.shape.bytes(1, precision) for precision in room.precisions}
    precision, nbytes = min(least.items(), key=lambda item: item[1])
    code = shape.code(precision)
    smaller = "" if len(room.precisions) > 1 or precision == "int8" else ", or fewer bits by precision"
    raise ValueError(
        f"budget='{Budget(bytes=room.bytes)}' is too small: with one support vector the C takes {nbytes:,} bytes, "
        f"{code:,} of code and {nbytes - code:,} of {precision} tables ({shape.features} features, {shape.outputs} "
        f"outputs). Give '{nbytes} B' or more{smaller}"
    )


def _within_time(allowed: float, microseconds: Callable[[int], float], largest: int) -> int:
    """Return the largest size that predicts a row within the time, as measured on this machine."""
    least = microseconds(1)
    if least > allowed:
        raise ValueError(
            f"budget='{Budget(microseconds=allowed)}' is too little: with one support vector predict takes {least:.3g} us "
            f"on this machine. Give '{1.2 * least:.3g} us' or more, or shorten the steps before the model"
        )
    return largest_where(lambda size: size == 1 or microseconds(size) <= allowed, largest)
