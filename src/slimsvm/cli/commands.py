"""The command line: slimsvm demo | train | compress | predict | info | export."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from .. import __version__
from ..estimators import SlimSVC, compress_reporting, fit_reporting
from ..files.container import write_whole
from ..files.datasets import read_data
from ..files.models import is_libsvm, load, read_libsvm
from ..files.native import save
from ..kernels import KERNELS
from ..kernels.spec import SPECS
from ..model import silent
from ..reducers import REDUCERS
from ..ship.c import CExporter
from ..ship.export import EXPORTERS, target_of
from ..ship.export import export as export_model
from ..ship.source import artefact_of
from ..trainers import TRAINERS
from .demo import demo_rows

Report = Callable[[str, float], None]

INTERRUPTED = "interrupted; nothing was written"

SCALERS = {"none": None, "standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler}
#: a file of rows is not a kernel matrix
FILE_KERNELS = [name for name in KERNELS if name != "precomputed"]

#: numbers in the points up to which `info` writes them out to tell their cost
LARGEST_COST = 1 << 27

app = typer.Typer(
    help="Kernel SVMs that are small enough to ship.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def one_of(names: Iterable[str]) -> str:
    """Help for an option that takes a name from a table."""
    return f"One of {', '.join(names)}."


DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="Rows and labels: LIBSVM format, .csv or .npz.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that slimsvm wrote (.slim), or LIBSVM.")]
AnyModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A .slim or LIBSVM model, or a pickled scikit-learn model with --trust.")
]
Trust = Annotated[bool, typer.Option("--trust", help="Load a pickle or joblib file, which can run any code.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")]
Budget = Annotated[
    str | None, typer.Option("--budget", "-b", help="Support vectors at most: a number, or a fraction of the full model's.")
]
Tolerance = Annotated[
    float | None, typer.Option("--tolerance", "-t", help="Smallest model within this much of the full one's error (0.005).")
]
Target = Annotated[str | None, typer.Option("--target", help="CSV: the label's column, by name or number from 0 (last).")]
Split = Annotated[str, typer.Option("--split", help="npz with X_train and X_test: which of them.")]
Seed = Annotated[int, typer.Option("--seed", help="Chooses the rows held out; the same seed gives the same model.")]
Reducer = Annotated[str, typer.Option("--reducer", help=f"How to shrink. {one_of(REDUCERS)}")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds for shrinking; then, or on Ctrl-C, the best so far is kept.")
]


def main() -> None:
    """Run the command line: one-line errors, exit code 1 for bad data, 2 for bad usage, 130 for Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of a command line."""
    command = typer.main.get_command(app)
    arguments = arguments or ["--help"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _one_line_warning
        try:
            code = int(command.main(arguments, prog_name="slimsvm", standalone_mode=False) or 0)
            return _fail(INTERRUPTED, code) if code == 130 else code  # typer makes an exit code of Ctrl-C
        except KeyboardInterrupt:
            return _fail(INTERRUPTED, 130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: end in silence
            return 0
        except (ValueError, OSError, MemoryError) as error:
            return _fail(_message(error), 1)
        except Exception as error:
            return _usage_error(error)


def _usage_error(error: Exception) -> int:
    """Exit code 2 and one line for what click found wrong; anything else is a bug and keeps its traceback."""
    if hasattr(error, "format_message"):
        return _fail(error.format_message(), getattr(error, "exit_code", 2))
    if type(error).__name__ == "Abort":
        return _fail(INTERRUPTED, 130)
    raise error


def _message(error: BaseException) -> str:
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    return " ".join(text.split()) or type(error).__name__


def _fail(message: str, code: int) -> int:
    print(f"slimsvm: error: {message}", file=sys.stderr)
    return code


def _one_line_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"slimsvm: warning: {' '.join(str(message).split())}", file=sys.stderr)


@contextmanager
def progress() -> Iterator[Report]:
    """A bar per phase on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield silent
        return
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(phase: str, done: float) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=1.0)
            bars.update(tasks[phase], completed=done)

        yield report


def show(title: str, rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> None:
    """Print a small table."""
    table = Table(title=title, title_justify="left", box=None if not sys.stdout.isatty() else Table().box)
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number == 0 or len(head) == 2 else "right")
    for row in rows:
        table.add_row(*row)
    Console(soft_wrap=True).print(table)


def parse_budget(text: str | None) -> int | float | None:
    """A count ("32") or a fraction ("0.1")."""
    if text is None:
        return None
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        raise ValueError(f"--budget takes a number of support vectors or a fraction below 1, not {text!r}") from None


def parse_gamma(text: str) -> str | float:
    """ "scale", "auto" or a number."""
    if text in ("scale", "auto"):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--gamma takes 'scale', 'auto' or a number above 0, not {text!r}") from None


def parse_trainer(name: str) -> str | None:
    """A name in TRAINERS, or none."""
    return None if name == "none" else name


def make_reducer(name: str, seconds: float | None) -> Any:
    """The reducer of that name with its time limit; an unknown name is for the estimator to refuse."""
    return name if seconds is None or name not in REDUCERS else REDUCERS[name](time_limit=seconds)


def make_scaler(name: str, sparse: bool) -> Any:
    """The scaler of that name, or None; sparse rows keep their zeros."""
    if name not in SCALERS:
        raise ValueError(f"unknown scaler {name!r}; there are {sorted(SCALERS)}")
    if sparse and name == "minmax":
        raise ValueError("--scale minmax would fill sparse rows; use --scale maxabs")
    if sparse and name == "standard":
        return StandardScaler(with_mean=False)
    kind = SCALERS[name]
    return None if kind is None else kind()


def check_output(path: Path) -> None:
    """Raise ValueError where a file could not be written there, before hours of work."""
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"cannot write {path}: there is no folder {path.parent} that can be written to")


def final(model: Any) -> SlimSVC:
    """The classifier itself, without the steps before it."""
    return model[-1] if isinstance(model, Pipeline) else model


def facts(model: Any) -> list[tuple[str, str]]:
    """What `info` tells of a model."""
    svc = final(model)
    expansion, width = svc.model_, svc.n_features_in_
    steps = [type(step).__name__ for _, step in model.steps[:-1]] if isinstance(model, Pipeline) else []
    kernel = ", ".join(f"{name}={value:g}" for name, value in vars(expansion.kernel).items())
    return [
        ("kernel", f"{expansion.kernel.name}({kernel})"),
        ("classes", f"{svc.classes_.size}: {', '.join(map(str, svc.classes_[:10]))}{' …' * (svc.classes_.size > 10)}"),
        ("features", f"{width:,}"),
        ("preprocessing", ", ".join(steps) or "none"),
        ("support vectors", f"{expansion.size:,}"),
        ("outputs", f"{expansion.bias.size:,} ({svc.coding_.name})"),
        *costs(model),
    ]


def costs(model: Any) -> list[tuple[str, str]]:
    """What a model takes where it is shipped to: the figures that a C export states."""
    expansion = final(model).model_
    if expansion.kernel.name not in SPECS or max(expansion.size, 1) * expansion.points.shape[1] > LARGEST_COST:
        return [("bytes as float32 tables", f"{expansion.nbytes:,}")]
    artefact = artefact_of(model)
    precisions = ("float32", "int8") if artefact.spec.total.integer else ("float32",)
    cost = {precision: CExporter(precision).cost(artefact) for precision in precisions}
    return [
        *((f"flash as {precision} C tables", f"{cost[precision].flash:,} bytes") for precision in precisions),
        *((f"RAM with {precision} C tables", f"{cost[precision].ram:,} bytes of stack") for precision in precisions),
        ("multiply-adds per prediction", f"{cost['float32'].multiply_adds:,}"),
    ]


def _accuracy(predicted: Any, y: Any) -> str:
    right = int((predicted == y).sum())
    return f"{100 * right / len(y):.2f} % ({right:,} of {len(y):,})"


def _summary(model: Any, output: Path, X: Any, y: Any, test: tuple[Any, Any] | None) -> None:
    rows = [*facts(model), ("accuracy on these rows", _accuracy(model.predict(X), y))]
    if test is not None:
        rows.append(("accuracy on test rows", _accuracy(model.predict(test[0]), test[1])))
    show(f"{output} ({output.stat().st_size:,} bytes)", rows, ("", ""))


def _test_rows(path: Path | None, target: str | None, width: int) -> tuple[Any, Any] | None:
    return None if path is None else read_data(path, target=target, split="test", n_features=width)


@app.command()
def demo(
    output: Output = Path("digits.slim"),
    budget: Annotated[int, typer.Option("--budget", "-b", help="Support vectors at most.")] = 100,
) -> None:
    """Train on scikit-learn's digits, shrink the model, compare the two and write the small one."""
    with progress() as report:
        head, rows, model = demo_rows(budget, report)
    save(model, output)
    show("Handwritten digits: 1,347 training rows, 450 test rows, 10 classes", rows, head)
    print(f"\nThe small model is in {output}. Next: slimsvm info {output}")


@app.command()
def train(
    data: DataFile,
    output: Output = Path("model.slim"),
    budget: Budget = None,
    tolerance: Tolerance = None,
    kernel: Annotated[str, typer.Option("--kernel", "-k", help=one_of(FILE_KERNELS))] = "rbf",
    gamma: Annotated[str, typer.Option("--gamma", "-g", help="'scale', 'auto' or a number.")] = "scale",
    C: Annotated[float, typer.Option("-C", help="Cost of a margin violation.")] = 1.0,
    degree: Annotated[int, typer.Option("--degree", help="Of the poly kernel.")] = 3,
    coef0: Annotated[float, typer.Option("--coef0", help="Of the poly and sigmoid kernels.")] = 0.0,
    scale: Annotated[
        str, typer.Option("--scale", help=f"Scale the features; saved with the model. {one_of(SCALERS)}")
    ] = "none",
    trainer: Annotated[
        str, typer.Option("--trainer", help=f"{one_of(TRAINERS)} Or none: small from the start, for reducers that can.")
    ] = "smo",
    reducer: Reducer = "slim",
    time_limit: TimeLimit = None,
    tol: Annotated[float, typer.Option("--tol", help="Stop at this violation of optimality.")] = 1e-3,
    max_iter: Annotated[int, typer.Option("--max-iter", help="Steps of the trainer at most; -1 for no limit.")] = -1,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh classes by their rarity.")] = False,
    cache_mb: Annotated[float, typer.Option("--cache-mb", help="Memory for kernel rows, in MiB.")] = 512,
    seed: Seed = 0,
    target: Target = None,
    split: Split = "train",
    test: Annotated[Path | None, typer.Option("--test", help="Rows to measure the accuracy on.")] = None,
) -> None:
    """Train a model on DATA, shrink it to a budget or within a tolerance, and write it."""
    check_output(output)
    X, y = read_data(data, target=target, split=split)
    tests = _test_rows(test, target, X.shape[1])
    if kernel not in FILE_KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; there are {FILE_KERNELS}")
    svc = SlimSVC(
        parse_budget(budget),
        tolerance=tolerance,
        kernel=kernel,
        gamma=parse_gamma(gamma),
        C=C,
        degree=degree,
        coef0=coef0,
        trainer=parse_trainer(trainer),
        reducer=make_reducer(reducer, time_limit),
        tol=tol,
        max_iter=max_iter,
        class_weight="balanced" if balanced else None,
        cache_mb=cache_mb,
        random_state=seed,
    )
    scaler = make_scaler(scale, issparse(X))
    with progress() as report:
        fit_reporting(svc, X if scaler is None else scaler.fit_transform(X), y, report=report)
    model = svc if scaler is None else make_pipeline(scaler, svc)
    save(model, output)
    _summary(model, output, X, y, tests)


@app.command()
def compress(
    model: AnyModelFile,
    data: DataFile,
    output: Output = Path("small.slim"),
    budget: Budget = None,
    tolerance: Tolerance = None,
    reducer: Reducer = "slim",
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    target: Target = None,
    split: Split = "train",
    test: Annotated[Path | None, typer.Option("--test", help="Rows to measure the accuracy on.")] = None,
    trust: Trust = False,
) -> None:
    """Shrink MODEL with rows like those it was trained on."""
    check_output(output)
    big, X, y = _model_and_rows(model, data, trust, target=target, split=split)
    tests, method = _test_rows(test, target, X.shape[1]), make_reducer(reducer, time_limit)
    with progress() as report:
        small = compress_reporting(big, X, y, parse_budget(budget), tolerance, method, seed, report=report)
    save(small, output)
    _summary(small, output, X, y, tests)


def _any_model(path: Path, trust: bool) -> Any:
    if path.suffix.lower() not in (".pkl", ".pickle", ".joblib"):
        return load(path)
    if not trust:
        raise ValueError(f"{path} is a pickle, which can run any code when loaded; pass --trust if you made it yourself")
    import joblib

    return joblib.load(path)


def _model_and_rows(path: Path, data: Path, trust: bool, **options: Any) -> tuple[Any, Any, Any]:
    """A model and rows of its width; a LIBSVM model takes rows with more features than it names."""
    model = _any_model(path, trust)
    if is_libsvm(path):
        X, y = read_data(data, **options)
        if X.shape[1] > model.n_features_in_:
            return read_libsvm(path, X.shape[1]), X, y
    return model, *read_data(data, n_features=model.n_features_in_, **options)


@app.command()
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; else to the terminal.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Decision values instead of labels.")] = False,
    target: Target = None,
    split: Split = "test",
) -> None:
    """Write the label of each row of DATA, one a line; the accuracy goes to stderr where DATA has labels."""
    loaded, X, y = _model_and_rows(model, data, False, labels=False, target=target, split=split)
    labels = loaded.predict(X)
    if scores:
        values = loaded.decision_function(X).reshape(X.shape[0], -1)
        lines = [" ".join(map(repr, row)) for row in values.tolist()]
    else:
        lines = [str(label) for label in labels]
    text = "\n".join(lines) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        write_whole(output, [text.encode()])
    if y is not None:
        print(f"accuracy {_accuracy(labels, y)}", file=sys.stderr)


@app.command()
def export(
    model: AnyModelFile,
    target: Annotated[str | None, typer.Option("--target", "-t", help=f"{one_of(EXPORTERS)} Else by the ending.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; else MODEL with the ending.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="C: float32, int16, int8. ONNX: float32, float64.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", help="C, integers: features are within this, after scaling.")
    ] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", help="C, integers: rows and labels, as for train; their range is kept.")
    ] = None,
    flavor: Annotated[str | None, typer.Option("--flavor", help="ONNX: plain, or svm for one SVMClassifier.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    trust: Trust = False,
) -> None:
    """Write MODEL as source or in another format: C, ONNX, LIBSVM, JavaScript or JSON."""
    target = target_of(output or model, target)
    output = output or model.with_suffix(EXPORTERS[target].ending)
    check_output(output)
    loaded = _any_model(model, trust)
    settings: dict[str, Any] = {"precision": precision, "limit": limit, "flavor": flavor}
    settings = {name: value for name, value in settings.items() if value is not None}
    if rows is not None:
        X, _ = read_data(rows, n_features=loaded.n_features_in_)
        settings["rows"] = X.toarray() if issparse(X) else X
    for file in export_model(loaded, output, target, force=force, **settings):
        print(f"{file} ({file.stat().st_size:,} bytes)")


@app.command()
def info(model: ModelFile) -> None:
    """Tell what is in MODEL and what a prediction costs."""
    show(f"{model} ({model.stat().st_size:,} bytes)", facts(load(model)), ("", ""))


@app.callback(invoke_without_command=True)
def version(show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Kernel SVMs that are small enough to ship."""
    if show_version:
        print(f"slimsvm {__version__}")
        raise typer.Exit
