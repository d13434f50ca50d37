"""Packages of others are declared, rooms import each other in one direction, and tests set no constants of modules."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: packages that are imported under other names than they are installed by
NAMES = {"scikit_learn": "sklearn", "cupy_cuda12x": "cupy"}


def declared(requirements):
    words = {re.match(r"[\w-]+", each).group().replace("-", "_").lower() for each in requirements}
    return {NAMES.get(word, word) for word in words}


def imported(nodes):
    """The packages of others that import statements name."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"slimsvm"}


def test_dependencies_are_declared():
    needed, optional = declared(PROJECT["dependencies"]), PROJECT["optional-dependencies"].values()
    extras = {"distributed", "pandas"}.union(*map(declared, optional))  # which dask[distributed, dataframe] bring
    for path in sorted((ROOT / "src" / "slimsvm").rglob("*.py")):
        tree = ast.parse(path.read_text())
        assert imported(ast.walk(tree)) <= needed | extras, path
        assert imported(tree.body) <= needed, path


#: the rooms of the package, and those of the studio; each imports those before it, and itself
ROOMS = """
    text budget learning parameters checks clock states run rounding scaling words calibration pairs goals kernels
    metric c_bytes _core rows versions model limits selection solvers trainers reducers slim papers importers tables
    estimators files ship dask studio.runs studio.tune studio.tradeoff studio.displays studio.report studio.cli displays
    __main__
""".split()  # noqa: SIM905
#: a module of a later room that imports nothing of the package but `text`
EXCEPTIONS = {("estimators", "files.container")}
#: the tables of methods, which list those of `slim` and `papers`
TABLES = {"trainers/__init__.py", "reducers/__init__.py"}


def room_of(name):
    """The room of a module of the package, which is given as a path within it."""
    parts = name.split(".")
    return ".".join(parts[: 2 if parts[0] == "studio" else 1])


def name_of(path):
    """The path of a module within the package, with dots."""
    return ".".join(path.relative_to(ROOT / "src" / "slimsvm").with_suffix("").parts)


def own_imports(path):
    """The modules of the package that a module imports, as paths within it; those for type checkers alone are left out."""
    here = name_of(path).split(".")
    tree = ast.parse(path.read_text())
    checked = [each for each in ast.walk(tree) if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test)]
    skipped = {id(inner) for each in checked for inner in ast.walk(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in skipped:
            base = here[: len(here) - node.level]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (".".join((*base, name)) for name in names)


def test_rooms_import_in_one_direction():
    paths = [
        path
        for path in sorted((ROOT / "src" / "slimsvm").rglob("*.py"))
        if path.stem != "__init__" or path.parent.name not in ("slimsvm", "studio")
    ]
    for path in paths:
        room = room_of(name_of(path))
        for name in own_imports(path):
            if path.relative_to(ROOT / "src" / "slimsvm").as_posix() in TABLES and name.startswith(("slim.", "papers.")):
                continue
            if (room, name) not in EXCEPTIONS and room_of(name) in ROOMS:
                assert ROOMS.index(room_of(name)) <= ROOMS.index(room), f"{path} imports {name}"


#: what methods and solvers import of `rows`: the protocol, and what holds no rows and evaluates no kernel
SPOKEN = {
    *("rows.protocol", "rows.kernel_matrix", "rows.curvatures"),
    *("rows.responses", "rows.threads"),
}


def test_methods_know_of_homes_by_their_protocol_only():
    package = ROOT / "src" / "slimsvm"
    for path in (
        path for room in ("trainers", "reducers", "slim", "papers", "solvers") for path in (package / room).rglob("*.py")
    ):
        assert {name for name in own_imports(path) if name.partition(".")[0] == "rows"} <= SPOKEN, path


def test_exports_need_no_method():
    code = "import sys, slimsvm.ship.export; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    methods = ("estimators", "trainers", "reducers", "slim", "papers")
    assert not [name for name in loaded if name.startswith(tuple(f"slimsvm.{room}" for room in methods))]


def test_every_room_has_its_place():
    package = ROOT / "src" / "slimsvm"
    paths = [*package.iterdir(), *(package / "studio").iterdir()]
    rooms = {name_of(path) for path in paths if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__", "studio", "studio.__init__"} == set(ROOMS)


def patched_constants(source):
    """Yield the lines of tests that set a constant of a module, by `setattr(module, "NAME", ...)` or its whole name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("setattr", "object"):
            names = [each.value for each in node.args[:2] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if any(re.fullmatch(r"[A-Z][A-Z0-9_]+", name.rpartition(".")[2].lstrip("_")) for name in names):
                yield node.lineno


def test_constants_that_are_set_are_found():
    lines = [
        'p.setattr(m, "MOST", 1)',
        'p.setattr("a.b.FEW_ROWS", 1)',
        'p.setattr(m, "version", 1)',
        'setattr(m, "_LOW", 1)',
    ]
    assert sorted(patched_constants("\n".join(lines))) == [1, 2, 4]


def test_no_test_sets_a_constant_of_a_module():
    """A number that a test has to change is a setting: a field or an argument with the constant as its default."""
    files = Path(__file__).parent.rglob("*.py")
    assert [f"{file.name}:{line}" for file in files for line in patched_constants(file.read_text())] == []
