"""The .slim file: what comes back is what went in, and no file, however strange, does more than raise ValueError."""

import copy
import dataclasses
import json
import os
import stat
import struct
import warnings
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress
from slimsvm.calibration import CALIBRATIONS
from slimsvm.estimators import machine_of
from slimsvm.files import container, native
from slimsvm.files.native import load, save
from slimsvm.goals import OneVsRest
from slimsvm.importers.models import Imported
from slimsvm.kernels import RBF, Poly, make_kernel
from slimsvm.metric import Metric
from slimsvm.model import Expansion, Status
from slimsvm.reducers import REDUCERS
from slimsvm.rows.host import HostRows
from slimsvm.solvers.free_rows import NewtonRule
from slimsvm.trainers import TRAINERS
from slimsvm.trainers.smo import SMO

pytestmark = pytest.mark.usefixtures("quick_slim")

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
LABELS = {
    "int": Y_IRIS,
    "negative": Y_IRIS.astype(np.int8) - 1,
    "float": Y_IRIS.astype(float),
    "bool": Y_IRIS > 0,
    "str": np.array(["setosa", "versicolor", "naïve"])[Y_IRIS],
    "object": np.array(["setosa", "versicolor", "naïve"], dtype=object)[Y_IRIS],
}
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler(feature_range=(-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(quantile_range=(10.0, 90.0)),
    RobustScaler(with_centering=False, with_scaling=False),
    "passthrough",
]


def there_and_back(model, folder):
    save(model, folder / "model.slim")
    return load(folder / "model.slim")


def assert_same(loaded, model, X):
    """Predictions to the last bit, and all that fit leaves but the path."""
    for answer in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, answer):
            np.testing.assert_array_equal(getattr(loaded, answer)(X), getattr(model, answer)(X))
    before, after = vars(model).copy(), vars(loaded).copy()
    for name in ("history_", "device_"):  # of the fit, not of the model
        before.pop(name, None)
    assert before.keys() == after.keys()
    assert after.pop("path_") is None
    for name in before.keys() - {"path_", "model_", "calibration_"}:
        np.testing.assert_array_equal(after[name], before[name])
        assert type(after[name]) is type(before[name])
    if hasattr(model, "classes_"):
        assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.model_.kernel == model.model_.kernel
    assert issparse(loaded.support_vectors_) == issparse(model.support_vectors_)
    assert loaded.support_vectors_.dtype == model.support_vectors_.dtype
    assert repr(loaded) == repr(model)


def test_every_kernel_comes_back(kernel_name, form, make_case, tmp_path):
    X = form(make_case(kernel_name, density=0.5).X)
    y = np.arange(X.shape[0]) % 3
    model = SlimSVC(kernel=kernel_name, degree=2, coef0=0.25).fit(X, y)
    assert_same(there_and_back(model, tmp_path), model, X)


@pytest.mark.parametrize("name", LABELS)
def test_every_type_of_label_comes_back(name, tmp_path):
    model = SlimSVC().fit(X_IRIS, LABELS[name])
    assert_same(there_and_back(model, tmp_path), model, X_IRIS)


def test_float32_points_stay_float32(tmp_path):
    X = X_IRIS.astype(np.float32)
    model = SlimSVC().fit(X, Y_IRIS)
    assert_same(there_and_back(model, tmp_path), model, X)


@pytest.mark.parametrize("budget", [None, 6])
@pytest.mark.parametrize("kind", [SlimSVR, SlimOneClassSVM])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_regressors_and_novelty_detectors_come_back(kind, budget, kernel, form, tmp_path):
    """Some with a path, which is not kept; their goals have numbers."""
    X = X_IRIS @ X_IRIS.T if kernel == "precomputed" else form(X_IRIS)
    reducer = "prune" if kernel == "precomputed" else "slim"
    model = kind(budget, kernel=kernel, reducer=reducer, random_state=0).fit(X, np.sin(9 * X_IRIS[:, 0]))
    loaded = there_and_back(model, tmp_path)
    assert type(loaded) is kind
    assert_same(loaded, model, X)
    assert loaded.goal_ == model.goal_


@pytest.mark.parametrize("kind", [SlimSVR, SlimOneClassSVM])
def test_pipelines_that_end_in_them_come_back(kind, tmp_path):
    model = make_pipeline(StandardScaler(), kind()).fit(X_IRIS, X_IRIS[:, 3])
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X_IRIS), model.predict(X_IRIS))
    assert_same(loaded[-1], model[-1], X_IRIS)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_come_back(calibration, classes, tmp_path):
    y = np.minimum(Y_IRIS, classes - 1)
    model = SlimSVC(calibration=calibration, random_state=0).fit(X_IRIS, y)
    assert_same(there_and_back(model, tmp_path), model, X_IRIS)


@pytest.mark.parametrize("field", ["epsilon", "variance", "nu"])
@pytest.mark.parametrize("value", [-1.0, "a", True, None])
def test_a_goal_with_numbers_that_are_none_is_refused(field, value, tmp_path):
    save(SlimOneClassSVM().fit(X_IRIS), tmp_path / "model.slim")
    header, rest = header_and_rest(tmp_path / "model.slim")
    header["model"]["fitted"]["goal_"]["fields"][field] = value
    assert field in refuse(tmp_path / "model.slim", with_header(header, rest))


def test_a_small_model_comes_back_without_its_path(tmp_path):
    model = SlimSVC(5, random_state=0).fit(X_IRIS, Y_IRIS)
    assert model.path_ is not None
    assert_same(there_and_back(model, tmp_path), model, X_IRIS)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_a_compressed_svc_comes_back(kernel, tmp_path, float32_always):
    """One column per pair of classes, no steps, and NumPy numbers in the kernel, which round otherwise than Python's."""
    model = compress(SVC(kernel=kernel).fit(X_IRIS, Y_IRIS), X_IRIS, Y_IRIS)
    assert model.n_iter_ == 0
    loaded = there_and_back(model, tmp_path)
    assert_same(loaded, model, X_IRIS)
    coarse = [each.on(HostRows(each.kernel, X_IRIS, precision=float32_always)) for each in (model.model_, loaded.model_)]
    np.testing.assert_array_equal(*coarse)


@pytest.mark.usefixtures("first_rows")
def test_a_model_that_never_had_a_full_one_comes_back(tmp_path):
    model = SlimSVC(5, trainer=None, reducer="first-rows", random_state=0).fit(X_IRIS, Y_IRIS)
    assert_same(there_and_back(model, tmp_path), model, X_IRIS)


def test_status_and_counts_come_back(tmp_path):
    with warnings.catch_warnings(action="ignore"):
        model = SlimSVC(max_iter=3).fit(X_IRIS, Y_IRIS)
    loaded = there_and_back(model, tmp_path)
    assert loaded.status_ is Status.MAX_ITER
    assert (loaded.n_iter_, loaded.n_kernel_evals_) == (model.n_iter_, model.n_kernel_evals_)


@pytest.mark.parametrize(
    "params",
    [
        {"class_weight": {0: 1.0, 1: 2, 2: 0.5}, "random_state": 3},
        {
            "class_weight": {np.int64(0): np.float32(0.1), np.int64(2): 3.0},
            "C": np.float64(0.1),
            "max_iter": np.int64(10**6),
        },
        {"class_weight": {np.str_("a"): 1.0}},
        {"class_weight": "balanced", "gamma": "auto", "cache_mb": 1},
        {"random_state": np.random.RandomState(0)},
        *({"trainer": name} for name in TRAINERS),
        *({"trainer": kind(**{dataclasses.fields(kind)[0].name: 7})} for kind in TRAINERS.values()),
        *({"reducer": name} for name in REDUCERS),
        *({"reducer": kind(time_limit=7.0)} for kind in REDUCERS.values()),
        {"reducer": REDUCERS["slant"](eta=0.25)},
        *({"trainer": SMO(newton=rule)} for rule in (NewtonRule(steps=5, share=0.5), None)),
        {"trainer": None},
    ],
)
def test_parameters_come_back(params, tmp_path):
    model = SlimSVC().fit(X_IRIS, Y_IRIS).set_params(**params)
    loaded = there_and_back(model, tmp_path)
    if isinstance(model.random_state, np.random.RandomState):
        model.random_state = None
    assert loaded.get_params() == model.get_params()


def test_a_trainer_saved_before_it_had_a_rule_has_the_usual_one(tmp_path):
    path = tmp_path / "model.slim"
    save(SlimSVC(trainer=SMO(C=7.0)).fit(X_IRIS, Y_IRIS), path)
    header, arrays = container.unpack_file(path.read_bytes())
    del header["model"]["params"]["trainer"]["fields"]["newton"]
    path.write_bytes(b"".join(container.pack_file(header, arrays, 1)))
    assert load(path).trainer == SMO(C=7.0)


@pytest.mark.parametrize("rule", [5, {"kind": "newton", "name": "smo", "fields": {"steps": "many"}}], ids=["5", "many"])
def test_a_rule_that_is_none_is_refused(rule, tmp_path):
    path = tmp_path / "model.slim"
    save(SlimSVC(trainer=SMO()).fit(X_IRIS, Y_IRIS), path)
    header, arrays = container.unpack_file(path.read_bytes())
    header["model"]["params"]["trainer"]["fields"]["newton"] = rule
    path.write_bytes(b"".join(container.pack_file(header, arrays)))
    with pytest.raises(ValueError, match=r"cannot load .* must be a"):
        load(path)


def named(X):
    return pd.DataFrame(X, columns=["länge", "b", "c", "d"])


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("frame", [np.asarray, named])
def test_pipelines_come_back(scaler, frame, tmp_path):
    check_pipeline(copy.deepcopy(scaler), frame(X_IRIS), tmp_path)


@pytest.mark.parametrize("scaler", [StandardScaler(with_mean=False), MaxAbsScaler(), RobustScaler(with_centering=False)])
def test_pipelines_of_sparse_rows_come_back(scaler, tmp_path):
    check_pipeline(scaler, csr_array(X_IRIS), tmp_path)


def check_pipeline(scaler, X, folder):
    model = Pipeline([("first", scaler), ("svc", SlimSVC())], verbose=False).fit(X, Y_IRIS)
    loaded = there_and_back(model, folder)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert repr(loaded) == repr(model)
    assert [name for name, _ in loaded.steps] == [name for name, _ in model.steps]
    if scaler != "passthrough":
        assert_same_attributes(loaded[0], model[0])


def assert_same_attributes(after, before):
    assert vars(after).keys() == vars(before).keys()
    for name, value in vars(before).items():
        assert type(getattr(after, name)) is type(value)
        np.testing.assert_array_equal(getattr(after, name), value)


def test_a_pipeline_that_speaks_pandas_still_does(tmp_path):
    rows = pd.DataFrame(X_IRIS, columns=list("abcd"))
    model = make_pipeline(MinMaxScaler(), SlimSVC()).set_output(transform="pandas").fit(rows, Y_IRIS)
    loaded = there_and_back(model, tmp_path)
    assert list(loaded[-1].feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


def test_scalers_of_rows_with_gaps_come_back(tmp_path):
    rows = X_IRIS.copy()
    rows[0, 0] = np.nan
    scaler = StandardScaler().fit(rows)
    assert scaler.n_samples_seen_.shape == (4,)
    model = Pipeline([("scaler", scaler), ("svc", SlimSVC().fit(X_IRIS, Y_IRIS))])
    assert_same_attributes(there_and_back(model, tmp_path)[0], scaler)


def test_a_loaded_model_can_be_changed_and_fitted_again(tmp_path):
    model = there_and_back(make_pipeline(MinMaxScaler(), SlimSVC()).fit(X_IRIS, Y_IRIS), tmp_path)
    model[-1].model_.coef.against[:] = 0
    assert model.fit(X_IRIS, Y_IRIS).score(X_IRIS, Y_IRIS) > 0.9


def test_the_layout_is_as_documented(tmp_path):
    model = SlimSVC().fit(X_IRIS, Y_IRIS)
    save(model, tmp_path / "model.slim")
    data = (tmp_path / "model.slim").read_bytes()
    magic, version, length, checksum = struct.unpack_from("<8sIQI", data)
    assert (magic, version, checksum) == (b"\x93SLIMSVM", 1, zlib.crc32(data[24:], zlib.crc32(data[:20])))
    header = json.loads(data[24 : 24 + length])
    start = (24 + length + 63) // 64 * 64
    arrays = {entry["name"]: entry for entry in header["arrays"]}
    assert all(entry["offset"] % 64 == 0 for entry in header["arrays"])
    coef = arrays["model_.coef.against"]
    assert (coef["dtype"], coef["shape"]) == ("<f8", list(model.model_.weights.shape))
    values = np.frombuffer(data, "<f8", model.model_.weights.size, start + coef["offset"])
    np.testing.assert_array_equal(values, model.model_.weights.ravel())


class Strange:
    """A reducer that no table has, and that says so in two lines."""

    def __repr__(self):
        return "Strange(\n    1)"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC().fit(X_IRIS, Y_IRIS), ["SVC", "SlimSVC", "StandardScaler", "compress"]),
        (StandardScaler().fit(X_IRIS), ["a StandardScaler", "Pipeline"]),
        ("model", ["a str"]),
        (make_pipeline(Binarizer(), SlimSVC()).fit(X_IRIS, Y_IRIS), ["Binarizer", "StandardScaler"]),
        (make_pipeline(StandardScaler(), SVC()).fit(X_IRIS, Y_IRIS), ["SVC", "compress"]),
        (make_pipeline(StandardScaler()).fit(X_IRIS), ["a Pipeline of StandardScaler"]),
        (SlimSVC(kernel=lambda A, B: A @ B.T).fit(X_IRIS, Y_IRIS), ["function", "no code", "rbf"]),
        (SlimSVC().fit(X_IRIS, Y_IRIS).set_params(reducer=Strange()), ["reducer", "Strange", "REDUCERS", "set_params"]),
        (SlimSVC().fit(X_IRIS, Y_IRIS).set_params(C=np.inf), ["C=inf"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_saved_is_refused_in_one_line(model, words, tmp_path):
    with pytest.raises(ValueError, match="cannot save") as caught:
        save(model, tmp_path / "model.slim")
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []
    assert list(tmp_path.iterdir()) == []


def test_classes_that_are_other_objects_are_refused(tmp_path):
    model = SlimSVC().fit(X_IRIS, Y_IRIS)
    model.classes_ = np.array([(), 1, None], dtype=object)
    with pytest.raises(ValueError, match="cannot save classes_, an array of object"):
        save(model, tmp_path / "model.slim")


@pytest.mark.parametrize("model", [SlimSVC(), make_pipeline(StandardScaler(), SlimSVC())], ids=["svc", "pipeline"])
def test_a_model_that_is_not_fitted_is_refused(model, tmp_path):
    with pytest.raises(NotFittedError):
        save(model, tmp_path / "model.slim")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file to be damaged: sparse points, a scaler, names and strings."""
    path = tmp_path_factory.mktemp("saved") / "model.slim"
    model = make_pipeline(MaxAbsScaler(), SlimSVC(class_weight={"a": 2.0}, reducer=REDUCERS["slant"](eta=0.5)))
    with pytest.warns(UserWarning, match="^reducer="):  # which is saved all the same
        model.fit(csr_array(X_IRIS[::5]), np.array(["a", "b", "c"], dtype=object)[Y_IRIS[::5]])
    save(model, path)
    return path


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "damaged.slim"


def refuse(path, data):
    """Loading these bytes must raise ValueError, in one line that names the file."""
    path.write_bytes(data)
    with pytest.raises(ValueError, match="cannot load") as caught:
        load(path)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@settings(deadline=None)
@given(st.data())
def test_a_flipped_bit_is_always_found(saved, scratch, data):
    damaged = bytearray(saved.read_bytes())
    place = data.draw(st.integers(0, len(damaged) - 1) | st.integers(0, container.PREFIX))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    refuse(scratch, damaged)


@settings(deadline=None)
@given(st.data())
def test_a_missing_end_or_another_one_is_always_found(saved, scratch, data):
    whole = saved.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1) | st.integers(0, container.PREFIX + 1))
    refuse(scratch, whole[:cut])
    refuse(scratch, whole + data.draw(st.binary(min_size=1, max_size=70)))


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_other_bytes_are_refused(scratch, data):
    refuse(scratch, data)
    refuse(scratch, container.MAGIC + data)


def test_messages_tell_what_the_file_is(saved, scratch):
    whole = saved.read_bytes()
    assert "empty" in refuse(scratch, b"")
    assert "not a .slim file" in refuse(scratch, b"svm_type c_svc\n")
    assert "truncated" in refuse(scratch, whole[:-1])
    assert "newer slimsvm" in refuse(scratch, whole[:8] + struct.pack("<I", container.FORMAT + 1) + whole[12:])


def header_and_rest(path):
    """The header of a file and its arrays as bytes."""
    data = path.read_bytes()
    length = container.START.unpack_from(data)[2]
    return json.loads(data[container.PREFIX : container.PREFIX + length]), data[
        container.aligned(container.PREFIX + length) :
    ]


def with_header(header, rest):
    """A file with that header, whose checksum is right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = container.START.pack(container.MAGIC, container.FORMAT, len(text))
    rest = text + bytes(container.aligned(container.PREFIX + len(text)) - container.PREFIX - len(text)) + rest
    return start + container.CHECKSUM.pack(zlib.crc32(rest, zlib.crc32(start))) + rest


def test_a_header_put_back_as_it_was_is_read(saved, scratch):
    scratch.write_bytes(with_header(*header_and_rest(saved)))
    assert load(scratch).n_features_in_ == 4


def places(tree, path=()):
    """The paths to all values in a tree of JSON."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([10**12, 10**400, -1, "<U9999999", "|O"])
)
JSON = st.recursive(SCALARS | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_a_hostile_header_raises_value_error_or_nothing(saved, scratch, data):
    header, rest = header_and_rest(saved)
    for _ in range(data.draw(st.integers(1, 3))):
        everywhere = list(places(header))[1:]
        path = data.draw(st.sampled_from(everywhere))
        if data.draw(st.booleans()):
            other = at(header, data.draw(st.sampled_from(everywhere)))
            at(header, path[:-1])[path[-1]] = copy.deepcopy(other) if data.draw(st.booleans()) else data.draw(JSON)
        else:
            del at(header, path[:-1])[path[-1]]
    scratch.write_bytes(with_header(header, rest))
    try:
        load(scratch)
    except ValueError as error:
        assert scratch.name in str(error)  # noqa: PT017


HOSTILE = {
    "not an object": (lambda header: header.clear(), "'arrays'"),
    "object dtype": (lambda header: header["arrays"][0].update(dtype="|O"), "'|O'"),
    "structured dtype": (lambda header: header["arrays"][0].update(dtype="<f8,<f8"), "'<f8,<f8'"),
    "huge shape": (lambda header: header["arrays"][0].update(shape=[1 << 39, 1 << 39]), "not where"),
    "endless shape": (lambda header: header["arrays"][0].update(shape=[10**30]), "shape"),
    "negative shape": (lambda header: header["arrays"][0].update(shape=[-4]), "shape"),
    "another offset": (lambda header: header["arrays"][0].update(offset=64), "not where"),
    "an array too few": (lambda header: header["arrays"].pop(), "after its last array"),
    "another estimator": (lambda header: header["model"].update(type="PCA"), "PCA"),
    "another scaler": (lambda header: header["model"]["steps"][0][1].update(type="PCA"), "MaxAbsScaler"),
    "scaler in the end": (
        lambda header: header["model"]["steps"].pop(),
        "in the place of an estimator",
    ),
    "no steps": (lambda header: header["model"]["steps"].clear(), "steps"),
    "unknown parameter": (lambda header: svc(header)["params"].update(colour=1), "colour"),
    "unhashable key": (lambda header: svc(header)["params"].update(class_weight={"dict": [[[1], 2]]}), "unhashable"),
    "not pairs": (lambda header: svc(header)["params"].update(class_weight={"dict": [[1, 2, 3]]}), "pairs"),
    "unknown tag": (lambda header: svc(header)["params"].update(C={"pickle": "..."}), "pickle"),
    "bad setting": (lambda header: svc(header)["params"]["reducer"]["fields"].update(eta="a"), "cannot be made"),
    "wide scalar": (lambda header: svc(header)["params"].update(C={"scalar": 1, "dtype": "<U9999999"}), "U9999999"),
    "gamma of letters": (lambda header: kernel(header)["fields"].update(gamma="a"), "gamma='a'"),
    "no gamma of that name": (lambda header: kernel(header)["fields"].update(width=1), "width"),
    "unknown kernel": (lambda header: kernel(header).update(name="fourier"), "fourier"),
    "other features": (lambda header: fitted(header).update(n_features_in_=5), "5 features"),
    "no features": (lambda header: fitted(header).update(n_features_in_=0), "0 features"),
    "too few names": (lambda header: fitted(header).update(feature_names_in_={"strings": ["a"]}), "names"),
    "other classes": (lambda header: fitted(header).update(classes_={"strings": ["a", "b"]}), "2 classes"),
    "classes out of order": (lambda header: fitted(header).update(classes_={"strings": ["b", "a", "c"]}), "order"),
    "other coding": (lambda header: fitted(header)["goal_"].update(fields={"n_classes": 3.0}), "goal"),
    "a kernel for a coding": (lambda header: fitted(header).update(goal_=kernel(header)), "goal"),
    "regression with classes": (lambda header: fitted(header)["goal_"].update(name="regression", fields={}), "no goal of"),
    "classes for a regressor": (lambda header: svc(header).update(type="SlimSVR", params={}), "no goal of a SlimSVR"),
    "no classes": (lambda header: fitted(header).pop("classes_"), "classes"),
    "a kernel for a calibration": (lambda header: fitted(header).update(calibration_=kernel(header)), "calibration"),
    "a temperature of 0": (lambda header: fitted(header).update(calibration_=flat(0.0)), "temperature is 0.0"),
    "a word for a temperature": (lambda header: fitted(header).update(calibration_=flat("a")), "temperature"),
    "no model": (lambda header: fitted(header).pop("model_"), "model_"),
    "one array twice": (lambda header: model(header).update(bias=model(header)["coef"]), "does not know"),
    "sparse points of another shape": (lambda header: model(header)["points"].update(csr=[3, 4]), "indptr"),
    "dense points": (lambda header: model(header).update(points=model(header)["points"]["data"]), "features"),
    "mixed up pieces": (lambda header: model(header)["points"].update(indptr=model(header)["points"]["data"]), ""),
    "another status": (lambda header: fitted(header).update(status_={"status": "FINE"}), "FINE"),
    "scaler of text": (lambda header: header["model"]["steps"][0][1]["fitted"].update(scale_="a"), "scale_"),
    "widths": (lambda header: header["model"]["steps"][0][1]["fitted"].update(n_features_in_=3), "MaxAbsScaler"),
}


def flat(temperature):
    return {"kind": "calibration", "name": "temperature", "fields": {"temperature": temperature}}


def svc(header):
    return header["model"]["steps"][-1][1]


def fitted(header):
    return svc(header)["fitted"]


def model(header):
    return fitted(header)["model_"]["fields"]


def kernel(header):
    return model(header)["kernel"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_header_that_does_not_add_up_is_refused(saved, scratch, name):
    header, rest = header_and_rest(saved)
    change, word = HOSTILE[name]
    change(header)
    assert word in refuse(scratch, with_header(header, rest))


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 10**5, b'{"model": ' * 10**4], ids=len)
def test_a_header_that_is_not_one_is_refused(scratch, text):
    refuse(scratch, with_header(text, b""))


@pytest.mark.parametrize("column", [-1, 6, 2**40])
def test_columns_beyond_a_precomputed_matrix_are_refused(column, tmp_path):
    model = SlimSVC(kernel="precomputed").fit(np.eye(6), [0, 1] * 3)
    model.model_.points[0] = column
    save(model, tmp_path / "model.slim")
    with pytest.raises(ValueError, match="columns of a kernel matrix of 6"):
        load(tmp_path / "model.slim")


def test_strings_that_are_none_are_refused(tmp_path, scratch):
    save(SlimSVC().fit(X_IRIS, LABELS["str"]), tmp_path / "model.slim")
    header, rest = header_and_rest(tmp_path / "model.slim")
    (place,) = (entry["offset"] for entry in header["arrays"] if entry["name"] == "classes_")
    refuse(scratch, with_header(header, rest[:place] + b"\xff" * 4 + rest[place + 4 :]))


def test_a_missing_file_or_folder_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.slim")
    with pytest.raises(FileNotFoundError):
        save(SlimSVC().fit(X_IRIS, Y_IRIS), tmp_path / "no" / "folder" / "model.slim")


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(step, error, tmp_path, monkeypatch):
    def fail(*_):
        raise error("no space left")

    path = tmp_path / "model.slim"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(error):
        save(SlimSVC().fit(X_IRIS, Y_IRIS), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_save_follows_links_and_takes_strings(tmp_path):
    target, link = tmp_path / "target.slim", tmp_path / "link.slim"
    target.write_bytes(b"old")
    link.symlink_to(target)
    save(SlimSVC().fit(X_IRIS, Y_IRIS), str(link))
    assert link.is_symlink()
    assert load(str(target)).n_features_in_ == 4


def test_what_is_no_file_is_not_replaced(tmp_path):
    (tmp_path / "folder.slim").mkdir()
    (tmp_path / "device.slim").symlink_to(os.devnull)
    for name in ("folder.slim", "device.slim"):
        with pytest.raises(ValueError, match="not a file"):
            save(SlimSVC().fit(X_IRIS, Y_IRIS), tmp_path / name)


# Files that were made to do harm. Reproducers of the safety review.


def made(expansion, features, path, classes=(0, 1), **pieces):
    """Save a classifier of two classes with that function, and other pieces of its sparse points."""
    writer = native._Writer()
    svc = machine_of(Imported(expansion, OneVsRest(2), np.array(classes), features, {}))
    entry = native._dump_estimator(svc, writer, "")
    writer.arrays |= {f"model_.points.{name}": np.array(piece, np.int32) for name, piece in pieces.items()}
    path.write_bytes(b"".join(container.pack_file({"slimsvm": "0", "model": entry}, writer.arrays)))
    return path


def expansion_of(points, kernel=None):
    kernel = RBF(1.0) if kernel is None else kernel
    return Expansion(kernel, points, np.ones((points.shape[0], 1)), np.zeros(1))


STARTS = {"beyond and back": [0, 10**8, 0], "descending": [0, 1, 0], "from 1": [1, 1, 1], "too far": [0, 1, 2]}


@pytest.mark.parametrize("starts", STARTS.values(), ids=STARTS.keys())
def test_sparse_points_whose_starts_are_wrong_are_refused(starts, tmp_path):
    points = csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 5))
    with pytest.raises(ValueError, match=r"cannot load.*indptr"):
        load(made(expansion_of(points), 5, tmp_path / "e.slim", indptr=starts))


@pytest.mark.parametrize("column", [-1, 5])
def test_sparse_points_with_features_that_are_not_there_are_refused(column, tmp_path):
    points = csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 5))
    with pytest.raises(ValueError, match=r"cannot load.*outside its 5 columns"):
        load(made(expansion_of(points), 5, tmp_path / "e.slim", indices=[column]))


KERNELS_OF_HARM = {
    "endless degree": (Poly(1.0, 0.0, 2**62), "degree"),
    "negative degree": (Poly(1.0, 0.0, -1), "degree"),
    "infinite gamma": (RBF(np.inf), "inf"),
    "gamma of nan": (RBF(np.nan), "nan"),
    "negative gamma": (RBF(-1.0), "gamma"),
}


@pytest.mark.parametrize(("kernel", "word"), KERNELS_OF_HARM.values(), ids=KERNELS_OF_HARM.keys())
def test_kernel_parameters_outside_their_bounds_are_refused(kernel, word, tmp_path):
    header, rest = header_and_rest(made(expansion_of(np.ones((2, 3))), 3, tmp_path / "e.slim"))
    header["model"]["fitted"]["model_"]["fields"]["kernel"].update(name=kernel.name, fields=vars(kernel))
    (tmp_path / "e.slim").write_bytes(with_header(header, rest))
    with pytest.raises(ValueError, match=word):
        load(tmp_path / "e.slim")
    model = machine_of(Imported(expansion_of(np.ones((2, 3)), kernel), OneVsRest(2), np.array([0, 1]), 3, {}))
    with pytest.raises(ValueError, match=f"cannot save.*{word}"):
        save(model, tmp_path / "other.slim")


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("part", ["points", "coef", "bias"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(form, part, value, tmp_path):
    parts = {"points": np.eye(3), "coef": np.ones((3, 1)), "bias": np.zeros(1)}
    parts[part].flat[0] = value
    model = Expansion(RBF(1.0), form(parts["points"]), parts["coef"], parts["bias"])
    with pytest.raises(ValueError, match="finite"):
        load(made(model, 3, tmp_path / "e.slim"))
    svc = machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), 3, {}))
    with pytest.raises(ValueError, match=r"cannot save.*finite"):
        save(svc, tmp_path / "other.slim")


def with_metric(kernel="rbf"):
    """A classifier of two classes with factors and, where the kernel has a width, widths."""
    points = np.random.default_rng(0).normal(size=(4, 3))
    metric = Metric(np.array([0.5, 1.0, 2.0]), np.linspace(0.5, 2, 4) if kernel in ("rbf", "laplacian") else None)
    model = Expansion(make_kernel(kernel, gamma=0.5, degree=2, coef0=1.0), points, np.ones((4, 1)), np.zeros(1), metric)
    return machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), 3, {}))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "sigmoid"])
def test_a_metric_comes_back(kernel, tmp_path):
    model, X = with_metric(kernel), np.random.default_rng(1).normal(size=(9, 3))
    save(model, tmp_path / "m.slim")
    assert int.from_bytes((tmp_path / "m.slim").read_bytes()[8:12], "little") == 2
    again = load(tmp_path / "m.slim")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.model_.factors, model.model_.factors)
    np.testing.assert_array_equal(again.model_.widths, model.model_.widths)


METRICS_OF_HARM = {
    "factors too few": ("factors", np.ones(2), "3 features"),
    "widths too many": ("widths", np.ones(5), "4 points"),
    "factor of 0": ("factors", np.array([1.0, 0.0, 1.0]), "above 0"),
    "negative width": ("widths", np.array([1.0, -1.0, 1.0, 1.0]), "above 0"),
    "width of nan": ("widths", np.array([1.0, np.nan, 1.0, 1.0]), "above 0"),
    "infinite factor": ("factors", np.array([1.0, np.inf, 1.0]), "above 0"),
    "factors of rows": ("factors", np.ones((1, 3)), "one axis"),
    "factors of integers": ("factors", np.ones(3, int), "array of float64"),
    "factors of half precision": ("factors", np.ones(3, np.float16), "array of float64"),
}


@pytest.mark.parametrize("name", METRICS_OF_HARM)
def test_metrics_of_harm_are_refused(name, tmp_path):
    part, values, words = METRICS_OF_HARM[name]
    save(with_metric(), tmp_path / "m.slim")
    header, arrays = container.unpack_file((tmp_path / "m.slim").read_bytes())
    arrays[f"model_.metric.{part}"] = values
    (tmp_path / "m.slim").write_bytes(b"".join(container.pack_file(header, arrays)))
    with pytest.raises(ValueError, match=words) as caught:
        load(tmp_path / "m.slim")
    assert "cannot load" in str(caught.value)


@pytest.mark.parametrize("metric", ["text", 1, [1.0], {"dict": []}], ids=["text", "number", "list", "dict"])
def test_what_is_no_metric_is_refused(metric, tmp_path):
    save(with_metric(), tmp_path / "m.slim")
    header, rest = header_and_rest(tmp_path / "m.slim")
    header["model"]["fitted"]["model_"]["fields"]["metric"] = metric
    (tmp_path / "m.slim").write_bytes(with_header(header, rest))
    with pytest.raises(ValueError, match="cannot load"):
        load(tmp_path / "m.slim")


def test_widths_of_a_kernel_without_are_refused(tmp_path):
    save(with_metric(), tmp_path / "m.slim")
    header, rest = header_and_rest(tmp_path / "m.slim")
    header["model"]["fitted"]["model_"]["fields"]["kernel"].update(name="linear", fields={})
    (tmp_path / "m.slim").write_bytes(with_header(header, rest))
    with pytest.raises(ValueError, match="linear kernel takes no widths"):
        load(tmp_path / "m.slim")


def test_classes_that_are_no_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="classes"):
        load(made(expansion_of(np.eye(2)), 2, tmp_path / "e.slim", classes=(0.0, np.nan)))


def test_more_features_than_can_be_numbered_are_refused(tmp_path):
    with pytest.raises(ValueError, match="features"):
        load(made(expansion_of(np.empty((0, 2**33))), 2**33, tmp_path / "e.slim"))


def test_a_pipeline_comes_back_without_its_memory(tmp_path):
    pipeline = make_pipeline(StandardScaler(), SlimSVC(), memory=str(tmp_path / "cache")).fit(X_IRIS, Y_IRIS)
    save(pipeline, tmp_path / "m.slim")
    assert load(tmp_path / "m.slim").memory is None
    header, rest = header_and_rest(tmp_path / "m.slim")
    header["model"]["params"]["memory"] = str(tmp_path / "pickles")
    (tmp_path / "m.slim").write_bytes(with_header(header, rest))
    loaded = load(tmp_path / "m.slim")
    assert loaded.memory is None
    loaded.fit(X_IRIS, Y_IRIS)
    assert not (tmp_path / "pickles").exists()


SCALERS_OF_HARM = {
    "no scale": lambda entry: entry["fitted"].update(scale_=None),
    "nothing at all": lambda entry: entry["fitted"].update(scale_=None, mean_=None, var_=None, n_samples_seen_=None),
    "other settings": lambda entry: (entry["params"].update(with_mean=True), entry["fitted"].update(mean_=None)),
}


@pytest.mark.parametrize("change", SCALERS_OF_HARM.values(), ids=SCALERS_OF_HARM.keys())
def test_a_scaler_without_its_numbers_is_refused(change, tmp_path):
    save(make_pipeline(StandardScaler(), SlimSVC()).fit(X_IRIS, Y_IRIS), tmp_path / "m.slim")
    header, rest = header_and_rest(tmp_path / "m.slim")
    change(header["model"]["steps"][0][1])
    (tmp_path / "m.slim").write_bytes(with_header(header, rest))
    with pytest.raises(ValueError, match="StandardScaler"):
        load(tmp_path / "m.slim")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("fitted", "n_kernel_evals_", float("inf")),
        ("fitted", "n_kernel_evals_", -1),
        ("fitted", "n_iter_", [3]),
        ("fitted", "status_", "CONVERGED"),
        ("params", "C", float("nan")),
        ("params", "C", {"scalar": float("inf"), "dtype": "<f8"}),
    ],
    ids=["endless work", "negative work", "a list of steps", "a word for a status", "NaN", "an infinite scalar"],
)
def test_what_training_cannot_leave_is_refused(part, name, value, tmp_path):
    save(SlimSVC().fit(X_IRIS, Y_IRIS), tmp_path / "model.slim")
    header, arrays = container.unpack_file((tmp_path / "model.slim").read_bytes())
    del header["arrays"]
    header["model"][part][name] = value
    (tmp_path / "model.slim").write_bytes(b"".join(container.pack_file(header, arrays)))
    with pytest.raises(ValueError, match="cannot load"):
        load(tmp_path / "model.slim")


def test_deep_nesting_is_named(saved, scratch):
    header, rest = header_and_rest(saved)
    text = json.dumps(header).encode().replace(b'"C": 1.0', b'"C": ' + b"[" * 10**5 + b"]" * 10**5)
    assert "nested too deeply" in refuse(scratch, with_header(text, rest))


def test_messages_are_short(saved, scratch):
    header, rest = header_and_rest(saved)
    header["model"]["steps"] = [header["model"]["steps"] * 9] * 9
    message = refuse(scratch, with_header(header, rest))
    assert len(message) < 400
    assert "\n" not in message


# How files are replaced.


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "model.slim"
    path.write_bytes(b"old")
    path.chmod(mode)
    save(SlimSVC().fit(X_IRIS, Y_IRIS), path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() != b"old"


def test_the_folder_is_synced_after_the_file_is_in_place(tmp_path, monkeypatch):
    calls, replace, sync = [], os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *names: calls.append("replace") or replace(*names))
    monkeypatch.setattr(
        os, "fsync", lambda file: calls.append((stat.S_ISDIR(os.fstat(file).st_mode) and "folder") or "file") or sync(file)
    )
    container.write_whole(tmp_path / "a", [b"new"])
    assert calls == ["file", "replace", "folder"]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("old", [True, False], ids=["replaced", "new"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_of_two_files_both_are_replaced_or_none(old, error, links, tmp_path, monkeypatch):
    paths = [tmp_path / "m.c", tmp_path / "m.h"]
    for path in paths if old else []:
        path.write_bytes(b"old")
    replace, count = os.replace, iter(range(9))

    def fail_once(*names):
        if next(count) == 1:
            raise error("no space left")
        replace(*names)

    def no_link(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "replace", fail_once)
    if not links:
        monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(error):
        container.write_together({path: [b"new"] for path in paths})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({"m.c": b"old", "m.h": b"old"} if old else {})
    container.write_together({path: [b"new"] for path in paths})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"m.c": b"new", "m.h": b"new"}


def test_words_with_letters_beyond_unicode_are_refused(tmp_path):
    words = np.array(["a", "b"])
    words.view(np.uint32)[1] = 0x110000  # NumPy holds it, and ends with a SystemError where it becomes a word of Python's
    path = tmp_path / "words.slim"
    path.write_bytes(b"".join(container.pack_file({"slimsvm": "0", "model": {}}, {"classes": words})))
    with pytest.raises(ValueError, match="array 'classes' has letters beyond Unicode"):
        container.unpack_file(path.read_bytes())
