"""The .slim model file: a fitted SlimSVC, SlimSVR or SlimOneClassSVM, or a Pipeline of scalers and one, without pickle.

The file is a `container` of a JSON header and arrays. Its header has `slimsvm`, the version that wrote it, and `model`, the
estimator. Values that JSON does not have are objects with a tag: {"array": name}, {"strings": [...]}, {"tuple": [...]} and
so on; `_Writer` and `values.Reader` know all tags. A new kernel, goal, trainer or reducer can be saved once it is in its
table, a new scaler once it is in `importers.around`. Another kind of part is a line in `KINDS`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from ..budget import AUTO
from ..calibration import CALIBRATIONS, Conformal
from ..estimators import MACHINES
from ..estimators.streams import learning_of
from ..goals import CLASSIFIERS, GOALS
from ..importers.around import SCALERS, is_identity, target_scaling, unwrapped, words_before
from ..importers.scaler_kinds import NOTHING
from ..kernels import KERNELS, Custom, Kernel, Matrix, Precomputed
from ..kernels.spec import check_parameters
from ..learning import Learning as RowByRow
from ..metric import Metric
from ..model import Expansion, Status
from ..pairs import PairCoefficients
from ..papers.budget_svm import NORMS
from ..reducers import REDUCERS
from ..solvers.free_rows import NewtonRule
from ..tables.recognition import ColumnsOf
from ..text import short
from ..trainers import TRAINERS
from . import transformers
from .container import (
    DTYPE,
    SCALAR,
    Arrays,
    Entry,
    container_bytes,
    entry_of,
    pack_file,
    unpack_file,
    version,
    write_whole,
)
from .endings import check_written
from .values import Reader, build

#: frozen dataclasses that are saved by name and fields
KINDS: dict[str, dict[str, Any]] = {
    "model": {"expansion": Expansion},
    "metric": {"learned": Metric},
    "coefficients": {"pairs": PairCoefficients},
    "kernel": KERNELS,
    "goal": GOALS,
    "calibration": CALIBRATIONS | {"conformal": Conformal},
    "coding": CLASSIFIERS,  # the name in files of version 0.1
    "trainer": TRAINERS,
    "norm": NORMS,
    "reducer": REDUCERS,
    "newton": {"smo": NewtonRule},
    "stream": {"rows": RowByRow},
}
#: the format that introduced a kind of part, if it is not the first
SINCE = {"metric": 2, "newton": 2}
#: the format that introduced projections and precisions, and that of transformers of tables
PROJECTED, TABLES = 3, 4
COMMON = ("n_features_in_", "feature_names_in_")
#: fitted attributes that describe the training
RUN = ("n_iter_", "status_", "n_kernel_evals_", "class_weight_", "shape_fit_", "_support")
#: the fitted attributes of each estimator; those in OPTIONAL may be missing
FITTED: dict[Any, tuple[str, ...]] = {
    **{kind: (*COMMON, "_sklearn_output_config", "scale_", *scaler.fitted) for kind, scaler in SCALERS.items()},
    **dict.fromkeys(
        MACHINES, (*COMMON, "goal_", "model_", "classes_", "calibration_", "feature_range_", "_learning", *RUN)
    ),
}
#: features are numbered by 32 bits
MOST_FEATURES = 2**31 - 1
OPTIONAL = {"feature_names_in_", "_sklearn_output_config", "classes_", "calibration_", "feature_range_", "_learning", *RUN}
#: parameters that hold paths of the machine that saved the model
NOT_KEPT = {"memory", "checkpoint"}
#: parameters of earlier versions, which `with_one_budget` reads
OLD_PARAMETERS = ("budget_bytes", "budget_precision", "budget_us", "budget_batch_size", "checkpoint_seconds")
ESTIMATORS = {kind.__name__: kind for kind in FITTED}
SCALER_NAMES = sorted(kind.__name__ for kind in SCALERS)
MACHINE_NAMES = [kind.__name__ for kind in MACHINES]


def earlier_slim(schedule: None = None, learning: None = None, **fields: Any) -> Any:  # noqa: ARG001
    """Return the reducer of a file, whose settings of the search are constants now."""
    return REDUCERS["slim"](**fields)


def no_setting(**_: Any) -> None:
    """Return None for settings of earlier versions."""


#: what files of earlier versions have
EARLIER: dict[str, dict[str, Any]] = {
    "reducer": REDUCERS | {"slim": earlier_slim},
    "schedule": {"slim": no_setting},
    "learning": {"slim": no_setting},
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a .slim file, completely or not at all.

    Parameters
    ----------
    model : estimator
        A SlimSVC, SlimSVR or SlimOneClassSVM, or a Pipeline that ends in one, of scalers, behind a vectorizer of texts if
        there is one; or a TransformedTargetRegressor of these. `path_`, `checkpoint`, a RandomState and the `memory` of a
        Pipeline are not saved: they are None after loading.
    path : path
        A name that ends in .slim. A file that exists is replaced.

    Examples
    --------
    >>> import tempfile, slimsvm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = slimsvm.SlimSVC(4, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     slimsvm.save(model, f"{folder}/iris.slim")
    ...     bool((slimsvm.load(f"{folder}/iris.slim").predict(X) == model.predict(X)).all())
    True
    """
    check_written("a model", Path(path))
    writer = _Writer()
    header = {"slimsvm": version(), "model": _dump(model, writer, "")}
    write_whole(Path(os.path.realpath(path)), pack_file(header, writer.arrays, writer.format))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model in a .slim file; its predictions are those of the model that was saved, to the last bit."""
    data = container_bytes(path)
    try:
        header, arrays = unpack_file(data)
        entry, reader = (
            entry_of(header, "model", dict),
            Reader(arrays, KINDS | EARLIER, Status.__members__, step=transformers.restored),
        )
        return _load(entry, reader)
    except RecursionError:
        reason = "its header is nested too deeply"
    except (OverflowError, ValueError) as error:
        reason = str(error).partition("\n")[0]
    raise ValueError(f"cannot load {os.fspath(path)!r}: {reason}")


def check_steps(model: Any) -> None:
    """Raise ValueError for a Pipeline with transformers that a .slim file cannot hold."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    known = (isinstance(step, str) or step is None or transformers.is_step(step) for step in steps[:-1])
    if not all(known):
        _raise_unknown(f"a Pipeline of {', '.join(type(step).__name__ for step in steps)}", ())


# Values: to JSON and back.


class _Writer:
    """Values to JSON; arrays are collected under names that the JSON refers to."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.format = 1  # the oldest format that can hold the packed values
        self.inside = 0  # of how many transformers of tables

    def pack(self, name: str, value: Any) -> Any:
        """Return the value as JSON; `name` is its place, and names its arrays."""
        match value:
            case None | bool() | int() | str():
                return value
            case np.generic() if SCALAR.fullmatch(_little(value.dtype).str) and value == value:
                return {"scalar": self.pack(name, value.item()), "dtype": _little(value.dtype).str}
            case float() if math.isfinite(value):
                return value
            case list():
                return [self.pack(f"{name}.{number}", item) for number, item in enumerate(value)]
            case tuple():
                return {"tuple": self.pack(name, list(value))}
            case dict():
                return {"dict": self.pack(name, [list(pair) for pair in value.items()])}
            case Status():
                return {"status": value.name}
        plain = (_is_array(value) and not _is_mixed(value)) or not (self.inside or transformers.is_step(value))
        entry = None if plain else transformers.tagged(value)
        if entry is None:
            return self._pack_array(name, value) if _is_array(value) else self._pack_part(name, value)
        return self._pack_of_table(name, entry)

    def _pack_of_table(self, name: str, entry: Entry) -> Entry:
        """Return the JSON of a value that only transformers of tables have."""
        self.format = max(self.format, TABLES)
        content = {tag: part for tag, part in entry.items() if tag != "attributes"}
        packed = {tag: self.pack(name, part) for tag, part in content.items()}
        attributes = entry.get("attributes")
        if attributes is not None:
            self.inside += 1
            packed["attributes"] = {key: self.pack(f"{name}.{key}", part) for key, part in attributes.items()}
            self.inside -= 1
        return packed

    def _pack_array(self, name: str, value: Matrix) -> Entry:
        """Return the JSON of a dense or sparse array, or of strings."""
        if issparse(value):
            rows = csr_array(value)
            pieces = {piece: self.pack(f"{name}.{piece}", getattr(rows, piece)) for piece in ("data", "indices", "indptr")}
            return {"csr": [int(size) for size in rows.shape], **pieces}
        if value.dtype == object and value.ndim == 1 and not _is_mixed(value):
            return {"strings": [str(item) for item in value]}
        dtype = _little(value.dtype)
        if not DTYPE.fullmatch(dtype.str):
            raise ValueError(
                f"cannot save {name}, an array of {value.dtype}; a .slim file holds arrays of numbers, truth values and "
                "strings. Train with labels of one of these types"
            )
        self.arrays[name] = value.astype(dtype, order="C")
        return {"array": name}

    def _pack_part(self, name: str, value: Any) -> Entry:
        """Return the JSON of a dataclass in one of the tables."""
        for kind, table in KINDS.items():
            for key, part in table.items():
                if type(value) is part:
                    self.format = max(self.format, SINCE.get(kind, 1))
                    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
                    if isinstance(value, Expansion) and value.metric is None:
                        del fields["metric"]  # earlier versions have no such field
                    if isinstance(value, Expansion):
                        self.format = max(self.format, PROJECTED if value.precision != "float32" else 1)
                        fields = {
                            field: part for field, part in fields.items() if field != "precision" or part != "float32"
                        }
                    if isinstance(value, Metric):
                        self.format = max(self.format, PROJECTED if value.projection is not None else 1)
                        fields = {
                            field: part for field, part in fields.items() if field != "projection" or part is not None
                        }
                    packed = {field: self.pack(f"{name}.{field}", content) for field, content in fields.items()}
                    return {"kind": kind, "name": key, "fields": packed}
        raise ValueError(
            f"cannot save {name}={short(value)}; a .slim file holds numbers, strings, lists, dicts, and what is in "
            "TRAINERS and REDUCERS. Change it with set_params before saving"
        )


def _is_mixed(value: Matrix) -> bool:
    """Return whether an array has cells of other kinds than strings."""
    return (
        not issparse(value)
        and value.dtype == object
        and value.ndim == 1
        and not all(isinstance(item, str) for item in value)
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or issparse(value)


def _little(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("<")


# Estimators: to entries of the header and back.


def _dump_estimator(estimator: Any, writer: _Writer, name: str) -> Entry:
    check_is_fitted(estimator)
    kind = type(estimator)
    fitted = {key: getattr(estimator, key) for key in FITTED[kind] if hasattr(estimator, key)}
    return {
        "type": kind.__name__,
        "params": _dump_params(estimator, writer, name),
        "fitted": {key: writer.pack(name + key, value) for key, value in fitted.items()},
    }


def _load_estimator(entry: Entry, reader: Reader, kind: Any) -> Any:
    estimator = _load_params(entry, reader, kind)
    fitted = entry_of(entry, "fitted", dict)
    if "coding_" in fitted:  # the name in files of version 0.1
        fitted = fitted | {"goal_": fitted["coding_"]}
    for key in FITTED[kind]:
        if key in fitted:
            setattr(estimator, key, reader.unpack(fitted[key]))
    return estimator


def _dump_params(estimator: Any, writer: _Writer, name: str) -> Entry:
    params = estimator.get_params(deep=False)
    params.pop("steps", None)
    params |= dict.fromkeys(params.keys() & NOT_KEPT)
    if not isinstance(params.get("random_state"), Integral):
        params |= dict.fromkeys(params.keys() & {"random_state"})
    return {key: writer.pack(name + key, value) for key, value in params.items()}


def _load_params(entry: Entry, reader: Reader, kind: Any, *given: Any) -> Any:
    """Return an estimator with its parameters."""
    # the author of the file must not choose where the next fit reads pickles and writes files
    params = entry_of(entry, "params", dict)
    params |= dict.fromkeys(params.keys() & NOT_KEPT)
    values = with_one_budget({key: reader.unpack(value) for key, value in params.items()})
    strange = [
        key for key, value in values.items() if isinstance(value, ColumnsOf | FunctionType | np.ufunc | np.dtype | type)
    ]
    if strange:  # values of the transformers of tables
        raise ValueError(f"it has a {kind.__name__} with values of other things for {short(strange)}")
    unknown = sorted(values.keys() - inspect.signature(kind).parameters.keys())
    if unknown:
        raise ValueError(
            f"it has a {kind.__name__} with parameters that the one installed does not have, {short(unknown)}; "
            "install newer versions of slimsvm and scikit-learn"
        )
    return build(kind, values, *given)


def with_one_budget(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with one budget: earlier versions had four more, and one for the seconds of a checkpoint."""
    old = {name: params.pop(name, None) for name in OLD_PARAMETERS}
    limits = [params.get("budget")]
    limits += [None if old["budget_bytes"] is None else f"{old['budget_bytes']} B"]
    limits += [None if old["budget_us"] is None else f"{old['budget_us']} us"]
    given = tuple(limit for limit in limits if limit is not None)
    if any(value is not None for value in old.values()):
        params["budget"] = given[0] if len(given) == 1 else given or None
        limited = old["budget_bytes"] is not None
        params["precision"] = old["budget_precision"] if limited else AUTO
    return params


def _dump_machine(model: Any, writer: _Writer, name: str) -> Entry:
    if type(model) not in MACHINES:
        _raise_unknown(f"a {type(model).__name__}", [model])
    check_is_fitted(model)
    kernel = model.model_.kernel
    if isinstance(kernel, Custom):
        raise ValueError(
            f"cannot save a model whose kernel is a function, {short(kernel.function)}: a .slim file "
            f"holds no code. Train with one of the kernels that have a name, {sorted(KERNELS)}"
        )
    try:
        check_parameters(kernel.name, vars(kernel))
        _check_finite(model.model_)
    except ValueError as error:
        raise ValueError(f"cannot save a model that could not be loaded again: {error}") from error
    entry, learning = _dump_estimator(model, writer, name), learning_of(model)
    if learning is not None:
        entry["fitted"]["_learning"] = writer.pack(f"{name}_learning", learning)
    return entry


def _load_machine(entry: Any, reader: Reader) -> Any:
    name = entry_of(entry, "type", str)
    if name not in MACHINE_NAMES:
        raise ValueError(f"it has a {short(name)} in the place of an estimator; there are {MACHINE_NAMES}")
    estimator = _load_estimator(entry, reader, ESTIMATORS[name])
    estimator.path_ = None
    _check_features(estimator)
    _check_machine(estimator)
    _check_run(estimator)
    _check_learning(estimator)
    return estimator


def _dump(model: Any, writer: _Writer, name: str) -> Entry:
    """Return the entry of a machine, or of what is around one."""
    if type(model) is Pipeline:
        return _dump_pipeline(model, writer, name)
    return (_dump_targets if type(model) is TransformedTargetRegressor else _dump_machine)(model, writer, name)


def _load(entry: Entry, reader: Reader) -> Any:
    return LOADERS.get(str(entry.get("type")), _load_machine)(entry, reader)


def _dump_targets(model: Any, writer: _Writer, name: str) -> Entry:
    """Return the entry of a TransformedTargetRegressor; its unfitted parts are those of the fitted ones."""
    check_is_fitted(model)
    transformer = model.transformer_
    if not is_identity(transformer):
        target_scaling(transformer)
    return {
        "type": "TransformedTargetRegressor",
        "transformer": None if is_identity(transformer) else _dump_estimator(transformer, writer, f"{name}target."),
        "regressor": _dump(model.regressor_, writer, f"{name}regressor."),
        "axes": int(model._training_dim),
    }


def _load_targets(entry: Entry, reader: Reader) -> Any:
    transformer, regressor = entry.get("transformer"), _load(entry_of(entry, "regressor", dict), reader)
    goal = unwrapped(regressor)[-1].goal_
    _check(goal.name == "regression", "a transformer of targets around no regression")
    if transformer is not None:
        transformer = _load_transformer(transformer, reader)
        _check(type(transformer) in SCALERS and transformer.n_features_in_ == goal.outputs, "targets and their scaler")
    model = TransformedTargetRegressor(clone(regressor), transformer=None if transformer is None else clone(transformer))
    nothing = FunctionTransformer(validate=True, check_inverse=False)
    model.regressor_ = regressor
    model.transformer_ = nothing.fit(np.zeros((1, goal.outputs))) if transformer is None else transformer
    model._training_dim = 2 if entry.get("axes") == 2 else 1
    return model


def _dump_pipeline(pipeline: Any, writer: _Writer, prefix: str) -> Entry:
    steps = [step for _, step in pipeline.steps]
    _, rest = words_before(steps)
    others = [step for step in rest[:-1] if not (isinstance(step, str) or step is None)]
    if not rest or type(rest[-1]) not in LAST or not all(map(transformers.is_step, others)):
        _raise_unknown(f"a Pipeline of {', '.join(type(step).__name__ for step in steps) or 'no steps'}", steps)
    entries = [_dump_step(step, writer, f"{prefix}steps.{number}.") for number, step in enumerate(steps)]
    return {
        "type": "Pipeline",
        "params": _dump_params(pipeline, writer, prefix),
        "steps": [[name, entry] for (name, _), entry in zip(pipeline.steps, entries, strict=True)],
    }


def _load_pipeline(entry: Entry, reader: Reader) -> Any:
    pairs = entry_of(entry, "steps", list)
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError(f"it has a Pipeline with steps that are not names and estimators: {short(pairs)}")
    steps = [(name, _load_transformer(step, reader)) for name, step in pairs[:-1]]
    load_last = _load_targets if _is_targets(pairs[-1][1]) else _load_machine
    steps.append((pairs[-1][0], load_last(pairs[-1][1], reader)))
    words, rest = transformers.words_of([step for _, step in steps])
    if any(isinstance(pair[1], dict) and "step" in pair[1] for pair in pairs):
        _check(words is None, "a vectorizer of texts and the preparation of a table")
        transformers.check(rest[:-1], unwrapped(rest[-1])[-1].n_features_in_)
        return _load_params(entry, reader, Pipeline, steps)
    counts = {getattr(step, "n_features_in_", None) for step in rest if step not in NOTHING}
    if len(counts | ({len(words.vocabulary)} if words else set())) > 1:
        raise ValueError("it has a Pipeline whose steps disagree about the number of features")
    return _load_params(entry, reader, Pipeline, steps)


def _dump_step(step: Any, writer: _Writer, name: str) -> Entry | str | None:
    if isinstance(step, str) or step is None:
        return step
    if type(step) not in SCALERS and transformers.is_step(step):
        check_is_fitted(step)
        packed: Entry = writer.pack(name, step)
        return packed
    if type(step).__name__ in transformers.VECTORIZER_KINDS:
        params, fitted = (
            {key: writer.pack(name + key, v) for key, v in part.items()} for part in transformers.vectorizer_parts(step)
        )
        return {"type": type(step).__name__, "params": params, "fitted": fitted}
    return (_dump if type(step) in LAST else _dump_estimator)(step, writer, name)


def _load_transformer(entry: Any, reader: Reader) -> Any:
    if entry in NOTHING:
        return entry
    if isinstance(entry, dict) and "step" in entry:
        return reader.unpack(entry)
    name = entry_of(entry, "type", str)
    if name in transformers.VECTORIZER_KINDS:
        params, fitted = ({k: reader.unpack(v) for k, v in entry_of(entry, p, dict).items()} for p in ("params", "fitted"))
        return transformers.restored_vectorizer(transformers.VECTORIZER_KINDS[name], params, fitted)
    if name not in SCALER_NAMES:
        known = [*transformers.VECTORIZER_KINDS, *SCALER_NAMES]
        raise ValueError(f"it has a {short(name)} in the place of a transformer; there are {known}")
    scaler = _load_estimator(entry, reader, ESTIMATORS[name])
    _check_features(scaler)
    _check_scaler(scaler)
    return scaler


def _is_targets(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "TransformedTargetRegressor"


#: what a Pipeline may end in, and the readers of entries with a model inside
LAST = (*MACHINES, TransformedTargetRegressor)
LOADERS = {"Pipeline": _load_pipeline, "TransformedTargetRegressor": _load_targets}


def _raise_unknown(what: str, parts: Sequence[Any]) -> NoReturn:
    hint = "; slimsvm.compress makes a SlimSVC of an SVC" if any(isinstance(part, SVC | NuSVC) for part in parts) else ""
    raise ValueError(
        f"cannot save {what}; a .slim file holds a fitted {', '.join(MACHINE_NAMES)}, or a Pipeline that ends in one, of "
        f"{', '.join(transformers.TRANSFORMERS)} and selectors of features, or of scalers after a vectorizer of texts, or "
        f"a TransformedTargetRegressor of these{hint}. Save anything else with joblib"
    )


# Checks that the parts of a loaded model agree.


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its parts do not fit together: {what}")


def _is(array: Any, kinds: str, shape: tuple[int, ...]) -> bool:
    """Return whether this is an array with elements of one of these kinds and of that shape."""
    return _is_array(array) and array.dtype.kind in kinds and array.shape == shape


def _is_real(array: Any, shape: tuple[int, ...]) -> bool:
    """Return whether this is an array of float32 or float64 of that shape."""
    return _is(array, "f", shape) and array.dtype.itemsize in (4, 8)


def _check_features(estimator: Any) -> None:
    needed = set(FITTED[type(estimator)]) - OPTIONAL
    _check(all(hasattr(estimator, name) for name in needed), f"a {type(estimator).__name__} needs {sorted(needed)}")
    count, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    _check(isinstance(count, int) and 0 < count <= MOST_FEATURES, f"there are {short(count)} features")
    _check(names is None or _is(names, "O", (count,)), f"the names of the {count} features")


def _check_scaler(scaler: Any) -> None:
    count = scaler.n_features_in_
    _check(isinstance(getattr(scaler, "_sklearn_output_config", {}), dict), "the output of a scaler")
    kind, arrays = type(scaler).__name__, 0
    for name in set(FITTED[type(scaler)]) - {*COMMON, *OPTIONAL}:
        value = getattr(scaler, name)
        number = name == "n_samples_seen_" and isinstance(value, Real)
        _check(value is None or number or _is(value, "fi", (count,)), f"{name} of the {kind}")
        arrays += _is_array(value)
    facts = SCALERS[type(scaler)]
    if facts.is_off(scaler):
        return
    _check(arrays > 0, f"a {kind} without numbers")
    try:
        with np.errstate(all="ignore"):
            facts.scaling(scaler, count).check(count)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its {kind} cannot scale rows: {error}") from error


def _check_machine(estimator: Any) -> None:
    goal, model = estimator.goal_, estimator.model_
    _check(type(goal) in MACHINES[type(estimator)], f"{short(goal)} is no goal of a {type(estimator).__name__}")
    if goal.real:
        _check_values(goal)
        _check_intervals(getattr(estimator, "calibration_", None))
    else:
        _check_classes(getattr(estimator, "classes_", None), goal)
        _check_calibration(getattr(estimator, "calibration_", None), goal.n_classes)
    _check(isinstance(model, Expansion) and isinstance(model.kernel, Kernel), "there is no function with a kernel")
    check_parameters(model.kernel.name, vars(model.kernel))
    _check_expansion(model, goal.outputs, estimator.n_features_in_)
    _check_finite(model)


def _check_values(goal: Any) -> None:
    """Check the numbers of a goal with real targets."""
    for field in dataclasses.fields(goal):
        value = getattr(goal, field.name)
        if field.name == "outputs":
            _check(type(value) is int and 1 <= value <= MOST_FEATURES, f"the goal has {short(value)} targets")
            continue
        each = value if isinstance(value, tuple) and len(value) == goal.outputs else (value,)
        numbers = all(isinstance(number, float) and 0 <= number < math.inf for number in each)
        _check(numbers, f"the goal has {short(value)} for {field.name}")


def _check_classes(classes: Any, goal: Any) -> None:
    _check(isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.size > 1, "there are no two classes")
    _check(classes.tolist() == sorted(set(classes.tolist())), "the classes are not in order")  # NaN never is
    _check(isinstance(goal.n_classes, int), "there is no goal")
    _check(goal.n_classes == classes.size, f"a goal of {goal.n_classes} and {classes.size} classes")


def _check_intervals(calibration: Any) -> None:
    _check(calibration is None or isinstance(calibration, Conformal), f"{short(calibration)} makes no intervals")
    if calibration is not None:
        _check(isinstance(calibration.errors, np.ndarray) and calibration.errors.dtype.kind == "f", "errors of intervals")
        calibration.check()


def _check_calibration(calibration: Any, n_classes: int) -> None:
    if calibration is None:
        return
    _check(type(calibration) in CALIBRATIONS.values(), f"{short(calibration)} is no calibration")
    for field in dataclasses.fields(calibration):
        value, kinds = getattr(calibration, field.name), "i" if field.name == "starts" else "f"
        array = isinstance(value, np.ndarray) and _is(value, kinds, (value.size,))
        _check(isinstance(value, float) if field.name == "temperature" else array, f"{field.name} of the calibration")
    calibration.check(n_classes)


def _check_run(svc: Any) -> None:
    """Check the attributes that describe the training, if they are there."""
    for name in ("n_iter_", "n_kernel_evals_"):
        count = getattr(svc, name, 0)
        _check(isinstance(count, Integral) and int(count) >= 0, f"{name} is {short(count)}")
    _check(isinstance(getattr(svc, "status_", Status.CONVERGED), Status), "status_ is not how a training ends")
    weights, shape, support = (getattr(svc, name, None) for name in ("class_weight_", "shape_fit_", "_support"))
    _check(weights is None or _is_real(weights, svc.classes_.shape), "class_weight_ has no weight for each class")
    ranges = getattr(svc, "feature_range_", None)
    fits = ranges is None or (_is_real(ranges, (2, svc.n_features_in_)) and bool((ranges[0] <= ranges[1]).all()))
    _check(fits, "feature_range_ has no range for each feature")
    _check(shape is None or (type(shape) is tuple and all(type(size) is int for size in shape)), "shape_fit_ is no shape")
    _check(support is None or _is(support, "i", (svc.model_.size,)), "support_ has no row number for each point")


def _check_learning(machine: Any) -> None:
    """Check how a model learns on, if it is that of a stream."""
    learning = getattr(machine, "_learning", None)
    if learning is not None:
        _check(isinstance(learning, RowByRow), f"{short(learning)} is no stream")
        learning.check(machine.model_.size, machine.model_.bias.size, machine.goal_.n_classes)


def _check_finite(model: Expansion) -> None:
    points = model.points.data if issparse(model.points) else model.points
    for name, values in {"points": points, "coefficients": model.weights, "bias": model.bias}.items():
        _check(bool(np.isfinite(values).all()), f"its {name} are not all finite numbers")


def _check_pairs(coef: PairCoefficients, outputs: int) -> None:
    counts = coef.counts
    known = isinstance(counts, np.ndarray) and _is(counts, "i", (counts.size,))
    _check(known and counts.size * (counts.size - 1) // 2 == outputs, f"the points of each class of {outputs} pairs")
    fits = isinstance(coef.against, np.ndarray) and coef.against.ndim == 2 and bool((counts >= 0).all())
    _check(fits and sum(counts.tolist()) == coef.against.shape[0], "the points of each class are not all points")


def _check_expansion(model: Expansion, outputs: int, features: int) -> None:
    _check(_is_real(model.bias, (outputs,)), f"the bias of {outputs} outputs")
    coef, width = model.weights, outputs
    if isinstance(model.coef, PairCoefficients):
        _check_pairs(model.coef, outputs)
        width = model.coef.counts.size - 1
    size = coef.shape[0] if isinstance(coef, np.ndarray) and coef.ndim == 2 else -1
    _check(_is_real(coef, (size, width)), f"the coefficients of {outputs} outputs")
    if isinstance(model.kernel, Precomputed):
        columns = model.points
        _check(_is(columns, "i", (size, 1)) and isinstance(columns, np.ndarray), f"the columns of {size} points")
        _check(bool(((columns >= 0) & (columns < features)).all()), f"columns of a kernel matrix of {features}")
    else:
        _check_metric(model.metric, size, features)
        columns = features if model.projection is None else model.projection.shape[1]
        _check(_is_real(model.points, (size, columns)), f"{size} points of {columns} features")


def _check_metric(metric: Any, size: int, features: int) -> None:
    """Check the types and shapes of a metric; its numbers were checked when it was made."""
    if metric is None:
        return
    _check(isinstance(metric, Metric), f"{short(metric)} is no metric")
    for name, values, count in (("factors", metric.factors, features), ("widths", metric.widths, size)):
        _check(values is None or _is_real(values, (count,)), f"the {name} of the metric")
    _check(metric.projection is None or metric.projection.shape[0] == features, "the projection of the metric")
