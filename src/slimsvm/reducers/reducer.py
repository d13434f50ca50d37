"""What all reducers share: a path of judged models that ends in good order on a time limit or Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..deadline import Deadline, check_time_limit
from ..kernels import Kernel, Precomputed
from ..model import Expansion, Status, Task
from ..path import Path, Step, merge


@dataclass(frozen=True, kw_only=True)
class Reducer:
    """A way to small models. A subclass writes `models`, which yields them one by one; `path` judges and collects them.

    `time_limit` is in seconds; the path then ends with the models found so far, as it does on Ctrl-C.
    """

    time_limit: float | None = None
    #: whether it follows a full model; the others work from the labels alone and take trainer=None
    needs_model: ClassVar[bool] = True
    #: whether all its points are training rows or points of the full model: then any kernel will do, precomputed too
    selects: ClassVar[bool] = True
    #: whether it follows gradients of the kernel with respect to points
    needs_gradients: ClassVar[bool] = False
    #: how many sizes it can afford to each doubling on the way to a budget
    sizes_per_doubling: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Whether the method is defined for that kernel."""
        return (cls.selects or not isinstance(kernel, Precomputed)) and (not cls.needs_gradients or kernel.differentiable)

    def models(
        self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline
    ) -> Iterator[tuple[Expansion, str]]:
        """Models and, in words, the settings that made them, in any order; of a size made twice the better one counts.

        `sizes` grow and have no size twice. Long work asks `deadline.over` now and then, and ends early if it is.
        """
        raise NotImplementedError

    def path(self, task: Task, sizes: Iterable[int], model: Expansion | None = None) -> Path:
        """Judged models of the given sizes, as far as the method gets."""
        if model is None and self.needs_model:
            raise ValueError(f"{type(self).__name__} shrinks a full model, and there is none")
        sizes = sorted(set(sizes))
        found: list[Step] = []
        deadline = Deadline(self.time_limit)
        try:
            for small, settings in self.models(task, sizes, model, deadline):
                found.append(Step(small, task.error(small), settings))
                task.report("shrink", min(small.size / sizes[-1], 1.0))
            status = _ending(found, sizes, deadline)
        except KeyboardInterrupt:
            if not found:
                raise
            status = Status.INTERRUPTED
        return merge([Path(tuple(found), status)], status, task.judges)


def _ending(found: Sequence[Step], sizes: Sequence[int], deadline: Deadline) -> Status:
    if max((step.size for step in found), default=0) >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if deadline.over else Status.EXHAUSTED
