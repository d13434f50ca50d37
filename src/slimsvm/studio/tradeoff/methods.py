"""Methods by name: a reducer ("slim"), a trainer ("bsgd", "lp"), or both ("lp+slim", "none+slim")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ...reducers import REDUCERS
from ...trainers import TRAINERS
from .tasks import CLASSIFY, TaskKind

#: one method that moves points, one that chooses rows, and one that takes means of rows
DEFAULT = ("slim", "spsvm", "nystroem")
#: the method name of the full model
FULL = "full"


@dataclass(frozen=True)
class Method:
    """A name and its settings of the estimator; with `budgeted`, each budget is a separate run."""

    name: str
    settings: Mapping[str, Any]
    budgeted: bool = True


def make_methods(
    given: Iterable[str] | Mapping[str, Mapping[str, Any]], time_limit: float | None, task: TaskKind = CLASSIFY
) -> list[Method]:
    """Return the full model and the methods; a mapping has settings of the estimator by the name of the method."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        found = [_from_settings(name, settings, task) for name, settings in given.items()]
    else:
        found = [method_of(name) for name in dict.fromkeys(given)]
    others = [_limited(method, time_limit) for method in found if method.name != FULL]
    return [Method(FULL, {"trainer": "smo"}, budgeted=False), *others]


def method_of(name: str) -> Method:
    """Return the method of that name."""
    if not isinstance(name, str):
        raise ValueError(f'methods are names, or a mapping such as {{"mine": {{"reducer": Slim()}}}}, not {name!r}')
    if name == FULL:
        return Method(name, {"trainer": "smo"}, budgeted=False)
    trainer, _, reducer = name.rpartition("+")
    if reducer in REDUCERS and trainer in ("", "none", *TRAINERS):
        return Method(name, {"trainer": None if trainer == "none" else trainer or "smo", "reducer": reducer})
    if name in TRAINERS:
        return Method(name, {"trainer": name}, budgeted=_keeps_budget(name))
    raise ValueError(
        f"unknown method {name!r}; there are the reducers {', '.join(REDUCERS)}; the trainers {', '.join(TRAINERS)}; and "
        'a trainer with a reducer, such as "lp+slim" or "none+slim"'
    )


def _from_settings(name: str, settings: Mapping[str, Any], task: TaskKind) -> Method:
    known = sorted(set(task.estimator().get_params()) - {"budget", "tolerance", "random_state"})
    if name == FULL or not isinstance(settings, Mapping) or not set(settings) <= set(known):
        raise ValueError(
            f"method {name!r} with the settings {settings!r}: a mapping has names other than {FULL!r}, and for each a dict "
            f"of settings of {type(task.estimator()).__name__}: {', '.join(known)}"
        )
    trainer = settings.get("trainer", "smo")
    return Method(" ".join(name.split()), dict(settings), "reducer" in settings or _keeps_budget(trainer))


def _keeps_budget(trainer: Any) -> bool:
    """Return whether a trainer keeps to a budget during training."""
    kind = TRAINERS.get(trainer) if isinstance(trainer, str) else trainer
    return is_dataclass(kind) and "budget" in {field.name for field in fields(kind)}


def _limited(method: Method, seconds: float | None) -> Method:
    """Return the method with a time limit for its reducer."""
    reducer = method.settings.get("reducer")
    if seconds is None or reducer is None:
        return method
    made = REDUCERS[reducer](time_limit=seconds) if isinstance(reducer, str) else replace(reducer, time_limit=seconds)
    return replace(method, settings={**method.settings, "reducer": made})
