"""The plane with two models: their boundaries, and the support vectors of the small one (Xu et al. 2015, figure 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from ...kernels import Array, Matrix
from ..tradeoff.measure import machine_of
from ..tradeoff.tasks import task_of
from .axes import new_axes

#: grid points along each side at which the models are evaluated; more: smoother boundaries
RESOLUTION = 300


class SupportVectorsDisplay:
    """Boundaries of a full and a small model of two features, and how the small one's vectors moved.

    Parameters
    ----------
    X, y : rows of two features and their labels
        Drawn as dots.
    vectors : ndarray of shape (n_vectors, 2)
        The support vectors of the small model.
    grid : tuple of two ndarray
        The grid points along each side at which the models were evaluated.
    small, full : ndarray
        Both models on the grid; `full` may be None. For two classes the decision values, else the numbers of the classes.
    moved_from : ndarray of shape (n_vectors, 2), default=None
        Where each vector came from.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    small_boundary_, full_boundary_ : QuadContourSet
        The boundaries; the full one may be None.
    rows_, vectors_, moves_ : artists
        Dots of the rows and of the support vectors, and lines from where these came; `moves_` may be None.
    """

    def __init__(
        self,
        *,
        X: Array,
        y: Array,
        vectors: Array,
        grid: tuple[Array, Array],
        small: Array,
        full: Array | None = None,
        moved_from: Array | None = None,
    ) -> None:
        self.X, self.y, self.vectors, self.grid = X, y, vectors, grid
        self.small, self.full, self.moved_from = small, full, moved_from

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Matrix,
        y: Any = None,
        *,
        full: Any = None,
        start: Any = None,
        resolution: int = RESOLUTION,
        ax: Any = None,
        **kwargs: Any,
    ) -> SupportVectorsDisplay:
        """Draw a fitted small classifier or novelty detector, which needs no labels, and the full one if it is given.

        Lines join the vectors to their places in `start`, a model with as many vectors in the same order, such as that of
        reducer="lars" for "cvm"; without it, to the nearest support vectors of the full model.
        """
        rows = np.asarray(X.toarray() if issparse(X) else X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ValueError(f"only rows of two features can be drawn; these have shape {rows.shape}")
        if task_of(estimator).name == "regress":
            raise ValueError("a regressor has no boundary to draw; TradeoffDisplay shows its errors")
        vectors = vectors_of(estimator)
        grid = _grid(np.vstack([rows, vectors]), resolution)
        display = cls(
            X=rows,
            y=np.zeros(len(rows), dtype=int) if y is None else np.unique(y, return_inverse=True)[1],
            vectors=vectors,
            grid=grid,
            small=_surface(estimator, grid),
            full=None if full is None else _surface(full, grid),
            moved_from=_origins(vectors, full, start),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> SupportVectorsDisplay:
        """Draw; further arguments are those of the dots of the support vectors."""
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        self.rows_ = self.ax_.scatter(*self.X.T, c=self.y, s=8, alpha=0.35, cmap="tab10", vmax=9, linewidths=0)
        self.full_boundary_ = None if self.full is None else self._boundary(self.full, colors="0.5", linestyles="dashed")
        self.small_boundary_ = self._boundary(self.small, colors="black")
        self.moves_ = None
        if self.moved_from is not None:
            lines = np.stack([self.moved_from, self.vectors], axis=1)
            self.moves_ = [self.ax_.plot(*line.T, color="0.3", lw=0.8)[0] for line in lines]
        settings = {"s": 70, "c": "white", "edgecolors": "black", "zorder": 3, **kwargs}
        self.vectors_ = self.ax_.scatter(*self.vectors.T, **settings)
        self.ax_.set(xlabel="feature 0", ylabel="feature 1", title=f"{len(self.vectors)} support vectors")
        if self.full is not None:
            handles = [self.ax_.plot([], [], color=color, ls=style)[0] for color, style in (("black", "-"), ("0.5", "--"))]
            self.ax_.legend(handles, ["small model", "full model"], loc="best")
        return self

    def _boundary(self, surface: Array, **settings: Any) -> Any:
        levels = [0.0] if self.y.max() < 2 else np.arange(0.5, self.y.max())
        return self.ax_.contour(*self.grid, surface, levels=levels, **settings)


def vectors_of(model: Any) -> Array:
    """Return the support vectors of a fitted model in the features of the rows, before any scaling."""
    points = machine_of(model).support_vectors_
    points = np.asarray(points.toarray() if issparse(points) else points, dtype=float)
    for _, step in reversed(model.steps[:-1] if isinstance(model, Pipeline) else []):
        points = step.inverse_transform(points)
    return points


def _grid(places: Array, resolution: int) -> tuple[Array, Array]:
    low, high = places.min(axis=0), places.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-9)
    first, second = (np.linspace(a, b, resolution) for a, b in zip(low - margin, high + margin, strict=True))
    return first, second


def _surface(model: Any, grid: tuple[Array, Array]) -> Array:
    """Return the decision values of two classes or of a novelty detector on the grid, or the numbers of the classes."""
    first, second = np.meshgrid(*grid)
    places = np.column_stack([first.ravel(), second.ravel()])
    if not hasattr(model, "classes_") or model.classes_.size == 2:
        return model.decision_function(places).reshape(first.shape)
    return np.searchsorted(model.classes_, model.predict(places)).reshape(first.shape)


def _origins(vectors: Array, full: Any, start: Any) -> Array | None:
    """Return where each vector came from."""
    if start is not None:
        origins = vectors_of(start)
        if origins.shape != vectors.shape:
            raise ValueError(f"start has {len(origins)} support vectors and the small model has {len(vectors)}")
        return origins
    if full is None:
        return None
    others = vectors_of(full)
    return others[((vectors[:, None] - others[None]) ** 2).sum(axis=2).argmin(axis=1)]
