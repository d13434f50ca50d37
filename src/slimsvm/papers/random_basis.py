"""Small models with a basis that the labels have no part in: random rows (RSVM), or landmarks (Nyström)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array, Kernel, Precomputed
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..solvers.basis import bordered, check_C, kernel_norm, nested_models, proportional_rows

REGULARISERS = ("kernel", "coefficients")


@dataclass(frozen=True)
class RSVM(Reducer):
    """A random part of the rows J, each class in proportion, is the basis; its coefficients are fitted to all rows:

        minimise  1/2 (|beta|^2 + b^2) + C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2,    f(x) = sum_J beta_j k(x, x_j) + b

    That is the paper's problem, regulariser="coefficients". With "kernel" it is 1/2 beta' K_JJ beta, the norm of f that
    an SVM has, and b is free.

    The paper smooths the hinge and stops Newton's method at a tolerance; here the problem itself is solved, to
    rounding. The basis of a smaller model is a part of that of a larger one. The full model is not used.

    Y.-J. Lee and O. L. Mangasarian, "RSVM: Reduced support vector machines", SIAM Data Mining 2001.
    """

    C: float = 1.0
    regulariser: str = "kernel"
    needs_model: ClassVar[bool] = False
    real_valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.regulariser not in REGULARISERS:
            raise ValueError(f"unknown regulariser {self.regulariser!r}; there are {list(REGULARISERS)}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield a model for each size; smaller models use the first points of the largest one."""
        index = proportional_rows(task.groups, sizes[-1], task.rng)
        points = task.rows.take(index)
        norm = self._norm(task.rows.block(index)) / self.C
        for small in nested_models(task, points, task.rows.against(points), norm, sizes):
            yield small, f"C={self.C:g}, regulariser={self.regulariser}"

    def _norm(self, K: Array) -> Array:
        if self.regulariser == "coefficients":
            return np.eye(K.shape[0] + 1)
        return bordered(kernel_norm(K), bias=0.0)


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
    at most `sample` rows, or "random" rows as in scikit-learn, but with each class in proportion.
    Rows of a precomputed kernel have no means, so their landmarks are always random. The full model is not used.

    C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.
    """

    C: float = 1.0
    landmarks: str = "k-means"
    sample: int = 20_000
    needs_model: ClassVar[bool] = False
    real_valued: ClassVar[bool] = True
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
        """Return True: landmarks are rows if the kernel allows no means."""
        return True

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield a model for each size: random landmarks are drawn once, means are computed for each size."""
        if self.landmarks == "random" or isinstance(task.rows.kernel, Precomputed):
            index = proportional_rows(task.groups, sizes[-1], task.rng)
            points, norm = task.rows.take(index), self._norm(task.rows.block(index))
            for small in nested_models(task, points, task.rows.against(points), norm, sizes):
                yield small, f"C={self.C:g}, landmarks=random"
            return
        for number, size in enumerate(sizes):
            if number and task.run.over:
                return
            centres = self._means(task, size)
            against, norm = task.rows.against(centres), self._norm(task.rows.among(centres))
            small = next(nested_models(task, centres, against, norm, [size]))
            yield small, f"C={self.C:g}, landmarks=k-means"
            if centres.shape[0] < size:
                return

    def _norm(self, among: Array) -> Array:
        return bordered(kernel_norm(among), bias=1.0) / (2 * self.C)

    def _means(self, task: Task, count: int) -> Array:
        """Return the distinct centres of at most `count` clusters."""
        rows = task.sample(max(self.sample, count))
        centres = task.rows.means(rows, count, task.rng, rounds=ROUNDS, weights=task.weights[rows])
        return np.unique(centres, axis=0)
