"""Regression with scaled targets: the scaler of the targets is one multiplication, in every export and in files."""

import subprocess
import sys

import numpy as np
import pytest
from shipped import ROWS, TARGETS, assert_agrees, shipped
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR

from slimsvm import SlimSVR, compress, export, load, runtime, save
from slimsvm.files.container import pack_file, unpack_file
from slimsvm.reducers import Slim
from slimsvm.ship.slim import read_slim

Y = 1e4 + 3e3 * np.sin(2 * ROWS[:, 0]) + 500 * ROWS[:, 1]
SCALERS = [StandardScaler(), MinMaxScaler((-1, 1), clip=True), MaxAbsScaler(), RobustScaler(), None]


def around(inner, place, scaler):
    """A regressor with scaled targets and rows, one inside the other."""
    if place == "inside":
        return make_pipeline(StandardScaler(), TransformedTargetRegressor(inner, transformer=scaler))
    if place == "twice":
        inner = TransformedTargetRegressor(inner, transformer=MaxAbsScaler())
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), inner), transformer=scaler)


def fitted(place="outside", scaler=None, inner=None):
    return around(
        inner or SlimSVR(12, reducer=Slim(metric="fixed"), random_state=0), place, scaler or StandardScaler()
    ).fit(ROWS, Y)


def assert_close(model, predictions):
    np.testing.assert_allclose(predictions, model.predict(ROWS), rtol=1e-9)


@pytest.mark.parametrize("place", ["outside", "inside", "twice"])
@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_files_and_the_runtime_give_the_values(scaler, place, tmp_path):
    model = around(SlimSVR(12, random_state=0), place, scaler).fit(ROWS, Y)
    save(model, tmp_path / "made.slim")
    again = load(tmp_path / "made.slim")
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))
    assert type(again) is type(model)
    assert again.n_features_in_ == 7
    again.fit(ROWS, Y)
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))
    assert read_slim(tmp_path / "made.slim") is not None
    assert_close(model, runtime(tmp_path / "made.slim")(ROWS))
    assert_close(model, runtime(model)(ROWS))


@pytest.mark.parametrize("place", ["outside", "inside"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_export_gives_the_values(target, place, tmp_path):
    model = fitted(place, MinMaxScaler())
    assert_agrees(model, shipped(model, target, tmp_path))


def test_small_and_foreign_models_with_scaled_targets_ship(tmp_path):
    full = fitted(inner=SVR(C=10.0))
    assert_close(full, runtime(full)(ROWS))
    small = compress(full, ROWS, Y, budget=8, random_state=0)
    save(small, tmp_path / "small.slim")
    assert_close(small, load(tmp_path / "small.slim").predict(ROWS))
    assert_agrees(small, shipped(small, "js", tmp_path))


@pytest.mark.filterwarnings("ignore:A column-vector")
def test_targets_in_a_column_stay_in_a_column(tmp_path):
    model = TransformedTargetRegressor(SlimSVR(8, random_state=0), transformer=StandardScaler()).fit(ROWS, Y[:, None])
    save(model, tmp_path / "made.slim")
    np.testing.assert_array_equal(load(tmp_path / "made.slim").predict(ROWS), model.predict(ROWS))
    np.testing.assert_allclose(runtime(model)(ROWS), model.predict(ROWS).ravel())


OTHERS = {
    "PowerTransformer": PowerTransformer(),
    "log1p": FunctionTransformer(np.log1p, np.expm1),
    "Pipeline": make_pipeline(StandardScaler(), MinMaxScaler()),
}


@pytest.mark.parametrize("words", OTHERS)
def test_other_transformers_are_refused_with_the_reason(words, tmp_path):
    model = fitted(scaler=OTHERS[words])
    for ship in (lambda: save(model, tmp_path / "m.slim"), lambda: export(model, tmp_path / "m.c"), lambda: runtime(model)):
        with pytest.raises(
            ValueError, match=f"TransformedTargetRegressor with a {words}: .*one multiplication.*regressor_"
        ):
            ship()
    export(model.regressor_, tmp_path / "m.c")


HARM = {
    "targets and their scaler": lambda entry: entry.update(transformer=entry["regressor"]["steps"].pop(0)[1]),
    "regressor": lambda entry: entry.pop("regressor"),
    "in the place of": lambda entry: entry["transformer"].update(type="SlimSVR"),
}


@pytest.mark.parametrize("words", HARM)
def test_damaged_files_are_refused(words, tmp_path):
    path = tmp_path / "made.slim"
    save(fitted(), path)
    header, arrays = unpack_file(path.read_bytes())
    HARM[words](header["model"])
    del header["arrays"]
    path.write_bytes(b"".join(pack_file(header, arrays)))
    with pytest.raises(ValueError, match=words):
        load(path)
    assert read_slim(path) is None


def test_a_classifier_has_no_scaled_targets(tmp_path):
    from slimsvm import SlimSVC

    save(fitted(), tmp_path / "made.slim")
    save(SlimSVC(8, random_state=0).fit(ROWS, Y.mean() < Y), tmp_path / "other.slim")
    (header, arrays), (other, more) = (unpack_file((tmp_path / f"{name}.slim").read_bytes()) for name in ("made", "other"))
    header["model"]["regressor"] = other["model"]
    del header["arrays"]
    (tmp_path / "made.slim").write_bytes(b"".join(pack_file(header, arrays | more)))
    with pytest.raises(ValueError, match="around no regression"):
        load(tmp_path / "made.slim")


def test_the_command_line_takes_them(tmp_path):
    save(fitted(), tmp_path / "made.slim")
    np.savetxt(tmp_path / "rows.csv", ROWS[:5], delimiter=",")
    runs = [["info", "made.slim"], ["predict", "made.slim", "rows.csv"], ["export", "made.slim", "-o", "m.c"]]
    done = [
        subprocess.run([sys.executable, "-m", "slimsvm", *run], cwd=tmp_path, capture_output=True, text=True)
        for run in runs
    ]
    assert [each.returncode for each in done] == [0, 0, 0], done
    assert "StandardScaler" in done[0].stdout
    np.testing.assert_allclose([float(line) for line in done[1].stdout.split()], fitted().predict(ROWS[:5]), rtol=1e-5)


def test_columns_with_scalers_of_their_own_are_saved_and_exported(tmp_path):
    columns = ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2, 3, 4, 5, 6])])
    model = make_pipeline(columns, SlimSVR(8, random_state=0)).fit(ROWS, Y)
    save(model, tmp_path / "m.slim")
    np.testing.assert_array_equal(load(tmp_path / "m.slim").predict(ROWS), model.predict(ROWS))
    export(model, tmp_path / "model.json")
    np.testing.assert_allclose(runtime(tmp_path / "model.json")(ROWS), model.predict(ROWS))


def test_what_cannot_be_saved_is_told_what_to_do(tmp_path):
    model = make_pipeline(Binarizer(), SlimSVR(8, random_state=0)).fit(ROWS, Y)
    with pytest.raises(ValueError, match=r"cannot save a Pipeline of Binarizer.* Save anything else with joblib"):
        save(model, tmp_path / "m.slim")
