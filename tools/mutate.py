"""Mutation testing: change one operator or number of a module at a time, and see whether its tests notice.

    python -m tools.mutate src/slimsvm/solvers/smo.py tests/trainers/test_smo.py

Prints every mutant that survives, with its line, and the share that the tests kill. A mutant whose tests fail, crash or run
past the time limit is killed. Files are never changed: a forked process imports the mutant in the place of the module.
Annotations, docstrings, texts and `raise` statements are not mutated. Mutants that compute the same as the module, or
differ only in how long that takes, are in tools/equivalent_mutants.toml with reasons. They are not tried and not counted.
"""

from __future__ import annotations

import argparse
import ast
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
#: mutants that no test can notice: for each module, tables of a line of code, the changes of it, and the reason
EQUIVALENTS = Path(__file__).with_name("equivalent_mutants.toml")
#: seconds that the tests of a mutant may take, beyond four times what those of the module take
GRACE = 10.0


@dataclass(frozen=True)
class Mutant:
    """One change: the line, what it says before and after, and the module with the number of the change."""

    line: int
    words: str
    source: str
    place: int

    @property
    def tree(self) -> ast.Module:
        """The tree of the changed module."""
        tree = ast.parse(self.source)
        _changes(tree)[self.place][1]()
        return ast.fix_missing_locations(tree)


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    place = 0
    for node in _mutable(ast.parse(source)):
        for number in range(len(list(_changes_of(node)))):
            changed = deepcopy(node)
            list(_changes_of(changed))[number]()
            yield Mutant(node.lineno, f"{ast.unparse(node)}  ->  {ast.unparse(changed)}", source, place)
            place += 1


def _changes(tree: ast.Module) -> list[tuple[Any, Callable[[], None]]]:
    """Return every node that can be changed, and what changes it."""
    return [(node, change) for node in _mutable(tree) for change in _changes_of(node)]


def _mutable(node: ast.AST) -> Iterator[Any]:
    """Yield a node and those below it, without texts, annotations, decorators and errors."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _mutable(child)


def _changes_of(node: Any) -> Iterator[Callable[[], None]]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                yield partial(node.ops.__setitem__, place, OPERATORS[type(operator)]())
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OPERATORS:
            yield lambda: setattr(node, "op", OPERATORS[type(node.op)]())
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()) if not isinstance(node.operand, ast.Constant):
            yield lambda: _undo(node)
        case ast.If() | ast.IfExp():
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.Constant(value=bool(value)):
            yield lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield lambda: setattr(node, "value", value + 1)
        case ast.Constant(value=float(value)):
            yield lambda: setattr(node, "value", 2 * value or 1.0)


def _undo(node: ast.UnaryOp) -> None:
    """Take away what the operator does."""
    if isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    else:
        node.operand = ast.UnaryOp(node.op, node.operand)  # applied twice


class Replacement(MetaPathFinder):
    """Import a mutant in the place of a module."""

    def __init__(self, module: str, path: Path, tree: ast.Module) -> None:
        self.module, self.path = module, path

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> Any:  # noqa: ARG002
                return compile(tree, str(path), "exec")

        self.loader = Loader(module, str(path))

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of the mutant under the module's name."""
        return spec_from_file_location(fullname, self.path, loader=self.loader) if fullname == self.module else None


def survives(path: Path, tree: ast.Module, tests: Sequence[str], seconds: float) -> bool:
    """Return whether all tests pass with this tree for the module."""
    child = os.fork()
    if not child:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os._exit(_run_tests(path, tree, tests))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _run_tests(path: Path, tree: ast.Module, tests: Sequence[str]) -> int:
    import pytest

    module = ".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :])
    sys.meta_path.insert(0, Replacement(module, path, tree))
    try:
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:Module already imported", *tests]))
    except BaseException:
        return 1


def _preload() -> None:
    """Import what every run of the tests needs but slimsvm itself; forked processes share it."""
    for name in (
        "hypothesis.strategies",
        "pytest",
        "scipy.optimize",
        "sklearn.datasets",
        "sklearn.pipeline",
        "sklearn.svm",
    ):
        import_module(name)


def equivalents(module: Path, file: Path) -> set[tuple[str, str]]:
    """Return the lines of a module and their changes that no test can notice."""
    listed = tomllib.loads(file.read_text()).get(module.as_posix(), [])
    return {(entry["line"], change) for entry in listed for change in entry["changes"]}


def tried(module: Path, source: str, listed: Path = EQUIVALENTS) -> Iterator[tuple[str, Mutant]]:
    """Yield each mutant that can be noticed, and how it is told: the file, the line and the change."""
    lines, same = source.splitlines(), equivalents(module, listed)
    unused = set(same)
    for mutant in mutants(source):
        change = (lines[mutant.line - 1].strip(), mutant.words)
        unused.discard(change)
        if change not in same:
            yield f"{module}:{mutant.line}: {mutant.words}", mutant
    for line, words in sorted(unused):
        print(f"{listed.name} lists what is no mutant of {module}: {line}: {words}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__.partition("\n")[0])
    parser.add_argument("module", type=Path, help="a file under src/")
    parser.add_argument("tests", nargs="+", help="the tests that should notice")
    parser.add_argument("--again", type=Path, help="the output of an earlier run: only its survivors are tried")
    parser.add_argument("--every", type=int, default=1, help="try one of so many mutants only, for an estimate")
    parser.add_argument(
        "--first", type=int, default=0, help="with --every N: 0 to N - 1, for N runs side by side that try all"
    )
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many of these: those of an earlier run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin with no further mutant after this time")
    return parser.parse_args()


def main() -> None:
    """Print the mutants that survive and the share of those that do not."""
    given = _arguments()
    source = given.module.read_text()
    _preload()
    began = time.monotonic()
    if not survives(given.module, ast.parse(source), given.tests, 600.0):
        raise SystemExit("the tests fail without any change; mend them first")
    seconds = 4 * (time.monotonic() - began) + GRACE
    earlier = given.again.read_text().splitlines() if given.again else None
    told = tried(given.module, source)
    chosen = [(words, mutant) for words, mutant in told if earlier is None or words in earlier][given.first :: given.every]
    count, survivors = 0, 0
    for words, mutant in chosen[given.skip :]:
        if time.monotonic() - began > given.seconds:
            break
        count += 1
        if survives(given.module, mutant.tree, given.tests, seconds):
            survivors += 1
            print(words, flush=True)
    killed, first = count - survivors, given.skip + 1
    part = "" if count == len(chosen) else f", numbers {first} to {first + count - 1} of {len(chosen)}"
    print(f"{killed} of {count} mutants killed, {killed / max(count, 1):.1%}{part}")


if __name__ == "__main__":
    main()
