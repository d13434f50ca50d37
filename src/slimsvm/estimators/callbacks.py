"""Reports of the progress of `fit`: to the callbacks of scikit-learn (from 1.9 on), and to the terminal with `verbose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from ..run import History, Printed, silent

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks; estimators then have no `set_callbacks`

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replaces the class of later versions."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


#: tasks in a phase, each of which is reported to callbacks; more: smoother progress bars
TICKS = 100

__all__ = ["CallbackSupportMixin", "Report", "watched"]

Report = Callable[[str, float], None]


@contextmanager
def watched(estimator: Any, X: Any, y: Any, sample_weight: Any, history: History, given: Report | None) -> Iterator[Report]:
    """Yield the report function of `fit`: the given one, or one for `verbose` and for callbacks.

    Callbacks get the latest measures in the `metadata` of each part.
    """
    if given is not None:
        yield given
        return
    printed = Printed(type(estimator).__name__, history) if estimator.verbose else silent
    if not getattr(estimator, "_skl_callbacks", None):
        yield printed
        return
    data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
    try:
        root = estimator._init_callback_context(max_subtasks=None)
        root.call_on_fit_task_begin(estimator=estimator, **data)
        phases = Phases(estimator, root, history)

        def report(phase: str, done: float) -> None:
            printed(phase, done)
            phases(phase, done)

        yield report
        phases.end()
        # the estimator is fitted, and callbacks need no attributes
        root.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={}, **data)
    finally:
        _tear_down(estimator)


@with_callbacks
def _tear_down(estimator: Any) -> None:
    """Do nothing: `with_callbacks` tears the estimator's callbacks down."""


class Phases:
    """Reports of progress as tasks of callbacks: one for each phase, with TICKS tasks in it."""

    def __init__(self, estimator: Any, root: Any, history: History) -> None:
        self.estimator, self.root, self.history = estimator, root, history
        self.phase, self.ticks = "", 0
        self.context: Any = None
        self.lock = Lock()  # outputs are trained by several threads

    def __call__(self, phase: str, done: float) -> None:
        """Begin a phase if it is a new one, and report the ticks up to the share done."""
        with self.lock:
            if phase != self.phase:
                self._end()
                self.phase, self.ticks = phase, 0
                self.context = self.root.subcontext(task_name=phase, max_subtasks=TICKS)
                self.context.call_on_fit_task_begin(estimator=self.estimator)
            while self.ticks < int(TICKS * done):
                tick = self.context.subcontext(task_name="part")
                tick.call_on_fit_task_begin(estimator=self.estimator)
                tick.call_on_fit_task_end(estimator=self.estimator, metadata=dict(self.history.latest))
                self.ticks += 1

    def end(self) -> None:
        """End the last phase."""
        with self.lock:
            self._end()

    def _end(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)
        self.context = None
