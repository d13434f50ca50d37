"""What all reducers share: a path of judged models that ends in good order on a time limit or Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ..kernels import Kernel, Precomputed
from ..limits import Deadline, check_time_limit
from ..model import Expansion, Status, Task
from ..path import Path, Step, merge

Item = TypeVar("Item")
Models = Iterator[tuple[Expansion, str]]
#: models, and at the end how the method ended where it knows better than the sizes tell
EndedModels = Generator[tuple[Expansion, str], None, Status]


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
    #: whether the model that is chosen in the end is to be `finished` with the rows held out until then
    finishes: ClassVar[bool] = False
    #: whether `models` tells task.report itself how far it is, since sizes do not
    reports: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Whether the method is defined for that kernel."""
        return (cls.selects or not isinstance(kernel, Precomputed)) and (not cls.needs_gradients or kernel.differentiable)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models | EndedModels:
        """Models and, in words, the settings that made them, in any order; of a size made twice the better one counts.

        `sizes` grow and have no size twice. Long work asks `deadline.over` now and then, and ends early if it is. A
        generator may return a Status, which says how it ended; by default that is seen from the sizes.
        """
        raise NotImplementedError

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """The step chosen from the path, gone on with on all rows."""
        raise NotImplementedError

    def collected(self, steps: Sequence[Step], status: Status, n_validation: int) -> Path:
        """The path of all models found: of each size the one with the lowest held-out error."""
        return merge([Path(tuple(steps), status)], status, n_validation)

    def path(self, task: Task, sizes: Iterable[int], model: Expansion | None = None) -> Path:
        """Judged models of the given sizes, as far as the method gets."""
        if model is None and self.needs_model:
            raise ValueError(f"{type(self).__name__} shrinks a full model, and there is none")
        sizes = sorted(set(sizes))
        found: list[Step] = []
        deadline = Deadline(self.time_limit)

        def judge(made: tuple[Expansion, str]) -> None:
            small, settings = made
            found.append(Step(small, task.error(small), settings))
            if not self.reports:
                task.report("shrink", min(small.size / sizes[-1], 1.0))

        try:
            status = _last_word(self.models(task, sizes, model, deadline), judge) or _ending(found, sizes, deadline)
        except KeyboardInterrupt:
            if not found:
                raise
            status = Status.INTERRUPTED
        if status is Status.TIME_LIMIT and not found:
            raise TimeoutError(f"{type(self).__name__} found no model in {self.time_limit:g} seconds; raise time_limit")
        return self.collected(found, status, task.n_validation)


def _last_word(items: Iterator[Item], each: Callable[[Item], None]) -> Status | None:
    """Hand over each item; what the generator returns at its end."""
    while True:
        try:
            item = next(items)
        except StopIteration as end:
            return end.value
        each(item)


def _ending(found: Sequence[Step], sizes: Sequence[int], deadline: Deadline) -> Status:
    if max((step.size for step in found), default=0) >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if deadline.over else Status.EXHAUSTED
