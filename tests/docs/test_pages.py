"""The documentation without building it: public names, links between pages, and how docstrings are read."""

import re
import sys
from pathlib import Path

import pytest

import slimsvm
from slimsvm.reducers import REDUCERS
from slimsvm.ship.export import EXPORTERS
from slimsvm.trainers import TRAINERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = ("start", "recipes", "api/generated", "api/examples")
PAGES = sorted(
    page
    for page in [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")]
    if "_templates" not in page.parts and not page.relative_to(DOCS).as_posix().startswith(tuple(f"{m}/" for m in MADE))
)
EXAMPLES = sorted(ROOT.glob("examples/*/*.py"))
#: pages by the names that links use, those of the galleries included
NAMES = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}
NAMES |= {f"{file.parent.name}/{file.stem}" for file in EXAMPLES} | {"start/index", "recipes/index"}


def listed():
    """Return the names in the tables of the API reference."""
    return set(re.findall(r"^   ([A-Za-z_][\w.]*)$", (DOCS / "api/index.rst").read_text(), re.MULTILINE))


def test_every_public_name_is_in_the_api_reference():
    own = set(slimsvm.__all__) - {"__version__", "displays", "reducers", "trainers"}
    displays = {f"displays.{name}" for name in slimsvm.displays.__all__}
    trainers = {f"trainers.{kind.__name__}" for kind in TRAINERS.values()}
    reducers = {f"reducers.{name}" for name in slimsvm.reducers.__all__ if name != "REDUCERS"}
    reducers |= {f"reducers.{kind.__name__}" for kind in REDUCERS.values()}
    exporters = {f"{kind.__module__}.{kind.__name__}".removeprefix("slimsvm.") for kind in EXPORTERS.values()}
    assert (own | displays | trainers | reducers | exporters) - listed() == set()


def test_every_name_in_the_api_reference_exists():
    for name in listed():
        part, _, attribute = name.rpartition(".")
        home = __import__(f"slimsvm.{part}", fromlist=[attribute]) if part else slimsvm
        assert hasattr(home, attribute), name


def links(text):
    """Yield the pages that a text refers to, as they are written."""
    for both in re.findall(r"(?::doc:|\{doc\})`([^`]+)`", text):
        yield re.sub(r".*<(.*)>", r"\1", both)
    for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        yield from (line for line in block.split() if not line.startswith(":") and "*" not in line and line != "1")


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_pages(page):
    folder = Path("/", page.parent.name if page in EXAMPLES else page.parent.relative_to(DOCS).as_posix())
    for link in links(page.read_text()):
        target = (folder / link).as_posix()
        while "/../" in target:
            target = re.sub(r"/[^/]+/\.\./", "/", target, count=1)
        assert target.lstrip("/") in NAMES, link


def test_markdown_links_lead_to_files():
    for page in DOCS.glob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
            assert "://" in link or (DOCS / link).exists(), (page.name, link)


def test_every_page_is_in_llms_txt():
    written = {name.removesuffix(".html") for name in re.findall(r"\]\((.+?)\)", (DOCS / "llms.txt").read_text())}
    frames = {"index", "guide", "about", "start/index", "recipes/index"}
    assert {name for name in NAMES - frames if not name.startswith("reliability")} <= written
    assert written <= NAMES


def test_examples_leave_no_files_beside_them():
    assert {file.suffix for file in ROOT.glob("examples/*/*") if file.is_file()} == {".py", ".rst"}


@pytest.fixture(scope="module")
def plain():
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from plain_docstrings import plain
    finally:
        sys.path.pop(0)
    return lambda text: "\n".join(plain(text.split("\n")))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param("the norm |f|^2 of x_", r"the norm \|f\|^2 of x\_", id="signs"),
        pytest.param("`path_` and `**kwargs`", "`path_` and `**kwargs`", id="literals"),
        pytest.param("so\n\n    a |b|\n\nthen", "so\n\n::\n\n    a |b|\n\nthen", id="formula"),
        pytest.param(
            "x\n\nParameters\n----------\nn_ : shape (k_,)\n    Of |f|.",
            "x\n\nParameters\n----------\nn_ : shape (k\\_,)\n    Of \\|f\\|.",
            id="parameters",
        ),
        pytest.param("x\n\nExamples\n--------\n>>> a | b_", "x\n\nExamples\n--------\n>>> a | b_", id="code"),
    ],
)
def test_docstrings_are_read_as_plain_text(plain, given, shown):
    assert plain(given) == shown
