"""The commands: slimsvm demo | train | compress | predict | info | export; `seeing` has tradeoff and report.

Each imports what it needs when it runs.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from . import names
from .interrupts import INTERRUPTED, raise_on_interrupt
from .parse import (
    LARGEST_DEGREE,
    LARGEST_INT,
    SCALERS,
    Budget,
    Calibration,
    Checkpoint,
    CheckpointSeconds,
    DataFile,
    Device,
    Force,
    Keep,
    Kernel,
    Label,
    MetricName,
    ModelFile,
    Multiclass,
    Output,
    Reducer,
    Seed,
    Split,
    TestFile,
    TimeLimit,
    Tolerance,
    Trust,
    at_least_zero,
    check_methods,
    check_output,
    check_predictions,
    export_names,
    export_target,
    finite,
    gamma_of,
    given,
    make_reducer,
    make_scaler,
    one_of,
    positive,
    read_model,
    read_model_and_rows,
    read_test_rows,
    read_training_rows,
    share_of_rows,
    trainer_names,
    whole,
)
from .render import (
    as_ours,
    fail,
    message_of,
    plain,
    progress,
    show,
    show_files,
    show_model,
    show_result,
    show_warning,
)
from .seeing import register as register_seeing
from .stopped import StoppedEarly, finished_or_best, saying_what_was_written
from .tasks import TASKS, make_estimator, own_settings, quality, task_of
from .tuning import register as register_tuning

app = typer.Typer(
    help="Kernel SVMs that are small enough to ship.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    command = typer.main.get_command(app)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show_warning
        try:
            code = int(command.main(arguments or ["--help"], prog_name="slimsvm", standalone_mode=False) or 0)
            return fail(INTERRUPTED, code) if code == 130 else code  # typer makes an exit code of Ctrl-C
        except KeyboardInterrupt:
            return fail(INTERRUPTED, 130)
        except StoppedEarly as stop:
            return fail(str(stop), 130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: end in silence
            return 0
        except (ValueError, OSError, ImportError, MemoryError, ArithmeticError, RecursionError) as error:
            return fail(message_of(error), 1)
        except Exception as error:
            return _usage_error(error)


def _usage_error(error: Exception) -> int:
    """Return exit code 2, after one line, for what typer refuses; anything else is a bug and keeps its traceback."""
    if hasattr(error, "format_message"):
        return fail(error.format_message(), getattr(error, "exit_code", 2))
    if type(error).__name__ == "Abort":
        return fail(INTERRUPTED, 130)
    raise error


@app.command()
def demo(
    output: Output = Path("digits.slim"),
    budget: Annotated[
        int,
        typer.Option("--budget", "-b", parser=whole(1, LARGEST_INT), metavar="INTEGER", help="Support vectors at most."),
    ] = 100,
    force: Force = False,
) -> None:
    """Train on scikit-learn's digits, shrink the model, compare the two and write the small one."""
    check_output(output, force)
    from ..files.native import save
    from .demo import demo_rows

    with progress() as report:
        head, rows, model = demo_rows(budget, report)
    with saying_what_was_written(output):
        save(model, output)
        show("Handwritten digits: 1,347 training rows, 450 test rows, 10 classes", rows, head)
        print(f"\nThe small model is in {plain(str(output))}. Next: slimsvm info {plain(str(output))}")


@app.command()
def train(
    data: DataFile,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            parser=one_of(lambda: TASKS),
            metavar="NAME",
            help="classify, regress (labels are numbers) or novelty (no labels; leave their column out by --label).",
        ),
    ] = "classify",
    output: Output = Path("model.slim"),
    budget: Budget = None,
    tolerance: Tolerance = None,
    kernel: Kernel = "rbf",
    gamma: Annotated[
        Any, typer.Option("--gamma", "-g", parser=gamma_of, metavar="NUMBER", help="'scale', 'auto' or a number.")
    ] = "scale",
    C: Annotated[
        float | None,
        typer.Option("-C", parser=positive, metavar="FLOAT", help="Cost of a margin violation.", show_default="1.0"),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            parser=at_least_zero,
            metavar="FLOAT",
            help="regress: errors up to this size cost nothing.",
            show_default="0.1",
        ),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option(
            "--nu",
            parser=share_of_rows,
            metavar="FLOAT",
            help="novelty: the share of rows that may be called novel.",
            show_default="0.5",
        ),
    ] = None,
    degree: Annotated[
        int, typer.Option("--degree", parser=whole(0, LARGEST_DEGREE), metavar="INTEGER", help="Of the poly kernel.")
    ] = 3,
    coef0: Annotated[
        float, typer.Option("--coef0", parser=finite, metavar="FLOAT", help="Of the poly and sigmoid kernels.")
    ] = 0.0,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            parser=one_of(lambda: SCALERS),
            metavar="NAME",
            help=f"Scale the features; saved with the model. One of {', '.join(SCALERS)}.",
        ),
    ] = "none",
    trainer: Annotated[
        str,
        typer.Option(
            "--trainer",
            parser=one_of(trainer_names),
            metavar="NAME",
            help=f"{names.one_of((*names.TRAINERS, 'none'))} With none, the reducer finds a small model without a full "
            "one, if it can.",
        ),
    ] = "smo",
    reducer: Reducer = "slim",
    metric: MetricName = None,
    time_limit: TimeLimit = None,
    checkpoint: Checkpoint = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    tol: Annotated[
        float, typer.Option("--tol", parser=positive, metavar="FLOAT", help="Stop at this violation of optimality.")
    ] = 1e-3,
    max_iter: Annotated[
        int,
        typer.Option(
            "--max-iter",
            parser=whole(-1, LARGEST_INT),
            metavar="INTEGER",
            help="Steps of the trainer at most; -1 for no limit.",
        ),
    ] = -1,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh classes by their rarity.")] = False,
    calibration: Calibration = None,
    multiclass: Multiclass = None,
    cache_mb: Annotated[
        float, typer.Option("--cache-mb", parser=positive, metavar="FLOAT", help="Memory for kernel rows, in MiB.")
    ] = 512,
    device: Device = "cpu",
    seed: Seed = 0,
    label: Label = None,
    split: Split = "train",
    test: TestFile = None,
    keep: Keep = False,
    force: Force = False,
) -> None:
    """Train a model on DATA, shrink it to a budget or within a tolerance, and write it."""
    check_output(output, force)
    own = own_settings(
        task,
        C=C,
        epsilon=epsilon,
        nu=nu,
        class_weight="balanced" if balanced else None,
        calibration=calibration,
        multiclass=multiclass,
    )
    check_methods(task, trainer, reducer, kernel, budget, tolerance)
    method = make_reducer(reducer, None, metric)  # the time limit is that of the whole fit
    from scipy.sparse import issparse
    from sklearn.pipeline import make_pipeline

    from ..estimators import fit_reporting
    from ..files.native import save

    X, y = read_training_rows(data, task, label, split)
    tests = read_test_rows(test, task, label, X.shape[1])
    svm = make_estimator(
        task,
        budget=budget,
        tolerance=tolerance,
        kernel=kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        trainer=None if trainer == "none" else trainer,
        reducer=method,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        cache_mb=cache_mb,
        random_state=seed,
        device=device,
        **own,
    )
    scaler = make_scaler(scale, issparse(X))
    model = svm if scaler is None else make_pipeline(scaler, svm)

    def finish() -> None:  # a checkpoint is deleted when the model is in its file
        if checkpoint is not None:
            save(model, output)

    with progress() as report:
        rows = X if scaler is None else scaler.fit_transform(X)
        full: list[Any] = []
        _, interrupted = finished_or_best(
            lambda: fit_reporting(svm, rows, y, report=report, finish=finish, when_trained=full.append), keep
        )
    trained = [machine if scaler is None else make_pipeline(scaler, machine) for machine in full]
    _write_model(model, output, X, y, tests, interrupted, *trained)


@app.command()
def compress(
    model: ModelFile,
    data: DataFile,
    output: Output = Path("small.slim"),
    budget: Budget = None,
    tolerance: Tolerance = None,
    reducer: Reducer = "slim",
    metric: MetricName = None,
    time_limit: TimeLimit = None,
    calibration: Calibration = None,
    multiclass: Multiclass = None,
    device: Device = "cpu",
    seed: Seed = 0,
    label: Label = None,
    split: Split = "train",
    test: TestFile = None,
    trust: Trust = False,
    keep: Keep = False,
    force: Force = False,
) -> None:
    """Shrink MODEL with rows like those it was trained on, to a budget or within a tolerance."""
    check_output(output, force)
    if budget is None and tolerance is None:
        raise typer.BadParameter(
            "say how small: give --budget 50 for at most 50 support vectors, or --tolerance 0.005 for the smallest model "
            "within half a point of the full one's error",
            param_hint="--budget",
        )
    method = make_reducer(reducer, time_limit, metric)
    from ..estimators import compress_reporting
    from ..files.native import check_steps

    big, X, y = read_model_and_rows(model, data, trust, target=label, split=split)
    check_steps(big)
    tests = read_test_rows(test, task_of(big), label, X.shape[1])
    own = own_settings(task_of(big), calibration=calibration, multiclass=multiclass)
    with progress() as report:
        small, interrupted = finished_or_best(
            lambda: compress_reporting(big, X, y, budget, tolerance, method, seed, report=report, device=device, **own),
            keep,
        )
    _write_model(small, output, X, y, tests, interrupted, as_ours(big))


def _write_model(model: Any, output: Path, X: Any, y: Any, tests: Any, interrupted: bool, full: Any | None = None) -> None:
    """Write a model, show what is in it and compare it with the full one, if any; after Ctrl-C, only write it."""
    from ..files.native import save

    with saying_what_was_written(output):
        save(model, output)
        if interrupted:
            raise StoppedEarly(f"interrupted; the best model found so far is in {output}")
        show_result(output, model, full, X, y, tests)


@app.command()
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; else to the terminal.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Decision values instead of labels.")] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Probabilities of the classes; their order goes to stderr.")
    ] = False,
    label: Label = None,
    split: Split = "test",
    trust: Trust = False,
    force: Force = False,
) -> None:
    """Write the prediction for each row of DATA, one a line; accuracy or R^2 goes to stderr where DATA has labels."""
    if output is not None:
        check_output(output, force)
    from ..files.container import write_whole

    loaded, X, y = read_model_and_rows(model, data, trust, labels=False, target=label, split=split)
    check_predictions(loaded, scores=scores, proba=proba)
    predicted = loaded.predict(X)
    if scores or proba:
        values = (loaded.decision_function if scores else loaded.predict_proba)(X).reshape(X.shape[0], -1)
        lines = [" ".join(map(repr, row)) for row in values.tolist()]
    else:
        lines = [str(found) for found in predicted]
    raise_on_interrupt()
    if output is not None:
        write_whole(output, ["".join(f"{line}\n" for line in lines).encode()])
    else:
        sys.stdout.writelines(f"{plain(line) if sys.stdout.isatty() else line}\n" for line in lines)
    if proba:
        print("classes", *(plain(str(name)) for name in loaded.classes_), file=sys.stderr)
    known = quality(task_of(loaded), predicted, y)
    if known is not None:
        print(*known, file=sys.stderr)


@app.command()
def export(
    model: ModelFile,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            parser=one_of(export_names),
            metavar="NAME",
            help=f"{names.one_of(names.EXPORTS)} Else by the output's ending.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; else MODEL with the format's ending.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="C: float32, int16, int8. ONNX: float32, float64.")
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            "--limit", parser=positive, metavar="FLOAT", help="C, integers: features are within this, after scaling."
        ),
    ] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", help="C, integers: rows and labels, as for train; their range is kept.")
    ] = None,
    flavor: Annotated[str | None, typer.Option("--flavor", help="ONNX: plain, or svm for one SVM operator.")] = None,
    force: Force = False,
    trust: Trust = False,
) -> None:
    """Write MODEL as source or in another format: C, ONNX, LIBSVM, JavaScript or JSON."""
    from ..kernels import dense
    from ..ship.export import EXPORTERS
    from ..ship.export import export as export_model

    settings = given(precision=precision, limit=limit, flavor=flavor)
    target = export_target(output or model, kind, settings)
    output = output or model.with_suffix(EXPORTERS[target].ending)
    check_output(output, force)
    if rows is None:
        loaded = read_model(model, trust)
    else:
        loaded, X, _ = read_model_and_rows(model, rows, trust)
        settings["rows"] = dense(X)
    raise_on_interrupt()
    try:
        with saying_what_was_written(output):
            files = export_model(loaded, output, target, force=force, **settings)
            show_files(files)
    except FileExistsError as error:  # an export of several files, and another one than `output` exists
        raise typer.BadParameter(message_of(error), param_hint="--output") from error


@app.command()
def info(model: ModelFile, trust: Trust = False) -> None:
    """Tell what is in MODEL and what a prediction costs."""
    show_model(model, read_model(model, trust))


register_seeing(app)
register_tuning(app)


@app.callback(invoke_without_command=True)
def version(show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Kernel SVMs that are small enough to ship."""
    if show_version:
        print(f"slimsvm {__version__}")
        raise typer.Exit
