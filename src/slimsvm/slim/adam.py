"""Adam (Kingma & Ba 2015) with a cosine rate: descent by noisy gradients, such as those of mini-batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any

import numpy as np

from .._core import core
from ..kernels import Array
from ..limits import Deadline
from ..states import floats

#: decay rates of the running means of the gradient and of its square, and a number that prevents a division by 0
MEAN, SQUARE, TINY = 0.9, 0.999, 1e-12


@dataclass(frozen=True)
class AdamSettings:
    """`steps` with a rate that falls from `rate` to 0 as half a cosine.

    With `seconds`, the rate follows the clock if that is ahead of the steps, so that a run cut short ends at rate 0.
    """

    steps: int
    rate: float
    seconds: float | None = None


@dataclass
class Moments:
    """The state of a descent: the vector, the running means of the gradient and of its square, and the steps taken.

    The vectors may be on a device. No step then waits for their numbers.
    """

    x: Annotated[Any, floats("v")]
    mean: Annotated[Any, floats("v")]
    square: Annotated[Any, floats("v")]
    steps: int = 0

    @classmethod
    def at(cls, x: Any) -> Moments:
        """Return the state at the start, from a vector."""
        return cls(x + 0.0, 0.0 * x, 0.0 * x)

    def moved(self, move: Callable[[Any], Any]) -> Moments:
        """Return the state with its vectors moved to another device."""
        return Moments(move(self.x), move(self.mean), move(self.square), self.steps)


def take_steps(
    step: Callable[[float], None],
    now: Moments,
    settings: AdamSettings,
    deadline: Deadline,
    watch: Callable[[Moments], None] | None = None,
) -> Any:
    """Return the last vector of a descent; `step` takes one step of a given rate, which changes the state in place.

    `watch` is called with the state before each step.
    """
    begun = perf_counter()
    for number in range(now.steps + 1, settings.steps + 1):
        share = number / settings.steps
        if settings.seconds is not None:
            share = max(share, (perf_counter() - begun) / settings.seconds)
        if share > 1 or deadline.over:
            break
        if watch is not None:
            watch(now)
        rate = settings.rate * 0.5 * (1 + np.cos(np.pi * share)) * np.sqrt(1 - SQUARE**number) / (1 - MEAN**number)
        step(float(rate))
        now.steps = number
    return now.x


def plain_steps(
    gradient: Callable[[Any], Any], now: Moments, within: Callable[[Any], None] | None = None
) -> Callable[[float], None]:
    """Return a function that takes a step along the gradient at the present vector; `within` clips a vector in place."""
    move = _move_on_host if isinstance(now.x, np.ndarray) else _move_on_device

    def step(rate: float) -> None:
        move(now.x, now.mean, now.square, gradient(now.x), rate)
        if within is not None:
            within(now.x)

    return step


def recorded_steps(
    gradient: Callable[[Any], Any],
    now: Moments,
    within: Callable[[Any], None],
    recorded: Callable[[Callable[[], None], list[Any]], Callable[[], None] | None],
) -> Callable[[float], None] | None:
    """Return `plain_steps` in a recorded form, for vectors on a device; None if the device records nothing.

    The gradient must do the same operations on the same memory in every step.
    """
    rate = 0.0 * now.x[:1]
    step: Callable[[Any], None] = plain_steps(gradient, now, within)
    again = recorded(lambda: step(rate), [now.x, now.mean, now.square])
    if again is None:
        return None

    def step_again(value: float) -> None:
        rate[...] = value
        again()

    return step_again


def _move_on_host(x: Array, mean: Array, square: Array, slope: Array, rate: float) -> None:
    """Take a step in place, in one compiled pass."""
    core.adam_step(rate, np.array([MEAN, SQUARE, TINY]), slope, x, mean, square)


def _move_on_device(x: Any, mean: Any, square: Any, slope: Any, rate: Any) -> None:
    """Take the same step with arrays of any library; the rate may be one too."""
    mean *= MEAN
    mean += (1 - MEAN) * slope
    square *= SQUARE
    square += (1 - SQUARE) * (slope * slope)
    x -= rate * (mean / (square**0.5 + TINY))
