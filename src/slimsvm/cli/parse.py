"""What the commands are given: options that several of them share, and the checks of values, paths and files.

Nothing here imports NumPy or scikit-learn until it is needed, so that help and version are printed at once.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from reprlib import repr as short
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..files.numbers import strict_number
from .tasks import check_able, labels_of, task_of

SCALERS = ("none", "standard", "minmax", "maxabs")
SPLITS = ("train", "test")
PICKLES = (".pkl", ".pickle", ".joblib")
#: the largest number of steps or of support vectors, which compiled code can hold on every platform
LARGEST_INT = 2**31 - 1
#: the largest degree of the poly kernel; all but values next to 1 overflow or vanish long before it
LARGEST_DEGREE = 1000
#: the largest seed of scikit-learn's random numbers
LARGEST_SEED = 2**32 - 1


# Names in tables. Help has a placeholder for each table, which is filled in when the help is shown.


def trainer_names() -> list[str]:
    """Return the trainers, and "none"."""
    from ..trainers import TRAINERS

    return [*TRAINERS, "none"]


def metric_names() -> list[str]:
    """Return the metrics of slim."""
    from ..reducers.slim import METRICS

    return list(METRICS)


def reducer_names() -> list[str]:
    """Return the reducers."""
    from ..reducers import REDUCERS

    return list(REDUCERS)


def kernel_names() -> list[str]:
    """Return the kernels that work on rows in a file, which is all but a precomputed matrix."""
    from ..kernels import KERNELS

    return [name for name in KERNELS if name != "precomputed"]


def export_names() -> list[str]:
    """Return the targets of `export`."""
    from ..ship.export import EXPORTERS

    return list(EXPORTERS)


NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "{trainers}": trainer_names,
    "{reducers}": reducer_names,
    "{metrics}": metric_names,
    "{kernels}": kernel_names,
    "{targets}": export_names,
}


class Command(TyperCommand):
    """A command whose help lists the names in the tables of the library."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help with the names filled in."""
        for parameter in self.params:
            for placeholder, names in NAMES.items():
                text = getattr(parameter, "help", None) or ""
                if placeholder in text:
                    parameter.help = text.replace(placeholder, f"One of {', '.join(names())}.")  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], str]:
    """Return a parser that takes one of the names."""

    def parse(text: str) -> str:
        known = list(names())
        if text not in known:
            raise typer.BadParameter(f"{short(text)} is not one of {', '.join(known)}")
        return text

    return parse


# Values


def budget_of(text: str) -> int | float:
    """Return a number of support vectors ("32") or a fraction ("0.1")."""
    number = strict_number(text)
    if number is not None and text.strip().isdecimal() and 1 <= number <= LARGEST_INT:
        return int(text)
    if number is not None and 0 < number < 1:
        return number
    raise typer.BadParameter(f"{short(text)} is not a number of support vectors (1, 2, ...) or a fraction between 0 and 1")


def gamma_of(text: str) -> str | float:
    """Return "scale", "auto" or a number above 0."""
    number = strict_number(text)
    if text in ("scale", "auto"):
        return text
    if number is not None and 0 < number < math.inf:
        return number
    raise typer.BadParameter(f"{short(text)} is not 'scale', 'auto' or a number above 0")


def positive(text: str | float) -> float:
    """Return a finite number above 0."""
    number = strict_number(str(text))
    if number is not None and 0 < number < math.inf:
        return number
    raise typer.BadParameter(f"{short(text)} is not a number above 0")


def finite(text: str | float) -> float:
    """Return a finite number."""
    number = strict_number(str(text))
    if number is not None and math.isfinite(number):
        return number
    raise typer.BadParameter(f"{short(text)} is not a finite number")


def at_least_zero(text: str | float) -> float:
    """Return a finite number of 0 or more."""
    number = strict_number(str(text))
    if number is not None and 0 <= number < math.inf:
        return number
    raise typer.BadParameter(f"{short(text)} is not a number of 0 or more")


def share_of_rows(text: str | float) -> float:
    """Return a number above 0 and up to 1."""
    number = strict_number(str(text))
    if number is not None and 0 < number <= 1:
        return number
    raise typer.BadParameter(f"{short(text)} is not a share of the rows above 0 and up to 1, such as 0.05")


def share_of_errors(text: str | float) -> float:
    """Return a number from 0 up to 1."""
    number = strict_number(str(text))
    if number is not None and 0 <= number < 1:
        return number
    raise typer.BadParameter(f"{short(text)} is not a share of errors from 0 up to 1, such as 0.005")


def device_of(text: str) -> str:
    """Return the name of a device on which rows can be held here."""
    from ..rows.homes import HOMES, resolve_device

    try:
        device = resolve_device(text)
        HOMES[device.partition(":")[0]](device)
    except (ValueError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error
    return text


def whole(least: int, most: int) -> Callable[[str | int], int]:
    """Return a parser that takes a whole number within bounds."""

    def parse(text: str | int) -> int:
        word = str(text).strip()
        number = strict_number(word)
        if number is None or not word.lstrip("+-").isdecimal() or not least <= number <= most:
            raise typer.BadParameter(f"{short(text)} is not a whole number from {least} to {most}")
        return int(word)

    return parse


# Options that several commands share

DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="Rows and labels: LIBSVM format, .csv or .npz.")]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A .slim or LIBSVM model, or a pickled scikit-learn model with --trust.")
]
Trust = Annotated[bool, typer.Option("--trust", help="Load a pickle or joblib file, which can run any code.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")]
Keep = Annotated[bool, typer.Option("--keep", help="After Ctrl-C, write the best small model found so far.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Budget = Annotated[
    Any,
    typer.Option(
        "--budget",
        "-b",
        parser=budget_of,
        metavar="NUMBER",
        help="Support vectors at most: a number, or a fraction of the full model's.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        "-t",
        parser=share_of_errors,
        metavar="FLOAT",
        help="Smallest model within this much of the full one's error (0.005).",
    ),
]
Reducer = Annotated[
    str,
    typer.Option("--reducer", parser=one_of(reducer_names), metavar="NAME", help="The method that shrinks. {reducers}"),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        parser=one_of(metric_names),
        metavar="NAME",
        help="What slim learns besides points: {metrics} (fixed). Learned ones fit closer and take longer.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        parser=positive,
        metavar="SECONDS",
        help="Seconds for shrinking; then, or on Ctrl-C, the best so far is kept.",
    ),
]
Device = Annotated[
    str, typer.Option("--device", parser=device_of, metavar="NAME", help="Where to compute: cpu, cuda, mps, cupy or auto.")
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        parser=whole(0, LARGEST_SEED),
        metavar="INTEGER",
        help="Chooses the validation rows; the same seed gives the same model.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", help="CSV: the label's column, by name or number from 0 (last; none for novelty)."),
]
Split = Annotated[
    str,
    typer.Option(
        "--split", parser=one_of(lambda: SPLITS), metavar="NAME", help="npz with X_train and X_test: train or test."
    ),
]
TestFile = Annotated[Path | None, typer.Option("--test", help="Rows to measure the model on.")]


# Combinations of options


def check_methods(
    task: str, trainer: str, reducer: str, kernel: str, budget: int | float | None, tolerance: float | None
) -> None:
    """Refuse a task, a trainer, a reducer, a kernel and a budget that do not go together, before any data is read."""
    from ..kernels import make_kernel
    from ..reducers import REDUCERS
    from ..trainers import TRAINERS

    check_able(task, trainer, reducer, budget is not None or tolerance is not None)
    if trainer == "none":
        _check_no_trainer(reducer, budget, tolerance)
    budgeted = trainer != "none" and "budget" in {field.name for field in fields(TRAINERS[trainer])}
    if budgeted and (not isinstance(budget, int) or budget < 2):
        raise typer.BadParameter(
            f"--trainer {trainer} keeps to a budget while it learns; give a number of support vectors from 2 on, such as "
            "--budget 100",
            param_hint="--trainer",
        )
    values = make_kernel(kernel, gamma=1.0, degree=3, coef0=0.0)
    shrinks = tolerance is not None or (budget is not None and not budgeted)
    if shrinks and not REDUCERS[reducer].takes(values):
        able = ", ".join(name for name, kind in REDUCERS.items() if kind.takes(values))
        raise typer.BadParameter(
            f"{reducer} does not work with --kernel {kernel}; the reducers that do are {able}", param_hint="--reducer"
        )


def _check_no_trainer(reducer: str, budget: int | float | None, tolerance: float | None) -> None:
    """Refuse what needs the full model, which `--trainer none` does not train."""
    from ..reducers import REDUCERS

    if REDUCERS[reducer].needs_model:
        able = ", ".join(name for name, kind in REDUCERS.items() if not kind.needs_model)
        raise typer.BadParameter(
            f"--trainer none trains no full model for {reducer} to shrink; the reducers that need none are {able}",
            param_hint="--reducer",
        )
    if tolerance is not None:
        raise typer.BadParameter(
            "--trainer none trains no full model to compare the error with; give --budget alone", param_hint="--tolerance"
        )
    if not isinstance(budget, int):
        raise typer.BadParameter(
            "--trainer none trains no full model to take a fraction of; give a number of support vectors, such as "
            "--budget 16",
            param_hint="--trainer",
        )


def make_reducer(name: str, seconds: float | None, metric: str | None = None) -> Any:
    """Return the reducer of that name with its time limit and its metric, which must be one that learns."""
    from ..reducers import REDUCERS

    kind = REDUCERS[name]
    if metric is not None and "metric" not in {field.name for field in fields(kind)}:
        able = ", ".join(other for other in REDUCERS if "metric" in {field.name for field in fields(REDUCERS[other])})
        raise typer.BadParameter(f"{name} has no metric to learn; the reducers that have are {able}", param_hint="--metric")
    given = {"time_limit": seconds, "metric": metric}
    settings = {setting: value for setting, value in given.items() if value is not None}
    return kind(**settings) if settings else name


def make_scaler(name: str, sparse: bool) -> Any:
    """Return the scaler of that name, or None; zeros in sparse rows stay zero."""
    from ..importers import scalers

    try:
        return scalers.make_scaler(name, sparse)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--scale") from error


def export_target(path: Path, target: str | None, settings: dict[str, Any]) -> str:
    """Return the target of an export, by its name or the ending of the path, and refuse settings that it does not have."""
    from ..ship.export import make_exporter, target_of

    try:
        target = target_of(path, target)
        make_exporter(target, settings)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return target


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


# Paths and files


def check_output(path: Path, force: bool) -> None:
    """Refuse a path that cannot be written, or that is taken, before hours of work."""
    if path.exists() and not path.is_file():
        raise typer.BadParameter(
            f"cannot write {path}, which is not a file; give the name of a file", param_hint="--output"
        )
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise typer.BadParameter(
            f"cannot write {path}: there is no folder {path.parent} that can be written to", param_hint="--output"
        )
    if path.exists() and not force:
        raise typer.BadParameter(
            f"{path} exists already; give another name, or --force to replace it", param_hint="--output"
        )


def read_model(path: Path, trust: bool) -> Any:
    """Return the model in a file; pickles only if they are trusted."""
    if path.suffix.lower() not in PICKLES:
        from ..files.models import load

        return load(path)
    if not trust:
        raise typer.BadParameter(
            f"{path} is a pickle, which can run any code when loaded; pass --trust if you made it yourself",
            param_hint="MODEL",
        )
    return _unpickled(path)


def _unpickled(path: Path) -> Any:
    import joblib

    with open(path, "rb"):
        pass  # a file that is missing or cannot be read is an OSError with its name
    try:
        return joblib.load(path)
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"cannot load {path}: {type(error).__name__}: {error}") from error


def read_model_and_rows(path: Path, data: Path, trust: bool, **options: Any) -> tuple[Any, Any, Any]:
    """Return a model, and rows of its width with labels as it takes them.

    A LIBSVM model takes rows with more features than it names.
    """
    from ..files.datasets import read_data
    from ..files.models import is_libsvm, read_libsvm

    model = read_model(path, trust)
    width = getattr(model, "n_features_in_", None)
    if width is None:
        raise ValueError(f"{path} holds a {type(model).__name__}, which is not a fitted model")
    task = task_of(model)
    options["labels"] = options.get("labels", True) and task != "novelty"
    if is_libsvm(path):
        X, y = read_data(data, **options)
        if X.shape[1] > width:
            return read_libsvm(path, X.shape[1]), X, labels_of(task, y)
    X, y = read_data(data, n_features=width, **options)
    return model, X, labels_of(task, y)


def read_training_rows(path: Path, task: str, target: str | None, split: str) -> tuple[Any, Any]:
    """Return rows, and labels as the task takes them."""
    from ..files.datasets import read_data

    X, y = read_data(path, labels=task != "novelty", target=target, split=split)
    return X, labels_of(task, y)


def read_test_rows(path: Path | None, task: str, target: str | None, width: int) -> tuple[Any, Any] | None:
    """Return the rows and labels that a model is measured on, if a file is given."""
    from ..files.datasets import read_data

    if path is None:
        return None
    X, y = read_data(path, labels=task != "novelty", target=target, split="test", n_features=width)
    return X, labels_of(task, y)


# Messages

#: settings of the Python functions as their messages write them
_SETTING = re.compile(r"\b(budget|tolerance|kernel|gamma|trainer|reducer|target|device)=(?=\S)")
_LONG_NAME = re.compile(r"\b(max_iter|time_limit|cache_mb|budget_bytes|max_error)\b")


def in_options(message: str) -> str:
    """Return a message of the library as the command line spells it: budget=16 is --budget 16."""
    message = _SETTING.sub(r"--\1 ", message.replace("force=True (--force)", "--force"))
    return _LONG_NAME.sub(lambda name: f"--{name[1].replace('_', '-')}", message)
