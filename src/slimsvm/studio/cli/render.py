"""Output of the commands: errors and warnings in one line, tables, progress and formatted numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

from .interrupts import raise_on_interrupt
from .parse import in_options, names_of
from .tasks import PREDICTIONS, quality, task_of

Report = Callable[[str, float], None]

#: `info` quantises models to tell the costs of a C export if the points have at most this many numbers
LARGEST_COST = 1 << 27
#: names of features that `info` prints
MOST_NAMES = 20


def plain(text: str) -> str:
    """Return a text on one line without control characters, which could change the terminal."""
    return "".join(char if char.isprintable() else " " * char.isspace() for char in text)


def fail(message: str, code: int) -> int:
    """Print an error and return the exit code."""
    print(f"slimsvm: error: {plain(in_options(' '.join(message.split())))}", file=sys.stderr)
    return code


def message_of(error: BaseException) -> str:
    """Return an exception's message; with its name if the message is empty or of an arithmetic error."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ArithmeticError | RecursionError):
        return f"the data or the options are beyond what can be computed ({type(error).__name__}: {error})"
    if isinstance(error, MemoryError):
        return f"there is not enough memory{f' ({error})' * bool(str(error))}"
    return str(error) or type(error).__name__


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in one line; replaces `warnings.showwarning`."""
    print(f"slimsvm: warning: {plain(in_options(' '.join(str(message).split())))}", file=sys.stderr)


@contextmanager
def progress() -> Iterator[Report]:
    """Show a bar per phase on a terminal, and nothing in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    raise_on_interrupt()
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda phase, done: None  # noqa: ARG005
        return
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(phase: str, done: float) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=1.0)
            bars.update(tasks[phase], completed=done)

        yield report


def show(title: str, rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ("", "")) -> None:
    """Print a small table; a head without words is left out."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    box = Table().box if sys.stdout.isatty() else None
    # Text, because rich would read a label such as "[/a]" as markup
    table = Table(title=Text(plain(title)) if title else None, title_justify="left", box=box, show_header=any(head))
    for number, name in enumerate(head):
        table.add_column(Text(plain(name)), justify="left" if number == 0 or len(head) == 2 else "right")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    Console(soft_wrap=True).print(table)


def show_model(path: Path, model: Any, measures: Sequence[tuple[str, str]] = ()) -> None:
    """Print the facts of a model and its file."""
    show(f"{path} ({path.stat().st_size:,} bytes)", [*facts(model), *measures])


def show_files(files: Sequence[Path]) -> None:
    """Print the names and sizes of files."""
    for file in files:
        print(f"{plain(str(file))} ({file.stat().st_size:,} bytes)")


def show_agreement(model: Any, exporter: Any) -> None:
    """Print on how many rows the integer tables of a C model lead to the model's classes."""
    from sklearn.base import is_regressor

    from ...ship.source import artefact_of

    artefact = artefact_of(model)
    precision = exporter.precision_for(artefact)
    if precision != "float32" and not is_regressor(model):
        n, same = exporter.rows.shape[0], exporter.predicted_alike(artefact, exporter.rows)
        print(f"{precision} tables predict as the model does on {same:,} of {n:,} rows ({100 * same / n:.2f} %)")


def show_board(model: Any, target: str) -> None:
    """Print what C models of each kind take on a processor."""
    from ...ship.boards import BOARDS, in_words
    from ...ship.source import artefact_of

    rows, missing = in_words(artefact_of(model), target), BOARDS[target].missing
    print()
    show(f"C on {target}" + (f" ({', '.join(missing)} not installed)" if missing else ""), rows)


def show_result(path: Path, model: Any, full: Any | None, X: Any, y: Any, test: tuple[Any, Any] | None) -> None:
    """Print a model like `show_model`, and how good it is, beside the full model if that is larger."""
    models = [_machine(one).model_ for one in (full, model) if one is not None]
    if models[0].size == models[-1].size:
        show_model(path, model, measures(model, X, y, test))
        return
    show_model(path, model)
    lines = [
        {"support vectors": f"{size:,}"} | dict(costs(one)[:1] + measures(one, X, y, test))
        for size, one in zip((one.size for one in models), (full, model), strict=True)
    ]
    rows = [(what, *(figures.get(what, "") for figures in lines)) for what in lines[-1]]
    print()
    show("", rows, ("", "full model", "small model"))
    allowance = getattr(_machine(model).path_, "allowance", None)
    if allowance is not None:
        print(f"tolerance: {allowance}")


def measures(model: Any, X: Any, y: Any, test: tuple[Any, Any] | None) -> list[tuple[str, str]]:
    """Return how good the model is on the given rows, and on test rows if there are any."""
    sets = {"these rows": (X, y)} | ({} if test is None else {"test rows": test})
    qualities = {where: quality(task_of(model), model.predict(rows), labels) for where, (rows, labels) in sets.items()}
    return [(f"{known[0]} on {where}", known[1]) for where, known in qualities.items() if known is not None]


def facts(model: Any) -> list[tuple[str, str]]:
    """Return the facts of a model for `info`."""
    from ...importers.around import unwrapped

    svm = _machine(model)
    expansion, goal = svm.model_, svm.goal_
    steps, targets, _ = unwrapped(model)
    kernel = ", ".join(f"{name}={value:g}" for name, value in vars(expansion.kernel).items())
    return [
        ("kernel", f"{expansion.kernel.name}({kernel})"),
        ("predicts", PREDICTIONS[task_of(svm)]) if goal.real else ("classes", _classes(svm.classes_)),
        ("features", _features(svm.n_features_in_, names_of(model))),
        ("preprocessing", ", ".join(type(step).__name__ for step in steps) or "none"),
        *[("targets", type(step).__name__) for step in targets],
        ("support vectors", f"{expansion.size:,}"),
        ("outputs", f"{expansion.bias.size:,} ({goal.name})"),
        *_metric(expansion),
        *costs(model),
    ]


def _metric(expansion: Any) -> list[tuple[str, str]]:
    if expansion.metric is None:
        return []
    parts = {"factors of features": expansion.metric.factors, "widths of points": expansion.metric.widths}
    return [(name, f"{v.min():.3g} to {v.max():.3g}, learned") for name, v in parts.items() if v is not None and v.size]


def _features(count: int, names: tuple[str, ...] | None) -> str:
    return f"{count:,}" if names is None else f"{count:,}: {', '.join(names[:MOST_NAMES])}{' …' * (count > MOST_NAMES)}"


def _classes(classes: Any) -> str:
    return f"{classes.size:,}: {', '.join(map(str, classes[:10]))}{' …' * (classes.size > 10)}"


def _machine(model: Any) -> Any:
    from ...estimators import imported, machine_of
    from ...importers.around import unwrapped

    last = unwrapped(model)[-1]
    return last if hasattr(last, "model_") else machine_of(imported(last))


def as_ours(model: Any) -> Any:
    """Return a model with its estimator converted to slimsvm's, which predicts faster than scikit-learn's."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return Pipeline([*model.steps[:-1], (model.steps[-1][0], as_ours(model[-1]))])
    if isinstance(model, TransformedTargetRegressor):
        changed = copy(model)
        changed.regressor_ = as_ours(model.regressor_)
        return changed
    return _machine(model)


def costs(model: Any) -> list[tuple[str, str]]:
    """Return the costs of a model that is shipped: the figures of a C export."""
    from ...ship.c import CExporter
    from ...ship.source import artefact_of

    expansion, cost = _machine(model).model_, {}
    if expansion.point_numbers <= LARGEST_COST:
        for precision in dict.fromkeys((expansion.precision, "float32", "int8")):
            with suppress(ValueError):  # some kernels have no integer form, and some numbers no float32 form
                cost[precision] = CExporter(precision).cost(artefact_of(model))
    if not cost:
        return []
    return [
        *((f"bytes as {precision} C", f"{cost[precision].bytes:,}") for precision in cost),
        *((f"flash as {precision} C tables", f"{cost[precision].flash:,} bytes") for precision in cost),
        *((f"stack with {precision} C tables", f"{cost[precision].ram:,} bytes of arrays") for precision in cost),
        ("multiply-adds per prediction", f"{next(iter(cost.values())).multiply_adds:,}"),
    ]
