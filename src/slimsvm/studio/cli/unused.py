"""Options that do nothing beside the others: they are refused, with what they need, and never ignored.

A rule is a line in `RULES`. It is asked only if its option was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .arguments import ParameterError

Given = Mapping[str, Any]  # the arguments and options of a command line by the command's parameters, without defaults


@dataclass(frozen=True)
class Rule:
    """An option, whether it does anything in a command line, and what it needs."""

    option: str
    useful: Callable[[Given], bool]
    needs: str

    def check(self, given: Given) -> None:
        """Raise ParameterError if the option is given and does nothing."""
        if self.option in given and not self.useful(given):
            name = "-C" if self.option == "C" else f"--{self.option.replace('_', '-')}"
            raise ParameterError(f"it would do nothing here: {self.needs}", param_hint=name)


def is_shrunk(given: Given) -> bool:
    """Return whether the model is made small."""
    return "budget" in given or "tolerance" in given


def uses_reducer(given: Given) -> bool:
    """Return whether a reducer makes the model small; trainers of streams keep to a budget by themselves."""
    from ...trainers import TRAINERS
    from ...trainers.frames.online import OnlineTrainer

    kind = TRAINERS.get(given.get("trainer", "smo"), object)
    return "tolerance" in given or ("budget" in given and not issubclass(kind, OnlineTrainer))


def has_kernel(*names: str) -> Callable[[Given], bool]:
    """Return a test for one of these kernels."""
    return lambda given: given.get("kernel", "rbf") in names


def trainer_has(setting: str) -> Callable[[Given], bool]:
    """Return a test for a trainer with this setting; C is a setting of small models too."""

    def able(given: Given) -> bool:
        from ...trainers import TRAINERS

        if setting == "C" and is_shrunk(given):
            return True
        kind = TRAINERS.get(given.get("trainer", "smo"))
        return kind is not None and setting in kind.__dataclass_fields__

    return able


def reads_npz(given: Given) -> bool:
    """Return whether rows come from an .npz file or a pipe."""
    named = [Path(given[name]) for name in ("data", "test") if given.get(name) is not None]
    return any(path.suffix.lower() == ".npz" or str(path) == "-" for path in named)


SHRINKS = "it is for shrinking a model to --budget or --tolerance, and not for trainers that keep to a budget by themselves"
RULES = (
    Rule("reducer", uses_reducer, SHRINKS),
    Rule("metric", uses_reducer, SHRINKS),
    Rule("gamma", lambda given: not has_kernel("linear")(given), "the linear kernel has no gamma"),
    Rule("degree", has_kernel("poly"), "only the poly kernel has a degree"),
    Rule("coef0", has_kernel("poly", "sigmoid"), "only the poly and sigmoid kernels have a coef0"),
    Rule("C", trainer_has("C"), "this trainer has no C, and no small model is made"),
    Rule("tol", trainer_has("tol"), "this trainer has no tol"),
    Rule("max_iter", trainer_has("max_iter"), "this trainer has no max_iter"),
    Rule("split", reads_npz, "only an .npz file with X_train and X_test has parts"),
    Rule("label", lambda given: "data" in given or "rows" in given, "it names a column of --rows"),
)


def check_used(given: Given) -> None:
    """Raise ParameterError for an option that does nothing beside the others."""
    for rule in RULES:
        rule.check(given)
