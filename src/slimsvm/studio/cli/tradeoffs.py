"""The commands to look before choosing: slimsvm tradeoff | report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...budget import order_of
from . import names
from .arguments import Argument, Option, ParameterError
from .interrupts import StoppedEarly, raise_on_interrupt
from .parse import (
    Force,
    Label,
    Scale,
    Split,
    budget_of,
    check_output,
    given,
    one_of,
    seconds,
    settings_of,
    whole,
)
from .render import message_of, plain, show, show_files
from .tasks import check_classes, labels_of, own_settings

if TYPE_CHECKING:
    from ...files.datasets import Table
    from ..tradeoff import Progress, Tradeoff

#: the default file of the results
ROWS = Path("tradeoff.csv")

Data = Annotated[
    str, Argument(metavar="DATA", help="Rows and labels (LIBSVM format, .csv or .npz), or digits, iris, wine, ...")
]
TestData = Annotated[Path | None, Option("--test", help="Test rows; else a quarter of DATA.")]


def names_of(text: str) -> list[str]:
    """Return the words of a list with commas."""
    words = [word.strip() for word in str(text).split(",") if word.strip()]
    if not words:
        raise ParameterError("give one name at least, or several with commas")
    return words


def methods_of(text: str) -> list[str]:
    """Return the names of methods that there are."""
    from ..tradeoff.methods import method_of

    try:
        return [method_of(word).name for word in names_of(text)]
    except ValueError as error:
        raise ParameterError(str(error)) from error


def budgets_of(text: str) -> list[Any]:
    """Return limits: numbers of support vectors, bytes or times."""
    return [budget_of(word) for word in names_of(text)]


def tradeoff(
    data: Data,
    task: Annotated[
        str | None,
        Option(
            "--task",
            parser=one_of(names.TASKS),
            help="classify, regress (labels are numbers) or novelty (no labels; leave their column out by --label).",
            show_default="classify; regress for diabetes",
        ),
    ] = None,
    output: Annotated[Path, Option("--output", "-o", help="Rows; runs that are there are not made again.")] = ROWS,
    methods: Annotated[
        Any,
        Option("--methods", "-m", parser=methods_of, metavar="NAMES", help="With commas: slim,spsvm,bsgd,lp+slim ..."),
    ] = None,
    budgets: Annotated[
        Any, Option("--budgets", "-b", parser=budgets_of, metavar="LIMITS", help="With commas: 8,16,32 or '2 KB,4 KB' ...")
    ] = None,
    seeds: Annotated[int, Option("--seeds", parser=whole(1, 1000), help="Runs of each, with other test rows.")] = 1,
    scale: Scale = "auto",
    time_limit: Annotated[float | None, Option("--time-limit", parser=seconds, help="For shrinking, in each run.")] = None,
    label: Label = None,
    split: Split = "train",
    test: TestData = None,
    force: Force = False,
    **settings: Annotated[Any, settings_of("kernel", "gamma", "C", "epsilon", "nu", "precision")],
) -> None:
    """Train methods at several sizes on DATA and write size, speed and error of each model: how small can it be?"""
    check_output(output, True, data, test, what="a table of runs")  # a file that exists is continued
    from ..tradeoff.datasets import usual_task

    task = task or usual_task(data)
    of_task = own_settings(task, **settings)
    from ..tradeoff import tradeoff as run

    X, y, columns = rows_of(data, task, label, split)
    test_rows = None if test is None else rows_of(test, task, label, "test", columns)[:2]
    raise_on_interrupt()
    try:
        result = run(
            X,
            y,
            task=task,
            seeds=seeds,
            test=test_rows,
            scale=scale,
            file=output,
            force=force,
            name=data,
            feature_names=columns,
            origin={"test": str(test or ""), "target": str(label or ""), "split": split},
            report=_line_by_line(),
            **of_task,
            **given(methods=methods, budgets=budgets, time_limit=time_limit),
        )
    except KeyboardInterrupt:
        words = f"interrupted; {output} has the runs that were finished, and the same command makes the others"
        raise StoppedEarly(words) from None
    show_tradeoff(data, result)
    words = "" if output == ROWS else f" {plain(str(output))}"
    print(f"\nThe rows are in {plain(str(output))}. Next: slimsvm report{words}")


def rows_of(data: str | Path, task: str, label: str | None, split: str, names: Sequence[str] | None = None) -> Table:
    """Return rows, labels as the task takes them, and names of the features, of a file or a named data set."""
    from ..tradeoff import open_data

    table = open_data(data, labels=task != "novelty", target=label, split=split, names=names)
    y = labels_of(task, table.y)
    if task == "classify":
        check_classes(y)
    return table._replace(y=y)


def report(
    rows: Annotated[Path, Argument(metavar="ROWS", help="The CSV file of slimsvm tradeoff.")] = ROWS,
    output: Annotated[Path, Option("--output", "-o", help="The page; a model card is written beside it.")] = Path(
        "report.html"
    ),
    method: Annotated[str | None, Option("--method", "-m", help="The method that the page opens with.")] = None,
    title: Annotated[str | None, Option("--title", help="The title; else the name of the data.")] = None,
    data: Annotated[str | None, Option("--data", help="The data, where they have been moved.")] = None,
    test: Annotated[Path | None, Option("--test", help="The test rows, where they have been moved.")] = None,
    target: Annotated[
        str | None, Option("--target", parser=one_of(names.BOARDS), help="Costs of the method's C models on a processor.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a trade-off as one HTML page with the models in it, and a model card."""
    from ..report import report as write
    from ..tradeoff import read_tradeoff
    from ..tradeoff.rows import last_study
    from ..tradeoff.tasks import task_of_row

    result = read_tradeoff(rows)
    check_output(output, force, rows, data, test, what="a page")
    last = result.rows[-1]
    task, label = task_of_row(last).name, last["target"] or None
    others = len(result.rows) - len(last_study(result.rows))
    if others:
        study = f"{last['data']}, {last['settings']}"
        print(
            plain(f"{rows} has {others} runs of other data or settings too; the page shows the last: {study}"),
            file=sys.stderr,
        )
    X, y, columns = rows_of(data or last["data"], task, label, last["split"] or "train")
    where = test or last["test"]
    test_rows = rows_of(where, task, label, "test", columns)[:2] if where else None
    raise_on_interrupt()
    try:
        files = write(result, X, y, output, test=test_rows, method=method, title=title, target=target, force=force)
    except FileExistsError as error:  # the card exists
        raise ParameterError(message_of(error), param_hint="--output") from error
    show_files(files)


def _line_by_line() -> Callable[[Progress], None]:
    """Return a report that prints a line on stderr after each run, with the time left."""
    from ..tradeoff.tasks import task_of_row

    def line(progress: Progress) -> None:
        row = progress.row
        budget = f"{row['budget']} vectors" if isinstance(row["budget"], int) else row["budget"]
        what = row["method"] if budget is None else f"{row['method']}, {budget}"
        error = task_of_row(row).error
        end = f"{row['status']}: {row['reason']}" if row["error"] is None else f"{100 * row['error']:.1f} % {error}"
        remaining = f"; about {_duration(progress.seconds_left)} left" if progress.number < progress.total else ""
        print(plain(f"{progress.number}/{progress.total} {what}: {end}{remaining}"), file=sys.stderr, flush=True)

    return line


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def show_tradeoff(data: str, result: Tradeoff) -> None:
    """Print the errors by size and method, and the smallest good size."""
    from ..tradeoff import smallest_good
    from ..tradeoff.methods import FULL
    from ..tradeoff.summary import answer, summarise, whole
    from ..tradeoff.tasks import task_of_row

    task = task_of_row(result.rows[-1])
    points = {(point.method, point.budget): point for point in summarise(result.rows)}
    budgets = sorted({budget for _, budget in points if budget is not None}, key=order_of)
    methods = [method for method in result.methods if (method, None) not in points]  # those with budgets
    cells = [(str(b), *(_error(points.get((method, b))) for method in methods)) for b in budgets]
    others = [point for point in points.values() if point.budget is None]
    cells += [(f"{p.method}: {whole(p.size)}", _error(p), *[""] * (len(methods) - 1)) for p in others]
    head = "support vectors" if all(isinstance(budget, int) for budget in budgets) else "budget"
    show(f"{task.error.capitalize()}: {data}", cells, (head, *(methods or [FULL])))
    best = smallest_good(result.rows, methods[0]) if methods else None
    if best is not None:
        print("\n" + plain(answer(task, points[methods[0], best], points.get((FULL, None)))))


def _error(point: Any) -> str:
    return "" if point is None else f"{100 * point.error:.1f} ± {100 * point.se:.1f} %"
