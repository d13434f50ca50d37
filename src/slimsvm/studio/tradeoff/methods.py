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
        chosen = [_from_settings(name, settings, task) for name, settings in given.items()]
    else:
        chosen = [method_of(name) for name in dict.fromkeys(given)]
    others = [_limited(method, time_limit) for method in chosen if method.name != FULL]
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
    kind = TRAINERS.get(trainer) if isinstance(trainer, str) else trainer
    return is_dataclass(kind) and "budget" in {field.name for field in fields(kind)}


def _limited(method: Method, seconds: float | None) -> Method:
    reducer = method.settings.get("reducer")
    if seconds is None or reducer is None:
        return method
    made = REDUCERS[reducer](time_limit=seconds) if isinstance(reducer, str) else replace(reducer, time_limit=seconds)
    return replace(method, settings={**method.settings, "reducer": made})


REDUCERS_IN_WORDS = {
    "slim": "moves support vectors to where they help most (slimsvm's own method)",
    "slant": "adds the training row that falls short of its margin by most",
    "slant-aggressive": "slant, which adds a row only when the present ones are fitted",
    "lars": "chooses support vectors of the full model by least-angle regression",
    "cvm": "lars, whose support vectors then move to follow the full model's outputs",
    "reduced-set": "makes support vectors one by one that bring it nearest to the full model",
    "osuna-girosi": "fits the full model's outputs by support vector regression",
    "zhan-shen": "osuna-girosi after support vectors in sharp bends of the boundary are left out",
    "rsvm": "takes random training rows and fits their coefficients",
    "spsvm": "chooses training rows one by one, each the most helpful of several",
    "cpsp": "makes support vectors one by one by cutting planes",
    "csvm": "merges the nearest support vectors of a class",
    "slmc": "trains an SVM and the places of its support vectors together",
    "prune": "keeps the support vectors with the largest coefficients; a baseline",
    "nystroem": "takes k-means centres and fits a linear SVM to their kernel values, as scikit-learn's Nystroem does",
}
TRAINERS_IN_WORDS = {
    "smo": "the exact SVM",
    "sbp": "the stochastic batch perceptron",
    "pegasos": "stochastic gradient descent",
    "sdca": "stochastic dual coordinate ascent",
    "perceptron": "the averaged perceptron",
    "ramp": "the SVM that gives up rows far on the wrong side",
    "lp": "the SVM with the 1-norm of the coefficients",
    "any-norm": "the SVM with another norm of the slack",
    "budget-l1": "the SVM that counts the sum of the largest slacks only",
    "budget-l2": "the SVM that counts the squares of the largest slacks only",
    "forgetron": "a perceptron that forgets its oldest support vector",
    "rbp": "a perceptron that forgets a random support vector",
    "bsgd": "stochastic gradient descent that merges support vectors beyond its budget",
}


def in_words(method: str) -> str:
    """Return what a method does; nothing for a name with settings of the user's own."""
    if method == FULL:
        return f"{TRAINERS_IN_WORDS['smo']}, with all its support vectors"
    trainer, _, reducer = method.rpartition("+")
    if not trainer:
        return REDUCERS_IN_WORDS.get(method) or TRAINERS_IN_WORDS.get(method, "")
    first = "no full model" if trainer == "none" else TRAINERS_IN_WORDS.get(trainer)
    return f"{first}; then {REDUCERS_IN_WORDS[reducer]}" if first and reducer in REDUCERS_IN_WORDS else ""
