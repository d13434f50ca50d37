"""The base class of all trainers: what a method can do, as class attributes that the estimators ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..model import Fit, Task


@dataclass(frozen=True)
class Trainer:
    """A method that makes a kernel expansion from a task: a frozen dataclass of settings with one method, `fit`.

    Two frames implement `fit`: `BinaryTrainer` solves one two-class problem for each output, and `OnlineTrainer` learns row
    by row. The estimators set fields named `C`, `tol` and `max_iter`, and `budget` if it is None.
    """

    #: whether rows may have weights of their own
    weighted: ClassVar[bool] = True
    #: whether targets may be real values (regression, novelty), not only classes
    real_valued: ClassVar[bool] = False
    #: whether the method makes the outputs share their points; one-vs-rest is then better, since it has fewer outputs
    shared: ClassVar[bool] = False
    #: whether the targets of pairs of classes may be `PairTargets`
    takes_pairs: ClassVar[bool] = False
    #: whether a run can start from an earlier one (warm_start)
    starts_warm: ClassVar[bool] = False
    #: whether a run offers its state to a checkpoint and can continue from it to the same result (checkpoint)
    resumes: ClassVar[bool] = False

    def fit(self, task: Task, *start: Any, **more: Any) -> Fit:
        """Train on the rows of a task; `start` is what is kept of an earlier run (`starts_warm`)."""
        raise NotImplementedError
