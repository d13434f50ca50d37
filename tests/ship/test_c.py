"""The C export on this machine and on emulated ARM, in every precision; what it states and what it refuses."""

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, assert_agrees, model_of, no_ties
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from slimsvm import SlimSVC, export
from slimsvm.kernels import RBF
from slimsvm.kernels.spec import SPECS
from slimsvm.rounding import of_upper_halves, upper_halves
from slimsvm.ship.c import BITS, CExporter
from slimsvm.ship.literals import c_string, float_literal, identifier, table
from slimsvm.ship.quantise import FITTED_POINTS, _rounded_in_turn, predicted_alike, quantise
from slimsvm.ship.source import artefact_of
from tools.targets import missing, run_c

ARM = "arm-linux-gnueabihf-gcc"
SYSTEMS = {
    "clang": (["clang"], []),
    "size": (["gcc", "-Os"], []),
    "sanitised": (["gcc", "-fsanitize=undefined,address", "-fno-sanitize-recover"], []),
    "arm": ([ARM, "-static"], ["qemu-arm"]),
    "thumb": ([ARM, "-static", "-mthumb", "-Os"], ["qemu-arm"]),
}
INTEGER_KERNELS = [name for name, spec in SPECS.items() if spec.total.integer]


def written(model, folder, name="made", **settings):
    return export(model, folder / f"{name}.c", **settings)[0]


@pytest.mark.parametrize(
    ("layout", "precision"), [*(("votes", precision) for precision in BITS), ("regression", "int16"), ("novelty", "int8")]
)
@pytest.mark.parametrize("system", SYSTEMS)
def test_compilers_and_machines_agree(system, layout, precision, tmp_path):
    compiler, emulator = SYSTEMS[system]
    if reason := missing(compiler[0], *emulator[:1]):
        pytest.skip(reason)
    model = model_of(scaler="standard", layout=layout)
    source, artefact = written(model, tmp_path, precision=precision), artefact_of(model)
    here, there = run_c(source, artefact, ROWS), run_c(source, artefact, ROWS, compiler, emulator)
    if layout == "regression":
        np.testing.assert_allclose(there.labels, here.labels, rtol=1e-5, atol=1e-5)
        return
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-5, atol=1e-5)
    assert (there.labels == here.labels).mean() > 0.99


@pytest.mark.skipif(bool(missing("arm-none-eabi-gcc")), reason="gcc-arm-none-eabi is not installed")
@pytest.mark.parametrize("precision", BITS)
def test_a_microcontroller_needs_the_exponential_and_nothing_else(precision, tmp_path):
    source, model = written(model_of(), tmp_path, precision=precision), tmp_path / "model.o"
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=c99"]
    subprocess.run([*command, "-Os", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", source, "-o", model], check=True)
    wanted = subprocess.run(["arm-none-eabi-nm", "-u", model], capture_output=True, text=True, check=True).stdout.split()
    assert set(wanted) - {"U"} <= {"expf", "memset", "memcpy", "__aeabi_l2f"}  # the last: int64 to float


@pytest.mark.parametrize("kernel", INTEGER_KERNELS)
@pytest.mark.parametrize(("precision", "within"), [("int16", 1e-3), ("int8", 0.15)])
@pytest.mark.parametrize(
    ("layout", "scaler"),
    [("two", "none"), ("two", "standard"), ("two", "clipped"), ("regression", "standard"), ("novelty", "clipped")],
)
@pytest.mark.filterwarnings("ignore:int8 tables")
def test_integers_are_close(layout, kernel, precision, within, scaler, tmp_path):
    model = model_of(kernel, layout, scaler)
    outcome = run_c(written(model, tmp_path, precision=precision, rows=ROWS), artefact_of(model), ROWS)
    if layout == "regression":
        expected, found = model.predict(ROWS), outcome.labels
    else:
        expected, found = model.decision_function(ROWS), outcome.scores[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=within * np.abs(expected).max())


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_integers_are_exactly_what_their_tables_say(bits, kernel, tmp_path):
    """A slow twin in whole numbers: the row in units of the points, an exact sum, one scale per table."""
    model = model_of(kernel, "rest")
    artefact = artefact_of(model)
    q = quantise(artefact, bits)
    step = q.grid.step / q.grid.fine
    exact = (ROWS.astype(np.float32) - q.grid.middle) / step
    units, clear = np.clip(np.rint(exact), -q.row_end, q.row_end).astype(int), no_ties(exact)
    points = q.points.astype(int) * q.grid.fine
    if kernel == "rbf":
        sums = np.array([[sum((x - z) ** 2) for z in points] for x in units])
        values = np.exp(-0.3 * step**2 * sums)
    else:
        values = (0.3 * step**2 * np.array([[sum(x * z) for z in points] for x in units]) + 0.5) ** 3
    expected = values @ q.coef * q.coef_step + q.bias_values
    outcome = run_c(written(model, tmp_path, precision=f"int{bits}"), artefact, ROWS)
    np.testing.assert_allclose(outcome.scores[clear], expected[clear], rtol=1e-4, atol=1e-4)


def test_short_scales_are_exactly_what_their_tables_say(tmp_path):
    """A slow twin of a standardised row: a short float times each feature, a whole shift, and the sum in whole numbers."""
    model = model_of("rbf", "two", "standard")
    artefact = artefact_of(model)
    q = quantise(artefact.compact(), 8)
    scale, step = of_upper_halves(q.scaling.scales), q.grid.step
    units = ROWS.astype(np.float32) * scale - q.grid.fine * q.scaling.shifts
    whole = np.clip(np.rint(units), -q.row_end, q.row_end).astype(int)
    sums = np.array([[sum((x - z) ** 2) for z in q.grid.fine * q.points.astype(int)] for x in whole])
    expected = np.exp(-0.3 * (step / q.grid.fine) ** 2 * sums) @ q.coef * q.coef_step + q.bias_values
    outcome = run_c(written(model, tmp_path, precision="int8"), artefact, ROWS)
    clear = no_ties(units)
    np.testing.assert_allclose(outcome.scores[clear], expected[clear], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scale, artefact.compact().scaling.scale * q.grid.fine / step, rtol=1 / 256)


@pytest.mark.parametrize("scaler", ["standard", "none"])
def test_far_points_and_rows_do_not_make_all_others_coarse(scaler):
    artefact = artefact_of(model_of("rbf", "two", scaler)).compact()
    points = artefact.points.copy()
    points[0, 2] += 500 * np.ptp(points)
    far, rows = replace(artefact, points=points), ROWS.copy()
    tables = quantise(far, 8, rows=rows)
    assert tables.grid.step < quantise(far, 8).grid.step / 50
    assert predicted_alike(far, tables, rows) > predicted_alike(far, quantise(far, 8), rows)
    assert (tables.scaling is None) == (quantise(far, 8).scaling is None)
    even = quantise(artefact, 8, rows=rows)  # nothing is far: the range hardly shrinks
    assert even.grid.step > quantise(artefact, 8).grid.step / 4


def test_centres_far_from_the_rows_stay_floats():
    artefact = artefact_of(model_of("rbf", "two", "standard")).compact()
    assert quantise(artefact, 8).scaling is not None
    far = replace(artefact.scaling, centre=np.where(np.arange(7) == 0, 1e6, artefact.scaling.centre))
    assert quantise(replace(artefact, scaling=far), 8).scaling is None
    assert quantise(replace(artefact, points=artefact.points + 1e5), 8).scaling is None


def test_the_upper_half_of_a_float_is_close_to_it():
    numbers = np.geomspace(1e-30, 1e30, 1000)
    np.testing.assert_allclose(of_upper_halves(upper_halves(numbers)), numbers, rtol=1 / 256)


def test_rows_are_finer_than_points_of_eight_bits():
    """Points on the grid and rows between its steps: outputs hardly change."""
    artefact = replace(artefact_of(model_of("rbf", "two")), points=np.arange(63).reshape(9, 7) * 2.0 - 62)
    artefact = replace(artefact, parameters={"gamma": 1e-3})
    q = quantise(artefact, 8)
    rows = np.random.default_rng(0).uniform(-60, 60, (200, 7))
    np.testing.assert_allclose(q.grid.rounded_rows(rows), rows, atol=q.grid.step / 64 + 1e-12)
    assert q.grid.fine == 32
    assert quantise(artefact, 16).grid.fine == 1


@pytest.mark.parametrize(("layout", "scaler"), [("two", "standard"), ("rest", "clipped"), ("votes", "none")])
@pytest.mark.filterwarnings("ignore:int8 tables")
def test_rows_predicted_alike_are_those_of_the_compiled_code(layout, scaler, tmp_path):
    model = model_of(layout=layout, scaler=scaler)
    outcome = run_c(written(model, tmp_path, precision="int8", rows=ROWS), artefact_of(model), ROWS)
    alike = CExporter("int8", rows=ROWS).predicted_alike(artefact_of(model), ROWS)
    assert alike == np.count_nonzero(outcome.labels == model.predict(ROWS))


def test_integers_keep_the_error_on_digits(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(MinMaxScaler(clip=True), SlimSVC(60, C=10, random_state=0)).fit(X[:600], y[:600])
    error = np.mean(model.predict(X) != y)
    for precision, points in (("float32", 0.0), ("int16", 0.0005), ("int8", 0.005)):
        settings = {"rows": X[:600]} if precision != "float32" else {}
        outcome = run_c(written(model, tmp_path, precision, precision=precision, **settings), artefact_of(model), X)
        assert abs(np.mean(outcome.labels != y) - error) <= points


def test_rows_beyond_the_range_and_no_numbers_are_clipped(tmp_path):
    model = model_of(layout="two")
    strange = np.array([np.full(7, 1e30), np.full(7, -np.inf), np.full(7, np.nan)])
    source = written(model, tmp_path, precision="int8")
    outcome = run_c(source, artefact_of(model), strange, ["gcc", "-fsanitize=undefined", "-fno-sanitize-recover"])
    assert np.isfinite(outcome.scores).all()


def test_saturation_is_refused_with_its_size(tmp_path):
    model = model_of()
    reach = model.support_vectors_.max()
    with pytest.raises(ValueError, match=f"reach {reach:.6g} after scaling, {reach / 0.5:.3g} times the limit 0.5"):
        export(model, tmp_path / "m.c", precision="int8", limit=0.5)
    with pytest.raises(ValueError, match="features reach 9 after scaling, 3 times the limit 3"):
        export(model, tmp_path / "m.c", precision="int16", limit=3.0, rows=np.full((1, 7), 9.0))
    assert list(tmp_path.iterdir()) == []
    export(model, tmp_path / "m.c", precision="int8", limit=4.0)


def test_features_on_unequal_scales_are_told_of(tmp_path):
    model = model_of(layout="two")
    model.model_.points[:, 0] += 1e4
    with pytest.warns(UserWarning, match=r"int8 tables change scores .* StandardScaler"):
        export(model, tmp_path / "m.c", precision="int8")


def test_chi2_has_no_integer_form(tmp_path):
    with pytest.raises(ValueError, match="chi2 kernel divides"):
        export(model_of("chi2"), tmp_path / "m.c", precision="int8")
    with pytest.raises(ValueError, match=r"unknown precision 'int3'.*float32"):
        export(model_of(), tmp_path / "m.c", precision="int3")


def test_wide_rows_get_wide_sums():
    artefact = artefact_of(model_of(layout="two"))
    for features, bits, wanted in ((7, 8, 32), (40_000, 8, 64), (7, 16, 64)):
        wide = type(artefact)(**vars(artefact) | {"points": np.ones((1, features)), "coef": np.ones((1, 1))})
        assert quantise(wide, bits).sum_bits == wanted


@pytest.mark.parametrize("precision", BITS)
@pytest.mark.parametrize("scaler", ["none", "standard", "clipped"])
def test_the_cost_is_what_the_compiler_finds(precision, scaler, tmp_path):
    model = model_of(size=60, scaler=scaler)
    cost = CExporter(precision).cost(artefact_of(model))
    source, compiled = written(model, tmp_path, precision=precision), tmp_path / "model.o"
    text = source.read_text()
    assert f"flash  {cost.flash:,} bytes" in text
    assert f"RAM    {cost.ram:,} bytes" in text
    assert f"work   {cost.multiply_adds:,} multiply-adds" in text
    subprocess.run(["gcc", "-std=c99", "-Os", "-c", source, "-o", compiled], check=True)
    sections = subprocess.run(["size", "-A", compiled], capture_output=True, text=True, check=True).stdout
    constants = sum(int(size) for size in re.findall(r"^\.rodata\S*\s+(\d+)", sections, re.MULTILINE))
    assert abs(constants - cost.flash) <= 160  # alignment; constants of the code; a short table may become code


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_header_fits_the_source_in_c_and_in_cpp(layout, tmp_path):
    source = written(model_of(layout=layout), tmp_path, "a model-1")
    assert source.name == "a model-1.c"
    (tmp_path / "both.c").write_text('#include "a model-1.h"\n#include "a model-1.c"\n')
    labels = "#include <string>\nstd::string" if layout == "words" else "double"
    include, kind = labels.rpartition("\n")[::2]
    use = f"const {kind} labels[] = A_MODEL_1_LABELS;"
    if not LAYOUTS[layout][0].size:
        use = "decltype(a_model_1_predict(0)) found(const float *x) { return a_model_1_predict(x); }"
    text = f'{include}\n#include "a model-1.h"\n{use}\n'
    (tmp_path / "user.cpp").write_text(text)
    for compiler, name in (("gcc", "both.c"), ("g++", "user.cpp")):
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wmissing-prototypes"][: 5 if compiler == "gcc" else 4]
        command = [compiler, *strict, "-c", tmp_path / name, "-o", tmp_path / "out.o", "-Wno-unused-variable"]
        subprocess.run(command, check=True)


def test_the_header_says_what_a_prediction_is(tmp_path):
    written(model_of(layout="regression"), tmp_path, "price")
    header, source = ((tmp_path / f"price.{ending}").read_text() for ending in "hc")
    assert "float price_predict(const float *x);" in header
    assert "9 points of 7 features, regression, rbf kernel" in source
    for word in ("SCORES", "LABELS", "CLASS", "_scores"):
        assert word not in header
    written(model_of(layout="novelty"), tmp_path, "fault")
    header, source = ((tmp_path / f"fault.{ending}").read_text() for ending in "hc")
    assert "int fault_predict(const float *x);" in header
    assert "FAULT_SCORES 1" in header
    assert "LABELS" not in header
    assert "1 for a row like the training rows, -1 for a novel one" in source


def test_class_names_become_identifiers(tmp_path):
    written(model_of(layout="words"), tmp_path)
    header = (tmp_path / "made.h").read_text()
    for name in ("MADE_CLASS_na_ve = 0", "MADE_CLASS_quo_te_and = 1", "MADE_CLASS_two_words = 2", "MADE_CLASS_x = 3"):
        assert name in header
    written(model_of(layout="two"), tmp_path, "signs")
    assert "SIGNS_CLASS_minus_1 = 0, SIGNS_CLASS_1 = 1" in (tmp_path / "signs.h").read_text()
    assert "/* made_predict returns the number of the class of a row. */" in header


def test_literals_read_back_exactly():
    rng = np.random.default_rng(0)
    values = (rng.normal(size=1000) * 10.0 ** rng.integers(-30, 30, 1000)).astype(np.float32)
    read = np.array([float(word) for word in table(values).replace(",", " ").split()], dtype=np.float32)
    np.testing.assert_array_equal(read, values)
    assert [float_literal(x) for x in (1.0, 0.5, 1e20)] == ["1.0f", "0.5f", "1.00000002e+20f"]
    assert c_string('a"\\?é\n') == '"a\\042\\134\\077\\303\\251\\012"'
    assert [identifier(text) for text in ("a-b", "1x", "", "ü")] == ["a_b", "model_1x", "model", "model"]


def test_a_model_that_agrees_is_one_that_was_written_by_itself(tmp_path):
    """No allocation, no printing, no code per point: the source grows by its tables only."""
    small, large = (written(model_of(size=size), tmp_path, f"m{size}").read_text() for size in (5, 90))
    code = [re.sub(r"\{[-+.ef0-9,\s]*\}", "", text.partition("*/")[2]).replace("m90", "m5") for text in (small, large)]
    assert [len(text.splitlines()) for text in code] == [len(code[0].splitlines())] * 2
    assert not re.search(r"malloc|stdio|printf", small)
    assert_agrees(model_of(size=90), run_c(tmp_path / "m90.c", artefact_of(model_of(size=90)), ROWS))


def naive_rounding(coef, H, step):
    """Round the coefficients in turn; after each, those to come are the best for its error in the norm of H."""
    left, integers = coef.copy(), np.zeros(coef.shape)
    for i in range(len(coef)):
        integers[i] = np.clip(np.rint(left[i] / step), -127, 127)
        rest = slice(i + 1, None)
        left[rest] += np.linalg.solve(H[rest, rest], H[rest, i])[:, None] * (left[i] - step * integers[i])
    return integers


def test_rounding_in_turn_corrects_each_error_by_the_coefficients_to_come():
    """Points that lie close together: the error of one coefficient is corrected by its neighbours."""
    rng = np.random.default_rng(0)
    K = RBF(0.3)(ROWS, ROWS[:40])
    H, coef = K.T @ K + 1e-6 * np.eye(40), rng.normal(size=(40, 3))
    step = np.abs(coef).max() / 127
    plain = coef - step * np.rint(coef / step)
    integers = _rounded_in_turn(coef, H, 8, step)
    np.testing.assert_array_equal(integers, naive_rounding(coef, H, step))
    better = coef - step * integers
    assert (better * (H @ better)).sum() < (plain * (H @ plain)).sum() / 10


def test_coefficients_of_nearly_equal_points_are_rounded():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    H = (Q * np.geomspace(1e10, 1e-4, 20)) @ Q.T
    H, coef = (H + H.T) / 2, rng.normal(size=(20, 1))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(np.linalg.inv(H))  # the plain formula
    step = np.abs(coef).max() / 127
    in_turn, one_by_one = (coef - step * q for q in (_rounded_in_turn(coef, H, 8, step), np.rint(coef / step)))
    assert in_turn.T @ H @ in_turn < one_by_one.T @ H @ one_by_one


def test_coefficients_get_sixteen_bits_where_these_are_cheap():
    artefact = artefact_of(model_of(layout="two"))
    wide = type(artefact)(**vars(artefact) | {"points": np.random.default_rng(0).normal(size=(9, 30)), "scaling": None})
    assert quantise(wide, 8).coef.dtype == np.int16
    assert quantise(artefact, 8).coef.dtype == np.int8
    assert quantise(artefact, 16).coef.dtype == np.int16


def test_coefficients_of_more_points_are_rounded_one_by_one():
    rng, size = np.random.default_rng(0), FITTED_POINTS + 1
    artefact = replace(artefact_of(model_of()), points=rng.random((size, 7)), coef=rng.normal(size=(size, 4)))
    tables = quantise(artefact, 8)
    np.testing.assert_array_equal(tables.coef, np.rint(artefact.coef / tables.coef_step))
