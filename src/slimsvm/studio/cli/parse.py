"""Input of the commands: options that several of them share, and checks of values, paths and files.

Nothing here imports NumPy or scikit-learn until it is needed, so that help and version are printed at once.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...budget import AUTO, PRECISIONS
from ...budget import Budget as BudgetLimits
from ...files.endings import check_written
from ...parameters import PARAMETERS
from ...text import strict_number
from . import names
from .arguments import Argument, Option, ParameterError, Settings, Value
from .tasks import check_classes, labels_of, task_of

if TYPE_CHECKING:
    from ...files.datasets import Table

PICKLES = (".pkl", ".pickle", ".joblib")
#: the largest number of steps or of support vectors, which compiled code can hold on every platform
LARGEST_INT = 2**31 - 1
#: the largest degree of the poly kernel; most values overflow or vanish long before it
LARGEST_DEGREE = 1000
#: the largest seed of scikit-learn's random numbers
LARGEST_SEED = 2**32 - 1


# Values


def one_of(names: tuple[str, ...]) -> Value:
    """Return the parser of one of these names, in any case of letters."""
    return Value("NAME", f"one of {', '.join(names)}", lambda text: text.lower() if text.lower() in names else None)


def number(what: str, allowed: Callable[[float], bool]) -> Value:
    """Return the parser of a number for which `allowed` is true."""

    def read(text: str) -> float | None:
        value = strict_number(text)
        return value if value is not None and allowed(value) else None

    return Value("FLOAT", what, read)


def whole(least: int, largest: int = LARGEST_INT) -> Value:
    """Return the parser of a whole number from `least` to `most`."""

    def read(text: str) -> int | None:
        word, value = text.strip(), strict_number(text.strip())
        return int(word) if value is not None and word.lstrip("+-").isdecimal() and least <= value <= largest else None

    return Value("INTEGER", f"a whole number from {least} to {largest}", read)


finite = number("a finite number", math.isfinite)
positive = number("a number above 0", lambda found: 0 < found < math.inf)
seconds = replace(positive, metavar="SECONDS")
at_least_zero = number("a number of 0 or more", lambda found: 0 <= found < math.inf)
share_of_rows = number("a share of the rows above 0 and up to 1, such as 0.05", lambda found: 0 < found <= 1)
share_of_errors = number("a share of errors from 0 up to 1, such as 0.005", lambda found: 0 <= found < 1)
gamma_of = Value(
    "NUMBER",
    "'scale', 'auto' or a number above 0",
    lambda text: text if text in ("scale", "auto") else positive.read(text),
)


def device_of(text: str) -> str:
    """Return the name of a device on which rows can be held here."""
    from ...rows.homes import HOMES, resolve_device

    try:
        device = resolve_device(text)
        HOMES[device.partition(":")[0]](device)
    except (ValueError, ImportError) as error:
        raise ParameterError(str(error)) from error
    return text


def budget_of(text: str) -> int | float | str:
    """Return a limit on the model, with text for bytes and times."""
    try:
        limit = BudgetLimits.of(text)
    except ValueError as error:
        raise ParameterError(str(error)) from error
    return limit.count or limit.fraction or text


def trainer_of(text: str) -> str | None:
    """Return the name of a trainer; None for none."""
    name = one_of((*names.TRAINERS, "none"))(text)
    return None if name == "none" else str(name)


# Options for parameters of the estimators

#: how the values of parameters are read
PARSERS: dict[str, Callable[[str], Any]] = {
    "budget": budget_of,
    "precision": one_of((AUTO, *PRECISIONS)),
    "tolerance": share_of_errors,
    "kernel": one_of(names.KERNELS),
    "gamma": gamma_of,
    "C": positive,
    "epsilon": at_least_zero,
    "nu": share_of_rows,
    "degree": whole(0, LARGEST_DEGREE),
    "coef0": finite,
    "trainer": trainer_of,
    "reducer": one_of(names.REDUCERS),
    "tol": positive,
    "max_iter": whole(-1),
    "time_limit": seconds,
    "checkpoint": Path,
    "cache_mb": positive,
    "calibration": one_of(names.CALIBRATIONS),
    "multiclass": one_of(names.MULTICLASS),
    "device": device_of,
    "random_state": whole(0, LARGEST_SEED),
}
#: words for values in help
METAVARS = {"budget": "LIMIT", "trainer": "NAME", "checkpoint": "PATH", "device": "NAME"}
#: what {words} in the help of parameters stand for
LISTS = {
    "kernels": names.KERNELS,
    "trainers": names.TRAINERS,
    "reducers": names.REDUCERS,
    "calibrations": names.CALIBRATIONS,
}


def settings_of(*parameters: str) -> Settings:
    """Return options for parameters of the estimators, with the help and the defaults of `slimsvm.parameters`."""
    lists = {name: ", ".join(words) for name, words in LISTS.items()}
    options = {}
    for name in parameters:
        entry = PARAMETERS[name]
        option = Option(
            *(entry.flags or (f"--{name.replace('_', '-')}",)),
            help=entry.option.format(**lists),
            parser=PARSERS[name],
            metavar=METAVARS.get(name),
            repeated=name == "budget",
        )
        options[name] = option, 0 if name == "random_state" else entry.default
    return Settings(options)


#: the parameters of the search for a small model, which several commands have
SEARCH = (
    "budget",
    "precision",
    "tolerance",
    "reducer",
    "time_limit",
    "calibration",
    "multiclass",
    "device",
    "random_state",
)


# Options that several commands share

DataFile = Annotated[
    Path, Argument(metavar="DATA", help="Rows and labels: LIBSVM format, .csv or .npz; - reads from a pipe.")
]
ModelFile = Annotated[
    Path, Argument(metavar="MODEL", help="A .slim or LIBSVM model, or a pickled scikit-learn model with --trust.")
]
Trust = Annotated[bool, Option("--trust", help="Load a pickle or joblib file, which can run any code.")]
Output = Annotated[Path, Option("--output", "-o", help="Where to write the model.")]
Keep = Annotated[bool, Option("--keep", help="After Ctrl-C, write the best model found so far.")]
Force = Annotated[bool, Option("--force", help="Replace files that exist.")]
Task = Annotated[
    str,
    Option(
        "--task",
        parser=one_of(names.TASKS),
        help="classify, regress (labels are numbers) or novelty (no labels; leave their column out by --label).",
    ),
]
Count = Annotated[Any, Option("--budget", "-b", parser=whole(1), help="Support vectors at most.")]
MetricName = Annotated[
    str | None,
    Option(
        "--metric",
        parser=one_of(names.METRICS),
        help=f"What slim learns besides points. {names.listed(names.METRICS)} Learned ones fit closer and take longer.",
    ),
]
Balanced = Annotated[bool, Option("--balanced", help="Weigh classes by their rarity.")]
Label = Annotated[
    str | None,
    Option(
        "--label",
        metavar="COLUMN",
        help="CSV: the column of the labels, by name or number from 0; else the one named label, target, class or y, or "
        "the last one (none for novelty).",
    ),
]
Scale = Annotated[
    str,
    Option(
        "--scale",
        parser=one_of(names.SCALES),
        help="Scale the features; saved with the model: auto (standard where they differ widely), none, standard, minmax, "
        "maxabs or robust.",
    ),
]
Numeric = Annotated[str | None, Option("--numeric", metavar="COLUMNS", help="Tables: columns of numbers, with commas.")]
Categorical = Annotated[
    str | None, Option("--categorical", metavar="COLUMNS", help="Tables: columns of categories, with commas.")
]
Drop = Annotated[str | None, Option("--drop", metavar="COLUMNS", help="Tables: columns to leave out, with commas.")]
Split = Annotated[str, Option("--split", parser=one_of(names.SPLITS), help="npz with X_train and X_test: train or test.")]
TestFile = Annotated[Path | None, Option("--test", help="Rows to measure the model on.")]


# Combinations of options


def check_predictions(predictor: Any, *, scores: bool, proba: bool) -> None:
    """Refuse scores or probabilities of a model that has none."""
    if scores and proba:
        raise ParameterError("give --scores or --proba, not both", param_hint="--proba")
    if scores and predictor.scores is None:
        raise ParameterError("a regressor has no scores but the values that it predicts", param_hint="--scores")
    if proba and predictor.proba is None:
        raise ParameterError(
            "this model has no probabilities; train or compress a classifier with --calibration sigmoid",
            param_hint="--proba",
        )


def make_reducer(name: str, *, metric: str | None = None, time_limit: float | None = None) -> Any:
    """Return the reducer of that name with its time limit and its metric, which must be one that learns."""
    from ...reducers import REDUCERS

    kind = REDUCERS[name]
    if metric is not None and "metric" not in {field.name for field in fields(kind)}:
        able = ", ".join(other for other in REDUCERS if "metric" in {field.name for field in fields(REDUCERS[other])})
        raise ParameterError(f"{name} has no metric to learn; the reducers that have are {able}", param_hint="--metric")
    settings = given(time_limit=time_limit, metric=metric)
    return kind(**settings) if settings else name


def make_scaler_for(X: Any, scale: str) -> Any:
    """Return a scaler for the rows, or None; zeros in sparse rows stay zero. What auto chose to do is said on stderr."""
    from scipy.sparse import issparse

    from ...importers.around import make_scaler, resolve_scale

    name = resolve_scale(scale, X)
    if name != scale and name != "none":
        print("The features are on different scales and are standardised, as by --scale standard", file=sys.stderr)
    try:
        return make_scaler(name, issparse(X))
    except ValueError as error:
        raise ParameterError(str(error), param_hint="--scale") from error


def preparation_for(X: Any, columns: Any, scale: str, kinds: dict[str, str]) -> Any:
    """Return the preparation of a table, or the scaler of rows of numbers, or None. What it does is said on stderr."""
    if X.dtype != object:
        return make_scaler_for(X, scale)
    if scale != "auto":
        raise ParameterError(
            "the columns of a table with words or holes are imputed, encoded and standardised; leave --scale out",
            param_hint="--scale",
        )
    from ...tables.preparation import table_preparation
    from ...tables.recognition import ColumnsOf

    names = columns or tuple(map(str, range(X.shape[1])))
    places = {kind: [names.index(name) for name in kinds if kinds[name] == kind] for kind in ("number", "word", "nothing")}
    preparation = table_preparation(numeric=places["number"], categorical=places["word"], drop=places["nothing"])
    by_place = ColumnsOf("number", *(tuple(places[kind]) for kind in ("number", "word", "nothing"))).kinds(X)
    listed = {
        kind: [names[place] for place, use in by_place.items() if use.name == kind] for kind in ("number", "word", "date")
    }
    left_out = [f"{names[place]} {use.reason}".rstrip() for place, use in by_place.items() if use.name == "nothing"]
    parts = [f"{len(members)} of {kind}s ({shown(members)})" for kind, members in listed.items() if members]
    dropped = f"; left out: {shown(left_out)}" if left_out else ""
    print(f"Columns: {', '.join(parts)}{dropped}", file=sys.stderr)
    print(
        "Holes in numbers are filled by the median and marked, words become a feature each, and numbers are standardised",
        file=sys.stderr,
    )
    return preparation


def shown(words: list[str], count: int = 8) -> str:
    """Return the first few words of a list."""
    return ", ".join(words[:count]) + (f" and {len(words) - count} more" if len(words) > count else "")


def kinds_of_columns(numeric: str | None, categorical: str | None, drop: str | None) -> dict[str, str]:
    """Return what columns hold by the options that say so."""
    options = {"number": numeric, "word": categorical, "nothing": drop}
    kinds: dict[str, str] = {}
    for kind, text in options.items():
        for name in filter(None, (text or "").split(",")):
            if kinds.setdefault(name.strip(), kind) != kind:
                raise ParameterError(f"the column {name.strip()!r} is named for two uses", param_hint="--drop")
    return kinds


def check_named(kinds: dict[str, str], columns: tuple[str, ...] | None) -> None:
    """Refuse names of columns that the table does not have."""
    strange = [name for name in kinds if name not in (columns or ())]
    if strange:
        known = f"it has {shown(list(columns))}" if columns else "it has no header line"
        raise ParameterError(f"the table has no column {', '.join(strange)}; {known}", param_hint="DATA")


def export_target(path: Path, target: str | None, settings: dict[str, Any]) -> str:
    """Return the target of an export, by its name or the ending of the path, and refuse settings that it does not have."""
    from ...ship.export import make_exporter, target_of

    try:
        target = target_of(path, target)
    except ValueError as error:
        raise ParameterError(str(error), param_hint="--format") from error
    try:
        make_exporter(target, settings)
    except ValueError as error:
        raise ParameterError(str(error)) from error
    return target


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


# Paths and files


def check_output(path: Path, force: bool, *others: str | Path | None, what: str | None = None) -> None:
    """Refuse a path that cannot be written, is taken, or is another file of the command, before hours of work.

    `what` is written, one of `WRITTEN`, under a name whose ending says so; None where the ending chooses a format.
    """
    if path.exists() and not path.is_file():
        raise ParameterError(f"cannot write {path}, which is not a file; give the name of a file", param_hint="--output")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ParameterError(
            f"cannot write {path}: there is no folder {path.parent} that can be written to", param_hint="--output"
        )
    if any(other is not None and os.path.realpath(other) == os.path.realpath(path) for other in others):
        raise ParameterError(f"{path} is a file that this command reads; give another name", param_hint="--output")
    try:
        if what is not None:
            check_written(what, path)
    except ValueError as error:
        raise ParameterError(str(error), param_hint="--output") from error
    if path.exists() and not force:
        raise ParameterError(f"{path} exists already; give another name, or --force to replace it", param_hint="--output")


def read_model(path: Path, trust: bool) -> Any:
    """Return the model in a file; pickles only if they are trusted."""
    if path.suffix.lower() not in PICKLES:
        from ...files.models import load

        return load(path)
    if not trust:
        raise ParameterError(
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


def read_model_and_rows(
    path: Path, data: Path, trust: bool, *, labels: bool = True, target: str | None = None, split: str = "train"
) -> tuple[Any, Any, Any]:
    """Return a model, and rows of its width with labels in its form; columns are found by the names of its features.

    A LIBSVM model takes rows with more features than it names.
    """
    from ...files.columns import Wanted
    from ...files.datasets import read_table
    from ...files.models import is_libsvm, read_libsvm

    model = read_model(path, trust)
    width = getattr(model, "n_features_in_", None)
    if width is None:
        takes = getattr(getattr(model, "steps", [(None, None)])[0][1], "vocabulary_", None)
        what = "is not a fitted model" if takes is None else "takes texts; predict them in Python, by slimsvm.runtime"
        raise ValueError(f"{path} holds a {type(model).__name__}, which {what}")
    task = task_of(model)
    wanted = Wanted(labels and task != "novelty", target, width, names_of(model), cells_of(model))
    if is_libsvm(path):
        X, y, _ = read_table(data, replace(wanted, n_features=None), split)
        if X.shape[1] > width:
            return read_libsvm(path, X.shape[1]), X, labels_of(task, y)
    X, y, _ = read_table(data, wanted, split)
    return model, as_scalers_take(model, X), labels_of(task, y)


def cells_of(model: Any) -> Any:
    """Return what the columns of a table hold, for a model behind the preparation of one; None for rows of numbers."""
    from sklearn.pipeline import Pipeline

    from ...files.columns import Cells
    from ...tables.folding import are_scalers, preparation_of

    steps = [step for _, step in model.steps[:-1]] if isinstance(model, Pipeline) else []
    if are_scalers(steps):
        return None
    names = names_of(model)
    preparation = preparation_of(steps, model.n_features_in_, names or ())
    kinds: dict[Any, str] = dict.fromkeys(names or range(preparation.given), "nothing")
    for column in preparation.columns:
        kinds[column.name if names else column.position] = column.kind
    return Cells(kinds, always=not preparation.is_array)


def names_of(model: Any) -> tuple[str, ...] | None:
    """Return the names of a model's features; None if it knows none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def as_scalers_take(model: Any, X: Any) -> Any:
    """Return rows in the form that the scalers of a Pipeline take; scalers that shift zeros take dense rows only."""
    from sklearn.preprocessing import MinMaxScaler

    from ...kernels import dense

    if X.dtype == object:
        return X
    steps = [step for _, step in getattr(model, "steps", [])[:-1]]
    moved = [getattr(step, "with_mean", False) or getattr(step, "with_centering", False) for step in steps]
    return dense(X) if any(moved) or any(isinstance(step, MinMaxScaler) for step in steps) else X


def read_training_rows(path: Path, task: str, label: str | None, split: str, cells: Any = None) -> Table:
    """Return rows, labels as the task takes them, and the names of the features; `cells` allows words and holes."""
    from ...files.columns import Wanted
    from ...files.datasets import read_table

    table = read_table(path, Wanted(task != "novelty", label, cells=cells), split)
    y = labels_of(task, table.y)
    if task == "classify":
        check_classes(y, columns_of_words(table) if label is None else [])
    return table._replace(y=y)


def columns_of_words(table: Table) -> list[Any]:
    """Return the names or numbers of the features that are words in every row; labels without a name are behind them."""
    if table.X.dtype != object:
        return []
    names = table.names or range(table.X.shape[1])
    return [name for name, cells in zip(names, table.X.T, strict=True) if all(isinstance(cell, str) for cell in cells)]


def read_test_rows(
    path: Path | None, task: str, label: str | None, width: int, names: tuple[str, ...] | None, cells: Any = None
) -> tuple[Any, Any] | None:
    """Return the rows and labels that a model is measured on, if a file is given."""
    from ...files.columns import Wanted
    from ...files.datasets import read_table

    if path is None:
        return None
    X, y, _ = read_table(path, Wanted(task != "novelty", label, width, names, cells), "test")
    return X, labels_of(task, y)


# Messages

#: settings of Python functions in messages; the option for the labels' column has another name
_SETTING = re.compile(r"\b(budget|precision|tolerance|kernel|gamma|trainer|reducer|device|calibration|multiclass)=(?=\S)")
_COLUMN = re.compile(r"\btarget=(?=\S)")
_LONG_NAME = re.compile(r"\b(max_iter|time_limit|cache_mb|max_error)\b")


def in_options(message: str) -> str:
    """Return a message of the library with options of the command line: budget=16 becomes --budget 16."""
    message = message.replace("trainer=None", "trainer=none")
    message = _SETTING.sub(r"--\1 ", _COLUMN.sub("--label ", message.replace("force=True (--force)", "--force")))
    return _LONG_NAME.sub(lambda name: f"--{name[1].replace('_', '-')}", message)
