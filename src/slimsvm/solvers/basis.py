"""What reducers share that choose a basis and then fit its coefficients to the labels of all rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ..kernels import Array, Matrix, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.precision import narrow
from ..rows.threads import one_openmp_thread
from .coefficients import CoefficientFit
from .demands import demands

#: a Newton step that gains a smaller share of the objective is the last one: gradients are then zero to about 1e-6
EXACT = 1e-12
#: entries of sparse rows up to which k-means has them written out
WRITTEN_OUT = 2**25


def check_C(C: float) -> None:  # noqa: N802
    """Raise ValueError unless C is a number above 0."""
    if not 0 < C < np.inf:
        raise ValueError(f"C must be a number above 0, not {C!r}")


def squared_hinge(task: Task, K: Array, regulariser: Array) -> CoefficientFit:
    """sum_i w_i max(0, 1 - y_i f(x_i))^2 + theta' R theta for the points with the kernel values K to all rows."""
    return CoefficientFit(K, task.targets, demands(task, None), task.weights, regulariser, EXACT)


def bordered(R: Array, bias: float) -> Array:
    """The regulariser of bias and coefficients from theirs apart."""
    size = R.shape[0] + 1
    both = np.zeros((size, size))
    both[0, 0], both[1:, 1:] = bias, R
    return both


def kernel_norm(K: Array) -> Array:
    """The kernel among points as a norm: |K|, which is K itself but for negative eigenvalues, which lose their sign.

    Those come from rounding or from a kernel that is not positive (the sigmoid); scikit-learn's Nystroem does the same.
    """
    values, vectors = np.linalg.eigh((K + K.T).astype(np.float64) / 2)
    return (vectors * np.abs(values)) @ vectors.T


def proportional_rows(targets: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows by chance of which any first few have the classes in proportion, to within one row of each."""
    classes = np.unique(targets, axis=0, return_inverse=True)[1].ravel()
    shuffled = rng.permutation(classes.size)
    place = np.empty(classes.size)
    for label in range(classes.max(initial=-1) + 1):
        rows = shuffled[classes[shuffled] == label]
        place[rows] = (np.arange(rows.size) + 0.5) / rows.size
    return np.argsort(place, kind="stable")[:count]


def means(X: Matrix, count: int, rounds: int, rng: np.random.Generator, weights: Array | None = None) -> Array:
    """The centres of at most `count` clusters of the rows, by so many rounds of k-means.

    Sparse rows are written out unless they are many: k-means centres dense rows only, and so a seed would give other
    means for the same rows.
    """
    X = narrow(X) if issparse(X) and X.shape[0] * X.shape[1] > WRITTEN_OUT else dense(X)
    kmeans = KMeans(min(count, X.shape[0]), n_init=1, max_iter=rounds, random_state=int(rng.integers(2**31)))
    # threads would sum in any order, and a seed would no longer fix the last digit
    with warnings.catch_warnings(), one_openmp_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct rows than clusters
        return kmeans.fit(X, sample_weight=weights).cluster_centers_


def nested_models(
    task: Task, points: Matrix, fit: CoefficientFit, sizes: Sequence[int], deadline: Deadline
) -> Iterator[Expansion]:
    """The best models on the first few of the points, for each size as far as points and time go."""
    coef, bias = np.zeros((0, task.targets.shape[1])), np.zeros(task.targets.shape[1])
    for size in sorted({min(size, points.shape[0]) for size in sizes}):
        if coef.size and deadline.over:
            return
        start = np.vstack([coef, np.zeros((size - coef.shape[0], bias.size))])
        coef, bias = fit.solve(start, bias)
        yield Expansion(task.rows.kernel, points[:size], coef, bias)
