"""Trainers and reducers of an estimator: from a name or an instance to settings, and these as parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..budget import Budget
from ..checks import check_at_least, check_count, check_positive
from ..goals import Goal, OneVsRest
from ..kernels import Array, Kernel
from ..reducers import REDUCERS, Reducer
from ..text import nearest, short, warn_user
from ..trainers import TRAINERS
from ..trainers.base import Trainer
from ..trainers.frames.online import OnlineTrainer

#: parameters that hold settings, with the table from names to classes
TABLES: dict[str, dict[str, Any]] = {"trainer": TRAINERS, "reducer": REDUCERS}


class NestedSettings(BaseEstimator):
    """get_params and set_params that reach into trainers and reducers, so that grids can search over their settings.

    Settings are frozen, so set_params replaces them. A name becomes an instance with the changes.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether the settings of a trainer and a reducer that are instances are included, as `trainer__C` and so on.

        Returns
        -------
        dict
            The parameters by name.
        """
        params = super().get_params(deep=deep)
        for name in TABLES if deep else ():
            params |= _settings_in(params.get(name), f"{name}__")
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator, and of its trainer and reducer as `reducer__steps` and so on.

        Parameters
        ----------
        **params : dict
            The parameters by name.

        Returns
        -------
        estimator
            The estimator itself.
        """
        nested: dict[str, dict[str, Any]] = {name: {} for name in TABLES}
        for key in list(params):
            name, _, setting = key.partition("__")
            if name in TABLES and setting:
                nested[name][setting] = params.pop(key)
        super().set_params(**params)
        for name, changes in nested.items():
            if changes:
                setattr(self, name, _changed(name, _instance(name, getattr(self, name)), changes))
        return self


def _is_settings(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _settings_in(value: Any, prefix: str) -> dict[str, Any]:
    """Return the settings of an instance by their full names; none for a name."""
    if not _is_settings(value):
        return {}
    settings: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        settings |= {prefix + field.name: inner} | _settings_in(inner, f"{prefix}{field.name}__")
    return settings


def _instance(name: str, value: Any) -> Any:
    """Return the settings, made from a name if necessary."""
    if isinstance(value, str) and value in TABLES[name]:
        return TABLES[name][value]()
    if not _is_settings(value):
        raise ValueError(
            f"{name}={value!r} has no settings to set; give one of {sorted(TABLES[name])}, or an instance of such a class"
        )
    return value


def _changed(name: str, settings: Any, changes: dict[str, Any]) -> Any:
    """Return the settings with changes, also to nested settings."""
    fields, direct, inner = {field.name for field in dataclasses.fields(settings)}, {}, dict[str, dict[str, Any]]()
    for key, value in changes.items():
        field, _, rest = key.partition("__")
        if field not in fields or (rest and not _is_settings(getattr(settings, field))):
            raise ValueError(
                f"Invalid parameter {name}__{key}: {type(settings).__name__} has no such setting. Valid parameters are: "
                f"{sorted(_settings_in(settings, f'{name}__'))}"
            )
        if rest:
            inner.setdefault(field, {})[rest] = value
        else:
            direct[field] = value
    settings = dataclasses.replace(settings, **direct)
    for field, inner_changes in inner.items():
        part = _changed(f"{name}__{field}", getattr(settings, field), inner_changes)
        settings = dataclasses.replace(settings, **{field: part})
    return settings


#: the C of a hard margin, C=inf: no coefficient of separable rows reaches it, and rows that cannot be separated still have
#: an optimum. With a larger one, the gap has fewer digits
HARD_MARGIN = 1e12
#: settings that a method takes from the estimator, unless it is an instance with values that are not the defaults
SHARED = ("C", "tol", "max_iter")


def finite_cost(C: float) -> float:
    """Return C, or `HARD_MARGIN` for C=inf."""
    return HARD_MARGIN if np.isposinf(C) else C


def make_trainer(estimator: Any) -> Any:
    """Return the estimator's trainer; None for trainer=None."""
    return None if estimator.trainer is None else _method(estimator.trainer, TRAINERS, Trainer, estimator)


def make_reducer(estimator: Any) -> Any:
    """Return the estimator's reducer."""
    return _method(estimator.reducer, REDUCERS, Reducer, estimator)


def _method(given: Any, table: dict[str, Any], kind: type, estimator: Any) -> Any:
    """Return the method of that name, or the given instance, with the settings that it takes from the estimator."""
    what = kind.__name__.lower()
    if not (given in table if isinstance(given, str) else isinstance(given, kind)):
        known = f"{sorted(table)}{', None for no full model' * (kind is Trainer)}, or give an instance of such a class"
        raise ValueError(f"unknown {what} {given!r}; {_hint(given, kind, table)}there are {known}")
    method = table[given]() if isinstance(given, str) else given
    fields = {field.name: field.default for field in dataclasses.fields(method)}
    taken = {name: getattr(estimator, name) for name in SHARED if name in fields and getattr(method, name) == fields[name]}
    if "budget" in fields and method.budget is None:
        taken["budget"] = _budget(estimator.budget, given)
    if "C" in fields:
        taken["C"] = finite_cost(taken.get("C", method.C))
    method = dataclasses.replace(method, **taken)
    for name in ("C", "tol"):
        check_positive(f"{name} of the {what}", getattr(method, name, 1.0))
    check_at_least(f"max_iter of the {what}", getattr(method, "max_iter", -1), -1)
    return method


def _hint(given: Any, kind: type, table: dict[str, Any]) -> str:
    """Return a question about what was probably meant."""
    if kind is Trainer and isinstance(given, str) and given.lower() == "none":
        return "did you mean None, without quotes? "
    near = nearest(given, table) if isinstance(given, str) else None
    return "" if near is None else f"did you mean {near!r}? "


def _budget(budget: Any, given: Any) -> int:
    """Return the budget of a trainer that keeps to one during training."""
    name = given if isinstance(given, str) else type(given).__name__
    count = Budget.of(budget).count
    try:
        return check_count(budget if count is None else count)
    except ValueError as error:
        raise ValueError(f"trainer {name!r} keeps to a budget during training: {error}") from None


def keeps_budget(trainer: Trainer | None, budget: Any) -> bool:
    """Return whether the trainer keeps to the estimator's budget by itself."""
    count = Budget.of(budget).count
    return count is not None and getattr(trainer, "budget", None) == count


def is_reduced(trainer: Trainer | None, budget: Any) -> bool:
    """Return whether a budget has limits that the trainer does not keep to by itself."""
    limits = Budget.of(budget)
    return limits.given and not (limits.alone and keeps_budget(trainer, budget))


def check_methods(estimator: Any, trainer: Any, reducer: Any, kernel: Kernel, goal: Goal, weights: Array) -> None:
    """Raise ValueError if trainer or reducer do not suit the settings or the data, before either starts."""
    if trainer is None:
        check_no_model(reducer, estimator.budget, estimator.tolerance, goal)
    else:
        check_weights(trainer, weights)
        check_goal(trainer, TRAINERS, goal)
    if is_reduced(trainer, estimator.budget) or estimator.tolerance is not None:
        check_kernel(reducer, kernel)
        check_goal(reducer, REDUCERS, goal)
    elif not Budget.of(estimator.budget).given:
        _warn_of_unused(estimator)


@cache
def _default(kind: type, name: str) -> Any:
    """Return the default of a parameter; to read a signature takes a tenth of a small fit."""
    return inspect.signature(kind).parameters[name].default


def _warn_of_unused(estimator: Any) -> None:
    """Warn of settings for shrinking where the full model is kept."""
    for name in ("reducer", "scoring"):
        value, default = getattr(estimator, name), _default(type(estimator), name)  # type: ignore[arg-type]
        if value is not default and value not in (default, REDUCERS["slim"]()):
            warn_user(
                f"{name}={short(value)} does nothing here: it is for shrinking the model, and neither a budget nor a "
                "tolerance is given, so the full model is kept"
            )


def check_soft_targets(trainer: Any, reducer: Any, goal: Goal) -> None:
    """Raise ValueError where a small model cannot be fitted to probabilities of classes."""
    if trainer is not None:
        raise ValueError(
            "probabilities are what a small model is fitted to, and a trainer takes labels only; give trainer=None and a "
            "budget"
        )
    if not reducer.takes_probabilities:
        raise ValueError(f"{type(reducer).__name__} takes no probabilities; give reducer='slim'")
    if not isinstance(goal, OneVsRest):
        raise ValueError(f"probabilities need one output for each class; give multiclass='ovr', not {goal.name!r}")


def names_where(able: Callable[[Any], bool]) -> list[str]:
    """Return the names of the reducers for which `able` is true."""
    return sorted(name for name, kind in REDUCERS.items() if able(kind))


def check_kernel(reducer: Any, kernel: Kernel) -> None:
    """Raise ValueError if the reducer is not defined for the kernel."""
    if not reducer.takes(kernel):
        raise ValueError(
            f"{type(reducer).__name__} does not work with the {kernel.name} kernel; the reducers that do are "
            f"{names_where(lambda kind: kind.takes(kernel))}"
        )
    reducer.check_kernel(kernel)


def check_goal(method: Any, table: dict[str, Any], goal: Goal) -> None:
    """Raise ValueError if targets are real values and the method is for classes only."""
    if goal.real and not method.real_valued:
        able = sorted(name for name, kind in table.items() if kind.real_valued)
        raise ValueError(f"{type(method).__name__} is a method for classes; for {goal.name} there are {able}")


def check_weights(trainer: Any, weights: Array) -> None:
    """Raise ValueError for unequal weights that the trainer does not take."""
    if not trainer.weighted and np.ptp(weights) > 0:
        able = sorted(name for name, kind in TRAINERS.items() if kind.weighted)
        raise ValueError(
            f"{type(trainer).__name__} takes no sample_weight or class_weight; the trainers that do are {able}"
        )


def check_no_model(reducer: Any, budget: Any, tolerance: Any, goal: Goal) -> None:
    """Raise ValueError if reducer, budget or tolerance need a full model, which trainer=None does not train."""
    if not goal.labelled:
        raise ValueError(
            "trainer=None fits a small model to labels, but novelty detection has none; give trainer='smo', whose model is "
            "shrunk to the budget"
        )
    if reducer.requires_model:
        raise ValueError(
            f"trainer=None leaves {type(reducer).__name__} without the full model that it shrinks; the reducers that work "
            f"from the labels only are {names_where(lambda kind: not kind.needs_model)}. Give one of them, or a trainer"
        )
    if tolerance is not None:
        raise ValueError(
            f"trainer=None has no full model whose error tolerance={tolerance!r} could be compared with; give only a "
            "budget, or a trainer"
        )
    limits = Budget.of(budget)
    if not limits.given or limits.fraction is not None:
        raise ValueError(
            "trainer=None has no full model to keep whole or to take a fraction of, and needs a number of support vectors, "
            f"bytes or a time; budget is {budget!r}. Give budget=16 or '4 KB', say, or a trainer"
        )


def learns_streams(estimator: Any) -> bool:
    """Return True if the estimator's trainer learns from streams, else raise AttributeError."""
    trainer = estimator.trainer
    kind = TRAINERS.get(trainer, Trainer) if isinstance(trainer, str) else type(trainer)
    if issubclass(kind, OnlineTrainer):
        return True
    able = sorted(name for name, other in TRAINERS.items() if issubclass(other, OnlineTrainer))
    raise AttributeError(f"trainer {trainer!r} needs all rows at once; those that learn from streams are {able}")
