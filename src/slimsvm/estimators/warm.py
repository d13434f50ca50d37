"""warm_start: training that starts from the last fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.sparse import issparse

from ..kernels import Array, Precomputed
from ..model import Fit
from ..selection.search import Selection
from ..trainers import TRAINERS
from ..trainers.base import Trainer
from ..trainers.frames.online import OnlineTrainer
from .checkpoints import fingerprint
from .streams import Stream

#: settings of a trainer that say how long it runs, and not which model it looks for
LENGTH = ("tol", "max_iter", "time_limit")


@dataclass(frozen=True)
class Start:
    """The coefficients of a fit; where a method counts the rows drawn for each output, that count and the problem."""

    dual: Any  # (n, q)
    draws: Array | None  # (q,)
    problem: str = ""

    @classmethod
    def of(cls, fit: Fit, trainer: Any, selection: Selection) -> Start:
        """Return what the next fit may start from."""
        if fit.draws is None or not fit.draws.any():
            return cls(fit.dual, None)
        return cls(fit.dual, fit.draws, problem_of(trainer, selection))

    def arguments(self, trainer: Any, selection: Selection) -> tuple[Any, ...]:
        """Return the coefficients, and the rows drawn if they were drawn for the same problem.

        For another problem the coefficients are just a guess. As the mean of many draws they would hardly move.
        """
        if self.draws is None or self.problem != problem_of(trainer, selection):
            return (self.dual,)
        return self.dual, self.draws


def problem_of(trainer: Any, selection: Selection) -> str:
    """Return text that is the same if rows, labels, weights, kernel and trainer are, however long the trainer runs."""
    settings = sorted((name, repr(value)) for name, value in vars(trainer).items() if name not in LENGTH)
    rows = fingerprint(selection.X, selection.labels, selection.weights)
    return f"{type(trainer).__name__} {settings} {selection.kernel!r} {rows}"


def check_warm_start(estimator: Any, trainer: Trainer | None) -> None:
    """Raise ValueError if `warm_start` is set and training cannot start from an earlier fit."""
    if not estimator.warm_start or (trainer is not None and trainer.starts_warm):
        return
    able = sorted(name for name, kind in TRAINERS.items() if kind.starts_warm)
    cannot = "trainer=None trains no full model" if trainer is None else f"{type(trainer).__name__} cannot"
    raise ValueError(
        f"warm_start=True starts training from the last fit, but {cannot}; the trainers that can are {able}. Give one of "
        "them, or warm_start=False"
    )


def warm_start(estimator: Any, trainer: Any, selection: Selection) -> tuple[Any, ...]:
    """Return more arguments for the trainer's `fit`, which let it start from the last one; none for the first fit."""
    if not estimator.warm_start:
        return ()
    if isinstance(trainer, OnlineTrainer):
        stream = getattr(estimator, "stream_", None)
        return () if stream is None else (_state(stream, estimator, selection),)
    start: Start | None = getattr(estimator, "_start", None)
    if start is None:
        return ()
    shape = selection.labels.size, selection.goal.outputs
    if tuple(start.dual.shape) != shape:
        raise ValueError(
            f"warm_start=True starts from the coefficients of the last fit, {start.dual.shape[0]} rows and "
            f"{start.dual.shape[1]} outputs, but this one has {shape[0]} rows and {shape[1]} outputs; give the same rows, "
            "or fit clone(estimator)"
        )
    return start.arguments(trainer, selection)


def keep_start(estimator: Any, trainer: Any, selection: Selection, fit: Fit) -> None:
    """Keep the coefficients of all rows if the next fit may start from them; a stream is kept anyway."""
    estimator.__dict__.pop("_start", None)
    if estimator.warm_start and fit.dual is not None:
        estimator._start = Start.of(fit, trainer, selection)


def _state(stream: Stream, estimator: Any, selection: Selection) -> Any:
    """Return the state of an online learner; raise ValueError if it is of other settings, kernels or shapes."""
    stream.check_settings(estimator)
    points, X = stream.state.points, selection.X
    width = 1 if isinstance(stream.kernel, Precomputed) else X.shape[1]
    same = points.shape[1] == width and issparse(points) == issparse(X)
    if stream.kernel != selection.kernel or stream.state.coef.shape[1] != selection.goal.outputs or not same:
        raise ValueError(
            "warm_start=True continues from the points of the last fit, but kernel width, features, sparseness or number "
            "of classes differ; give rows of the same kind and gamma as a number, or fit clone(estimator)"
        )
    return stream.state
