"""Streams: what `partial_fit` goes on from, and what must stay as it was at the first batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Array, Kernel, Precomputed

#: the estimator's settings that a stream keeps
KEPT = ("budget", "tolerance", "kernel", "gamma", "C", "degree", "coef0", "trainer")


@dataclass(frozen=True)
class Stream:
    """The learner, its kernel, what it knows, and the estimator's settings when it began."""

    trainer: Any
    kernel: Kernel
    state: Any
    settings: dict[str, Any]

    def check_settings(self, estimator: Any) -> None:
        """Raise ValueError where a setting has changed since the stream began."""
        changed = [name for name in KEPT if getattr(estimator, name) != self.settings[name]]
        if changed:
            raise ValueError(
                f"{', '.join(changed)} changed since the stream began; begin another one, with clone(estimator)"
            )


def keep_stream(estimator: Any, trainer: Any, kernel: Kernel, state: Any) -> None:
    """Leave in `stream_` what partial_fit goes on from, and nothing where the trainer has no state."""
    estimator.__dict__.pop("stream_", None)
    if state is not None:
        estimator.stream_ = Stream(trainer, kernel, state, {name: getattr(estimator, name) for name in KEPT})


def resumed(estimator: Any) -> Stream | None:
    """The stream of an estimator; None where the next batch is the first."""
    if not hasattr(estimator, "model_"):
        return None
    stream = getattr(estimator, "stream_", None)
    if stream is None:
        raise ValueError(
            "this model has no stream to go on with: it is of another trainer, or was compressed or loaded from a file, "
            "which keep the model alone. Begin another stream, with clone(estimator)"
        )
    stream.check_settings(estimator)
    return stream


def check_streams(estimator: Any, trainer: Any, kernel: Kernel) -> None:
    """Raise ValueError for what streams cannot have."""
    if isinstance(kernel, Precomputed):
        raise ValueError(
            "partial_fit has no kernel='precomputed': the kernel matrix of rows that are still to come is not known. "
            "Use fit, or a kernel that is a function of rows"
        )
    if estimator.tolerance is not None or estimator.budget not in (None, trainer.budget):
        raise ValueError(
            f"partial_fit keeps to the {trainer.budget} support vectors of its trainer and shrinks no further, since a "
            f"stream holds no rows out; budget is {estimator.budget!r} and tolerance {estimator.tolerance!r}. Compress "
            "the model afterwards"
        )
    if estimator.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all labels at once, and a stream has more to come; give partial_fit a dict of "
            "weights, such as compute_class_weight makes of a sample"
        )


def stream_classes(known: Array | None, given: Any, y: Array) -> Array:
    """The classes of a stream: given at its first batch, the same ever after, and all of y among them."""
    given = known if given is None else given
    if given is None:
        raise ValueError("classes must be passed on the first call to partial_fit: all labels that the stream will have")
    classes = np.unique(given)
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(
            f"classes are {classes.tolist()} now and were {known.tolist()} at first; a stream keeps its classes"
        )
    strange = np.setdiff1d(y, classes)
    if strange.size:
        raise ValueError(
            f"y has labels {strange[:5].tolist()} that are not among the classes of this stream, {classes.tolist()}; "
            "name all classes in the first call to partial_fit"
        )
    return classes
