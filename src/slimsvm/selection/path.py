"""The path: models of growing size with their validation errors, and the choice along it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, overload

import numpy as np

from ..c_bytes import Shape
from ..clock import microseconds
from ..goals.margin_targets import MarginTargets
from ..kernels import Array, Matrix
from ..kernels.spec import SPECS
from ..model import CLEARLY, Expansion, Judgement, Status
from ..text import html_table
from .allowance import Allowance, largest_as_good


@dataclass(frozen=True)
class Made:
    """The settings that made a model: in `words`, or as fields where a method goes on from what it made."""

    words: str = ""
    target: str = ""  # "label" or "slant"
    decay: float = 1.0  # as a multiple of the one that follows from C and the size
    metric: str = "fixed"
    loss: str = MarginTargets.name
    precision: str = ""  # of the tables that it was trained for; "" where it was not trained for any
    refit: bool = False  # its coefficients are the best ones for its points

    @classmethod
    def of(cls, settings: Made | str) -> Made:
        """Return the settings of a method, which may give words only."""
        return cls(settings) if isinstance(settings, str) else settings

    @property
    def joint(self) -> bool:
        """Whether points, coefficients and a metric moved together; otherwise the coefficients followed the points."""
        return self.metric != "fixed" or self.loss != MarginTargets.name

    def __str__(self) -> str:
        said = {
            self.words: bool(self.words),
            f"target={self.target}": bool(self.target),
            f"decay x {self.decay:g}": self.decay != 1,
            f"metric={self.metric}": self.joint,
            f"loss={self.loss}": self.loss != MarginTargets.name,
            f"precision={self.precision}": self.precision not in ("", "float32"),
            "refit": self.refit,
        }
        return ", ".join(part for part, true in said.items() if true)


#: steps that a printed path shows at its beginning and at its end
SHOWN = 6
#: what made a model, if nobody says it
UNKNOWN = Made()


@dataclass(frozen=True, repr=False)
class Step:
    """One model on the path, its validation error and what made it."""

    model: Expansion
    error: float
    made: Made = UNKNOWN
    standard_error: float = 0.0  # of the error
    deviations: Array | None = field(default=None, compare=False)  # see Judgement
    class_errors: Array | None = field(default=None, compare=False)  # the share of misclassified rows of each class

    @classmethod
    def judged(cls, model: Expansion, made: Made, judgement: Judgement) -> Step:
        """Return the step of a model with its judgement."""
        return cls(model, judgement.error, made, judgement.standard_error, judgement.deviations, judgement.class_errors)

    @property
    def judgement(self) -> Judgement:
        """The validation error with its standard error and class errors."""
        return Judgement(self.error, self.standard_error, self.deviations, self.class_errors)

    @property
    def settings(self) -> str:
        """What made the model, in words."""
        return str(self.made)

    @property
    def size(self) -> int:
        """The number of support vectors."""
        return self.model.size

    def worse_than(self, other: Step, standard_errors: float = CLEARLY) -> bool:
        """Return whether the error is higher than another's by more than `standard_errors` of the difference."""
        return self.judgement.worse_than(other.judgement, standard_errors)

    def __repr__(self) -> str:
        return f"Step(size={self.size}, error={self.error:.4g}, settings={self.settings!r})"


@dataclass(frozen=True, repr=False)
class Path:
    """Models by size, the smallest first, at most one of each size.

    Parameters
    ----------
    steps : tuple of Step
        Each has a `model`, its `size`, its validation `error` with its `standard_error`, and the `settings` that made it.
        `path[i]` is one of them.
    status : Status
        How the reducer ended.
    n_validation : int, default=0
        The number of validation rows in all folds.
    kept : int, default=None
        The place of the chosen step.
    allowance : Allowance, default=None
        Under a tolerance: the full model's validation error, the error allowed, and how the full model was judged.
    shape : Shape, default=None
        What exports of the models take bytes for.
    error_is : str, default=""
        What a validation error is, such as "1 - R^2".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SlimSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> path = SlimSVC(4, reducer="slant-aggressive", random_state=0).fit(X, y).path_
    >>> path.sizes
    [1, 2, 3, 4]
    >>> path[-1].size
    4
    >>> sorted(path.to_dict())
    ['bytes', 'error', 'kept', 'settings', 'size', 'standard_error']
    """

    steps: tuple[Step, ...]
    status: Status
    n_validation: int = 0
    kept: int | None = None
    allowance: Allowance | None = None
    shape: Shape | None = None
    error_is: str = ""

    @property
    def models(self) -> list[Expansion]:
        """The models, the smallest first."""
        return [step.model for step in self.steps]

    @property
    def sizes(self) -> list[int]:
        """The number of support vectors of each model."""
        return [step.size for step in self.steps]

    @property
    def errors(self) -> list[float]:
        """The validation error of each model."""
        return [step.error for step in self.steps]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, place: int | slice) -> Step | tuple[Step, ...]:
        """Return the step at a place, or a tuple of steps for a slice."""
        return self.steps[place]

    def __repr__(self) -> str:
        """Return a table of sizes, errors and settings; the middle of a long path is left out."""
        lines = [f"{step.size:>6}  {step.error:<8.4g}  {step.settings}".rstrip() for step in self.steps]
        if self.kept is not None:
            lines[self.kept] += "  <- kept"
        if len(lines) > 2 * SHOWN:
            lines[SHOWN:-SHOWN] = [f"   ...  ({len(lines) - 2 * SHOWN} more)"]
        title = f"Path of {len(self)} models on {self.n_validation} validation rows; {self.status.value}"
        told = [f"error: {self.error_is}"] * bool(self.error_is) + [str(self.allowance)] * (self.allowance is not None)
        return "\n".join([title, *told, "  size  error     settings", *lines])

    def _repr_html_(self) -> str:
        return html_table(self.to_dict())

    def to_dict(self, precision: str | None = None, X: Matrix | None = None) -> dict[str, list[Any]]:
        """Return the path as columns, one entry for each step; `pandas.DataFrame` takes them as they are.

        Parameters
        ----------
        precision : {"float32", "int16", "int8", "int4"}, default=None
            The precision of the C models whose bytes are given; by default that of each model. A scaler in front of a
            model that was given to `compress` in a Pipeline is counted.
        X : array-like of shape (n_samples, n_features), default=None
            Rows on which each model is timed: the column "microseconds" is the time for all rows in one call.

        Returns
        -------
        dict of str to list
            The columns size, bytes, error, standard_error, settings and kept, and microseconds where X is given.
        """
        columns: dict[str, list[Any]] = {
            "size": self.sizes,
            "bytes": [self._bytes_of(model, precision) for model in self.models],
            "error": self.errors,
            "standard_error": [step.standard_error for step in self.steps],
            "settings": [step.settings for step in self.steps],
            "kept": [place == self.kept for place in range(len(self))],
        }
        if X is not None:
            columns["microseconds"] = [microseconds(partial(model, X)) for model in self.models]
        return columns

    def losses(self, X: Matrix, y: Array) -> dict[str, list[Any]]:
        """Return what the theory of sparse SVMs speaks of, for each model (Cotter, Shalev-Shwartz & Srebro 2013).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels of two classes, or -1 and +1 for each output.

        Returns
        -------
        dict of str to list
            The columns size; squared_norm, |w|^2; vectors_bound, 4 |w|^2, the steps after which `Slant.paper` has a model
            whose slant loss is at most the hinge loss of w; hinge_loss, the mean of max(0, 1 - y f); and slant_loss, the
            mean of min(1, max(0, 1/2 - y f)), which is the expected error of `predict_randomized`. Sums over outputs.
        """
        labels = np.asarray(y)
        signs = labels if labels.ndim > 1 else np.where(labels == np.unique(labels)[-1], 1.0, -1.0)[:, None]
        norms, hinge, slant = [], [], []
        for model in self.models:
            linear = model(model.points) - model.bias
            norms.append(float((np.asarray(model.coef) * linear).sum()))
            margins = signs * model(X)
            hinge.append(float(np.maximum(0.0, 1 - margins).sum(axis=1).mean()))
            slant.append(float(np.clip(0.5 - margins, 0.0, 1.0).sum(axis=1).mean()))
        bounds = [4 * norm for norm in norms]
        return {
            "size": self.sizes,
            "squared_norm": norms,
            "vectors_bound": bounds,
            "hinge_loss": hinge,
            "slant_loss": slant,
        }

    def _bytes_of(self, model: Expansion, precision: str | None) -> int | None:
        """Return the bytes of the exported C; None where there is no such export."""
        if self.shape is None or model.kernel.name not in SPECS:
            return None
        return self.shape.of_model(model).bytes(model.size, precision or model.precision)

    def with_models(self, changed: Callable[[Expansion], Expansion]) -> Path:
        """Return the path with changed models."""
        return replace(self, steps=tuple(replace(step, model=changed(step.model)) for step in self.steps))

    def keep(self, step: Step) -> Path:
        """Return the path with this step marked as the chosen one."""
        return replace(self, kept=next(place for place, other in enumerate(self.steps) if other is step))

    def at(self, size: int) -> Step:
        """Return the step of a size; raise ValueError where the path does not have it."""
        for step in self.steps:
            if step.size == size:
                return step
        raise ValueError(f"no model of {size} support vectors on this path; it has sizes {self.sizes}")

    def up_to(self, size: int) -> Step:
        """Return the largest step of at most that size, or the smallest step if all are larger."""
        return max((step for step in self.steps if step.size <= size), key=lambda s: s.size, default=self.steps[0])

    def best(self, budget: int, standard_errors: float = CLEARLY) -> Step:
        """Return the largest step of at most `budget` points that is not clearly worse than the one of lowest error.

        A step is clearly worse if its error is higher by more than `standard_errors` of the difference on the same
        validation rows. Smaller differences may be chance, and are no reason to use fewer points than the budget allows.
        """
        affordable = [step for step in self.steps if step.size <= budget]
        if not affordable:
            raise ValueError(f"no model of at most {budget} support vectors; this path has sizes {self.sizes}")
        return affordable[largest_as_good([step.judgement for step in affordable], standard_errors)]

    def within(self, allowance: Allowance) -> Step | None:
        """Return the smallest step that is allowed, or None."""
        place = allowance.smallest([step.judgement for step in self.steps])
        return None if place is None else self.steps[place]


def averaged(folds: Sequence[Path], shares: Array) -> Path:
    """Return the models of the first path with errors averaged over several, one for each fold of the rows.

    `shares` are the folds' shares of all validation rows, with sum 1. A fold without a model of a
    size counts with its largest smaller one.
    """
    if len(folds) == 1:
        return folds[0]
    steps = [
        Step.judged(step.model, step.made, Judgement.mean([fold.up_to(step.size).judgement for fold in folds], shares))
        for step in folds[0]
    ]
    return Path(tuple(steps), folds[0].status, sum(fold.n_validation for fold in folds))


def merge(paths: Iterable[Path], status: Status, n_validation: int = 0) -> Path:
    """Return one path with the best step of every size."""
    best: dict[int, Step] = {}
    for path in paths:
        for step in path.steps:
            if step.size not in best or step.error < best[step.size].error:
                best[step.size] = step
    return Path(tuple(best[size] for size in sorted(best)), status, n_validation)


def prefer(first: Path, second: Path) -> Path:
    """Return the first path, with steps of the second that are better by a standard error or of other sizes."""
    steps = {step.size: step for step in first}
    for step in second:
        mine = steps.get(step.size)
        if mine is None or step.error < mine.error - mine.standard_error:
            steps[step.size] = step
    return Path(tuple(steps[size] for size in sorted(steps)), second.status, first.n_validation)


def sizes_up_to(budget: int, per_doubling: int = 4) -> list[int]:
    """Return the sizes to try: 1, 2, 3, ... up to 2 `per_doubling`, then `per_doubling` for each doubling, up to `budget`.

    A size within a quarter of a step of the budget is left out: it would cost time for a model of nearly the same size.
    """
    grid = {round(2 ** (k / per_doubling)) for k in range(per_doubling * int(np.log2(max(budget, 1)) + 1))}
    first, close = set(range(1, 2 * per_doubling + 1)), budget / 2 ** (0.25 / per_doubling)
    return sorted({size for size in grid if size <= close} | {size for size in first if size < budget} | {budget})
