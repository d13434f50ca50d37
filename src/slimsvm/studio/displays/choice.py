"""What a cross-validation of C, kernel width and kernel found: scores over the grid, or along C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...kernels import Array
from .axes import new_axes

#: what can be drawn
KINDS = {"grid": "scores over C and gamma", "path": "score and support vectors against C"}


class ChoiceDisplay:
    """Scores of `SlimSVCCV` or `SlimSVRCV` over C and gamma, with what is within a standard error of the best, or along C.

    Parameters
    ----------
    results : mapping
        `cv_results_`, of `GridSearchCV` too, with param_C and, for a grid, param_gamma.
    settings : mapping
        The other settings of the cells to draw, such as kernel; of the best cell by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn; for a path, `vectors_ax_` are the axes of the support vectors.
    image_ : QuadMesh
        The scores over C and gamma.
    best_ : dict
        The settings of the best cell.
    within_ : list of dict
        The settings of cells within a standard error of the best.

    Examples
    --------
    >>> import slimsvm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> choice = slimsvm.SlimSVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1], cv=3).fit(X, y)
    >>> display = slimsvm.displays.ChoiceDisplay.from_estimator(choice)  # doctest: +SKIP
    """

    def __init__(self, *, results: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> None:
        self.results = results
        params, mean = list(results["params"]), np.asarray(results["mean_test_score"], dtype=np.float64)
        if not np.isfinite(mean).any():
            raise ValueError("no cell of these results has a score; give a search whose fit has ended")
        places = [place for place, cell in enumerate(params) if all(cell.get(k) == v for k, v in (settings or {}).items())]
        if not places:
            raise ValueError(f"no cell has the settings {dict(settings or {})}; the first has {params[0]}")
        best = max((place for place in places if np.isfinite(mean[place])), key=lambda place: mean[place])
        scores = np.array([results[name] for name in results if name.startswith("split") and name.endswith("_test_score")])
        self.error_ = float(scores[:, best].std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0
        self.best_, self.best_score_ = params[best], float(mean[best])
        self.within_ = [params[place] for place in places if mean[place] >= mean[best] - self.error_]
        fixed = {name: value for name, value in self.best_.items() if name not in ("C", "gamma")}
        self.places = [place for place in places if {k: params[place].get(k) for k in fixed} == fixed]

    @classmethod
    def from_estimator(
        cls, choice: Any, *, kind: str = "grid", settings: Mapping[str, Any] | None = None, ax: Any = None, **kwargs: Any
    ) -> ChoiceDisplay:
        """Draw the scores of a fitted `SlimSVCCV`, `SlimSVRCV` or `GridSearchCV`; `kind` is "grid" or "path"."""
        if not hasattr(choice, "cv_results_"):
            raise ValueError(f"{type(choice).__name__} has no cv_results_; call its fit first")
        return cls(results=choice.cv_results_, settings=settings).plot(kind=kind, ax=ax, **kwargs)

    def plot(self, *, kind: str = "grid", ax: Any = None, **kwargs: Any) -> ChoiceDisplay:
        """Draw; further arguments are those of `Axes.pcolormesh` for a grid, and of `Axes.errorbar` for a path."""
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; there are {KINDS}")
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        gammas = list(dict.fromkeys(str(cell.get("gamma")) for cell in self._cells()))
        if kind == "grid" and len(gammas) > 1:
            self._grid(gammas, kwargs)
        else:
            self._path(gammas, kwargs)
        return self

    def _cells(self) -> list[dict[str, Any]]:
        return [self.results["params"][place] for place in self.places]

    def _column(self, name: str) -> Array:
        return np.asarray(self.results[name], dtype=np.float64)[self.places]

    def _grid(self, gammas: list[str], settings: dict[str, Any]) -> None:
        """Draw a cell for each C and gamma; dots mark those within a standard error of the best."""
        cells, mean = self._cells(), self._column("mean_test_score")
        costs = sorted({cell["C"] for cell in cells})
        table = np.full((len(gammas), len(costs)), np.nan)
        place = [(gammas.index(str(cell.get("gamma"))), costs.index(cell["C"])) for cell in cells]
        for (line, column), score in zip(place, mean, strict=True):
            table[line, column] = score
        self.image_ = self.ax_.pcolormesh(np.arange(len(costs) + 1), np.arange(len(gammas) + 1), table, **settings)
        self.figure_.colorbar(self.image_, ax=self.ax_, label="mean score")
        near = [where for cell, where in zip(cells, place, strict=True) if cell in self.within_]
        self.ax_.plot([c + 0.5 for _, c in near], [g + 0.5 for g, _ in near], "w.", label="within a standard error")
        best = place[cells.index(self.best_)]
        self.ax_.plot(best[1] + 0.5, best[0] + 0.5, "w*", ms=12, label=f"best, {self.best_score_:.4g}")
        step = max(len(costs) // 8, 1)
        self.ax_.set_xticks(np.arange(len(costs))[::step] + 0.5, [f"{C:.3g}" for C in costs[::step]])
        self.ax_.set_yticks(np.arange(len(gammas)) + 0.5, [_short(gamma) for gamma in gammas])
        self.ax_.set(xlabel="C", ylabel="gamma")
        self.ax_.legend(framealpha=0.3, facecolor="0.3", labelcolor="w")

    def _path(self, gammas: list[str], settings: dict[str, Any]) -> None:
        """Draw scores against C, a line for each gamma, with standard errors, and the support vectors if they are known."""
        cells, mean, deviation = self._cells(), self._column("mean_test_score"), self._column("std_test_score")
        folds = sum(name.startswith("split") and name.endswith("_test_score") for name in self.results)
        self.vectors_ax_ = self.ax_.twinx() if "mean_n_support" in self.results else None
        for gamma in gammas:
            mine = sorted(
                (place for place, cell in enumerate(cells) if str(cell.get("gamma")) == gamma), key=lambda k: cells[k]["C"]
            )
            costs = [cells[place]["C"] for place in mine]
            label = "score" if gamma == "None" else f"gamma {_short(gamma)}"
            errors = deviation[mine] / np.sqrt(max(folds - 1, 1))
            drawn = self.ax_.errorbar(costs, mean[mine], yerr=errors, label=label, **{"fmt": "o-", "ms": 3, **settings})
            if self.vectors_ax_ is not None:
                vectors = self._column("mean_n_support")[mine]
                self.vectors_ax_.plot(costs, vectors, ":", color=drawn.lines[0].get_color())
        self.ax_.axhspan(self.best_score_ - self.error_, self.best_score_, color="0.9", zorder=0)
        self.ax_.set(xlabel="C", ylabel="mean score", xscale="log")
        if self.vectors_ax_ is not None:
            self.vectors_ax_.set(ylabel="support vectors (dotted)", yscale="log")
        self.ax_.legend()


def _short(gamma: str) -> str:
    try:
        return f"{float(gamma):.3g}"
    except ValueError:
        return gamma
