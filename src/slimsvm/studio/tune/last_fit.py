"""The last fit: the chosen settings, on all rows, in the remaining time."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, NoReturn

from sklearn.pipeline import Pipeline, make_pipeline

from ...estimators import Interrupted
from ...model import Status
from ...reducers import Slim
from ...slim.metric_search import Learning
from .halving import Halving, ranked
from .problem import Problem
from .progress import LAST_FIT
from .result import Constraint, TuningResult, columns
from .smallest import smallest_of
from .trials import Trial, Trials, budget_for

#: mini-batches for the sizes before the largest one, with a learned metric; more: better models of these sizes, which are
#: not returned, and less time for the largest one
WAY_BATCHES = 200
#: the most passes of mini-batches and steps of L-BFGS for a metric under a time limit; more: the limit ends them earlier
LONG_PASSES, LONG_STEPS = 500, 3000


def fit_best(
    problem: Problem, X: Any, y: Any, sample_weight: Any, best: Trial, search: Halving, constraint: Constraint
) -> TuningResult:
    """Return the result with the best settings fitted to all rows; after Ctrl-C, `Interrupted` has it as its `best`."""
    template, began = problem.template, perf_counter()
    given = Slim() if isinstance(template.reducer, str) else template.reducer
    learning = _learning(given.learning, limited=search.clock.limit is not None)
    reducer = replace(given, time_limit=search.clock.left, metric=best.settings.metric, learning=learning)
    budget = budget_for(best.effort.size, search.trials.nbytes)
    estimator = best.settings.estimator(template, budget, reducer, search.trials.seed)
    pipeline = best.settings.pipeline(estimator, sparse=problem.sparse)
    interrupted = False
    try:
        pipeline.fit(X, y, **_fit_parameters(pipeline, sample_weight))
    except Interrupted:
        interrupted = True
    own = best.settings.metric == given.metric
    estimator.set_params(reducer=template.reducer if own else replace(given, metric=best.settings.metric))
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
    """Return the result with the settings of a trial."""
    settings = {**best.settings.parameters, "budget": best.effort.size}
    return TuningResult(pipeline, settings, best.error, table, constraint.met(best))


def _learning(given: Learning, *, limited: bool) -> Learning:
    """Return how long a metric is learned: as the reducer says, and by default for the time that is left."""
    short = replace(given, way_batches=min(given.way_batches, WAY_BATCHES))
    return replace(short, passes=LONG_PASSES, steps=LONG_STEPS) if limited and given == Learning() else short


def _fit_parameters(pipeline: Pipeline, sample_weight: Any) -> dict[str, Any]:
    """Return the weights as parameters of the pipeline's fit."""
    return {} if sample_weight is None else {f"{pipeline.steps[-1][0]}__sample_weight": sample_weight}


def _as_trial(best: Trial, estimator: Any, trials: Trials, seconds: float) -> Trial:
    """Return the last fit as a row of the table, with the error of its size on its own validation rows."""
    model, path = estimator.model_, estimator.path_
    step = min(path, key=lambda each: abs(each.size - model.size))
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
