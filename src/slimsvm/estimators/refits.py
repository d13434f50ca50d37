"""How a full model is judged under a tolerance: by rows that it has not seen, or by models like it that have not.

On the rows that it was trained on, a full model's error is near 0, which no small model reaches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import has_fit_parameter

from ..importers.imported import Imported
from ..kernels import Array, Matrix, Precomputed
from ..model import Expansion
from ..selection.judge import Baseline
from ..selection.problem import Problem
from ..selection.search import Selection
from .base import KernelMachine
from .fitted import equal_rows
from .machines import imported, unfitted

#: rows that hold at least this share of the support vectors are those of the model's training. Less: rows that equal a few
#: of them by chance are taken for them
SEEN = 0.25


def was_trained_on(model: Expansion, X: Matrix) -> bool:
    """Return whether rows are those of a model's training, or a large part of them."""
    if isinstance(model.kernel, Precomputed):
        return False  # its rows have kernel values, and its points are numbers of rows
    return float(np.mean(equal_rows(model.points, X) >= 0)) >= SEEN


def baseline_of(model: Any, source: Imported, selection: Selection, weights: Array | None) -> Baseline:
    """Return the validation error of a full model on rows that it, or models like it, have not seen."""
    problem, judge = replace(selection.problem, goal=source.goal), selection.judge
    if problem.held_out:
        return Baseline(judge.judged(problem, source.model), "the validation rows given")
    if not was_trained_on(source.model, problem.X):
        return Baseline(judge.judged(problem, source.model), "rows that it was not trained on")
    baseline = judge.refitted(problem, _refitted(_like(model, source), source, problem, weights))
    return baseline if selection.follow else replace(baseline, models=())


def _like(model: Any, source: Imported) -> Any:
    """Return an unfitted estimator that trains models like this one; raise ValueError if there is none."""
    if isinstance(model, SVC | SVR):
        return unfitted(source)  # the same optimum, sooner
    if (isinstance(model, KernelMachine) and not hasattr(model, "status_")) or not hasattr(model, "get_params"):
        raise ValueError(
            "tolerance cannot be judged: the rows are those that trained the model, on which its error is near 0, and the "
            "model does not say how to train it again. Give rows that it has not seen as X_val and y_val (--validation "
            "FILE), or a budget instead of a tolerance"
        )
    like = clone(model)
    if isinstance(like, KernelMachine):
        like.set_params(checkpoint=None, warm_start=False)
    if isinstance(like, GaussianProcessRegressor):
        return like.set_params(kernel=model.kernel_, optimizer=None)
    width = getattr(source.model.kernel, "gamma", None)
    return like if width is None or "gamma" not in like.get_params() else like.set_params(gamma=width)


def _refitted(like: Any, source: Imported, problem: Problem, weights: Array | None) -> list[Expansion]:
    """Return the models that are fitted to the training rows of each fold."""
    folds, models, judging = problem.fold_rows(), list[Expansion](), problem.run.during("judge")
    y = source.classes[problem.labels] if source.goal.n_classes else problem.labels
    weighted = weights is not None and has_fit_parameter(like, "sample_weight")
    given = {"sample_weight": np.asarray(weights)[problem.ids]} if weighted else {}
    for number, (train, _) in enumerate(folds):
        judging.report(number / len(folds))
        if isinstance(like, KernelMachine):  # half of the time is for the small models
            like.set_params(time_limit=problem.run.deadline.share(0.5 / (len(folds) - number)).left)
        of_fold = {name: values[train] for name, values in given.items()}
        models.append(imported(like.fit(problem.X[train], y[train], **of_fold)).model.written_out())
    judging.report(1.0)
    return models
