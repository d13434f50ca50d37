"""The commands: slimsvm demo | train | compress | predict | info | export | reader.

`tradeoffs` has tradeoff and report, `tuning` has tune. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from . import names
from .arguments import Argument, Option, ParameterError, UsageError, parse
from .interrupts import INTERRUPTED, StoppedEarly, finished_or_best, raise_on_interrupt, saying_what_was_written
from .parse import (
    SEARCH,
    Balanced,
    Categorical,
    Count,
    DataFile,
    Drop,
    Force,
    Keep,
    Label,
    MetricName,
    ModelFile,
    Numeric,
    Output,
    Scale,
    Split,
    Task,
    TestFile,
    Trust,
    cells_of,
    check_named,
    check_output,
    check_predictions,
    export_target,
    given,
    kinds_of_columns,
    make_reducer,
    names_of,
    one_of,
    positive,
    preparation_for,
    read_model,
    read_model_and_rows,
    read_test_rows,
    read_training_rows,
    settings_of,
)
from .predictor import open_predictor
from .render import (
    as_ours,
    fail,
    message_of,
    plain,
    progress,
    show,
    show_agreement,
    show_board,
    show_files,
    show_model,
    show_result,
    show_warning,
)
from .tasks import check_methods, check_multiclass, make_estimator, own_settings, quality, task_of
from .tradeoffs import report, tradeoff
from .tuning import tune
from .unused import check_used

SUMMARY = "Kernel SVMs that are small enough to ship."
HINT = "To begin: slimsvm tradeoff digits && slimsvm report. All options of a command: slimsvm train -h."


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show_warning
        # of scikit-learn, to arrays; columns of files were found by their names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        try:
            work = parse(COMMANDS, arguments, SUMMARY, HINT, _version)
            if isinstance(work, partial):
                check_used(work.keywords)
            if work is not None:
                work()
            sys.stdout.flush()  # a full disk is an error of the command, and not one of the end of Python
        except UsageError as error:
            return fail(str(error), 2)
        except KeyboardInterrupt:
            return fail(INTERRUPTED, 130)
        except StoppedEarly as stop:
            return fail(str(stop), 130)
        except BrokenPipeError:
            drop_unwritten_output()  # nobody reads on: end in silence
        except (ValueError, OSError, ImportError, MemoryError, ArithmeticError, RecursionError) as error:
            drop_unwritten_output()
            return fail(message_of(error), 1)
    return 0


def drop_unwritten_output() -> None:
    """Write what is left of the standard output, or drop it: Python would try again at its end, and fail once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version() -> str:
    from ... import __version__

    return f"slimsvm {__version__}"


def demo(
    output: Output = Path("digits.slim"),
    budget: Count = 100,
    force: Force = False,
) -> None:
    """Train on scikit-learn's digits, shrink the model, compare the two and write the small one."""
    check_output(output, force, what="a model")
    from ...files.native import save
    from .demo import demo_rows

    with progress() as report:
        head, rows, model = demo_rows(budget, report)
    with saying_what_was_written(output):
        save(model, output)
        show("Handwritten digits: 1,347 training rows, 450 test rows, 10 classes", rows, head)
        print(f"\nThe small model is in {plain(str(output))}. Next: slimsvm info {plain(str(output))}")


#: the settings of a model that is trained
TRAINED = settings_of(
    *("kernel", "gamma", "C", "epsilon", "nu", "degree", "coef0", "trainer", *SEARCH),
    *("checkpoint", "tol", "max_iter", "cache_mb"),
)


def train(
    data: DataFile,
    task: Task = "classify",
    output: Output = Path("model.slim"),
    metric: MetricName = None,
    balanced: Balanced = False,
    scale: Scale = "auto",
    label: Label = None,
    numeric: Numeric = None,
    categorical: Categorical = None,
    drop: Drop = None,
    split: Split = "train",
    test: TestFile = None,
    keep: Keep = False,
    force: Force = False,
    **settings: Annotated[Any, TRAINED],
) -> None:
    """Train a model on DATA, shrink it to a budget or within a tolerance, and write it."""
    check_output(output, force, data, test, settings.get("checkpoint"), what="a model")
    settings |= {"class_weight": "balanced"} if balanced else {}
    settings |= {"random_state": settings.get("random_state", 0)}
    if metric is not None:
        settings["reducer"] = make_reducer(settings.get("reducer", "slim"), metric=metric)
    svm = make_estimator(task, **own_settings(task, **settings))
    check_methods(task, svm)
    from sklearn.pipeline import make_pipeline

    from ...estimators import fit_reporting
    from ...estimators.shrink import around_of
    from ...estimators.svr import in_units_of
    from ...files.columns import Cells
    from ...files.native import save
    from ...importers.around import with_names
    from ...selection.limits import ALONE

    kinds = kinds_of_columns(numeric, categorical, drop)
    X, y, columns = read_training_rows(data, task, label, split, Cells(kinds, always=bool(kinds)))
    check_multiclass(settings.get("multiclass"), y)
    check_named(kinds, columns)
    scaler = preparation_for(X, columns, scale, kinds)
    if task == "regress" and X.dtype == object:
        svm.set_params(**{name: value for name, value in in_units_of(y).items() if name not in settings})
    model = svm if scaler is None else make_pipeline(scaler, svm)

    def finish() -> None:  # a checkpoint is deleted when the model is in its file
        if "checkpoint" in settings:
            save(with_names(model, columns), output)

    with progress() as report:
        rows = X if scaler is None else scaler.fit_transform(X)
        around = ALONE if scaler is None else around_of(model, X)
        tests = read_test_rows(test, task, label, X.shape[1], columns, cells_of(with_names(model, columns)))
        full: list[Any] = []
        _, interrupted = finished_or_best(
            lambda: fit_reporting(svm, rows, y, report=report, finish=finish, when_trained=full.append, around=around),
            keep,
        )
    trained = [machine if scaler is None else make_pipeline(scaler, machine) for machine in full]
    _write_model(with_names(model, columns), output, X, y, tests, interrupted, *trained)


def compress(
    model: ModelFile,
    data: DataFile,
    output: Output = Path("small.slim"),
    validation: Annotated[
        Path | None, Option("--validation", help="Rows that MODEL has not seen, for --tolerance; else a part of DATA.")
    ] = None,
    metric: MetricName = None,
    label: Label = None,
    split: Split = "train",
    test: TestFile = None,
    trust: Trust = False,
    keep: Keep = False,
    force: Force = False,
    **settings: Annotated[Any, settings_of(*SEARCH)],
) -> None:
    """Shrink MODEL with rows like those it was trained on, to a budget or within a tolerance."""
    check_output(output, force, data, test, validation, what="a model")
    if not {"budget", "tolerance"} & settings.keys():
        raise ParameterError(
            "say how small: give --budget 50 for at most 50 support vectors, --budget '4 KB' for bytes of exported C, or "
            "--tolerance 0.005 for the smallest model within half a point of the full one's error",
            param_hint="--budget",
        )
    time_limit = settings.pop("time_limit", None)  # that of the reducer
    method = make_reducer(settings.pop("reducer", "slim"), metric=metric, time_limit=time_limit)
    from ...estimators import compress_within
    from ...files.native import check_steps
    from ...run import Run

    big, X, y = read_model_and_rows(model, data, trust, target=label, split=split)
    check_steps(big)
    check_multiclass(settings.get("multiclass"), y)
    columns = names_of(big)
    more = (label, X.shape[1], columns, cells_of(big))
    tests, held_out = (read_test_rows(path, task_of(big), *more) for path in (test, validation))
    of_task = own_settings(task_of(big), **settings)
    if held_out is not None:
        of_task |= {"X_val": held_out[0], "y_val": held_out[1]}
    seed = of_task.pop("random_state", 0)
    with progress() as report:
        small, interrupted = finished_or_best(
            lambda: compress_within(Run(report), big, X, y, reducer=method, random_state=seed, **of_task),
            keep,
        )
    _write_model(small, output, X, y, tests, interrupted, as_ours(big))


def _write_model(model: Any, output: Path, X: Any, y: Any, tests: Any, interrupted: bool, full: Any | None = None) -> None:
    """Write a model, describe it and compare it with the full model, if there is one; after Ctrl-C, only write it."""
    from ...files.native import save

    with saying_what_was_written(output):
        save(model, output)
        if interrupted:
            raise StoppedEarly(f"interrupted; the best model found so far is in {output}")
        show_result(output, model, full, X, y, tests)


def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path | None, Option("--output", "-o", help="Where to write; else to the terminal.")] = None,
    scores: Annotated[bool, Option("--scores", help="Decision values, not labels; their order goes to stderr.")] = False,
    proba: Annotated[bool, Option("--proba", help="Probabilities of the classes; their order goes to stderr.")] = False,
    label: Label = None,
    split: Split = "test",
    trust: Trust = False,
    force: Force = False,
) -> None:
    """Write the prediction for each row of DATA, one a line; accuracy or R^2 goes to stderr where DATA has labels."""
    if output is not None:
        check_output(output, force, model, data, what="predictions, one a line")
    from ...files.container import write_whole

    predictor, X, y = open_predictor(model, data, trust, label, split)
    check_predictions(predictor, scores=scores, proba=proba)
    predicted = predictor.predict(X)
    wanted = predictor.scores if scores else predictor.proba if proba else None
    if wanted is not None:
        values = wanted(X).reshape(X.shape[0], -1)
        lines = [" ".join(map(repr, row)) for row in values.tolist()]
    else:
        lines = [" ".join(map(str, found)) if predicted.ndim > 1 else str(found) for found in predicted]
    raise_on_interrupt()
    if output is not None:
        write_whole(output, ["".join(f"{line}\n" for line in lines).encode()])
    else:
        sys.stdout.writelines(f"{plain(line) if sys.stdout.isatty() else line}\n" for line in lines)
    if wanted is not None and predictor.task == "classify":
        print(order_of(predictor.classes, values.shape[1]), file=sys.stderr)
    known = quality(predictor.task, predicted, y) if predicted.ndim == 1 else None
    if known is not None:
        print(*known, file=sys.stderr)


def order_of(classes: Any, columns: int) -> str:
    """Return what the columns of scores or probabilities stand for, in words."""
    names = [plain(str(name)) for name in classes]
    if columns == len(names):
        return " ".join(["classes", *names])
    if columns == 1:
        return f"above 0 {names[1]} else {names[0]}"
    return " ".join(["pairs", *(f"{first}/{second}" for first, second in combinations(names, 2))])


def export(
    model: ModelFile,
    kind: Annotated[
        str | None,
        Option(
            "--format",
            "-f",
            parser=one_of(names.EXPORTS),
            help=f"{names.listed(names.EXPORTS)} Else by the output's ending.",
        ),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Where to write; else MODEL with the format's ending.")
    ] = None,
    precision: Annotated[
        str | None, Option("--precision", help="C, images: float32, int16, int8, int4. ONNX: float32, float64.")
    ] = None,
    integers: Annotated[bool, Option("--integers", help="C without floating point, for rows of integers.")] = False,
    update: Annotated[bool, Option("--update", help="C that learns on; for --trainer bsgd, forgetron and rbp.")] = False,
    limit: Annotated[
        float | None,
        Option("--limit", parser=positive, help="C, integers: features are within this, after scaling."),
    ] = None,
    rows: Annotated[
        Path | None, Option("--rows", help="C, integers: rows with or without labels; their range is kept.")
    ] = None,
    label: Label = None,
    flavor: Annotated[str | None, Option("--flavor", help="ONNX: plain, or svm for one SVM operator.")] = None,
    force: Force = False,
    trust: Trust = False,
) -> None:
    """Write MODEL as source or in another format: C, ONNX, LIBSVM, JavaScript, JSON, an image, a folder for firmware."""
    from ...ship.export import EXPORTERS, make_exporter
    from ...ship.export import export as export_model

    settings = given(precision=precision, limit=limit, flavor=flavor, integers=integers or None, update=update or None)
    target = export_target(output or model, kind, settings)
    output = output or model.with_suffix(EXPORTERS[target].ending)
    check_output(output, force, model, rows)
    if rows is None:
        loaded = read_model(model, trust)
    else:
        loaded, X, _ = read_model_and_rows(model, rows, trust, labels=False, target=label)
        settings["rows"] = X
    raise_on_interrupt()
    try:
        with saying_what_was_written(output):
            files = export_model(loaded, output, target, force=force, **settings)
            show_files(files)
            if rows is not None:
                show_agreement(loaded, make_exporter(target, settings))
    except FileExistsError as error:  # an export of several files, and another one than `output` exists
        raise ParameterError(message_of(error), param_hint="--output") from error


def reader(
    language: Annotated[str, Argument(metavar="LANGUAGE", help=names.listed(names.READERS))],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Where to write; else slim.c, slim.py or slim.rs.")
    ] = None,
    force: Force = False,
) -> None:
    """Write the source that loads images (.bin) of any model: C99, MicroPython, or Rust without std."""
    from ...ship.reader import READERS, write_reader

    if language not in READERS:
        raise ParameterError(f"{language!r} is not one of {', '.join(READERS)}", param_hint="LANGUAGE")
    output = output or Path(f"slim{READERS[language][0]}")
    check_output(output, force)
    try:
        show_files(write_reader(language, output, force=force))
    except (FileExistsError, ValueError) as error:
        raise ParameterError(message_of(error), param_hint="--output") from error


def info(
    model: ModelFile,
    target: Annotated[
        str | None,
        Option("--target", parser=one_of(names.BOARDS), help=f"Costs of C there. {names.listed(names.BOARDS)}"),
    ] = None,
    trust: Trust = False,
) -> None:
    """Tell what is in MODEL and what a prediction costs; with --target also on a processor, by its tools."""
    loaded = read_model(model, trust)
    show_model(model, loaded)
    if target is not None:
        show_board(loaded, target)


COMMANDS = (demo, train, compress, predict, export, reader, info, tradeoff, report, tune)
