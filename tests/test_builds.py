"""Tools that run another build must not get the editable install instead."""

import os
import subprocess
import sys
from pathlib import Path

#: a finder as editable installs have it: before all others, from a module with "editable" in its name
EDITABLE = """
import sys, types
module = types.ModuleType("_thing_editable_loader")
exec('''
class Finder:
    def find_spec(self, name, *_):
        if name == "this":
            raise ImportError("the editable install was asked")
''', module.__dict__)
sys.meta_path.insert(0, module.Finder())
"""


def run(code):
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run([sys.executable, "-c", EDITABLE + code], env=env, capture_output=True, text=True, timeout=120)


def test_packages_do_not_come_from_an_editable_install():
    assert "the editable install was asked" in run("import this").stderr
    assert run("import tools.without_editable, this").returncode == 0
