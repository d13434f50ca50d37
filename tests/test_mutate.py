"""tools.mutate: which changes it makes, and that it tells those which the tests notice from the others."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

from tools import mutate
from tools.mutate import mutants, tried


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", ["a <= b"]),
        ("a <= b != c", ["a < b != c", "a <= b == c"]),
        ("x = a + b * c", ["x = a - b * c", "x = a + b / c"]),
        ("x += 1", ["x -= 1", "x += 2"]),
        ("x = -y", ["x = +y"]),
        ("x = ~y", ["x = ~(~y)"]),
        ("x = not y", ["x = not (not y)"]),
        ("x = a and b", ["x = a or b"]),
        ("x = a if b else c", ["x = a if not b else c"]),
        ("x = (True, 2, 0.0, 0.5)", ["x = (False, 2, 0.0, 0.5)", "x = (True, 3, 0.0, 0.5)", "x = (True, 2, 1.0, 0.5)"]),
        ("def f(a: 1 = 'text'):\n    'Docs.'\n    raise ValueError(1 + 1)", []),
    ],
)
def test_one_change_at_a_time(source, changed):
    found = [ast.unparse(mutant.tree) for mutant in mutants(source)]
    assert found[: len(changed)] == [ast.unparse(ast.parse(text)) for text in changed]
    assert bool(found) == bool(changed)


def test_survivors_are_told_with_their_lines_and_tried_again_on_demand(tmp_path, monkeypatch, capfd):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "ages.py").write_text("def is_adult(age):\n    return age > 17 - 0\n")
    test = "from ages import is_adult\n\ndef test():\n    assert is_adult(18)\n    assert not is_adult(16)\n"
    (tmp_path / "test_ages.py").write_text(test)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "src")

    def run(*more):
        monkeypatch.setattr(sys, "argv", ["mutate", "src/ages.py", "test_ages.py", *more])
        mutate.main()
        said = capfd.readouterr().out.splitlines()  # of the forked processes too, which have the same capture
        return [line for line in said if line.startswith("src/") or " mutants killed, " in line]

    same, equal = "src/ages.py:2: 17 - 0  ->  17 + 0", "src/ages.py:2: age > 17 - 0  ->  age >= 17 - 0"
    rest = "src/ages.py:2: 0  ->  1"
    first = run()
    assert sorted(first[:-1]) == sorted([same, equal, rest])
    assert first[-1] == "1 of 4 mutants killed, 25.0%"
    assert run("--seconds", "0", "--skip", "3") == ["0 of 0 mutants killed, 0.0%, numbers 4 to 3 of 4"]
    (tmp_path / "first.txt").write_text("\n".join(first))
    (tmp_path / "test_ages.py").write_text(test + "    assert not is_adult(17)\n")
    assert run("--again", "first.txt") == [same, "2 of 3 mutants killed, 66.7%"]


def test_equivalent_mutants_are_left_out_by_their_line_and_change(tmp_path, capsys):
    listed = tmp_path / "equivalent.toml"
    listed.write_text(
        '[["src/ages.py"]]\nline = "return age > 17"\nchanges = ["17  ->  18", "age  ->  old"]\nreason = "whole numbers"\n'
    )
    found = [words for words, _ in tried(Path("src/ages.py"), "def is_adult(age):\n    return age > 17\n", listed)]
    assert found == ["src/ages.py:2: age > 17  ->  age >= 17"]
    assert "lists what is no mutant of src/ages.py: return age > 17: age  ->  old" in capsys.readouterr().err


def test_listed_equivalent_mutants_exist_and_have_reasons(capsys):
    for module, entries in tomllib.loads(mutate.EQUIVALENTS.read_text()).items():
        assert all(len(entry["reason"]) > 10 for entry in entries)
        list(tried(Path(module), Path(module).read_text()))
    assert not capsys.readouterr().err
