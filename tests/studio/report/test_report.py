"""The report as a file: one page with everything in it, a card beside it, and what is refused."""

import json
import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris

import slimsvm
from slimsvm.ship.boards import BOARDS
from slimsvm.studio.report import report
from slimsvm.studio.report.content import image_of, samples
from slimsvm.studio.report.report import DOWNLOADS, LIVE, EmbeddedModels
from slimsvm.studio.tradeoff import Tradeoff, read_tradeoff, tradeoff

pytestmark = pytest.mark.usefixtures("quick_slim")

X, Y = load_iris(return_X_y=True)
MARKUP = np.array(["<script>alert(1)</script>", "</script><b>|*_`&amp;", "plain"])


@pytest.fixture(scope="module")
def found():
    return tradeoff(X, Y, methods=["nystroem", "bsgd"], budgets=[2, 4], name="iris")


def data_of(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1]
    return json.loads(text)


def test_the_page_holds_everything(found, tmp_path):
    page, card = report(found, X, Y, tmp_path / "iris.html")
    text = page.read_text()
    assert page.stat().st_size < 1_500_000
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    data = data_of(page)
    assert [point["key"] for point in data["points"]][:3] == ["full/all", "nystroem/2", "nystroem/4"]
    assert {*data["models"]["nystroem/4"]} == {".c", ".h", ".mjs", ".json", ".slim"}
    assert np.sum(data["points"][1]["confusion"]) == 38
    assert [point["bytes"] for point in data["points"]] == [row["bytes"] for row in found.rows]
    assert "# Model card: iris" in card.read_text()
    assert "support vectors" in card.read_text()


def test_the_page_is_the_same_from_file_and_memory(tmp_path):
    found = tradeoff(X, Y, methods=["nystroem"], budgets=[2], file=tmp_path / "rows.csv", name="iris")
    report(tmp_path / "rows.csv", X, Y, tmp_path / "a.html")
    memory = Tradeoff(found.rows, {row["model"]: read_tradeoff(tmp_path / "rows.csv").model(row) for row in found.rows})
    report(memory, X, Y, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_labels_and_titles_with_markup_are_escaped(tmp_path):
    labels = MARKUP[Y]
    found = tradeoff(X, labels, methods=["nystroem"], budgets=[3], name="<img src=x onerror=alert(2)>")
    page, card = report(found, X, labels, tmp_path / "r.html")
    text = page.read_text()
    assert "alert(1)</script>" not in text
    assert "<img" not in text
    assert text.count("</script>") == 3  # those of the template
    assert data_of(page)["classes"] == sorted(MARKUP.tolist())
    assert "<script" not in card.read_text()
    assert "<img" not in card.read_text()
    assert r"\|\*\_\`" in card.read_text()


def test_files_that_exist_are_left_alone(found, tmp_path):
    (tmp_path / "iris.md").write_text("mine")
    with pytest.raises(FileExistsError, match=r"iris\.md exists already"):
        report(found, X, Y, tmp_path / "iris.html")
    assert (tmp_path / "iris.md").read_text() == "mine"
    assert not (tmp_path / "iris.html").exists()
    report(found, X, Y, tmp_path / "iris.html", force=True)


def test_other_data_are_refused(found, tmp_path):
    with pytest.raises(ValueError, match="not the data of the trade-off: their fingerprint is"):
        report(found, X + 1, Y, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_a_method_that_the_rows_do_not_have_is_refused(found, tmp_path):
    with pytest.raises(ValueError, match="the rows have no method 'slim'; they have full, nystroem, bsgd"):
        report(found, X, Y, tmp_path / "r.html", method="slim")
    page, _ = report(found, X, Y, tmp_path / "r.html", method="bsgd")
    assert data_of(page)["method"] == "bsgd"


def test_methods_of_other_tools_are_shown_without_a_model(tmp_path):
    file = tmp_path / "rows.csv"
    tradeoff(X, Y, methods=["nystroem"], budgets=[2, 4], file=file, name="iris")
    lines = file.read_text().replace(",nystroem,", ",their tool,").replace("nystroem-", "gone-")
    file.write_text(lines)
    data = data_of(report(file, X, Y, tmp_path / "r.html")[0])
    assert [point["method"] for point in data["points"]] == ["full", "their tool", "their tool"]
    assert [point["confusion"] for point in data["points"][1:]] == [None, None]
    assert set(data["models"]) == {"full/all"}


@pytest.mark.parametrize("place", [0, 1], ids=["full", "small"])
def test_one_row_is_a_page(found, tmp_path, place):
    page, _ = report(Tradeoff(found.rows[place : place + 1], found.models), X, Y, tmp_path / "r.html")
    assert len(data_of(page)["points"]) == 1


def test_no_rows_and_rows_without_figures_are_refused(found, tmp_path):
    with pytest.raises(ValueError, match="the trade-off has no rows; run"):
        report(Tradeoff(()), X, Y, tmp_path / "r.html")
    failed = found.rows[0] | {"status": "failed", "reason": "no luck", "error": None}
    with pytest.raises(ValueError, match="no run of this trade-off has figures: no luck"):
        report(Tradeoff((failed,)), X, Y, tmp_path / "r.html")


def test_given_test_rows_are_those_of_the_page(tmp_path):
    test = X[::3], Y[::3]
    found = tradeoff(X, Y, methods=["nystroem"], budgets=[4], test=test)
    data = data_of(report(found, X, Y, tmp_path / "r.html", test=test)[0])
    assert np.sum(data["points"][0]["confusion"]) == 50
    assert 1 - np.trace(data["points"][1]["confusion"]) / 50 == pytest.approx(data["points"][1]["error"], abs=1e-6)


def test_models_of_other_seeds_are_not_tested_on_rows_that_they_saw(tmp_path):
    file = tmp_path / "rows.csv"
    tradeoff(X, Y, methods=["nystroem"], budgets=[2], seeds=[0], file=file)
    tradeoff(X, Y, methods=["nystroem"], budgets=[2, 4], seeds=[5], file=file)
    data = data_of(report(file, X, Y, tmp_path / "r.html")[0])
    assert [point["seeds"] for point in data["points"]] == [2, 2, 1]
    assert [point["confusion"] is None for point in data["points"]] == [False, False, True]
    assert set(data["models"]) == {"full/all", "nystroem/2"}


def test_sparse_rows_and_many_classes_are_a_page(tmp_path):
    rng = np.random.default_rng(0)
    rows = csr_array(rng.random((300, 50)) * (rng.random((300, 50)) < 0.2))
    labels = np.arange(300) % 40
    found = tradeoff(rows, labels, methods=["nystroem"], budgets=[4], scale="maxabs")
    data = data_of(report(found, rows, labels, tmp_path / "r.html")[0])
    assert data["points"][0]["confusion"] is None
    assert len(data["samples"][0]["row"]) == 50


def test_a_kernel_that_cannot_be_exported_is_a_page_without_live_models(tmp_path):
    found = tradeoff(X, Y, methods=["nystroem"], budgets=[2], kernel=lambda A, B: A @ B.T)
    data = data_of(report(found, X, Y, tmp_path / "r.html")[0])
    assert data["models"] == {}
    assert data["points"][1]["confusion"] is not None


def test_failed_runs_are_told(tmp_path):
    found = tradeoff(X, Y, methods=["reduced-set", "nystroem"], budgets=[3], kernel="sigmoid")
    data = data_of(report(found, X, Y, tmp_path / "r.html")[0])
    assert [(run["method"], run["status"]) for run in data["unfinished"]] == [("reduced-set", "failed")]
    assert data["method"] == "nystroem"


def test_models_beyond_the_room_are_left_out(found):
    model = found.model(found.rows[1])
    embedded = EmbeddedModels(room=4000)
    embedded.add("a", "m", model, LIVE)
    assert set(embedded.files["a"]) == {".mjs"}
    used = 4000 - embedded.room
    assert used > 0
    for room in (100, 1):  # too little for the text, and too little to try
        embedded.room = room
        embedded.add("b", "m", model, (*LIVE, *DOWNLOADS))
        assert "b" not in embedded.files
        assert embedded.room == room


def test_square_images_can_be_drawn_and_other_rows_cannot():
    digits = load_digits().data
    assert image_of(digits) == {"side": 8, "top": 16.0}
    assert image_of(X) is None
    assert image_of(digits - 1) is None
    assert image_of(digits * np.linspace(0.001, 1, 64) ** 4) is None  # features of many ranges


def test_samples_show_every_class():
    digits, labels = load_digits(return_X_y=True)
    shown = samples(digits, labels, {label: str(label) for label in range(10)})
    assert {sample["label"] for sample in shown[:10]} == {str(label) for label in range(10)}
    assert len(shown) == 40


def test_the_function_is_at_the_door(tmp_path):
    assert slimsvm.report is report
    with pytest.raises(ValueError, match="there is no file"):
        slimsvm.report(tmp_path / "rows.csv", X, Y, tmp_path / "r.html")


def test_a_processor_is_measured_for_each_model_of_the_method(found, tmp_path):
    if BOARDS["avr"].missing:
        pytest.skip("AVR's tools are not installed")
    _, card = report(found, X, Y, tmp_path / "r.html", method="nystroem", target="avr")
    for size in (2, 4):
        line = rf"{size} support vectors on avr, int8, integers only \| flash [\d,]+, .* cycles a row"
        assert re.search(line, card.read_text())
    with pytest.raises(ValueError, match="no target 'z80'"):
        report(found, X, Y, tmp_path / "r.html", target="z80", force=True)
