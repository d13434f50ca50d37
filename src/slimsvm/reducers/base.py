"""The base class of all reducers: from a task and a full model to a path of small models.

A reducer is a frozen dataclass of settings with one method to write, `models`, and one line in the table `REDUCERS`:

    @dataclass(frozen=True)
    class FirstRows(Reducer):
        def models(self, task, sizes, model):
            for size in sizes:
                yield a model of that size, "its settings, in words"
                if task.run.over:
                    return

`Reducer.path` calls it, computes the validation error of each model, keeps the best one of each size, and returns what was
found so far at a time limit or after Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from ..kernels import Kernel, Precomputed
from ..limits import check_time_limit
from ..model import Expansion, Status, Task
from ..rows.threads import one_blas_thread
from ..run import Run
from ..selection.path import Made, Path, Step, merge

Item = TypeVar("Item")
#: small models, each with the settings that made it, as fields or in words
Models = Iterator[tuple[Expansion, Made | str]]
#: the same from a generator that returns a Status at its end
EndedModels = Generator[tuple[Expansion, Made | str], None, Status]


@dataclass(frozen=True, kw_only=True)
class Reducer:
    """A method that makes small models. A subclass writes `models`, and sets the class attributes that differ for it.

    `time_limit` is in seconds. When it is over, the path ends with the models found so far.
    """

    time_limit: float | None = None
    #: whether the method needs a full model; others can work from the labels only (trainer=None)
    needs_model: ClassVar[bool] = True
    #: whether targets may be real values (regression, novelty), not only classes
    real_valued: ClassVar[bool] = False
    #: whether all points are training rows or points of the full model; such a method takes a precomputed kernel
    selects: ClassVar[bool] = True
    #: whether the method needs the gradient of the kernel with respect to points
    needs_gradients: ClassVar[bool] = False
    #: the number of sizes for each doubling; fewer for methods that are slow for each size
    sizes_per_doubling: ClassVar[int] = 4
    #: whether the chosen model is refined on all rows, validation rows included, by `finished`
    finishes: ClassVar[bool] = False
    #: whether `between` can make models of further sizes
    refines: ClassVar[bool] = False
    #: whether the full model may have a learned metric; methods that evaluate the plain kernel would ignore it
    takes_metric: ClassVar[bool] = False
    #: whether targets may be probabilities of classes: numbers between -1 and 1
    takes_probabilities: ClassVar[bool] = False
    #: whether `models` calls task.run.report itself; otherwise the size of each model is its progress
    reports: ClassVar[bool] = False
    #: whether a run offers its state to a checkpoint and can continue from it to the same result (checkpoint)
    resumes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)

    @property
    def requires_model(self) -> bool:
        """Whether the method with these settings works only from a full model."""
        return self.needs_model

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether the method is defined for a kernel."""
        return (cls.selects or not isinstance(kernel, Precomputed)) and (not cls.needs_gradients or kernel.differentiable)

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise ValueError if these settings exclude a kernel that the method takes."""

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models | EndedModels:
        """Yield small models of `model`, each with the settings that made it, as fields or in words.

        `sizes` is sorted and without duplicates. The models may come in any order. A model may be smaller than a wanted
        size, but none may be larger than the largest. Of several models of one size the path keeps the best. Long
        computations check `task.run.over`, and yield at least one model before they end. A generator may return a Status;
        otherwise the status follows from the sizes that were found and from the deadline.
        """
        raise NotImplementedError

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """Return the chosen step's model, refined on all rows; called where `finishes` is true."""
        raise NotImplementedError

    def between(self, task: Task, step: Step, size: int, model: Expansion | None) -> Expansion:
        """Return a model of the given size that is grown from a smaller step; called where `refines` is true."""
        raise NotImplementedError

    def learned(self, kernel: Kernel) -> frozenset[str]:
        """Return the parts of a metric that models may learn, "factors" and "widths"; they count as bytes."""
        return frozenset()

    def ranks(self, kernel: Kernel, features: int) -> tuple[int, ...]:
        """Return the ranks of projections that models may learn under a limit in bytes; their points are short."""
        return ()

    def used_model(self, step: Step) -> bool:
        """Return whether the full model was used for a step of the path; otherwise only the labels were."""
        return self.needs_model

    def collected(self, steps: Sequence[Step], status: Status, n_validation: int) -> Path:
        """Return the path of all models found, with the lowest validation error of each size."""
        return merge([Path(tuple(steps), status)], status, n_validation)

    def path(self, task: Task, sizes: Iterable[int], model: Expansion | None = None) -> Path:
        """Return models of the given sizes with their validation errors, as far as the method gets."""
        if model is None and self.requires_model:
            raise ValueError(f"{type(self).__name__} shrinks a full model, but there is none; give a trainer")
        if model is not None and model.metric is not None and not self.takes_metric:
            raise ValueError(
                f"{type(self).__name__} shrinks models with the same kernel at every point, but this one has a learned "
                "metric; shrink the model that it was made from, or fit a smaller one to the labels"
            )
        sizes = sorted(set(sizes))
        steps: list[Step] = []
        run = task.run.limited(self.time_limit).during("shrink")
        task = replace(task, run=run)

        def collect(item: tuple[Expansion, Made | str]) -> None:
            small, settings = item
            steps.append(Step.judged(small, Made.of(settings), task.judge(small)))
            run.record(size=small.size, error=steps[-1].error)
            if not self.reports:
                run.report(min(small.size / sizes[-1], 1.0))

        try:
            with one_blas_thread():  # products are small or share threads by rows, and woken threads of BLAS wait actively
                ending = _exhaust(self.models(task, sizes, model), collect)
            status = ending or _status(steps, sizes, run)
        except KeyboardInterrupt:
            if not steps:
                raise
            status = Status.INTERRUPTED
        if status is Status.TIME_LIMIT and not steps:
            seconds = run.deadline.end - run.deadline.begun
            raise TimeoutError(f"{type(self).__name__} found no model in {seconds:g} seconds; raise time_limit")
        return self.collected(steps, status, task.n_validation)


def _exhaust(items: Iterator[Item], use: Callable[[Item], None]) -> Status | None:
    """Call `each` with every item and return what the generator returns at its end; None for a plain iterator."""
    while True:
        try:
            item = next(items)
        except StopIteration as end:
            return end.value
        use(item)


def _status(steps: Sequence[Step], sizes: Sequence[int], run: Run) -> Status:
    if max((step.size for step in steps), default=0) >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if run.over else Status.EXHAUSTED
