"""Kernels: the formula of each. Tiles, threads, caches, precision and devices belong to `rows`.

A kernel is a frozen dataclass with `__call__(A, B)`, the plain matrix of its values for two sets of rows. Kernels of the
inner product (`InnerKernel`) write only their `tail`, from inner products and squared norms to values, and `slope`, the
derivative. `rows` computes the inner products in tiles. A new kernel is one class and one line in `KERNELS`.

Methods that take `xp` work on arrays of that namespace of the array API standard (NumPy by default, torch, CuPy).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse import vstack as sparse_vstack
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, manhattan_distances

from ..text import nearest

Array = np.ndarray
Matrix = Any  # a dense array or a CSR array
#: largest value of a polynomial kernel; methods form products of two values, which must be float64 numbers
LARGEST_VALUE = 1e150


def inner_products(A: Matrix, B: Matrix) -> Array:
    """Return A B' as a dense array, for dense or sparse A and B."""
    G = A @ B.T
    return G.toarray() if issparse(G) else G


def scaled(A: Matrix, factors: Array | None) -> Matrix:
    """Return rows with each feature multiplied by its factor; the rows themselves where factors is None."""
    if factors is None:
        return A
    if issparse(A):
        return csr_array((A.data * factors[A.indices], A.indices, A.indptr), shape=A.shape)
    return A * factors


def squared_norms(A: Matrix) -> Array:
    """Return the squared Euclidean norm of each row, summed in float64."""
    if issparse(A):
        return _row_sums(A, np.square(A.data, dtype=np.float64))
    return np.einsum("ij,ij->i", A, A, dtype=np.float64)


def _row_sums(A: csr_array, values: Array) -> Array:
    """Return the sum of each row of A with `values` as its entries; scipy's own sums take memory for every column."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return np.bincount(rows, weights=values, minlength=A.shape[0])


class Kernel:
    """A function k(x, z) of two rows; calling it gives the matrix of values for two sets of rows."""

    name: ClassVar[str]
    #: whether k(x + t, z + t) = k(x, z); rows are then centred first, which loses fewer digits in float32
    translation_invariant: ClassVar[bool] = False
    #: whether `pullback` is defined
    differentiable: ClassVar[bool] = False
    #: whether `values` is defined, which runs on arrays of any namespace
    portable: ClassVar[bool] = False
    #: whether every matrix of its values is positive semidefinite
    definite: ClassVar[bool] = True

    def __call__(self, A: Matrix, B: Matrix) -> Array:
        """Return K with K_ij = k(a_i, b_j)."""
        raise NotImplementedError

    def values(self, A: Any, B: Any, xp: Any) -> Any:
        """Return K for dense rows and points that are arrays of the namespace xp."""
        raise NotImplementedError

    def diagonal(self, A: Matrix, ids: Array) -> Array:  # noqa: ARG002
        """Return k(a_i, a_i) for each training row."""
        return np.array([self(A[i : i + 1], A[i : i + 1])[0, 0] for i in range(A.shape[0])])

    def points(self, A: Matrix, ids: Array) -> Matrix:  # noqa: ARG002
        """Return what an expansion keeps of the training rows A, which have the numbers `ids` in the training set."""
        return A

    def check_rows(self, X: Matrix) -> None:
        """Raise ValueError where the kernel is not defined for these rows."""

    def inside(self, Z: Array) -> Array:
        """Return the points that moved points stand for, where the kernel is not defined for all."""
        return Z

    def pullback(self, A: Matrix, Z: Array, K: Array, W: Array, xp: Any = np) -> Array:  # noqa: ARG002
        """Return sum_i W_ij dk(a_i, z_j) / dz_j for each point z_j, (m, d), with K = K(A, Z). W is overwritten.

        It turns W, a gradient with respect to kernel values, into the gradient with respect to the points.
        """
        raise self._no_gradients()

    def _no_gradients(self) -> ValueError:
        return ValueError(f"the {self.name} kernel has no gradients, so points cannot be moved with it")


class InnerKernel(Kernel):
    """A kernel of the inner product and the two squared norms."""

    portable: ClassVar[bool] = True

    def tail(self, G: Array, a: Array, b: Array, xp: Any = np) -> Array:
        """Return kernel values from inner products G and squared norms a (rows), b (columns), in place where possible."""
        raise NotImplementedError

    def slope(self, K: Array, inner: Callable[[], Array], xp: Any = np) -> tuple[float, Array | None]:  # noqa: ARG002
        """Return dk/d<x, z> as a number and the array it multiplies (None: ones), from K or the inner products."""
        raise self._no_gradients()

    def pullback(self, A: Matrix, Z: Array, K: Array, W: Array, xp: Any = np) -> Array:
        """Carry W back to the points: dk/dz = slope x, or slope (x - z) for a function of the distance |x - z|^2."""
        scale, factor = self.slope(K, lambda: inner_products(A, Z), xp)
        if factor is not None:
            W *= factor
        pull = transposed_product(W, A)
        if self.translation_invariant:
            pull = pull - xp.sum(W, axis=0)[:, None] * Z
        return scale * pull

    def amplification(self, radius: float) -> float:
        """Return a bound on |dk| per unit of relative rounding in inner products of rows with |x|^2 <= radius."""
        raise NotImplementedError

    def __call__(self, A: Matrix, B: Matrix) -> Array:
        """Return K by one product and the tail."""
        return self.tail(inner_products(A, B), squared_norms(A), squared_norms(B))

    def diagonal(self, A: Matrix, ids: Array) -> Array:  # noqa: ARG002
        a = squared_norms(A)
        return self.tail(a[:, None].copy(), a, np.zeros(1)).ravel()


@dataclass(frozen=True)
class Linear(InnerKernel):
    """<x, z>."""

    name: ClassVar[str] = "linear"

    differentiable: ClassVar[bool] = True

    def tail(self, G: Array, a: Array, b: Array, xp: Any = np) -> Array:  # noqa: ARG002
        """Return the inner products themselves."""
        return G

    def slope(self, K: Array, inner: Callable[[], Array], xp: Any = np) -> tuple[float, Array | None]:  # noqa: ARG002
        """Return 1."""
        return 1.0, None

    def amplification(self, radius: float) -> float:
        """Return the largest inner product."""
        return radius


@dataclass(frozen=True)
class RBF(InnerKernel):
    """exp(-gamma |x - z|^2)."""

    name: ClassVar[str] = "rbf"
    translation_invariant: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    gamma: float = 1.0

    def tail(self, G: Array, a: Array, b: Array, xp: Any = np, widths: Any = 1.0) -> Array:
        """Return the values for |x - z|^2 = a + b - 2 G; a distance that rounding takes below 0 is set to 0.

        `widths` multiply gamma of each column.
        """
        G *= 2
        G -= a[:, None]
        G -= b
        G = np.minimum(G, 0, out=G) if xp is np else xp.clip(G, max=0.0)
        G *= self.gamma * widths
        return np.exp(G, out=G) if xp is np else xp.exp(G)

    def __call__(self, A: Matrix, B: Matrix, widths: Any = 1.0) -> Array:
        return self.tail(inner_products(A, B), squared_norms(A), squared_norms(B), widths=widths)

    def amplification(self, radius: float) -> float:
        """Return the bound of an exponent that is a difference of numbers up to 4 gamma radius."""
        return 4 * self.gamma * radius

    def slope(self, K: Array, inner: Callable[[], Array], xp: Any = np) -> tuple[float, Array | None]:  # noqa: ARG002
        """Return 2 gamma k."""
        return 2 * self.gamma, K

    def diagonal(self, A: Matrix, ids: Array) -> Array:  # noqa: ARG002
        """Return ones."""
        return np.ones(A.shape[0])


@dataclass(frozen=True)
class Poly(InnerKernel):
    """(gamma <x, z> + coef0)^degree."""

    name: ClassVar[str] = "poly"
    differentiable: ClassVar[bool] = True
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    def tail(self, G: Array, a: Array, b: Array, xp: Any = np) -> Array:  # noqa: ARG002
        """Return powers by squaring: np.power is many times slower."""
        G *= self.gamma
        G += self.coef0
        return _raised(G, self.degree) if self.degree else xp.ones_like(G)

    def amplification(self, radius: float) -> float:
        """Return the derivative of t^degree at the largest t, times that t; infinite where it overflows."""
        t = self.gamma * radius + abs(self.coef0)
        try:
            return max(self.degree, 1) * t ** max(self.degree, 1)
        except OverflowError:
            return np.inf

    def check_rows(self, X: Matrix) -> None:
        """Raise ValueError for rows whose kernel values would be beyond `LARGEST_VALUE`."""
        if not self.amplification(float(squared_norms(X).max(initial=0.0))) <= LARGEST_VALUE:
            raise ValueError(
                f"(gamma <x, z> + coef0)^degree of these rows is beyond {LARGEST_VALUE:g}, with gamma={self.gamma:g}, "
                f"coef0={self.coef0:g} and degree={self.degree}; scale the features, e.g. with StandardScaler, or take a "
                "smaller gamma or degree"
            )

    def slope(self, K: Array, inner: Callable[[], Array], xp: Any = np) -> tuple[float, Array | None]:
        """Return degree gamma (gamma <x, z> + coef0)^(degree - 1)."""
        if not self.degree:
            return 0.0, None
        lower = Poly(self.gamma, self.coef0, self.degree - 1)
        return self.degree * self.gamma, lower.tail(inner(), K, K, xp)


@dataclass(frozen=True)
class Sigmoid(InnerKernel):
    """tanh(gamma <x, z> + coef0)."""

    name: ClassVar[str] = "sigmoid"
    differentiable: ClassVar[bool] = True
    definite: ClassVar[bool] = False
    gamma: float = 1.0
    coef0: float = 0.0

    def tail(self, G: Array, a: Array, b: Array, xp: Any = np) -> Array:  # noqa: ARG002
        """Return tanh of the affine inner product."""
        G *= self.gamma
        G += self.coef0
        return np.tanh(G, out=G) if xp is np else xp.tanh(G)

    def amplification(self, radius: float) -> float:
        """Return the bound of the argument: tanh has a slope of 1 at most."""
        return self.gamma * radius + abs(self.coef0)

    def slope(self, K: Array, inner: Callable[[], Array], xp: Any = np) -> tuple[float, Array | None]:  # noqa: ARG002
        """Return gamma (1 - k^2)."""
        return self.gamma, 1 - K**2


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma |x - z|_1)."""

    name: ClassVar[str] = "laplacian"
    translation_invariant: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    portable: ClassVar[bool] = True
    gamma: float = 1.0

    def __call__(self, A: Matrix, B: Matrix, widths: Any = 1.0) -> Array:
        """Return K from Manhattan distances; `widths` multiply gamma of each column."""
        D = manhattan_distances(A, B) if issparse(A) or issparse(B) else cdist(A, B, "cityblock")
        D *= -self.gamma * widths
        return np.exp(D, out=D)

    def values(self, A: Any, B: Any, xp: Any, widths: Any = 1.0) -> Any:
        """Return K from Manhattan distances, summed feature by feature; `widths` multiply gamma of each column."""
        return xp.exp(-self.gamma * widths * _feature_sums(A, B, lambda x, z: xp.abs(x - z), xp))

    def diagonal(self, A: Matrix, ids: Array) -> Array:  # noqa: ARG002
        """Return ones."""
        return np.ones(A.shape[0])

    def pullback(self, A: Matrix, Z: Array, K: Array, W: Array, xp: Any = np) -> Array:
        """Carry W back to the points: dk/dz = gamma k sign(x - z), and 0 where x = z, at the kernel's kink."""
        W *= K
        A = A.toarray() if issparse(A) else A
        return self.gamma * xp.stack([W[:, j] @ xp.sign(A - Z[j, :]) for j in range(Z.shape[0])])


@dataclass(frozen=True)
class Chi2(Kernel):
    """exp(-gamma sum_f (x_f - z_f)^2 / (x_f + z_f)) for rows without negative entries.

    A point that moves may pass 0, where the kernel ends. Its entries therefore count with their absolute values: the way
    goes on as if 0 were a mirror, and `inside` returns the point that it stands for.
    """

    name: ClassVar[str] = "chi2"
    differentiable: ClassVar[bool] = True
    portable: ClassVar[bool] = True
    gamma: float = 1.0

    def __call__(self, A: Matrix, B: Matrix) -> Array:
        """Return K by scikit-learn's chi2_kernel, which takes dense rows."""
        if not A.shape[0] * B.shape[0]:
            return np.zeros((A.shape[0], B.shape[0]))
        return chi2_kernel(dense(A), np.abs(dense(B)), gamma=self.gamma)

    def values(self, A: Any, B: Any, xp: Any) -> Any:
        """Return K, summed feature by feature; a feature that is 0 in both rows adds nothing."""

        def share(x: Any, z: Any) -> Any:
            total = x + z
            return (x - z) ** 2 / xp.where(total > 0, total, xp.ones_like(total))

        return xp.exp(-self.gamma * _feature_sums(A, xp.abs(B), share, xp))

    def pullback(self, A: Matrix, Z: Array, K: Array, W: Array, xp: Any = np) -> Array:
        """Carry W back to the points: dk/dz = -gamma k (1 - (2x / (x + |z|))^2) sign(z), and 0 where x = z = 0."""
        W *= K
        A, ends = A.toarray() if issparse(A) else A, xp.abs(Z)
        slopes = []
        for j in range(Z.shape[0]):
            total = A + ends[j, :]
            share = 2 * A / xp.where(total > 0, total, xp.ones_like(total))
            slopes.append(xp.sum(W[:, j]) - W[:, j] @ share**2)
        return -self.gamma * xp.sign(Z) * xp.stack(slopes)

    def inside(self, Z: Array) -> Array:
        return np.abs(Z)

    def diagonal(self, A: Matrix, ids: Array) -> Array:  # noqa: ARG002
        """Return ones."""
        return np.ones(A.shape[0])

    def check_rows(self, X: Matrix) -> None:
        """Raise ValueError for negative features, which have no chi-squared distance."""
        smallest = X.min() if X.shape[0] else 0.0
        if not smallest >= 0:
            raise ValueError(
                "Negative values in data passed to SlimSVC with the chi2 kernel, which needs features >= 0 "
                f"(the smallest is {smallest:.6g}); shift or scale the features, e.g. with MinMaxScaler"
            )


@dataclass(frozen=True)
class Custom(Kernel):
    """A function of two sets of rows that returns the matrix of kernel values.

    On a device it gets arrays of that device's library, such as torch's tensors, and returns such an array.
    """

    name: ClassVar[str] = "callable"
    portable: ClassVar[bool] = True
    function: Callable[[Matrix, Matrix], Array]

    def __call__(self, A: Matrix, B: Matrix) -> Array:
        """Return K as the function gives it, checked for its shape."""
        K = np.asarray(self.function(A, B))
        if K.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"the kernel function returned an array of shape {K.shape} for {A.shape[0]} and {B.shape[0]} rows; "
                f"it must return {(A.shape[0], B.shape[0])}"
            )
        return K

    def values(self, A: Any, B: Any, xp: Any) -> Any:
        """Return K as the function gives it, checked for its library and its shape."""
        library, expected = xp.__name__.rpartition(".")[2], (A.shape[0], B.shape[0])
        try:
            K = self.function(A, B)
        except (TypeError, AttributeError, RuntimeError) as error:
            raise ValueError(
                f"the kernel function failed on arrays of {library} ({error}); write it with functions of {library}, or "
                "use device='cpu'"
            ) from error
        if type(K) is not type(A) or tuple(K.shape) != expected:
            raise ValueError(
                f"the kernel function returned {type(K).__name__} of shape {tuple(np.shape(K))} for arrays of {library}; "
                f"it must return {type(A).__name__} of shape {expected}, or use device='cpu'"
            )
        return K


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Rows are rows of a kernel matrix; a point is the number of its column."""

    name: ClassVar[str] = "precomputed"
    portable: ClassVar[bool] = True

    def __call__(self, A: Matrix, B: Matrix) -> Array:
        """Return the columns B of the rows A."""
        return dense(A[:, np.asarray(B, dtype=np.intp).ravel()])

    def values(self, A: Any, B: Any, xp: Any) -> Any:
        """Return the columns B, whole numbers (m,)."""
        return xp.take(A, B, axis=1)

    def diagonal(self, A: Matrix, ids: Array) -> Array:
        """Return each row's value in its own column."""
        return np.array([A[i, k] for i, k in enumerate(ids)], dtype=np.float64)

    def points(self, A: Matrix, ids: Array) -> Matrix:  # noqa: ARG002
        """Return the numbers of the rows, as a column."""
        return np.asarray(ids)[:, None]

    def check_rows(self, X: Matrix) -> None:
        """Raise ValueError unless the matrix is square: it needs all pairs of training rows."""
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel matrix of the training rows must be square, not "
                f"{X.shape[0]} x {X.shape[1]}; give k(x_i, x_j) for all pairs of training rows"
            )


def transposed_product(W: Array, A: Matrix) -> Array:
    """Return W' A for dense or sparse A."""
    return np.asarray(A.T @ W).T if issparse(A) else W.T @ A


def _feature_sums(A: Any, B: Any, term: Callable[[Any, Any], Any], xp: Any) -> Any:
    """Return sum_f term(a_if, b_jf) for each pair of rows, without an array of all pairs and features."""
    total = xp.zeros((A.shape[0], B.shape[0]), dtype=A.dtype, device=A.device)
    for f in range(A.shape[1]):
        total += term(A[:, f : f + 1], B[:, f])
    return total


def dense(A: Matrix) -> Array:
    """Return the rows as a dense array."""
    return A.toarray() if issparse(A) else np.asarray(A)


def _raised(G: Array, degree: int) -> Array:
    """Return G^degree for degree >= 1, in place, with about log2(degree) products."""
    while degree % 2 == 0:
        G *= G
        degree //= 2
    base = 1 * G if degree > 1 else G
    while degree > 1:
        base *= base
        degree //= 2
        if degree % 2:
            G *= base
    return G


def stacked(above: Matrix, below: Matrix) -> Matrix:
    """Return rows above other rows, in the form of the first ones."""
    if issparse(above):
        return csr_array(sparse_vstack([above, below], format="csr"))
    return np.vstack([above, dense(below)])


KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel for kernel in (Linear, RBF, Poly, Sigmoid, Laplacian, Chi2, Precomputed)
}


def make_kernel(kernel: str | Callable[..., Array], *, gamma: float, degree: int, coef0: float) -> Kernel:
    """Return the kernel of that name, with those of the parameters that it takes; a function becomes `Custom`."""
    if callable(kernel):
        return Custom(kernel)
    if not isinstance(kernel, str) or kernel not in KERNELS:
        near = nearest(str(kernel), KERNELS)
        hint = "" if near is None else f"did you mean {near!r}? "
        raise ValueError(
            f"unknown kernel {kernel!r}; {hint}there are {sorted(KERNELS)}, or give a function of two sets of rows"
        )
    kind = KERNELS[kernel]
    given = {"gamma": float(gamma), "degree": int(degree), "coef0": float(coef0)}
    fields = getattr(kind, "__dataclass_fields__", {})
    return kind(**{name: value for name, value in given.items() if name in fields})


def resolve_gamma(gamma: str | float, X: Matrix, weights: Array | None = None) -> float:
    """Return gamma as a number: "scale" is 1 / (d var X) and "auto" is 1 / d, as in scikit-learn.

    A weight counts a row as many times in the variance.
    """
    if not isinstance(gamma, str):
        if not isinstance(gamma, Real) or not 0 < float(gamma) < np.inf:
            raise ValueError(f"gamma must be 'scale', 'auto' or a number above 0, not {gamma!r}")
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        raise ValueError(f"gamma must be 'scale', 'auto' or a number above 0, not {gamma!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        return width_of(X.shape[1], _variance(X, weights))


def width_of(n_features: int, variance: float) -> float:
    """Return the gamma of "scale": 1 / (d var X), and 1 where all numbers are equal."""
    if not np.isfinite(n_features * variance):
        raise ValueError("gamma='scale' has no value: the variance of the features is beyond float64. Scale the features")
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def _variance(X: Matrix, weights: Array | None) -> float:
    """Return the variance of all entries of X."""
    if hasattr(X, "variance"):  # rows on a device compute it there
        return X.variance(weights)
    if weights is None and not issparse(X) and X.shape[0] <= 4096:  # to the last bit as SVC, which makes a copy
        return float(np.asarray(X, dtype=np.float64).var())
    row_mean = _row_sums(X, X.data) / X.shape[1] if issparse(X) else X.mean(axis=1, dtype=np.float64)
    mean = np.average(row_mean, weights=weights)
    if issparse(X):
        spread = squared_norms(X) / X.shape[1] - 2 * mean * row_mean + mean**2
    else:
        # a block at a time, because var makes a copy; no digits are lost to large means
        parts = [np.var(X[start : start + 4096], axis=1, dtype=np.float64) for start in range(0, X.shape[0], 4096)]
        spread = np.concatenate(parts) + (row_mean - mean) ** 2
    return float(np.average(spread, weights=weights))
