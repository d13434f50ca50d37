"""The Nyström approximation with a linear SVM on it: the small kernel machine that scikit-learn alone can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array, Kernel, Precomputed
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.host import HostRows
from ..solvers.basis import bordered, check_C, kernel_norm, means, nested_models, proportional_rows, squared_hinge
from ..solvers.coefficients import CoefficientFit
from .base import Models, Reducer

LANDMARKS = ("k-means", "random")
#: rounds of k-means; later ones change little
ROUNDS = 20


@dataclass(frozen=True)
class Nystroem(Reducer):
    """scikit-learn's Nystroem followed by LinearSVC, as one expansion over the landmarks z.

    The features are K_zz^(-1/2) k_z(x), and a linear function <v, features> + b of them is an expansion with the
    coefficients beta = K_zz^(-1/2) v and |v|^2 = beta' K_zz beta. So LinearSVC's problem (squared hinge, and a bias that
    is regularised as the weights are, with intercept_scaling=1) is

        minimise  1/2 (beta' K_zz beta + b^2) + C sum_i w_i max(0, 1 - y_i f(x_i))^2,    f(x) = sum_j beta_j k(x, z_j) + b

    which is solved exactly. `landmarks` are "k-means", the centres of that many clusters (Zhang, Tsang & Kwok 2008) among
    at most `sample` rows, or "random" rows, each class in proportion, as scikit-learn has them but for the proportion.
    Rows of a precomputed kernel have no means, so their landmarks are random always. The full model plays no part.

    C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.
    """

    C: float = 1.0
    landmarks: str = "k-means"
    sample: int = 20_000
    needs_model: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    sizes_per_doubling: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.landmarks not in LANDMARKS:
            raise ValueError(f"unknown landmarks {self.landmarks!r}; there are {list(LANDMARKS)}")
        if not self.sample >= 1:
            raise ValueError(f"sample must be a number of rows of at least 1, not {self.sample!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:  # noqa: ARG003
        """Every kernel: landmarks are rows where means are not to be had."""
        return True

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Random landmarks are drawn once for all sizes; means are sought for each."""
        if self.landmarks == "random" or isinstance(task.rows.kernel, Precomputed):
            index = proportional_rows(task.targets, sizes[-1], task.rng)
            points = task.rows.points(index)
            K = task.rows.matrix(points)
            for small in nested_models(task, points, self._fit(task, K, K[index]), sizes, deadline):
                yield small, f"C={self.C:g}, landmarks=random"
            return
        for number, size in enumerate(sizes):
            if number and deadline.over:
                return
            centres = self._means(task, size)
            yield self._model_on(task, centres), f"C={self.C:g}, landmarks=k-means"
            if centres.shape[0] < size:
                return

    def _fit(self, task: Task, K: Array, among: Array) -> CoefficientFit:
        return squared_hinge(task, K, bordered(kernel_norm(among), bias=1.0) / (2 * self.C))

    def _model_on(self, task: Task, landmarks: Array) -> Expansion:
        gram, size, outputs = task.rows, landmarks.shape[0], task.targets.shape[1]
        among = HostRows(gram.kernel, landmarks, gram.meter, cache_mb=0.0).block(np.arange(size))
        fit = self._fit(task, gram.matrix(landmarks), among)
        return Expansion(gram.kernel, landmarks, *fit.solve(np.zeros((size, outputs)), np.zeros(outputs)))

    def _means(self, task: Task, count: int) -> Array:
        """The distinct centres of at most `count` clusters."""
        rows = task.sample(max(self.sample, count))
        return np.unique(means(task.rows.X[rows], count, ROUNDS, task.rng, task.weights[rows]), axis=0)
