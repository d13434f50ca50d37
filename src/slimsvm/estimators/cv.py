"""SlimSVCCV and SlimSVRCV: C, gamma and the kernel by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..clock import Deadline, check_time_limit
from ..kernels import Array, Matrix
from ..parameters import Parameter, estimator, parameter
from ..run import NO_CHECKPOINT, Checkpoint, silent
from ..selection.cells import groups_of, results_table
from ..selection.judge import check_scorer_name
from ..text import warn_user
from .choosing import Samples, Search, Split
from .resume import CheckpointFile, Interrupted, fingerprint, identity_of, place_and_seconds
from .svc import SlimSVC
from .svr import SlimSVR
from .validation import _check_no_negative, check_settings, seed_of, training_rows

#: the share of a time limit for the search, if the best setting is fitted to all rows afterwards
SEARCH_SHARE = 0.8
#: the values of `kernels` and `gammas` that leave those of an estimator as they are
DEFAULT_KERNELS, DEFAULT_GAMMAS = ("rbf",), ("scale",)

#: the parameters of a search
SEARCHED = {
    "estimator": Parameter(
        None,
        "SlimSVC for SlimSVCCV, SlimSVR for SlimSVRCV",
        """
        Its other settings are used in all fits. None: one with its defaults. Full models trained by "smo" share their
        work; with a budget, a tolerance, a calibration, another trainer or a limit of time or steps, each setting is
        fitted by itself, as slowly as in `GridSearchCV`; `shared_` says which.""",
    ),
    "Cs": Parameter(10, "int or sequence of float", "The values of C, or so many of them from 0.01 to 1,000."),
    "gammas": Parameter(
        DEFAULT_GAMMAS,
        'sequence of float or {"scale", "auto"}',
        'The kernel widths. "scale" is computed once, from all rows. The default leaves that of the estimator.',
    ),
    "kernels": Parameter(
        DEFAULT_KERNELS,
        "sequence of str or callable",
        "The kernels. The default leaves that of the estimator. A callable works, but its values take longer.",
    ),
    "epsilons": Parameter(None, "sequence of float", "The radii of the tube. None: that of the estimator."),
    "cv": Parameter(
        None, "int, splitter or iterable", "The folds, as in `GridSearchCV`. None: 5, stratified by class, not shuffled."
    ),
    "scoring": Parameter(
        None,
        "str or callable",
        """
        What is largest for the best setting: the name of one of scikit-learn's scorers, or a callable(estimator, X, y).
        None: the share of correct labels, or R^2.""",
    ),
    "refit": Parameter(
        True,
        "bool or callable",
        """
        Whether the best setting is fitted to all rows. A callable gets `cv_results_` and returns the number of the cell
        to choose, as in `GridSearchCV`.""",
    ),
    "time_limit": Parameter(
        None,
        "float",
        """
        The most seconds for the search and the last fit. The best of the settings scored by then is chosen, with a
        warning.""",
    ),
    "checkpoint": Parameter(
        None,
        "str, path-like or (path, seconds)",
        """
        A file in which scores are saved. After a crash, the same call of `fit` continues from it. It is deleted at the
        end.""",
    ),
    "verbose": Parameter(False, "bool", "Print each score, and how long the rest will take."),
}


def searched(name: str) -> Any:
    """Return the field of a parameter of a search."""
    return parameter(name, SEARCHED)


def best_has(name: str) -> Callable[[Any], bool]:
    """Return a check that the best estimator, or before `fit` the given one, has a method."""

    def check(choice: Any) -> bool:
        getattr(getattr(choice, "best_estimator_", None) or choice._given(), name)
        return True

    return check


@estimator
class GridChoice(MetaEstimatorMixin, BaseEstimator):
    """What both have in common: the search over a grid, and predictions of the best estimator."""

    estimator: Any = searched("estimator")
    _: KW_ONLY
    Cs: int | Sequence[float] = searched("Cs")
    gammas: Sequence[float | str] = searched("gammas")
    kernels: Sequence[str | Callable[..., Array]] = searched("kernels")
    cv: Any = searched("cv")
    scoring: str | Callable[..., float] | None = searched("scoring")
    refit: bool | Callable[[dict[str, Any]], int] = searched("refit")
    time_limit: float | None = searched("time_limit")
    checkpoint: Any = searched("checkpoint")
    verbose: bool = searched("verbose")

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Score all settings by cross-validation, and fit the best one to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows; the kernel matrix of all of them for kernel="precomputed".
        y : array-like of shape (n_samples,)
            Their labels or values.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C by row in training, and weights the scores, as in `GridSearchCV`.
        **params : dict
            `groups` for the splitter; with metadata routing, what splitter and scorer ask for.

        Returns
        -------
        self : SlimSVCCV or SlimSVRCV
            The fitted estimator.
        """
        check_time_limit(self.time_limit)
        deadline, template = Deadline(self.time_limit), self._template()
        groups = groups_of(self.Cs, *self._widths(template), getattr(self, "epsilons", None))
        splits_with, score_with = self._routed(sample_weight, params)
        given_X = X
        X, y = training_rows(template, X, y, least=2)
        if y.ndim > 1:
            raise ValueError(
                f"{type(self).__name__} chooses the settings of one target, and y has {y.shape[1]} columns; give one of "
                "them, or choose for all by scikit-learn's GridSearchCV around a SlimSVR"
            )
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        _check_no_negative(weights)
        splits = self._splits(X, y, template, splits_with)
        samples = Samples(template, X, y, weights, sample_weight is not None, splits, self._scorer(), score_with)
        share = SEARCH_SHARE if self.refit is not False else 1.0
        tell = self._tell if self.verbose else silent
        interrupted = False
        with self._saved(samples) as checkpoint:
            search = Search(samples, groups, deadline=deadline.share(share), checkpoint=checkpoint, tell=tell)
            try:
                search.run()
            except KeyboardInterrupt:
                if all(cell is None for cell in search.found):
                    raise
                interrupted = True
            self._keep(search, template)
        if interrupted:
            raise Interrupted(self)
        if self.refit is not False:
            self._fit_best(given_X, y, sample_weight, deadline)
        if self.checkpoint is not None and all(cell is not None for cell in search.found):
            place_and_seconds(self.checkpoint)[0].unlink(missing_ok=True)
        return self

    def _given(self) -> Any:
        """Return the estimator whose settings are used."""
        return self._kind() if self.estimator is None else self.estimator

    def _template(self) -> Any:
        """Return a copy of the estimator without states of its own."""
        given = self._given()
        if not isinstance(given, self._kind):
            raise ValueError(
                f"estimator must be a {self._kind.__name__}, which {type(self).__name__} fits, not {given!r}; put "
                f"{type(self).__name__} at the end of a Pipeline to scale rows first"
            )
        template = clone(given)
        check_settings(template)
        return template.set_params(verbose=False, checkpoint=None, warm_start=False)

    def _widths(self, template: Any) -> tuple[Any, Any]:
        """Return kernels and gammas; by default an estimator keeps its own."""
        kernels = [template.kernel] if _same(self.kernels, DEFAULT_KERNELS) else self.kernels
        return kernels, [template.gamma] if _same(self.gammas, DEFAULT_GAMMAS) else self.gammas

    def _splits(self, X: Matrix, y: Array, template: Any, arguments: dict[str, Any]) -> list[Split]:
        """Return the row numbers of each fold."""
        cv = check_cv(self.cv, y, classifier=template._labels_are == "classes")
        sides = [(np.asarray(train), np.asarray(test)) for train, test in cv.split(X, y, **arguments)]
        if not sides:
            raise ValueError(f"cv={self.cv!r} gives no folds; give 5, say")
        return [tuple(np.flatnonzero(side) if side.dtype == bool else side for side in each) for each in sides]  # type: ignore[misc]

    def _scorer(self) -> Any:
        """Return the scorer; None for the estimator's own score."""
        if self.scoring is None or callable(self.scoring):
            return self.scoring
        if not isinstance(self.scoring, str):
            raise ValueError(
                f"scoring must be the name of a scorer, a callable(estimator, X, y) or None, not {self.scoring!r}; one "
                "score chooses the setting"
            )
        check_scorer_name(self.scoring)
        return get_scorer(self.scoring)

    def _routed(self, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments of the splitter and of the scorer."""
        if _routes():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed.splitter.split), dict(routed.scorer.score)
        unknown = sorted(params.keys() - {"groups"})
        if unknown:
            raise TypeError(
                f"fit takes sample_weight and groups, not {unknown}; with "
                "sklearn.set_config(enable_metadata_routing=True) others are passed to cv and scoring"
            )
        accepted = sample_weight is not None and _takes_weights(self._scorer())
        return {"groups": params.get("groups")}, {"sample_weight": sample_weight} if accepted else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata `fit` and `score` pass to the splitter and to the scorer.

        Returns
        -------
        MetadataRouter
            The routing, as of `LogisticRegressionCV`.
        """
        classes = self._kind is SlimSVC
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=check_cv(self.cv, classifier=classes), method_mapping=mapping)
        mapping = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
        return router.add(scorer=self._scorer() or get_scorer("accuracy" if classes else "r2"), method_mapping=mapping)

    @contextmanager
    def _saved(self, samples: Samples) -> Iterator[Checkpoint]:
        """Save the cells that are found during a `with` block, if there is a checkpoint."""
        if self.checkpoint is None:
            yield NO_CHECKPOINT
            return
        identity = identity_of(samples.template, samples.X, samples.y, samples.weights)
        for name in ("C", "gamma", "kernel", "epsilon"):  # these differ from cell to cell
            identity["settings"].pop(name, None)
        folds = [np.asarray(side, dtype=np.int64) for split in samples.splits for side in split]
        identity["settings"] |= {"folds": fingerprint(np.empty((0, 1)), *folds), "scoring": repr(self.scoring)}
        file = CheckpointFile.opened(self.checkpoint, identity, seed_of(0))
        with file.kept():
            yield file.checkpoint

    def _tell(self, words: str) -> None:
        print(f"[{type(self).__name__}] {words}", flush=True)

    def _keep(self, search: Search, template: Any) -> None:
        """Set the results of a search; raise TimeoutError if not one cell is complete."""
        complete, folds = sum(cell is not None for cell in search.found), len(search.samples.splits)
        if not complete:
            raise TimeoutError(
                f"time_limit={self.time_limit:g} ended the search before all {folds} folds of one value of C were "
                "complete; give more time, fewer folds or fewer rows"
            )
        if complete < len(search.found) and search.deadline.over:
            warn_user(
                f"time_limit={self.time_limit:g} ended the search after {complete} of {len(search.found)} settings; the "
                "best of these is chosen. Give more time or fewer values",
                ConvergenceWarning,
            )
        self.cv_results_, self.n_splits_ = results_table(search.cells, search.found, folds), folds
        self.shared_ = search.separately is None
        self.n_kernel_evals_ = search.meter.evaluations
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(template, name):
                setattr(self, name, getattr(template, name))
        self._choose(self.cv_results_)

    def _choose(self, table: dict[str, Any]) -> None:
        """Set the best cell: the one with the best mean score, or the one that `refit` names."""
        scores = table["mean_test_score"]
        if callable(self.refit):
            index = self.refit(table)
            if not isinstance(index, int | np.integer) or not 0 <= index < scores.size:
                raise ValueError(f"refit must return the number of a cell, from 0 to {scores.size - 1}, not {index!r}")
            self.best_index_ = int(index)
        elif np.isnan(scores).all():
            raise ValueError(f"scoring={self.scoring!r} gave no number for any setting; use another scorer")
        else:
            self.best_index_ = int(np.nanargmax(scores))
        self.best_params_ = table["params"][self.best_index_]
        self.best_score_ = float(scores[self.best_index_])
        self.C_, self.kernel_ = self.best_params_["C"], self.best_params_["kernel"]

    def _fit_best(self, X: Any, y: Any, sample_weight: Any, deadline: Deadline) -> None:
        best = clone(self._given()).set_params(**self.best_params_)
        limit = best.time_limit
        if deadline.left is not None:
            best.set_params(time_limit=deadline.left if limit is None else min(limit, deadline.left))
        best.fit(X, y, sample_weight)
        self.best_estimator_ = best.set_params(time_limit=limit)
        self.gamma_ = getattr(best.model_.kernel, "gamma", None)

    def _best(self) -> Any:
        if self.refit is False and hasattr(self, "cv_results_"):
            raise AttributeError("there is no best_estimator_ with refit=False; give refit=True, or fit best_params_")
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Matrix) -> Array:
        """Return the labels or values that the best estimator predicts, (n_samples,)."""
        return self._best().predict(X)

    def score(self, X: Matrix, y: Any, **params: Any) -> float:
        """Return the score of the best estimator, by `scoring`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels or values.
        **params : dict
            Metadata for the scorer, with metadata routing; without, only sample_weight.

        Returns
        -------
        float
            The score; by default the share of correct labels, or R^2.
        """
        scorer = self._scorer()
        if _routes() and params:
            params = dict(process_routing(self, "score", **params).scorer.score)
        return float(self._best().score(X, y, **params) if scorer is None else scorer(self._best(), X, y, **params))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: those of the estimator for its input."""
        tags = super().__sklearn_tags__()
        tags.input_tags = self._given().__sklearn_tags__().input_tags
        return tags


def _takes_weights(scorer: Any) -> bool:
    """Return whether a scorer takes sample weights, which `GridSearchCV` passes to it too; warn if it does not."""
    if scorer is None:
        return True
    own = getattr(scorer, "_accept_sample_weight", None)
    accepts = own() if own is not None else "sample_weight" in signature(scorer).parameters
    if not accepts:
        warn_user(f"scoring={scorer!r} takes no sample_weight, so training is weighted and scores are not")
    return bool(accepts)


def _routes() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def _same(given: Any, default: tuple[str, ...]) -> bool:
    return isinstance(given, tuple) and given == default


@estimator
class SlimSVCCV(ClassifierMixin, GridChoice):
    """SlimSVC with C, gamma and the kernel chosen by cross-validation.

    It does what `GridSearchCV(SlimSVC(), {"C": ..., "gamma": ..., "kernel": ...})` does, in less time: all folds and all
    values of C share the kernel values of a gamma, and each solution starts from those of smaller C. The models are those
    of separate fits, to within `tol`.

    Attributes
    ----------
    C_, gamma_, kernel_ : float, float or None, str or callable
        The values chosen; gamma as a number, and None for kernels without one.
    best_estimator_ : SlimSVC
        The estimator with these, fitted to all rows.
    best_score_, best_index_, best_params_ : float, int, dict
        Its mean score, its number in `cv_results_`, and its settings.
    cv_results_ : dict of ndarray
        One entry for each cell of the grid, with the keys of `GridSearchCV`, and `mean_n_support`. Cells for which there
        was no time have NaN.
    n_splits_ : int
        The number of folds.
    shared_ : bool
        Whether all folds and all values of C shared kernel values.
    n_kernel_evals_ : int
        Kernel values computed by the search, where they are shared.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_, feature_names_in_ : int, ndarray
        As in `SlimSVC`.

    See Also
    --------
    tune : Searches settings of small models too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SlimSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> choice = SlimSVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1]).fit(X, y)
    >>> choice.cv_results_["mean_test_score"].shape
    (6,)
    >>> choice.best_estimator_.C == choice.C_
    True
    """

    _kind = SlimSVC

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self._best().classes_

    @available_if(best_has("decision_function"))
    def decision_function(self, X: Matrix) -> Array:
        """Return the scores of the best estimator, as `SlimSVC.decision_function` does."""
        return self._best().decision_function(X)

    @available_if(best_has("predict_proba"))
    def predict_proba(self, X: Matrix) -> Array:
        """Return the probabilities of the best estimator, (n_samples, n_classes); only with `calibration`."""
        return self._best().predict_proba(X)

    @available_if(best_has("predict_log_proba"))
    def predict_log_proba(self, X: Matrix) -> Array:
        """Return the logarithms of the probabilities of the best estimator; only with `calibration`."""
        return self._best().predict_log_proba(X)


@estimator
class SlimSVRCV(RegressorMixin, GridChoice):
    """SlimSVR with C, gamma, epsilon and the kernel chosen by cross-validation, as in `SlimSVCCV`.

    Attributes
    ----------
    epsilon_ : float
        The radius chosen.
    C_, gamma_, kernel_, best_estimator_, best_score_, best_index_, best_params_, cv_results_, n_splits_, shared_
        As in `SlimSVCCV`.
    n_kernel_evals_, n_features_in_, feature_names_in_
        As in `SlimSVCCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from slimsvm import SlimSVRCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> choice = SlimSVRCV(Cs=[10, 100], epsilons=[1, 10]).fit(X, y)
    >>> choice.epsilon_ in (1, 10)
    True
    """

    _kind = SlimSVR

    _: KW_ONLY
    epsilons: Sequence[float] | None = searched("epsilons")

    def _choose(self, table: dict[str, Any]) -> None:
        super()._choose(table)
        self.epsilon_ = self.best_params_.get("epsilon", self._given().epsilon)
