"""slim, slimsvm's own method: it moves points and coefficients together until rows reach their margin targets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from ..goals.decision import Decision
from ..goals.demands import LOSSES, CrossEntropy, Demands
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
    best_within,
    can_be_compact,
    layouts_within,
    of_rank,
    ranks_for,
    refined,
    renewed,
    with_default,
)
from .competing import DECIDED_AT, FINAL_STEPS, LEAST_ROWS, ROWS_PER_NUMBER, WAY_STEPS, CompetingPath, Learner
from .learned_metric import KINDS
from .metric_search import Learning, MetricSearch
from .paths import FixedPath, GrowingPath, ended
from .point_search import Objective, PointSearch, Schedule, briefer, known_objectives, objective_of

#: the share of a time limit in which metric "auto" decides for large problems, and the rows on which. More: a safer
#: decision, less time for the models
DECISION, DECIDING_ROWS = 0.25, 1 << 14
#: loss "auto" is cross-entropy for models with at least so many classes for each point
CLASSES_A_POINT = 2
#: it then visits so many rows by mini-batches at most, and takes so many steps of L-BFGS for each pass over the rows. More:
#: a lower error, in more time
MOST_VISITS, STEPS_A_PASS = 1 << 21, 5
#: multiply-adds of a step up to which learned models have the best coefficients at every step; beyond, mini-batches
MOST_PROJECTED = 1e10
#: the targets, the preferred one first
TARGETS = ("label", "slant")
#: the kernel's own metric, the parts that can be learned, and a choice between these by validation
METRICS = (*KINDS, "projection", "auto")
#: the default settings, which all instances share
SCHEDULE, LEARNING = Schedule(), Learning()


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
    neighbouring rows is no worse on these than on random rows: rows of another time may need more
    (`Schedule.decay_powers`; 0 leaves the decay as C gives it).

    In regression, "label" means outputs within epsilon of the labels, and "slant" the outputs of the full model, without
    decay. In novelty detection rows have no labels, and the target is always the full model.

    Points of sparse rows with many features, such as text, move in the span of a few directions, found by linear models
    (`slim.linear_span`). The gradients of the chosen model's points are then added to the span. In the end such points
    keep only the entries that matter, as CSR (`slim.few_entries`, `Schedule.entries_change`). With
    `Schedule(wide=features)` points move in all features, which takes many times as long. With `Schedule.most_features`
    such points have only the main features, as CSR. Points of other rows with more than `Schedule.several_features`
    features move in the span of the rows' principal axes, if few axes hold `Schedule.span_share` of the variance.

    L-BFGS moves the points, and at every step the coefficients are the best for the points (`solvers.projection`). Most
    rows reach their targets, so only some steps use all rows. Larger models grow from smaller ones: k-means centres of the
    rows that fall short are added. Small models are also started from new initial points, and the better model is kept.
    `steps` is the number of L-BFGS steps for each size, on a subsample if rows are many. The largest model uses all rows.
    The chosen model is then refined by as many steps on all rows, validation rows included.

    `metric` says what else is learned: "scales" is a factor for each feature, "widths" a factor of gamma for each point,
    "both" is both, and "fixed" neither. Kernels without a width (linear, poly, sigmoid) have scales only. The loss is then

        sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + decay / C |coef|^2 + pull (|log factors|^2 + |log widths|^2)

    and L-BFGS moves points and metric, again with the best coefficients at every step (`slim.learned`). `pull` weakens as
    rows grow. Large problems move everything together: by mini-batches with Adam, then by L-BFGS on all rows
    (`slim.metric_search`).

    Metric "auto" learns both in one run with the fixed models: from the model of 32 points, or of the size asked for. What
    was learned goes on unless it is worse, on random validation rows or on blocks of neighbouring rows that were left out
    (`slim.competing`): a metric fits rows closely and does harm if later rows differ from earlier ones.

    Metric "projection" learns a projection of rows to `rank` coordinates, in which points are. Under a limit in bytes
    layouts compete, with and without a projection, and with tables of different bits that the model is trained for
    (`slim.compact`).

    `loss` is "squared", as above, or "cross_entropy" for classes. Then the loss of a row is -log p of its class, with p the
    softmax of the outputs (`goals.demands`), and everything moves together as with a learned metric. Where a few
    points serve many classes the error is much lower: no output need reach a margin, the right one need only be the
    largest. It needs one output for each class (multiclass="ovr"), or two classes, and the target "label". It takes several
    times as long, and with more points than classes it is no better. So "auto" is cross-entropy where the largest model has
    at most half as many points as there are classes, and "squared" otherwise.

    `schedule` decides how long the search takes and which rows it uses (`Schedule`); `learning` does so for a metric
    (`Learning`).
    """

    target: str = "auto"
    decay: float | None = None
    C: float = 1.0
    steps: int = 50
    metric: str = "auto"
    rank: int | None = None
    loss: str = "auto"
    schedule: Schedule = SCHEDULE
    learning: Learning = LEARNING
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.target not in (*TARGETS, "auto"):
            raise ValueError(f"unknown target {self.target!r}; there are {[*TARGETS, 'auto']}")
        if self.decay is not None and not 0 <= self.decay < np.inf:
            raise ValueError(f"decay must be a number of at least 0, or None, not {self.decay!r}")
        if not self.steps >= 1:
            raise ValueError(f"steps must be a number of at least 1, not {self.steps!r}")
        if not isinstance(self.schedule, Schedule):
            raise ValueError(f"schedule must be a Schedule, not {self.schedule!r}")
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric {self.metric!r}; there are {list(METRICS)}")
        if self.rank is not None and not (isinstance(self.rank, int) and self.rank >= 1):
            raise ValueError(f"rank must be a whole number of at least 1, or None, not {self.rank!r}")
        if self.loss not in (*LOSSES, "auto"):
            raise ValueError(f"unknown loss {self.loss!r}; there are {[*LOSSES, 'auto']}")
        if self.loss == CrossEntropy.name and self.target == "slant":
            raise ValueError("loss='cross_entropy' follows labels; give target='label' or 'auto', or loss='squared'")
        if not isinstance(self.learning, Learning):
            raise ValueError(f"learning must be a Learning, not {self.learning!r}")

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
        decided = self._with_loss(task, sizes[-1])
        room = task.room
        if room is not None and self.metric in ("auto", "both", "projection") and can_be_compact(task):
            rank = with_default(self.rank, task) if self.metric == "projection" else 0 if self.metric == "both" else None
            layouts = layouts_within(room, task, rank, task.rows.n)
            if layouts:
                seed = self._seed(renewed(task), model, max(layout.size for layout in layouts))
                return best_within(renewed(task), model, layouts, seed)
        if self.metric == "projection":
            return self._projected(task, sizes, model)
        if self.metric == "auto" and not (decided._may_learn(task) and decided._projects(task, sizes[-1])):
            return decided._models_of_either(task, sizes, model)
        return decided._models_of(task, sizes, model, self.metric)

    def _seed(self, task: Task, model: Expansion | None, most: int) -> Expansion | None:
        """Return a model of few points with factors and widths, found with the best coefficients at every step."""
        few, points = replace(task, run=task.run.within("seed").share(SEED_SECONDS)), SEED_POINTS[task.goal.outputs > 1]
        if few.rows.d > self.schedule.several_features or not (
            self._may_learn(few) and replace(self, loss=Demands.name)._projects(few, points)
        ):
            return None
        sizes = sizes_up_to(min(points, most), 1)
        path = CompetingPath(self, few, sizes, self._objectives(few, model), "both")
        return list(path.models())[-1][0]

    def _projected(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> EndedModels:
        """Yield models in a projection; raise ValueError where there is none."""
        if not isinstance(task.rows.kernel, RBF):
            raise ValueError(
                f"metric='projection' is for the rbf kernel, not for {task.rows.kernel.name}; give metric='auto' or 'fixed'"
            )
        if not can_be_compact(task):
            raise ValueError(
                f"metric='projection' needs rows on one machine of at most {MOST_NUMBERS:,} numbers, not "
                f"{task.rows.n:,} rows of {task.rows.d:,} features; give metric='auto'"
            )
        yield from of_rank(renewed(task), model, sizes, with_default(self.rank, task))
        return ended(sizes[-1], sizes, task.run)

    def _with_loss(self, task: Task, size: int) -> Slim:
        """Return this method with its loss for models of up to so many points; raise ValueError where it is not defined."""
        has_classes = task.goal.n_classes >= 2 and task.goal.decision in (Decision.SIGN, Decision.LARGEST)
        if self.loss == CrossEntropy.name and not has_classes:
            raise ValueError(
                f"loss={self.loss!r} is for two classes, or for one output a class (multiclass='ovr'), and the goal is "
                f"{task.goal.name!r}; give loss={Demands.name!r}"
            )
        if self.loss == CrossEntropy.name and not task.rows.backpropagates:
            raise ValueError(
                f"loss={self.loss!r} needs rows on one machine, and these are on a cluster; give loss={Demands.name!r}, or "
                "fit a SlimSVC to a sample of the rows"
            )
        if self.loss != "auto":
            return self
        few_points = has_classes and self.target != "slant" and CLASSES_A_POINT * size <= task.goal.outputs
        if not few_points or not task.rows.backpropagates or task.rows.d > self.schedule.wide:
            return replace(self, loss=Demands.name)
        return self._by_cross_entropy(task)

    def _by_cross_entropy(self, task: Task) -> Slim:
        """Return this method with cross-entropy; with fewer passes where rows are many and nobody asked to wait for it."""
        learning = self.learning
        if self.metric in ("fixed", "auto") and self.loss == "auto" and task.run.deadline.left is None:
            passes = int(np.clip(MOST_VISITS // task.rows.n, 1, learning.passes))
            learning = replace(learning, passes=passes, steps=min(learning.steps, STEPS_A_PASS * passes))
        return replace(self, loss=CrossEntropy.name, learning=learning)

    def _models_of(self, task: Task, sizes: Sequence[int], model: Expansion | None, kind: str) -> EndedModels:
        """Yield models with one kind of metric."""
        narrow = kind == "auto" or task.rows.d <= self.schedule.several_features
        if kind != "fixed" and narrow and self._may_learn(task) and self._projects(task, sizes[-1]):
            return CompetingPath(self, task, sizes, self._objectives(task, model), kind).models()
        if kind == "fixed" and self.loss == Demands.name:
            return FixedPath(self, task, sizes, self._objectives(task, model)).models()
        if not self._has_memory_for(sizes[-1], task.rows.d):
            raise ValueError(
                f"metric={kind!r} with loss={self.loss!r} moves {sizes[-1]} points of {task.rows.d} features together, and "
                f"at most {self.learning.most_numbers} numbers may move; give metric='fixed' with loss={Demands.name!r}, a "
                "smaller budget or fewer features, or raise Learning.most_numbers if there is memory"
            )
        return GrowingPath(self, task, sizes, self._objectives(task, model), kind).models()

    def _models_of_either(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> EndedModels:
        """Yield models of the metric that wins on a sample of the rows; with cross-entropy, of the fixed one."""
        kind = self._possible_kind(task.rows.kernel, sizes[-1], task.rows.d)
        if kind is None or self.loss != Demands.name or not self._may_learn(task):
            return (yield from self._models_of(task, sizes, model, "fixed"))
        part = replace(task.part(task.sample(DECIDING_ROWS)), run=task.run.within("choice").share(DECISION))
        few = [size for size in sizes if size <= DECIDED_AT] or sizes[:1]
        path = CompetingPath(self, part, few, self._objectives(part, model), "auto")
        deque(path.models(), maxlen=0)
        return (yield from self._models_of(task, sizes, model, "fixed" if path.learner is None else kind))

    def _may_learn(self, task: Task) -> bool:
        """Return whether a metric can be learned for the kernel in the home of the rows."""
        rows, schedule = task.rows, self.schedule
        in_all_features = rows.d <= schedule.wide and rows.main_features(schedule.most_features) is None
        return takes_factors(rows.kernel.name) and rows.backpropagates and in_all_features

    def _projects(self, task: Task, size: int) -> bool:
        """Return whether learned models have the best coefficients at every step: where these take little of the time."""
        d, loss = task.rows.d, self.loss
        rows = min(task.rows.n, max(ROWS_PER_NUMBER * size * d, LEAST_ROWS))
        return task.rows.backpropagates and loss != CrossEntropy.name and rows * size * (size + 4 * d) <= MOST_PROJECTED

    def _has_memory_for(self, size: int, features: int) -> bool:
        """Return whether points of that size may move together with a metric."""
        return size * features <= self.learning.most_numbers

    def _possible_kind(self, kernel: Kernel, size: int, features: int) -> str | None:
        """Return the largest metric that can be learned with a kernel for this size and these features, or None."""
        if not takes_factors(kernel.name) or not self._has_memory_for(size, features):
            return None
        return "both" if takes_widths(kernel.name) else "scales"

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """Return a model of the path after some more steps with all rows; one that was stopped early stays as it is."""
        if step.made.stopped:
            return step.model
        run = task.run.limited(self.time_limit).within(f"finish {step.size}")
        task, saved = replace(task, run=run), run.checkpoint.saved()
        if step.made.precision:
            return refined(renewed(task), step.model, step.made, model)
        learner = self._learner_from(task, step, model)
        if learner is not None:
            learner.descend(FINAL_STEPS, last=True)
            return learner.model
        if step.made.joint:
            learned = self._learning_from(task, step, model)
            learned.run = run
            if saved is None:
                learned.finish()
            else:
                learned.resume_finish(saved)
            return learned.model
        search = self._searching_from(task, step, step.size, model)
        search.run = run
        search.be_patient()
        if saved is None:
            search.refine(step.model, self._last_steps(task, step.size))
        else:
            search.resume_rounds(saved)
        return search.sparse_model()

    def between(self, task: Task, step: Step, size: int, model: Expansion | None) -> Expansion:
        """Return a model of the given size, grown from a smaller one of the path."""
        task = replace(task, run=task.run.limited(self.time_limit))
        if step.made.precision:
            rank = 0 if step.made.metric == "both" else with_default(self.rank, task)
            [(found, _)] = of_rank(renewed(task), model, [size], rank)
            return found
        learner = self._learner_from(task, step, model)
        if learner is not None:
            learner.grow(self._searching_from(task, step, size, model), size)
            learner.descend(WAY_STEPS)
            return learner.model
        if step.made.joint:
            learned = self._learning_from(task, step, model)
            learned.learn(size, last=False)
            return learned.model
        search = self._searching_from(task, step, size, model)
        search.refine(step.model, 0)
        search.grow(size, self._steps(task, size), all_rows=False, last=False)
        return search.model

    def used_model(self, step: Step) -> bool:
        """Return whether the step follows the full model's margins."""
        return step.made.target != "label"

    def _objective_of(self, task: Task, step: Step, model: Expansion | None) -> Objective:
        return objective_of(known_objectives(self._objectives(task, model), self.schedule), step.made)

    def _searching_from(self, task: Task, step: Step, size: int, model: Expansion | None) -> PointSearch:
        """Return a search for a model of the given size, with the objective of a step of the path."""
        return self._search(task, size, self._objective_of(task, step, model), _features(step.model, task))

    def _learning_from(self, task: Task, step: Step, model: Expansion | None) -> MetricSearch:
        """Return a search that continues from a step of the path with a learned metric."""
        by_entropy = step.made.loss == CrossEntropy.name
        method = self._by_cross_entropy(task) if by_entropy else replace(self, loss=Demands.name)
        search = method._metric_search(task, self._objective_of(task, step, model), step.made.metric)
        search.adopt(step.model)
        return search

    def _learner_from(self, task: Task, step: Step, model: Expansion | None) -> Learner | None:
        """Return what goes on with the best coefficients at every step; None for models that do not."""
        learned = step.made.metric != "fixed" and step.made.loss == Demands.name
        if not (learned and self._may_learn(task) and self._projects(task, step.size)):
            return None
        search = self._searching_from(task, step, step.size, model)
        if search.span is not None:
            return None
        learner = Learner.of(search, step.made.metric)
        learner.adopt(step.model)
        return learner

    def _metric_search(self, task: Task, objective: Objective, kind: str) -> MetricSearch:
        return MetricSearch(task, objective, 1 / self.C, self.schedule, self.learning, kind, self.loss)

    def _search(self, task: Task, size: int, objective: Objective, features: Array | None = None) -> PointSearch:
        part = self.schedule.affordable(task, size)
        return PointSearch(part, objective, 1 / self.C, self.schedule, features)

    def _steps(self, task: Task, size: int) -> int:
        """Return the steps for a size below the largest: half as many for one or two points.

        With several outputs there are fewer: a step takes long, and the largest model is as good without them.
        """
        outputs = task.goal.outputs
        share = (2 if size <= 2 else 1) if outputs == 1 else (10 if size < outputs else 4)
        return briefer(-(-self.steps // share), task.rows.n)

    def _last_steps(self, task: Task, size: int) -> int:
        """Return the steps for the largest size: up to three times as many with few numbers to find or many points.

        With several outputs many points settle within the steps of a few, and the number of rows decides.
        """
        few, steps = self.schedule.few_numbers // (size * task.rows.d), self.schedule.patience * self.steps
        if task.goal.outputs == 1:
            return briefer(int(np.ceil(steps * np.clip(max(few, size // 128), 1, 3))), task.rows.n)
        share = np.clip(task.rows.n / self.schedule.usual_rows, 0.5, 2)
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
