"""partial_fit: learning from a stream of rows, batch by batch."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..goals import Goal, OneVsRest
from ..kernels import Array, Kernel, Matrix, Precomputed, make_kernel, resolve_gamma
from ..learning import Learning
from ..model import Status, Task
from ..papers.forgetron_rbp import DAMAGE
from ..rows.homes import open_rows
from ..trainers import TRAINERS
from .methods import check_goal, check_weights, finite_cost, is_reduced, make_trainer
from .validation import (
    check_classes,
    check_costs,
    check_settings,
    class_weights,
    keep_range,
    seed_of,
    training_rows,
    weighted_rows,
)

#: the estimator's settings that must not change during a stream
KEPT = ("budget", "tolerance", "kernel", "gamma", "C", "degree", "coef0", "trainer", "epsilon", "nu")


@dataclass(frozen=True)
class Stream:
    """The state from which `partial_fit` continues: trainer, kernel, what was learned, and the estimator's settings."""

    trainer: Any
    kernel: Kernel
    state: Any
    settings: dict[str, Any]

    def check_settings(self, estimator: Any) -> None:
        """Raise ValueError where a setting has changed since the stream began."""
        changed = [name for name in KEPT if getattr(estimator, name, None) != self.settings[name]]
        if changed:
            raise ValueError(
                f"{', '.join(changed)} changed since the stream began; start another one, with clone(estimator)"
            )


def learn_batch(estimator: Any, X: Matrix, y: Any, sample_weight: Any, classes: Any = None) -> Any:
    """Do the work of `partial_fit`."""
    check_settings(estimator)
    stream = resumed(estimator)
    fitted = copy.copy(estimator)  # the estimator changes only if everything has worked
    X, y = training_rows(fitted, X, y, reset=stream is None)
    X, y, weights, _ = weighted_rows(X, y, sample_weight)
    trainer, kernel = _begin(estimator, X) if stream is None else (stream.trainer, stream.kernel)
    check_streams(estimator, trainer, kernel)
    if estimator._labels_are == "classes":
        goal, labels, weights = _classes(estimator, fitted, stream, y, classes, weights)
    else:
        labelled = estimator._labelled(y, weights, whole=False)
        goal, labels = labelled.goal if stream is None else estimator.goal_, labelled.labels
    check_goal(trainer, TRAINERS, goal)
    task = _task(estimator, trainer, kernel, X, labels, weights, goal)
    if stream is None:
        rng = np.random.default_rng(seed_of(estimator.random_state))
        state = trainer.begin(dataclasses.replace(task, rng=rng))
    else:
        state = stream.state
    state = trainer.learn(state, task, np.arange(X.shape[0]))
    fitted.model_, fitted.goal_ = state.expansion(kernel), goal
    fitted.path_, fitted._support = None, None
    fitted.shape_fit_ = X.shape
    keep_range(fitted, X, before=None if stream is None else getattr(estimator, "feature_range_", None))
    fitted.n_kernel_evals_ = getattr(estimator, "n_kernel_evals_", 0) + task.rows.meter.evaluations
    fitted.n_iter_, fitted.status_ = state.seen, Status.PASSED
    keep_stream(fitted, trainer, kernel, state)
    estimator.__dict__ = fitted.__dict__
    return estimator


def _classes(
    estimator: Any, fitted: Any, stream: Stream | None, y: Array, classes: Any, weights: Array
) -> tuple[Goal, Array, Array]:
    """Return the goal, class numbers and weights of a batch of labels; set the classes."""
    known = stream_classes(None if stream is None else estimator.classes_, classes, y)
    check_classes(known)
    fitted.classes_, labels = known, np.searchsorted(known, y)
    return OneVsRest(known.size), labels, weights * class_weights(estimator.class_weight, known, known)[labels]


def _begin(estimator: Any, X: Matrix) -> tuple[Any, Kernel]:
    if not X.shape[0]:
        raise ValueError("all rows of the first batch have weight 0; give a first batch with positive weights")
    gamma = resolve_gamma(estimator.gamma, X)
    kernel = make_kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    return make_trainer(estimator), kernel


def _task(estimator: Any, trainer: Any, kernel: Kernel, X: Matrix, labels: Array, weights: Array, goal: Goal) -> Task:
    kernel.check_rows(X)
    known = np.append(weights, 1.0)  # rows of other batches may have weight 1
    check_weights(trainer, known)
    check_costs(finite_cost(estimator.C), known)
    rows = open_rows(kernel, X, device=estimator.device, cache_mb=0.0, error=0.0)
    return Task(rows, goal.encode(labels), weights, goal=goal)


def keep_stream(estimator: Any, trainer: Any, kernel: Kernel, state: Any) -> None:
    """Set `stream_` to the state that `partial_fit` continues from; remove it if the trainer has none."""
    for name in ("stream_", "_learning"):
        estimator.__dict__.pop(name, None)
    if state is not None:
        estimator.stream_ = Stream(trainer, kernel, state, {name: getattr(estimator, name, None) for name in KEPT})


def learning_of(estimator: Any) -> Learning | None:
    """Return how a fitted estimator learns on from each row; None if it is not that of a stream, or was shrunk since."""
    stream, model = getattr(estimator, "stream_", None), estimator.model_
    if stream is None:
        kept: Learning | None = getattr(estimator, "_learning", None)
        return kept if kept is not None and kept.coef.shape == model.coef.shape else None
    state = stream.state
    names = [name for name, kind in TRAINERS.items() if type(stream.trainer) is kind]
    last = state.expansion(stream.kernel)
    if not names or model.points.shape != last.points.shape or not np.array_equal(model.coef, last.coef):
        return None
    weights = getattr(estimator, "class_weight_", None)
    if weights is None and getattr(estimator, "class_weight", None) is not None:
        weights = class_weights(estimator.class_weight, estimator.classes_, estimator.classes_)
    generator = dict(state.rng.bit_generator.state)
    return Learning(
        names[0],
        int(stream.trainer.budget),
        state.coef,
        state.born,
        int(state.seen),
        int(state.moves),
        **{name: getattr(state, name) for name in ("lam", "late", "epsilon", "nu", "maintenance") if hasattr(state, name)},
        slack=float(state.damage - DAMAGE * state.moves) if hasattr(state, "damage") else 0.0,
        rng=generator if names[0] == "rbp" else {},
        weights=None if weights is None or (weights == 1).all() else weights,
    )


def resumed(estimator: Any) -> Stream | None:
    """Return the stream of an estimator; None if the next batch is the first."""
    if not hasattr(estimator, "model_"):
        return None
    stream = getattr(estimator, "stream_", None)
    if stream is None:
        raise ValueError(
            "this model has no stream to continue: it is of another trainer, or was compressed or loaded from a file, "
            "which keep only the model. Start another stream, with clone(estimator)"
        )
    stream.check_settings(estimator)
    return stream


def check_streams(estimator: Any, trainer: Any, kernel: Kernel) -> None:
    """Raise ValueError for settings that streams cannot have."""
    if isinstance(kernel, Precomputed):
        raise ValueError(
            "partial_fit has no kernel='precomputed': the kernel matrix of future rows is not known. "
            "Use fit, or a kernel that is a function of rows"
        )
    if estimator.tolerance is not None or is_reduced(trainer, estimator.budget):
        raise ValueError(
            f"partial_fit keeps to the {trainer.budget} support vectors of its trainer and shrinks no further, since a "
            f"stream has no validation rows; budget is {estimator.budget!r} and tolerance {estimator.tolerance!r}. "
            "Compress the model afterwards"
        )
    if getattr(estimator, "class_weight", None) == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all labels at once, which a stream does not have; give partial_fit a dict of "
            "weights, such as compute_class_weight makes of a sample"
        )


def stream_classes(known: Array | None, given: Any, y: Array) -> Array:
    """Return the classes of a stream: given with the first batch, the same afterwards, and all of y among them."""
    given = known if given is None else given
    if given is None:
        raise ValueError("classes must be passed on the first call to partial_fit: all labels that the stream will have")
    classes = np.unique(given)
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(
            f"classes are {classes.tolist()} now and were {known.tolist()} in the first call; a stream cannot "
            "change its classes"
        )
    strange = np.setdiff1d(y, classes)
    if strange.size:
        raise ValueError(
            f"y has labels {strange[:5].tolist()} that are not among the classes of this stream, {classes.tolist()}; "
            "name all classes in the first call to partial_fit"
        )
    return classes
