"""The public interface is the one in public_names.txt.

A change of that file is a change that users notice: it needs a line in CHANGELOG.md, and a name that goes away first
warns for one release (docs/files.md). `python -m tools.public_names > tests/public_names.txt` writes it anew.
"""

from pathlib import Path

from tools.public_names import public_names


def test_the_public_interface_is_the_listed_one():
    listed = (Path(__file__).parent / "public_names.txt").read_text().splitlines()
    assert list(public_names()) == listed
