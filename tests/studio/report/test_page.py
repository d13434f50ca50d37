"""The page in a real browser, opened from the disk: it renders, moves, computes and can be read everywhere."""

import numpy as np
import pytest
from shipped import assert_agrees
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

from slimsvm.ship.c import CExporter
from slimsvm.ship.source import artefact_of
from slimsvm.studio.report import report
from slimsvm.studio.tradeoff import Tradeoff, tradeoff
from slimsvm.studio.tradeoff.summary import NOT_NEAR
from tools.browser import browser
from tools.targets import Outcome, missing

pytestmark = pytest.mark.skipif(bool(missing("chromium", "bash")), reason="chromium or bash is not installed")

READY = "document.body?.dataset.ready"
#: scores and labels of the live model for rows, typed one after the other
RUN = """({rows}).map((row) => {{
  const field = document.getElementById("row");
  field.value = row.join(", ");
  field.dispatchEvent(new Event("input"));
  return [document.getElementById("label").textContent, JSON.parse(document.body.dataset.scores)];
}})"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def made(folder, X, y, **settings):
    found = tradeoff(X, y, **{"methods": ["nystroem", "bsgd"], "budgets": [4, 8, 16], **settings})
    return found, report(found, X, y, folder / "report.html")[0]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A trade-off of digits and its page."""
    X, y = load_digits(return_X_y=True)
    return made(tmp_path_factory.mktemp("digits"), X, y, name="digits")


@pytest.fixture
def page(tab, digits):
    """The page of digits, fresh, on a desk."""
    return opened(tab, digits[1])


def opened(tab, path, width=1200, mobile=False, **media):
    tab.complaints.clear()
    tab.resize(width, 900, mobile)
    tab.open(path, READY, **media)
    return tab


def text(page, selector):
    return page.value(f"document.querySelector({selector!r}).textContent")


def chosen(page):
    return page.value("document.body.dataset.live")


def choose(page, key):
    """Choose a model by its button in the table."""
    page.value(f"document.querySelector('[data-key=\"{key}\"] button').click()")
    page.wait(f"document.body.dataset.live === {key!r}")


def selecting(name, value):
    """JavaScript that selects an option."""
    return f"""(() => {{
      const select = document.getElementById({name!r});
      select.value = {value!r};
      select.dispatchEvent(new Event("change"));
    }})()"""


def test_it_renders_from_the_disk_without_a_complaint(page):
    assert text(page, "h1") == NOT_NEAR
    assert page.value("document.querySelector('#chart canvas').toDataURL().length") > 5000
    assert page.value("document.querySelectorAll('#models tbody tr').length") == 7
    assert page.value("document.querySelectorAll('#confusion td').length") == 101
    assert page.complaints == []


@pytest.mark.parametrize("budget", [4, 16])
def test_the_live_model_agrees_with_python(page, digits, budget):
    found = digits[0]
    row = next(row for row in found.rows if (row["method"], row["budget"]) == ("nystroem", budget))
    X = load_digits().data[::40]
    choose(page, f"nystroem/{budget}")
    results = page.value(RUN.format(rows=X.tolist()))
    labels, scores = np.array([int(label) for label, _ in results]), np.array([scores for _, scores in results])
    assert_agrees(found.model(row), Outcome(labels, scores), X)
    assert page.complaints == []


def test_a_scaled_model_of_two_classes_agrees_too(tab, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    found, path = made(tmp_path, X, np.array(["malignant", "benign"])[y], methods=["nystroem"], budgets=[8])
    page = opened(tab, path)
    choose(page, "nystroem/8")
    results = page.value(RUN.format(rows=X[::20].tolist()))
    outcome = Outcome(np.array([label for label, _ in results]), np.array([scores for _, scores in results]))
    assert_agrees(found.model(found.rows[1]), outcome, X[::20])
    assert page.value("document.getElementById('draw').hidden")
    assert page.complaints == []


def test_the_slider_moves_the_numbers_by_keyboard(page, digits):
    choose(page, "nystroem/4")
    seen = []
    page.value("document.getElementById('budget').focus()")
    for key in ("nystroem/8", "nystroem/16", "full/all"):
        page.press("ArrowRight", 39)
        page.wait(f"document.body.dataset.live === {key!r}")
        stats = [text(page, f"[data-stat={name}] .big") for name in ("accuracy", "vectors", "bytes", "us")]
        seen.append(
            (
                *stats,
                text(page, "#confusion"),
                page.value("document.getElementById('budget').getAttribute('aria-valuetext')"),
            )
        )
    assert len(set(seen)) == 3
    row = next(row for row in digits[0].rows if (row["method"], row["budget"]) == ("nystroem", 8))
    assert seen[0][0] == f"{100 * (1 - row['error']):.1f} %"
    assert seen[0][1] == "8"
    assert seen[0][-1] == "8 support vectors"
    assert page.complaints == []


def test_methods_axes_and_scales_can_be_changed(page):
    pictures = {page.value("document.querySelector('#chart canvas').toDataURL()")}
    actions = "document.querySelector('#methods input').click()", "document.getElementById('log').click()"
    for action in (*actions, selecting("across", "bytes")):
        page.value(action)
        page.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
        pictures.add(page.value("document.querySelector('#chart canvas').toDataURL()"))
    assert len(pictures) == 4
    page.value(selecting("method", "bsgd"))
    page.wait("document.body.dataset.live.startsWith('bsgd')")
    assert page.complaints == []


def box_of(page, selector):
    """The left, top, width and height of an element in the window, after scrolling to it."""
    return page.value(f"""(() => {{
      const element = document.querySelector({selector!r});
      element.scrollIntoView({{ block: "center" }});
      const box = element.getBoundingClientRect();
      return [box.left, box.top, box.width, box.height];
    }})()""")


def test_pointing_reads_a_model_and_a_click_chooses_it(page):
    choose(page, "nystroem/4")
    left, top, width, height = box_of(page, ".u-over")
    x, y = left + width * np.log(16 * 1.25 / 4) / np.log(16 * 1.25 / 4 * 1.25), top
    while "16 vectors" not in text(page, "#readout"):
        y += height / 20
        assert y < top + height
        page.mouse("mouseMoved", x, y)
    assert "error" in text(page, "#readout")
    page.mouse("mousePressed", x, y, pressed=True)
    page.mouse("mouseReleased", x, y)
    page.wait("document.body.dataset.live.endsWith('/16')")


def test_downloads_are_what_the_exporters_write(page, digits):
    found = digits[0]
    choose(page, "nystroem/8")
    row = next(row for row in found.rows if (row["method"], row["budget"]) == ("nystroem", 8))
    page.value("""(() => {
      window.offered = [];
      URL.createObjectURL = (blob) => { window.offered.push(blob.text()); return '#'; };
    })()""")
    for ending in (".c", ".h", ".mjs", ".json", ".slim"):
        page.value(f"document.querySelector('[data-ending=\"{ending}\"]').click()")
        page.wait(f"window.offered.length === {1 + ['.c', '.h', '.mjs', '.json', '.slim'].index(ending)}")
    c_source = page.value("window.offered[0]")
    assert c_source.encode() == CExporter().render(artefact_of(found.model(row)), "digits-nystroem-8")[".c"]


def test_a_digit_is_drawn_by_pointer_and_by_keyboard(page):
    page.value("document.getElementById('clear').click()")
    assert set(page.value("document.getElementById('row').value").split(", ")) == {"0"}
    left, top, width, height = box_of(page, "#grid")
    x, places = left + width / 2, [top + height * share for share in (0.1, 0.5, 0.9)]
    page.mouse("mousePressed", x, places[0], pressed=True)
    for y in places[1:]:
        page.mouse("mouseMoved", x, y, pressed=True)
    page.mouse("mouseReleased", x, places[-1])
    drawn = np.array(page.value("document.getElementById('row').value").split(", "), dtype=float).reshape(8, 8)
    assert (drawn[:, 3:5] > 8).all()
    assert (drawn[:, [0, 7]] == 0).all()
    page.value("document.getElementById('clear').click(); document.querySelector('#grid button').focus()")
    page.press("ArrowRight", 39)
    page.press("ArrowDown", 40)
    page.press(" ", 32)
    drawn = np.array(page.value("document.getElementById('row').value").split(", "), dtype=float).reshape(8, 8)
    assert np.argwhere(drawn).tolist() == [[1, 1]]
    assert page.complaints == []


def test_rows_that_are_none_are_explained(page):
    for row, words in (("[1, 2]", "A row has 64 numbers; here are 2."), ('["x"]', "“x” is not a number.")):
        page.value(f"document.getElementById('row').value = {row}.join(',')")
        page.value("document.getElementById('row').dispatchEvent(new Event('input'))")
        assert text(page, "#problem") == words
        assert text(page, "#label") == "–"


def test_it_fits_a_phone(tab, digits):
    page = opened(tab, digits[1], width=360, mobile=True)
    assert page.value("document.documentElement.scrollWidth") <= 360
    assert page.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
    sides = page.value("document.getElementById('chart').clientWidth")
    assert 250 <= sides <= 360
    assert page.value("document.getElementById('models').parentElement.scrollWidth") <= page.value(
        "document.getElementById('models').parentElement.clientWidth"
    )
    assert page.complaints == []


def test_it_is_dark_where_the_system_is(tab, digits):
    def colors():
        page = opened(tab, digits[1], prefers_color_scheme=scheme)
        return page.value("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")

    brightness = {}
    for scheme in ("light", "dark"):
        brightness[scheme] = [sum(map(int, color[4:-1].split(","))) for color in colors()]
    assert brightness["light"][0] > 600 > 200 > brightness["light"][1]
    assert brightness["dark"][0] < 200 < 600 < brightness["dark"][1]


def test_everything_can_be_reached_by_tab(page):
    reached = set()
    page.value("document.activeElement.blur()")
    for _ in range(60):
        page.press("Tab", 9)
        reached.add(page.value("document.activeElement.id || document.activeElement.getAttribute('role') || ''"))
    assert {"across", "log", "method", "budget", "next", "clear", "row", "gridcell"} <= reached


def test_no_errors_at_all_open_on_a_linear_scale(tab, digits, tmp_path):
    X, y = load_digits(return_X_y=True)
    some = Tradeoff([row | {"error": max(row["error"], 0.01)} for row in digits[0].rows], digits[0].models)
    none = Tradeoff([row | {"error": 0.0} for row in digits[0].rows], digits[0].models)
    for name, found in (("some", some), ("none", none)):
        page = opened(tab, report(found, X, y, tmp_path / f"{name}.html")[0])
        assert page.value("document.getElementById('log').checked") is (name == "some")
        page.value("document.getElementById('log').click()")
        assert page.complaints == []


def test_labels_with_markup_are_shown_as_text(tab, tmp_path):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["<script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>", "</script><b>x"])[y]
    _, path = made(tmp_path, X, labels, name="<b>iris</b>", methods=["nystroem"], budgets=[4])
    page = opened(tab, path)
    assert page.value("window.hacked") is None
    assert page.value("document.querySelectorAll('main script, main img, main b, header b').length") == 0
    assert "<script>" in text(page, "#confusion")
    assert page.value("document.title").startswith("<b>iris</b>")
    assert page.complaints == []


def test_rows_without_models_are_shown_with_a_word_about_it(tab, digits, tmp_path):
    found = Tradeoff(tuple(row | {"method": "another tool"} for row in digits[0].rows if row["method"] == "bsgd"))
    page = opened(tab, report(found, *load_digits(return_X_y=True), tmp_path / "none.html")[0])
    assert chosen(page) == "none"
    assert "was not kept" in text(page, "#confusion")
    assert "Choose another one" in text(page, "#problem")
    assert text(page, "#downloads") == "No files of this model are here: it was not kept."
    assert text(page, "#methods").strip().endswith("another tool")
    assert page.complaints == []


@pytest.mark.parametrize("place", [0, 1], ids=["full", "small"])
def test_a_single_model_is_a_page_too(tab, digits, tmp_path, place):
    found = Tradeoff(digits[0].rows[place : place + 1], digits[0].models)
    page = opened(tab, report(found, *load_digits(return_X_y=True), tmp_path / "one.html")[0])
    assert page.value("document.querySelectorAll('#models tbody tr').length") == 1
    assert page.value("document.getElementById('budget').disabled")
    assert page.complaints == []
    words = "the full model" if place == 0 else ""
    assert text(page, "[data-stat=vectors] .than") == words


def test_values_are_shown_against_their_targets_and_run_live(tab, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    found, path = made(tmp_path, X, y, task="regress", methods=["nystroem"], budgets=[4, 8], C=100.0, name="diabetes")
    page = opened(tab, path)
    choose(page, "nystroem/8")
    row = next(row for row in found.rows if row["budget"] == 8)
    assert text(page, "[data-stat=accuracy] .big") == f"{1 - row['error']:.3f}"
    assert page.value("document.querySelectorAll('#confusion circle').length") == 111
    assert "R² of" in text(page, "#reason")
    shown = [float(label.replace(",", "")) for label, _ in page.value(RUN.format(rows=X[:9].tolist()))]
    np.testing.assert_allclose(shown, found.model(row).predict(X[:9]), rtol=1e-3)
    assert page.complaints == []


def test_verdicts_are_compared_with_the_full_models_and_run_live(tab, tmp_path):
    X = load_diabetes().data
    found, path = made(tmp_path, X, None, task="novelty", methods=["nystroem"], budgets=[4, 8], nu=0.1, name="diabetes")
    page = opened(tab, path)
    choose(page, "nystroem/8")
    row = next(row for row in found.rows if row["budget"] == 8)
    assert text(page, "[data-stat=accuracy] .big") == f"{100 * (1 - row['error']):.1f} %"
    counts = page.value("DATA = JSON.parse(document.getElementById('data').textContent).points[2].confusion")
    assert counts[0][1] + counts[1][0] == round(row["error"] * row["n_test"])
    rows = X[::10]
    shown = page.value(RUN.format(rows=rows.tolist()))
    names = {-1: "novel", 1: "usual"}
    assert [label for label, _ in shown] == [names[verdict] for verdict in found.model(row).predict(rows)]
    np.testing.assert_allclose([scores[0] for _, scores in shown], found.model(row).decision_function(rows), atol=1e-5)
    assert text(page, "#scores .sides") == "← novelusual →"
    assert page.complaints == []


def test_the_head_of_a_path_stays_in_sight(page):
    choose(page, "nystroem/16")
    page.value("document.getElementById('path').scrollTop = 1000")
    top = page.value("document.querySelector('#path th').getBoundingClientRect().top")
    assert top == pytest.approx(page.value("document.getElementById('path').getBoundingClientRect().top"), abs=2)


@pytest.mark.parametrize("kind", [bool, float])
def test_the_live_model_calls_classes_as_the_page_does(tab, tmp_path, kind):
    X, y = load_iris(return_X_y=True)
    found, path = made(tmp_path, X, (y == 1).astype(kind), methods=["nystroem"], budgets=[4], name="iris")
    page = opened(tab, path)
    choose(page, "nystroem/4")
    labels = [label for label, _ in page.value(RUN.format(rows=X[::15].tolist()))]
    assert labels == [str(label) for label in found.model(found.rows[1]).predict(X[::15])]
    assert page.complaints == []


def test_a_model_that_cannot_be_exported_says_why(tab, tmp_path):
    X, y = load_iris(return_X_y=True)
    _, path = made(tmp_path, X, y, kernel=lambda A, B: A @ B.T, methods=["spsvm"], budgets=[4], name="iris")
    page = opened(tab, path)
    assert "No files of this model are here" in text(page, "#downloads")
    assert "kernel" in text(page, "#downloads")
    assert page.complaints == []


def test_the_confusion_matrix_of_many_classes_has_room(tab, tmp_path):
    X, y = load_digits(return_X_y=True)
    labels = np.array([chr(ord("a") + digit + 10 * half) for digit, half in zip(y, X[:, 20] > 8, strict=True)])
    _, path = made(tmp_path, X, labels, methods=["nystroem"], budgets=[8], name="halves")
    page = opened(tab, path)
    assert page.value("document.querySelectorAll('#confusion tr').length") == 21
    room, wide = (page.value(f"document.getElementById('confusion').{name}") for name in ("clientWidth", "scrollWidth"))
    assert wide <= room
    assert page.complaints == []
