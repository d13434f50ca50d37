"""tune: kernel width, C, scaling and metric of a small model, found by cross-validation within a time limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.pipeline import Pipeline, make_pipeline

from ...checks import check_at_least
from ...estimators import Interrupted
from ...estimators.validation import seed_of, without_repeats
from ...limits import check_time_limit
from ...model import Status
from ...reducers import Slim
from ...run import silent
from ...selection.allowance import smallest
from ...text import warn_user
from .halving import (
    CENTRES,
    FIRST_SIZE,
    KEEP,
    LAST_FIT_TRIALS,
    LEAST_KEPT,
    STEPS,
    WIDEN_AT,
    Clock,
    Halving,
    efforts,
    ranked,
)
from .problem import Problem, constraint_of, make_problem
from .result import LAST_FIT, Constraint, TuningProgress, TuningResult, columns, print_tuning
from .space import Settings, different_scalers, make_space
from .trials import Trial, TrialEffort, Trials, budget_for, make_rows
from .whole import WholeSearch

#: sizes are bisected until they differ by one part in this many; more: smaller models, more trials
RESOLUTION = 8
#: settings of the first stage: one for each scaling
GUESSES = 4
#: sizes that a stage tries about, for the estimate of the time left
SIZES = 6


def find_smallest(search: Halving, settings: Sequence[Settings], allowed: float) -> Trial:
    """Return the smallest trial whose error is within `allowed`, or the one of the lowest error if none is.

    Each stage ends with smaller and smaller models. The order of the trials does not depend on the clock, and all are
    judged on the same rows. A time limit only ends the sequence, so more time never gives a larger model.
    """
    size, entrants = min(FIRST_SIZE, search.size), list(settings[:GUESSES])
    folds = len(search.trials.rows.folds)
    planned = [replace(planned_effort, folds=folds) for planned_effort in efforts(search.trials.rows, size)]
    planned = [planned[0], *planned]  # a few guesses first, so that a small model is found soon
    for number, effort in enumerate(planned):
        search.planned = sum(planned_effort.work * (KEEP + SIZES) * LEAST_KEPT for planned_effort in planned[number:])
        stage = f"stage {number + 1} of {len(planned)}"
        trials = search.stage(entrants, replace(effort, size=size), stage)
        if trials and number == min(WIDEN_AT + 1, len(planned) - 1):
            near = search.neighbours(trials[:CENTRES], entrants)
            trials = ranked([*trials, *search.stage(list(near), trials[0].effort, f"{stage}, neighbours", starts=near)])
        if not trials:
            break
        entrants = [trial.settings for trial in trials[: max(len(trials) // KEEP, LEAST_KEPT)]]
        size = _resized(search, trials[:LEAST_KEPT], allowed, f"{stage}, sizes")
        if number == 0:
            entrants += settings[GUESSES:]
    return smallest_of(search.table, allowed)


def smallest_of(trials: Sequence[Trial], allowed: float) -> Trial:
    """Return the smallest trial within the error, of several the best; the best of all if none is."""
    place = smallest([trial.effort.size for trial in trials], [trial.error for trial in trials], allowed)
    return ranked(trials)[0] if place is None else trials[place]


def _resized(search: Halving, leaders: Sequence[Trial], allowed: float, stage: str) -> int:
    """Return the size of the smallest model within the error that the leading settings reach.

    Sizes are doubled until a model is within it, halved while one is, and bisected.
    """

    def within(settings: Sequence[Settings], effort: TrialEffort) -> list[Trial]:
        return [trial for trial in search.stage(settings, effort, stage) if trial.error <= allowed]

    settings, effort, too_small = [trial.settings for trial in leaders], leaders[0].effort, 0
    good = [trial for trial in leaders if trial.error <= allowed]
    while not good and effort.size < search.size:
        too_small, effort = effort.size, replace(effort, size=min(2 * effort.size, search.size))
        good = within(settings, effort)
    while good and not too_small and good[0].effort.size > 1:
        size = good[0].effort.size // 2
        smaller = within([trial.settings for trial in good], replace(effort, size=size))
        good, too_small = (smaller, 0) if smaller else (good, size)
    while good and good[0].effort.size - too_small > max(1, good[0].effort.size // RESOLUTION):
        size = (good[0].effort.size + too_small) // 2
        smaller = within([trial.settings for trial in good], replace(effort, size=size))
        good, too_small = (smaller, too_small) if smaller else (good, size)
    return good[0].effort.size if good else effort.size


def fit_best(
    problem: Problem, X: Any, y: Any, sample_weight: Any, best: Trial, search: Halving, constraint: Constraint
) -> TuningResult:
    """Return the result with the best settings fitted to all rows; after Ctrl-C, `Interrupted` has it as its `best`."""
    template, began = problem.template, perf_counter()
    given = Slim() if isinstance(template.reducer, str) else template.reducer
    reducer = replace(given, time_limit=search.clock.left, metric=best.settings.metric)
    budget = budget_for(best.effort.size, search.trials.nbytes)
    estimator = best.settings.estimator(template, budget, reducer, search.trials.seed)
    pipeline = best.settings.pipeline(estimator, sparse=problem.sparse)
    interrupted = False
    try:
        pipeline.fit(X, y, **_fit_parameters(pipeline, sample_weight))
    except Interrupted:
        interrupted = True
    same_metric = best.settings.metric == given.metric
    estimator.set_params(reducer=template.reducer if same_metric else replace(given, metric=best.settings.metric))
    last = _as_trial(best, estimator, search.trials, perf_counter() - began)
    result = _result(pipeline, best, columns([*search.table, last], constraint), constraint)
    if interrupted:
        raise Interrupted(result)
    return result


def raise_interrupted(problem: Problem, search: Halving, constraint: Constraint) -> NoReturn:
    """After Ctrl-C in the search, raise `Interrupted` with the model of the best trial; a KeyboardInterrupt without one."""
    trials = [trial for trial in search.table if trial.fitted is not None]
    if not trials:
        raise KeyboardInterrupt
    error = constraint.error
    best = ranked(trials)[0] if error is None else smallest_of(trials, error)
    estimator, scaler = best.fitted, search.trials.scalers[best.settings.scaling]
    estimator.status_ = Status.INTERRUPTED
    estimator.set_params(reducer=problem.template.reducer)
    pipeline = make_pipeline(estimator) if scaler is None else make_pipeline(scaler, estimator)
    raise Interrupted(_result(pipeline, best, columns(search.table, constraint), constraint)) from None


def _result(pipeline: Pipeline, best: Trial, table: dict[str, list[Any]], constraint: Constraint) -> TuningResult:
    settings = {**best.settings.parameters, "budget": best.effort.size}
    return TuningResult(pipeline, settings, best.error, table, constraint.met(best))


def _fit_parameters(pipeline: Pipeline, sample_weight: Any) -> dict[str, Any]:
    return {} if sample_weight is None else {f"{pipeline.steps[-1][0]}__sample_weight": sample_weight}


def _as_trial(best: Trial, estimator: Any, trials: Trials, seconds: float) -> Trial:
    """Return the last fit as a row of the table, with the error of its size on its own validation rows."""
    model, path = estimator.model_, estimator.path_
    step = min(path, key=lambda other: abs(other.size - model.size))
    return replace(
        best,
        effort=replace(best.effort, rows=trials.rows.n),
        error=step.error,
        standard_error=step.standard_error,
        size=model.size,
        nbytes=trials.bytes_of(model, best.settings),
        seconds=seconds,
        status=estimator.status_,
        stage=LAST_FIT,
        points=(),
    )


#: settings of the first stage
N_TRIALS = 36


def tune(
    X: Any,
    y: Any,
    *,
    budget: Any = None,
    precision: str = "auto",
    max_error: float | None = None,
    time_limit: float | None = None,
    n_trials: int = N_TRIALS,
    estimator: Any = None,
    sample_weight: Any = None,
    verbose: bool = False,
    callback: Callable[[TuningProgress], None] | None = None,
    random_state: Any = None,
) -> TuningResult:
    """Choose kernel width, C, scaling and metric of a small model, and fit it to all rows.

    Small models with many settings are fitted to a few rows; the best third is fitted to twice as many rows, and so on
    (successive halving). Neighbours of the best settings are added in between. The last few are compared with all rows, and
    the best is fitted again. All settings are judged on the same validation rows: three folds for up to 8,000 rows, a third
    of the rows for more.

    Without a limit on the model it is a full one: a grid of C and gamma for each scaling on a part of the rows, then a
    finer one around the best on all of them, by `SlimSVCCV` or `SlimSVRCV`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows, not scaled.
    y : array-like of shape (n_samples,)
        Their labels, or their values for a regression.
    budget : int, str or tuple of them, default=None
        What the model may cost, its scaler included: 64 support vectors, "4 KB" of exported C, or "20 us" for a prediction,
        as in `SlimSVC`; no fraction, since there is no full model.
    precision : {"auto", "float32", "int16", "int8", "int4"}, default="auto"
        The tables that exports write, as in `SlimSVC`; "auto" is that of `estimator`.
    max_error : float, default=None
        Return the smallest model found whose validation error is within this: the share of wrong labels, or 1 - R^2 for a
        regression. More time never gives a larger one. Without `budget`, models have at most 256 support
        vectors. Without `max_error`, the model of the lowest error within the other limits is returned.
    time_limit : float, default=None
        The most seconds, the last fit included. Without one, the result depends only on the data and `random_state`.
    n_trials : int, default=36
        The number of settings in the first stage.
    estimator : SlimSVC or SlimSVR, default=None
        Its other settings (kernel, class_weight, device and so on) are kept, and so is the metric of a Slim(...) as its
        reducer. None is a SlimSVC for labels and a SlimSVR for
        values that are not whole numbers; give SlimSVR() for a regression of whole numbers.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in training and in the error. A row of weight 0 counts as absent.
    verbose : bool, default=False
        Print a line for each trial, with the time left.
    callback : callable, default=None
        Called with a `TuningProgress` after each trial.
    random_state : int, RandomState instance or None, default=None
        Chooses folds and settings.

    Returns
    -------
    TuningResult
        With `best_estimator_`, `best_params_`, `best_error_` and `results_`.

    Raises
    ------
    TimeoutError
        If the time limit is too short for one trial and a last fit.
    Interrupted
        After Ctrl-C, if a trial had ended: `best` is the result with the best model so far. That of a trial was fitted to
        a part of the rows. It is a KeyboardInterrupt.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from slimsvm import tune
    >>> X, y = load_wine(return_X_y=True)
    >>> result = tune(X, y, budget=6, n_trials=4, random_state=0)
    >>> result.best_params_["scaling"] in ("none", "standard", "minmax", "robust")
    True
    >>> bool(result.best_estimator_.score(X, y) > 0.9)
    True
    """
    check_time_limit(time_limit)
    check_at_least("n_trials", n_trials, 1)
    clock = Clock(time_limit)
    constraint = constraint_of(budget, max_error)
    if issparse(X):  # scalers would count repeated entries one by one
        X = without_repeats(csr_array(X))
    problem = make_problem(estimator, X, y, sample_weight, constraint, precision)
    tell = callback or (print_tuning if verbose else silent)
    seed = seed_of(random_state)
    if constraint.whole:
        search_of_full = _whole_search(problem, seed, clock, tell)
        best = search_of_full.best(n_trials)
        tell(TuningProgress(LAST_FIT, 0, 1, best.error, clock.gone, best.seconds))
        return search_of_full.fit(best, X, y, sample_weight)
    search = _search(problem, seed, clock, tell, constraint.budget.bytes)
    try:
        best = _best_trial(search, n_trials, max_error)
    except KeyboardInterrupt:
        raise_interrupted(problem, search, constraint)
    if not constraint.met(best):
        warn_user(
            f"no model of at most {problem.size} support vectors has a validation error of {max_error:g}; the best has "
            f"{best.error:.4g} and is returned. Raise max_error, budget or time_limit",
        )
    tell(TuningProgress(LAST_FIT, 0, 1, best.error, clock.gone, clock.seconds_for(search.last_fit)))
    return fit_best(problem, X, y, sample_weight, best, search, constraint)


def _whole_search(problem: Problem, seed: int, clock: Clock, tell: Callable[[TuningProgress], None]) -> WholeSearch:
    rows = make_rows(problem.X, problem.y, problem.weights, seed, real=problem.real)
    scalers = different_scalers(problem.template.kernel, problem.X, sparse=problem.sparse)
    tubes = problem.y if problem.real else None
    space = make_space(problem.template.kernel, problem.X, tubes, scalers, np.random.default_rng(seed))
    return WholeSearch(problem, rows, scalers, space, clock, tell)


def _search(
    problem: Problem, seed: int, clock: Clock, tell: Callable[[TuningProgress], None], nbytes: int | None
) -> Halving:
    """Return the search through all settings for these rows."""
    rows = make_rows(problem.X, problem.y, problem.weights, seed, real=problem.real)
    kernel = problem.template.kernel
    scalers = different_scalers(kernel, problem.X, sparse=problem.sparse)
    tubes = problem.y if problem.real else None
    space = make_space(kernel, problem.X, tubes, scalers, np.random.default_rng(seed), problem.metrics)
    last_fit = LAST_FIT_TRIALS * TrialEffort(rows.n, STEPS[-1], 1, problem.size).work
    trials = Trials(problem.template, rows, scalers, seed, problem.shape, nbytes)
    return Halving(trials, space, clock, problem.size, last_fit, tell)


def _best_trial(search: Halving, n_trials: int, max_error: float | None) -> Trial:
    settings = search.space.settings(n_trials, search.trials.seed)
    if max_error is not None:
        return find_smallest(search, settings, max_error)
    return search.search(settings, efforts(search.trials.rows, search.size))[0]
