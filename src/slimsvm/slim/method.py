"""slim, slimsvm's own method: it moves points and coefficients together until rows reach their margin targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from ..goals.decision import Decision
from ..goals.margin_targets import LOSSES, CrossEntropy, MarginTargets
from ..kernels import RBF, Array, Kernel
from ..metric import takes_factors, takes_widths
from ..model import Expansion, Task
from ..reducers.base import EndedModels, Reducer
from ..selection.path import Step, sizes_up_to
from ..solvers.basis import check_C
from .compact import (
    MOST_NUMBERS,
    SEED_POINTS,
    SEED_SECONDS,
    Compact,
    best_within,
    can_be_compact,
    layouts_within,
    of_sizes,
    ranks_for,
    refined,
    renewed,
    with_default,
)
from .learned import KINDS
from .learner import FINAL, WAY, Learner, batches_for
from .paths import SlimPath, ended
from .point_search import (
    MOST_FEATURES,
    MOST_VALUES,
    SEVERAL_FEATURES,
    WIDE,
    Objective,
    PointSearch,
    briefer,
    known_objectives,
    objective_of,
)

#: loss "auto" is cross-entropy for models with at least so many classes for each point
CLASSES_A_POINT = 2
#: with at most this many numbers in points, the largest size gets up to three times the steps
FEW_NUMBERS = 1000
#: rows for which the largest size takes `steps` steps, with several outputs. More rows take up to twice as many, since they
#: show more of what points can learn; fewer take fewer, half of them at least
USUAL_ROWS = 1 << 14
#: the targets, the preferred one first
TARGETS = ("label", "slant")
#: the kernel's own metric, the parts that can be learned, and a choice between these by validation
METRICS = (*KINDS, "projection", "auto")


@dataclass(frozen=True)
class Slim(Reducer):
    """Small models whose points are moved freely, not chosen among the rows.

    For each size it minimises, over points and coefficients,

        sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + decay / C |f|^2

    A row that reaches its margin target h has no loss. With target "label" every row has h = 1: this is the squared hinge
    loss, which needs no full model. With "slant" the margin targets are the full model's margins, h = min(1, y f), and rows
    that it gets wrong have none: this is the slant loss of Cotter et al. 2013, squared. Target "auto" is "label" unless
    "slant" has a clearly lower validation error at 64 points, which happens if rows are few and the full model was trained
    on many. `decay` is the share of the SVM's own regularisation. None means 0.1 with the slant target. With labels it
    grows from 0.1 to 1 at 64 points, or to 0.3 with several outputs: few points regularise by themselves. Noisy labels need
    more and clean ones less, so multiples of it are tried at 32 points, or at the last size before a smaller budget.
    Another one is used if the loss on random validation rows is clearly lower, and a model without some blocks of
    neighbouring rows is no worse on these than on random rows: rows of another time may need more.

    In regression, "label" means outputs within epsilon of the labels, and "slant" the outputs of the full model, without
    decay. In novelty detection rows have no labels, and the target is always the full model.

    Points of sparse rows with many features, such as text, move in the span of a few directions, found by linear models, to
    which the gradients of the chosen model's points are added. In the end such points keep only the entries that matter, as
    CSR (`slim.sparse_points`). Points of other rows with many features move in the span of the rows' principal axes, if few
    axes hold most of the variance.

    L-BFGS moves the points, and at every step the coefficients are the best for the points (`solvers.projection`). Most
    rows reach their targets, so only some steps use all rows. Larger models grow from smaller ones: k-means centres of the
    rows that fall short are added. Small models are also started from new initial points, and the better model is kept.
    `steps` is the number of L-BFGS steps for each size, on a subsample if rows are many, and all other work is in
    proportion. The largest model uses all rows. The chosen model is then refined by as many steps on all rows, validation
    rows included.

    `metric` says what else is learned: "scales" is a factor for each feature, "widths" a factor of gamma for each point,
    "both" is both, and "fixed" neither. Kernels without a width (linear, poly, sigmoid) have scales only. The loss is then

        sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + decay / C |coef|^2 + pull (|log factors|^2 + |log widths|^2)

    and L-BFGS moves points and metric, again with the best coefficients at every step (`slim.learned`). `pull` weakens as
    rows grow. In large problems all numbers move together by mini-batches (`slim.joint`).

    Metric "auto" learns both in one run with the fixed models: from the model of 32 points, or of the size asked for. What
    was learned goes on unless it is worse, on random validation rows or on blocks of neighbouring rows that were left out
    (`slim.paths`): a metric fits rows closely and does harm if later rows differ from earlier ones.

    Metric "projection" learns a projection of rows to `rank` coordinates, in which points are. Under a limit in bytes
    layouts compete, with and without a projection, and with tables of different bits that the model is trained for
    (`slim.compact`).

    `loss` is "squared", as above, or "cross_entropy" for classes. Then the loss of a row is -log p of its class, with p the
    softmax of the outputs (`goals.margin_targets`), and all numbers move together. Where few points serve many classes the
    error is much lower: no output need reach a margin, the right one need only be the largest. It needs the rbf kernel, one
    output for each class (multiclass="ovr") or two classes, and the target "label". It takes several times as long, and
    with more points than classes it is no better. So "auto" is cross-entropy where the largest model has at most half as
    many points as there are classes, and "squared" otherwise.
    """

    target: str = "auto"
    decay: float | None = None
    C: float = 1.0
    steps: int = 50
    metric: str = "auto"
    rank: int | None = None
    loss: str = "auto"
    needs_model: ClassVar[bool] = False
    real_valued: ClassVar[bool] = True
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True
    sizes_per_doubling: ClassVar[int] = 1
    finishes: ClassVar[bool] = True
    refines: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
    takes_metric: ClassVar[bool] = True
    takes_probabilities: ClassVar[bool] = True
    thorough: ClassVar[bool] = True  # more steps for few numbers and many rows

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.target not in (*TARGETS, "auto"):
            raise ValueError(f"unknown target {self.target!r}; there are {[*TARGETS, 'auto']}")
        if self.decay is not None and not 0 <= self.decay < np.inf:
            raise ValueError(f"decay must be a number of at least 0, or None, not {self.decay!r}")
        if not self.steps >= 1:
            raise ValueError(f"steps must be a number of at least 1, not {self.steps!r}")
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric {self.metric!r}; there are {list(METRICS)}")
        if self.rank is not None and not (isinstance(self.rank, int) and self.rank >= 1):
            raise ValueError(f"rank must be a whole number of at least 1, or None, not {self.rank!r}")
        if self.loss not in (*LOSSES, "auto"):
            raise ValueError(f"unknown loss {self.loss!r}; there are {[*LOSSES, 'auto']}")
        if self.loss == CrossEntropy.name and self.target == "slant":
            raise ValueError("loss='cross_entropy' follows labels; give target='label' or 'auto', or loss='squared'")

    @property
    def requires_model(self) -> bool:
        """Whether the target is the full model only."""
        return self.target == "slant"

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise ValueError if the metric is not defined for the kernel."""
        scales, widths = KINDS.get(self.metric, (False, False))
        if scales and not takes_factors(kernel.name):
            raise ValueError(
                f"metric={self.metric!r} scales features of an inner product or a distance, but the {kernel.name} kernel "
                "has neither; give metric='fixed'"
            )
        if widths and not takes_widths(kernel.name):
            able = "'scales' or 'fixed'" if takes_factors(kernel.name) else "'fixed'"
            raise ValueError(
                f"metric={self.metric!r} learns a width for each point, and the {kernel.name} kernel has no width; give "
                f"metric={able}, or the rbf or laplacian kernel"
            )

    def learned(self, kernel: Kernel) -> frozenset[str]:
        """Return the parts of a metric that models may learn; with "auto", all that the kernel allows."""
        scales, widths = KINDS.get(self.metric, (self.metric == "auto", self.metric == "auto"))
        parts = {"factors": scales and takes_factors(kernel.name), "widths": widths and takes_widths(kernel.name)}
        return frozenset(name for name, there in parts.items() if there)

    def ranks(self, kernel: Kernel, features: int) -> tuple[int, ...]:
        """Return the ranks that compete under a limit in bytes."""
        if not isinstance(kernel, RBF) or self.metric not in ("auto", "projection"):
            return ()
        return ranks_for(features) if self.rank is None else (self.rank,)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> EndedModels:
        """Yield models with the given metric; "auto" yields fixed ones, and learned ones if these pass validation."""
        self.check_kernel(task.rows.kernel)
        room, ranked = task.room, self.metric == "projection"
        if room is not None and self.metric in ("auto", "both", "projection") and can_be_compact(task):
            rank = with_default(self.rank, task) if ranked else 0 if self.metric == "both" else None
            layouts = layouts_within(room, task, rank, task.rows.n)
            if layouts:
                seed = self._seed(renewed(task), model, max(layout.size for layout in layouts))
                problem = Compact.of(task, model, by_entropy=self.loss == CrossEntropy.name)
                return best_within(renewed(task), problem, layouts, seed, self.steps)
        if ranked:
            self._check_projection(task)
        if ranked or self._loss_for(task, sizes[-1]) == CrossEntropy.name:
            return self._joint_models(task, sizes, model)
        return SlimPath(self, task, sizes, self._objectives(task, model), self._kind(task)).models()

    def _kind(self, task: Task) -> str:
        """Return the kind of metric on a path: the fixed one where none can be learned."""
        rows = task.rows
        possible = takes_factors(rows.kernel.name) and rows.in_one_place and rows.main_features(MOST_FEATURES) is None
        if self.metric == "auto" and not (possible and rows.d <= WIDE):
            return "fixed"
        if self.metric not in ("auto", "fixed") and not (possible and rows.n * rows.d <= MOST_NUMBERS):
            raise ValueError(
                f"metric={self.metric!r} needs rows on one machine of at most {MOST_NUMBERS:,} numbers, not {rows.n:,} "
                f"rows of {rows.d:,} features; give metric='fixed'"
            )
        return self.metric

    def _seed(self, task: Task, model: Expansion | None, most: int) -> Expansion | None:
        """Return a model of few points with factors and widths, found with the best coefficients at every step."""
        few, points = replace(task, run=task.run.within("seed").share(SEED_SECONDS)), SEED_POINTS[task.goal.outputs > 1]
        if few.rows.d > SEVERAL_FEATURES:
            return None
        path = SlimPath(self, few, sizes_up_to(min(points, most), 1), self._objectives(few, model), "both")
        return list(path.models())[-1][0]

    def _check_projection(self, task: Task) -> None:
        """Raise ValueError where there is no projection."""
        if not isinstance(task.rows.kernel, RBF):
            raise ValueError(
                f"metric='projection' is for the rbf kernel, not for {task.rows.kernel.name}; give metric='auto' or 'fixed'"
            )
        if not can_be_compact(task):
            raise ValueError(
                f"metric='projection' needs rows on one machine of at most {MOST_NUMBERS:,} numbers, not "
                f"{task.rows.n:,} rows of {task.rows.d:,} features; give metric='auto'"
            )

    def _joint_models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> EndedModels:
        """Yield models whose numbers all move together, with a projection or by cross-entropy."""
        ranked, task = self.metric == "projection", renewed(task)
        kind = self.metric if self.metric in KINDS else "both"
        problem = Compact.of(task, model, kind, by_entropy=not ranked or self.loss == CrossEntropy.name)
        steps = int(self.steps / 50 * batches_for(task.rows.n))
        yield from of_sizes(task, problem, sizes, with_default(self.rank, task) if ranked else 0, steps)
        return ended(sizes[-1], sizes, task.run)

    def _loss_for(self, task: Task, size: int) -> str:
        """Return the loss for models of up to so many points; raise ValueError where it is not defined."""
        classes = task.goal.n_classes >= 2 and task.goal.decision in (Decision.SIGN, Decision.LARGEST)
        if self.loss == CrossEntropy.name and not classes:
            raise ValueError(
                f"loss={self.loss!r} is for two classes, or for one output a class (multiclass='ovr'), and the goal is "
                f"{task.goal.name!r}; give loss={MarginTargets.name!r}"
            )
        if self.loss == CrossEntropy.name and not can_be_compact(task):
            raise ValueError(
                f"loss={self.loss!r} needs the rbf kernel and rows on one machine of at most {MOST_NUMBERS:,} numbers; "
                f"give loss={MarginTargets.name!r}, or fit a SlimSVC to a sample of the rows"
            )
        few = classes and self.target != "slant" and CLASSES_A_POINT * size <= task.goal.outputs and task.rows.d <= WIDE
        if self.loss == "auto":
            return CrossEntropy.name if few and can_be_compact(task) else MarginTargets.name
        return self.loss

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """Return a model of the path after some more steps with all rows."""
        run = task.run.limited(self.time_limit).within(f"finish {step.size}")
        task, saved, made = replace(task, run=run), run.checkpoint.saved(), step.made
        if made.precision:
            return refined(renewed(task), step.model, made, self._compact_of(task, step, model), self.steps)
        if made.metric != "fixed":
            learner = self._learner_from(task, step, model)
            learner.descend(FINAL, last=True, saved=saved)
            return learner.model
        search = self._searching_from(task, step, step.size, model)
        search.run = run
        if saved is None:
            search.refine(step.model, self.last_steps(task, step.size))
        else:
            search.resume_rounds(saved)
        return search.sparse_model()

    def between(self, task: Task, step: Step, size: int, model: Expansion | None) -> Expansion:
        """Return a model of the given size, grown from a smaller one of the path."""
        task, made = replace(task, run=task.run.limited(self.time_limit)), step.made
        if made.precision:
            projection, steps = step.model.projection, int(self.steps / 50 * batches_for(task.rows.n))
            rank, task = 0 if projection is None else projection.shape[1], renewed(task)
            [(found, _)] = of_sizes(task, self._compact_of(task, step, model), [size], rank, steps)
            return found
        if made.metric != "fixed":
            learner = self._learner_from(task, step, model)
            learner.grow(self._searching_from(task, step, size, model), size)
            learner.descend(WAY)
            return learner.model
        search = self._searching_from(task, step, size, model)
        search.refine(step.model, 0)
        search.grow(size, self.way_steps(task, size), all_rows=False, last=False)
        return search.model

    def used_model(self, step: Step) -> bool:
        """Return whether the step follows the full model's margins."""
        return step.made.target != "label"

    def _compact_of(self, task: Task, step: Step, model: Expansion | None) -> Compact:
        """Return the problem of a step whose numbers moved together."""
        kind = step.made.metric if step.made.metric in KINDS else "both"
        return Compact.of(task, model, kind, by_entropy=step.made.loss == CrossEntropy.name)

    def _searching_from(self, task: Task, step: Step, size: int, model: Expansion | None) -> PointSearch:
        """Return a search for a model of the given size, with the objective of a step of the path."""
        objective = objective_of(known_objectives(self._objectives(task, model)), step.made)
        return self.search(task, size, objective, _features(step.model, task))

    def _learner_from(self, task: Task, step: Step, model: Expansion | None) -> Learner:
        """Return what goes on from a step with a learned metric."""
        learner = Learner(task, self._searching_from(task, step, step.size, model), step.made.metric)
        learner.adopt(step.model)
        return learner

    def search(self, task: Task, size: int, objective: Objective, features: Array | None = None) -> PointSearch:
        """Return a search for models of up to that size, on as many rows as there is memory for."""
        part = task.part(task.sample(max(MOST_VALUES // size, 1)))
        return PointSearch(part, objective, 1 / self.C, self.steps, features)

    def way_steps(self, task: Task, size: int) -> int:
        """Return the steps for a size below the largest: half as many for one or two points.

        With several outputs there are fewer: a step takes long, and the largest model is as good without them.
        """
        outputs = task.goal.outputs
        share = (2 if size <= 2 else 1) if outputs == 1 else (10 if size < outputs else 4)
        return briefer(-(-self.steps // share), task.rows.n)

    def last_steps(self, task: Task, size: int) -> int:
        """Return the steps for the largest size: up to three times as many with few numbers to find or many points.

        With several outputs many points settle within the steps of a few, and the number of rows decides.
        """
        few, steps = FEW_NUMBERS // (size * task.rows.d) if self.thorough else 0, self.steps
        if task.goal.outputs == 1:
            return briefer(int(np.ceil(steps * np.clip(max(few, size // 128), 1, 3))), task.rows.n)
        share = np.clip(task.rows.n / USUAL_ROWS, 0.5, 2)
        return briefer(int(np.ceil(steps * max(share, min(few, 3)))), task.rows.n)

    def _objectives(self, task: Task, model: Expansion | None) -> list[Objective]:
        """Return the objectives to try, the preferred one first."""
        if model is not None and not task.goal.labelled:
            wanted = ["slant"]
        else:
            possible = TARGETS if model is not None and self.loss != CrossEntropy.name else ("label",)
            wanted = [target for target in possible if self.target in ("auto", target)]
        return [Objective(target, self.decay, model if target == "slant" else None) for target in wanted]


def _features(model: Expansion, task: Task) -> Array | None:
    """Return the features of a small model's points, if they have only some of the features of sparse rows."""
    if not issparse(model.points) or task.rows.main_features(np.unique(model.points.indices).size) is None:
        return None
    return np.unique(model.points.indices)
