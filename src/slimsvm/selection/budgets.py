"""From budgets to sizes: the most support vectors that all limits on a model allow."""

from __future__ import annotations

from collections.abc import Callable

from ..budget import AUTO, PRECISIONS, Budget, check_precision
from ..c_bytes import Room, Shape, has_code, largest_where
from ..kernels.spec import SPECS
from ..warning import warn_user


def checked_budget(budget: object, precision: object, calibration: object = None) -> Budget:
    """Return the limits that a user gives; raise ValueError for values that are wrong for any data."""
    found = Budget.of(budget)
    check_precision(precision)
    if found.bytes is not None and calibration == "isotonic":
        raise ValueError(
            "calibration='isotonic' makes tables whose length is known after the fit only, and the budget has a limit in "
            "bytes; give calibration='sigmoid' or 'temperature', or a number of support vectors"
        )
    return found


def room_for(budget: Budget, precision: str, shape: Shape) -> Room | None:
    """Return what a limit in bytes allows; None without one."""
    check_tables(shape.kernel, precision, limited=budget.bytes is not None)
    if budget.bytes is None:
        return None
    precisions = [name for name in PRECISIONS if has_tables(shape.kernel, name)] if precision == AUTO else [precision]
    return Room(budget.bytes, tuple(precisions), shape)


def has_tables(kernel: str, precision: str) -> bool:
    """Return whether the C export has tables of this precision for a kernel that it knows."""
    return has_code(precision) and (precision == "float32" or SPECS[kernel].total.integer)


def check_tables(kernel: str, precision: str, *, limited: bool) -> None:
    """Raise ValueError where the C export has no such tables, or none at all and there is a limit on its bytes."""
    if kernel not in SPECS:
        if limited:
            raise ValueError(f"bytes are those of exported C, which has no {kernel!r} kernel; it has {', '.join(SPECS)}")
    elif precision != AUTO and not has_tables(kernel, precision):
        raise ValueError(f"the {kernel} kernel has no {precision} tables; give precision='float32'")


def size_limit(
    budget: Budget, room: Room | None, microseconds: Callable[[int], float], most: int, *, full: bool
) -> int | None:
    """Return the support vectors that all limits allow; None, with a warning, where the full model is within them.

    `most` is the size of the full model (with `full`), or the number of rows; `microseconds` is the time of a prediction
    by size.
    """
    limits: dict[str, int] = {}
    if budget.count is not None:
        limits[f"budget={budget.count}"] = budget.count
    if budget.fraction is not None:
        limits[f"budget={budget.fraction}"] = max(1, round(budget.fraction * most))
    if room is not None:
        limits[f"budget='{Budget(bytes=room.bytes)}'"] = _within_bytes(room, most)
    if budget.microseconds is not None:
        limits[f"budget='{Budget(microseconds=budget.microseconds)}'"] = _within_time(
            budget.microseconds, microseconds, most
        )
    if not limits:
        return None
    words, limit = min(limits.items(), key=lambda item: item[1])
    if limit < most or not full:
        return limit
    enough = "is not below" if budget.count is not None else "is enough for"
    warn_user(f"{words} {enough} the {most} support vectors of the full model, which is returned")
    return None


def _within_bytes(room: Room, most: int) -> int:
    """Return the largest size whose C is within the budget, in the precision that leaves room for most points."""
    sizes = [room.points(precision, most) for precision in room.precisions]
    if max(sizes):
        return max(sizes)
    shape, least = room.shape, {precision: room.shape.bytes(1, precision) for precision in room.precisions}
    precision, nbytes = min(least.items(), key=lambda item: item[1])
    code = shape.code(precision)
    smaller = "" if len(room.precisions) > 1 or precision == "int8" else ", or fewer bits by precision"
    raise ValueError(
        f"budget='{Budget(bytes=room.bytes)}' is too small: with one support vector the C takes {nbytes:,} bytes, "
        f"{code:,} of code and {nbytes - code:,} of {precision} tables ({shape.features} features, {shape.outputs} "
        f"outputs). Give '{nbytes} B' or more{smaller}"
    )


def _within_time(allowed: float, microseconds: Callable[[int], float], most: int) -> int:
    """Return the largest size that predicts a row within the time, as measured on this machine."""
    least = microseconds(1)
    if least > allowed:
        raise ValueError(
            f"budget='{Budget(microseconds=allowed)}' is too little: with one support vector predict takes {least:.3g} us "
            f"on this machine. Give '{1.2 * least:.3g} us' or more, or shorten the steps before the model"
        )
    return largest_where(lambda size: size == 1 or microseconds(size) <= allowed, most)
