"""Every exporter's files are compiled or loaded, run, and compared with Python's own outputs; what cannot be is said."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, SCALERS, TARGETS, assert_agrees, model_of, needs, shipped
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from slimsvm import SlimSVC, compress, export, runtime
from slimsvm.goals import CLASSIFIERS, OneVsOne
from slimsvm.kernels.spec import SPECS
from slimsvm.reducers import Slim
from slimsvm.scaling import Scaling
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.c import CExporter
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.libsvm import LIBSVM_KERNELS
from slimsvm.ship.runtime import Runtime
from slimsvm.ship.source import artefact_of
from tools.targets import RUNNERS

pytestmark = pytest.mark.usefixtures("quick_slim")

#: a model with a learned metric, at once
QUICK_METRIC = Slim(steps=2, metric="scales")


def kernels_of(target):
    return [name for name in SPECS if target != "libsvm" or name in LIBSVM_KERNELS]


def test_there_is_a_way_to_run_every_exporter():
    assert RUNNERS.keys() == EXPORTERS.keys()


@pytest.mark.parametrize(("target", "kernel"), [(target, kernel) for target in TARGETS for kernel in kernels_of(target)])
def test_every_kernel_gives_the_scores_of_python(target, kernel, tmp_path):
    model = model_of(kernel)
    assert_agrees(model, shipped(model, target, tmp_path))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_layout_gives_the_scores_of_python(target, layout, tmp_path, excused):
    model = model_of(layout=layout)
    if (target, layout) == ("libsvm", "words"):
        with pytest.raises(ValueError, match="whole numbers"):
            export(model, tmp_path / "made.libsvm")
        excused("labels that are not whole numbers are refused")
        return
    if (target, layout) == ("libsvm", "parted"):
        with pytest.warns(UserWarning, match="tie in votes"):
            export(model, tmp_path / "made.libsvm")
        excused("svm-predict does not break ties by scores, which a warning says")
        return
    if (target, layout) == ("libsvm", "dag"):
        with pytest.warns(UserWarning, match="counts votes, and this model decides by a DAG"):
            export(model, tmp_path / "made.libsvm")
        excused("svm-predict counts votes, which a warning says")
        return
    assert_agrees(model, shipped(model, target, tmp_path))


DAG_TARGETS = [("c", {}), ("c", {"precision": "int16"}), ("js", {}), ("json", {}), ("onnx", {"precision": "float64"})]


@cache
def dag_of_digits(kernel):
    """A small model of ten classes that goes by a DAG, fitted once for all targets."""
    X, y = load_digits(return_X_y=True)
    return SlimSVC(16, kernel=kernel, multiclass="dag", reducer="spsvm", random_state=0).fit(X[::3] / 16, y[::3])


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(("target", "settings"), DAG_TARGETS, ids=str)
def test_a_decision_dag_of_ten_classes_gives_the_labels_of_python(target, settings, kernel, tmp_path):
    X, model = load_digits().data / 16, dag_of_digits(kernel)
    expected = model.classes_[model.goal_.decode(model.model_(X))]
    votes = OneVsOne(10).decode(model.model_(X))
    assert (expected != votes).any()  # so that counting votes would fail
    outcome = shipped(model, target, tmp_path, X, **settings)
    disagree = (outcome.labels != expected).mean()
    assert disagree <= (0.01 if settings.get("precision") == "int16" else 0.0)
    np.testing.assert_array_equal(runtime(model)(X), expected)
    assert runtime(model)(X[0]) == expected[0]
    np.testing.assert_allclose(runtime(model).scores(X), model.decision_function(X), atol=1e-9)


def test_a_decision_dag_computes_only_the_outputs_that_it_comes_to():
    """In C the work is that of one output less than there are classes; so it is in the runtime where that pays."""
    artefact = artefact_of(model_of(layout="dag"))
    votes = replace(artefact, goal=OneVsOne(4))
    assert CExporter().cost(votes).multiply_adds - CExporter().cost(artefact).multiply_adds == 9 * (6 - 3)
    rng = np.random.default_rng(0)
    many = Artefact(
        "rbf", {"gamma": 0.3}, ROWS[:9], rng.normal(size=(9, 45)), np.zeros(45), CLASSIFIERS["dag"](10), np.arange(10)
    )
    run = Runtime(many)
    assert run._single
    np.testing.assert_array_equal(run(ROWS), run.goal.decode(run._outputs(ROWS)))


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_scaling_travels_along(target, scaler, kernel, tmp_path, excused):
    model = model_of(kernel, scaler=scaler)
    if (target, scaler) == ("libsvm", "clipped"):
        with pytest.raises(ValueError, match="clip"):
            export(model, tmp_path / "made.libsvm")
        excused("svm-scale cannot clip, and a scaler that clips is refused")
    else:
        beyond = ROWS * 1.1
        assert_agrees(model, shipped(model, target, tmp_path, beyond), beyond)


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_without_points_is_a_constant(target, tmp_path):
    model = model_of(size=0)
    model.model_ = replace(model.model_, bias=np.array([0.5, -1.0, 0.25, 2.0]))
    assert_agrees(model, shipped(model, target, tmp_path))


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_of_scikit_learn_ships_as_it_is(target, tmp_path):
    y = (ROWS[:, 0] + ROWS[:, 1] > 1.5).astype(int)
    svc = SVC().fit(ROWS, y)
    outcome = shipped(svc, target, tmp_path)
    np.testing.assert_array_equal(outcome.labels, svc.predict(ROWS))
    if outcome.scores is not None:
        np.testing.assert_allclose(outcome.scores[:, 0], svc.decision_function(ROWS), atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_thousands_of_points_give_the_scores_of_python(target, tmp_path):
    model, rng = model_of(layout="two"), np.random.default_rng(0)
    points, coef = rng.random((3000, ROWS.shape[1])), rng.normal(size=(3000, 1))
    model.model_ = replace(model.model_, points=points, coef=coef)
    assert_agrees(model, shipped(model, target, tmp_path))


def test_scalings_compose():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    parts = [Scaling(rng.normal(size=3), rng.random(3) + 0.1, -rng.random(3), rng.random(3)) for _ in range(3)]
    np.testing.assert_allclose(parts[0].then(parts[1]).then(parts[2])(X), parts[2](parts[1](parts[0](X))), rtol=1e-12)


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("kernel", SPECS)
def test_the_compact_artefact_is_the_same_function(kernel, scaler):
    artefact = artefact_of(model_of(kernel, scaler=scaler))
    rows = ROWS if kernel == "chi2" and scaler == "none" else ROWS * 1.1
    expected, compact = (Runtime(a)._outputs(rows) for a in (artefact, artefact.compact()))
    np.testing.assert_allclose(compact, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_one_scale_for_all_features_goes_into_the_model(kernel):
    scaler = MinMaxScaler().fit([[2.0] * 7, [6.0] * 7])
    artefact = artefact_of(make_pipeline(scaler, model_of(kernel)))
    assert artefact.compact().scaling is None
    np.testing.assert_allclose(Runtime(artefact.compact())._outputs(ROWS), Runtime(artefact)._outputs(ROWS), rtol=1e-12)


def test_a_linear_model_is_its_weights():
    assert artefact_of(model_of("linear", "two", size=9)).compact().points.shape == (1, 7)


def test_a_shift_that_would_cost_digits_stays_a_shift(tmp_path):
    """Features around a million with a spread of one: float32 has their differences but not their weighted sum."""
    rows = 1e6 + np.round(8 * ROWS)
    model = make_pipeline(StandardScaler().fit(rows), model_of("linear"))
    assert_agrees(model, shipped(model, "c", tmp_path, rows), rows)


# What is in front of a model in a Pipeline.


def columns(remainder="passthrough"):
    nested = make_pipeline(MinMaxScaler(clip=True), StandardScaler())
    parts = [("robust", RobustScaler(), [4, 1]), ("nested", nested, [6]), ("largest", MaxAbsScaler(), slice(2, 4))]
    return ColumnTransformer(parts, remainder=remainder)


FRONTS = {
    "columns": (["rbf", "linear", "laplacian"], lambda: [columns()]),
    "some columns": (["rbf", "linear"], lambda: [StandardScaler(), columns("drop"), StandardScaler()]),
    "all components": (["rbf"], lambda: [StandardScaler(), PCA()]),
    "few components": (["linear", "poly", "sigmoid"], lambda: [StandardScaler(), PCA(3)]),
    "whitened": (["poly"], lambda: [columns("drop"), PCA(3, whiten=True)]),
}


@pytest.mark.parametrize(
    ("front", "kernel"), [(name, kernel) for name, (kernels, _) in FRONTS.items() for kernel in kernels]
)
@pytest.mark.parametrize("target", ["c", "js", "json", "onnx"])
def test_transformers_travel_along_where_they_can(target, front, kernel, tmp_path):
    y = (ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 4] > 1).astype(int)
    steps = FRONTS[front][1]()
    full = make_pipeline(
        *steps, SVC(kernel=kernel, gamma=0.3) if kernel != "laplacian" else SlimSVC(kernel=kernel, gamma=0.3)
    )
    small = compress(full.fit(ROWS, y), ROWS, y, budget=8, reducer="spsvm", random_state=0)
    beyond = ROWS * 1.1
    assert_agrees(small, shipped(small, target, tmp_path, beyond), beyond, within=1e-4)
    np.testing.assert_allclose(runtime(small).scores(beyond), small.decision_function(beyond), atol=1e-8)


def test_a_learned_metric_behind_chosen_columns_travels_along(tmp_path):
    y = (ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 4] > 1).astype(int)
    model = make_pipeline(columns("drop"), SlimSVC(4, trainer=None, reducer=QUICK_METRIC, random_state=0)).fit(ROWS, y)
    assert model[-1].model_.metric is not None
    assert_agrees(model, shipped(model, "json", tmp_path))
    np.testing.assert_allclose(runtime(model).scores(ROWS), model.decision_function(ROWS), atol=1e-8)


@pytest.mark.parametrize("target", ["onnx", "libsvm"])
def test_what_prepares_rows_is_refused_by_targets_that_take_numbers(target, tmp_path):
    needs(target)
    y = (ROWS[:, 0] > 0.5).astype(int)
    for step in (PCA(2), SimpleImputer(add_indicator=True), PowerTransformer()):
        with pytest.raises(ValueError, match=r"skl2onnx converts whole Pipelines"):
            export(make_pipeline(step, SlimSVC()).fit(ROWS, y), tmp_path / "m", target)


# What cannot be shipped.


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_without_a_form_are_refused(target, tmp_path):
    needs(target)
    X = np.random.default_rng(0).random((30, 3))
    y = (X[:, 0] > 0.5).astype(int)
    with pytest.raises(ValueError, match="kernel is a function"):
        export(SlimSVC(kernel=lambda A, B: A @ B.T).fit(X, y), tmp_path / "m", target)
    with pytest.raises(ValueError, match="no 'precomputed' kernel"):
        export(SlimSVC(kernel="precomputed").fit(X @ X.T, y), tmp_path / "m", target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", ["coef", "bias", "points"])
def test_numbers_that_are_not_finite_are_refused(target, part, tmp_path):
    model = model_of()
    values = getattr(model.model_, part).copy()
    values.flat[0] = np.nan
    model.model_ = replace(model.model_, **{part: values})
    with pytest.raises(ValueError, match="1 non-finite values in its"):
        export(model, tmp_path / "m", target)


def test_kernel_parameters_that_are_not_finite_are_refused(tmp_path):
    model = model_of()
    model.model_ = replace(model.model_, kernel=replace(model.model_.kernel, gamma=np.inf))
    with pytest.raises(ValueError, match="gamma=inf"):
        export(model, tmp_path / "m.c")


@pytest.mark.only_for("targets whose numbers are float32")
@pytest.mark.parametrize("target", ["c", "js"])
def test_numbers_beyond_float32_are_refused(target, tmp_path):
    model = model_of("linear")
    model.model_ = replace(model.model_, coef=model.model_.coef * 1e39)
    with pytest.raises(ValueError, match="beyond float32"):
        export(model, tmp_path / "m", target)


def test_models_that_are_not_ours_are_named(tmp_path):
    y = (ROWS[:, 0] > 0.5).astype(int)
    with pytest.raises(ValueError, match="cannot export a LinearSVC"):
        export(LinearSVC().fit(ROWS, y), tmp_path / "m.c")
    with pytest.raises(ValueError, match="Pipeline with a Binarizer; there are ColumnTransformer"):
        export(make_pipeline(Binarizer(), SlimSVC()).fit(ROWS, y), tmp_path / "m.c")
    with pytest.raises(NotFittedError):
        export(SlimSVC(), tmp_path / "m.c")


@pytest.mark.parametrize("target", TARGETS)
def test_an_existing_file_is_replaced_by_force_only(target, tmp_path):
    needs(target)
    model, path = model_of(), tmp_path / f"m{EXPORTERS[target].ending}"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="force"):
        export(model, path)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]
    assert export(model, path, force=True)[0] == path
    assert path.read_bytes() != b"mine"


def test_a_header_that_exists_is_left_alone_too(tmp_path):
    (tmp_path / "m.h").write_text("mine")
    with pytest.raises(FileExistsError, match=r"m\.h"):
        export(model_of(), tmp_path / "m.c")
    assert sorted(os.listdir(tmp_path)) == ["m.h"]


def test_an_unwritable_path_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileNotFoundError):
        export(model_of(), tmp_path / "nowhere" / "m.c")
    (tmp_path / "m.h").mkdir()
    with pytest.raises(ValueError, match="not a file"):
        export(model_of(), tmp_path / "m.c", force=True)
    assert sorted(os.listdir(tmp_path)) == ["m.h"]


def test_targets_follow_the_ending_unless_named(tmp_path):
    with pytest.raises(ValueError, match="no target has the ending"):
        export(model_of(), tmp_path / "model.txt")
    with pytest.raises(ValueError, match="unknown target 'cobol'"):
        export(model_of(), tmp_path / "model.c", "cobol")
    with pytest.raises(ValueError, match="no setting digits"):
        export(model_of(), tmp_path / "model.c", digits=3)
    assert export(model_of(), tmp_path / "model.txt", "libsvm") == [tmp_path / "model.txt"]
    assert (tmp_path / "model.txt").read_text().startswith("svm_type")
