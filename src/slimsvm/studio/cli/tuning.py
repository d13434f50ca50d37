"""The command that chooses the settings: slimsvm tune."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from . import names
from .arguments import Option, ParameterError
from .interrupts import StoppedEarly, finished_or_best, raise_on_interrupt, saying_what_was_written
from .parse import (
    Balanced,
    DataFile,
    Force,
    Keep,
    Label,
    Output,
    Split,
    TestFile,
    check_output,
    one_of,
    read_test_rows,
    read_training_rows,
    settings_of,
    share_of_errors,
    whole,
)
from .render import measures, plain, show_model
from .tasks import make_estimator, own_settings

if TYPE_CHECKING:
    from ..tune import TuningProgress, TuningResult


def tune(
    data: DataFile,
    task: Annotated[
        str,
        Option("--task", parser=one_of(names.TASKS), help="classify, or regress: labels are numbers."),
    ] = "classify",
    output: Output = Path("model.slim"),
    max_error: Annotated[
        float | None,
        Option("--max-error", parser=share_of_errors, help="The smallest model within this error (0.05)."),
    ] = None,
    trials: Annotated[
        int,
        Option("--trials", parser=whole(1), help="Settings to try on a few rows."),
    ] = 36,
    balanced: Balanced = False,
    table: Annotated[Path | None, Option("--table", help="Write all trials to this CSV file.")] = None,
    label: Label = None,
    split: Split = "train",
    test: TestFile = None,
    keep: Keep = False,
    force: Force = False,
    **settings: Annotated[Any, settings_of("budget", "precision", "time_limit", "kernel", "device", "random_state")],
) -> None:
    """Choose kernel width, C and scaling for a model of DATA, train it and write it; without a limit, a full one."""
    check_output(output, force, data, test, table, what="a model")
    if table is not None:
        check_output(table, force, data, test, output, what="a table of runs")
    if task == "novelty":
        raise ParameterError("novelty detection has no labels to count errors on, which tuning needs", param_hint="--task")
    of_estimator: dict[str, Any] = {name: settings.pop(name) for name in ("kernel", "device") if name in settings}
    of_estimator |= {"class_weight": "balanced"} if balanced else {}
    from ...importers.around import with_names
    from ..tune import tune as run

    X, y, columns = read_training_rows(data, task, label, split)
    tests = read_test_rows(test, task, label, X.shape[1], columns)
    template = make_estimator(task, **own_settings(task, **of_estimator))
    raise_on_interrupt()
    result, interrupted = finished_or_best(
        lambda: run(
            X,
            y,
            max_error=max_error,
            n_trials=trials,
            estimator=template,
            callback=_line,
            **{"random_state": 0, **settings},
        ),
        keep,
    )
    with_names(result.best_estimator_, columns)
    _write(result, output, table, X, y, tests, interrupted)


def _line(progress: TuningProgress) -> None:
    """Print where tuning is, with the time left, on one line of a terminal that the next one replaces."""
    if sys.stderr.isatty():
        end = "\n" if progress.last else "\r"
        print(f"\033[K{plain(str(progress))}", end=end, file=sys.stderr, flush=True)


def _write(result: TuningResult, output: Path, table: Path | None, X: Any, y: Any, tests: Any, interrupted: bool) -> None:
    """Write the model and the table of trials, and show what was chosen; after Ctrl-C, only write."""
    from ...files.container import write_whole
    from ...files.native import save
    from ..runs import lines

    model, chosen = result.best_estimator_, result.best_params_
    with saying_what_was_written(output):
        save(model, output)
        if table is not None:
            write_whole(table, [lines([list(result.results_), *zip(*result.results_.values(), strict=True)])])
        if interrupted:
            raise StoppedEarly(f"interrupted; the best model found so far is in {output}")
        settings = [
            ("settings chosen", ", ".join(f"{name} {_number(value)}" for name, value in chosen.items())),
            (
                "validation error of these settings",
                f"{100 * result.best_error_:.2f} %{' (1 - R^2)' * ('epsilon' in chosen)}",
            ),
        ]
        show_model(output, model, [*settings, *measures(model, X, y, tests)])


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
