"""Numbers in text."""

import pytest

from slimsvm.text import strict_number


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), (" -2.5e3 ", -2500.0), ("+.5", 0.5), ("inf", float("inf"))], ids=str
)
def test_numbers_are_read(text, number):
    assert strict_number(text) == number


@pytest.mark.parametrize("text", ["1_1", "1_000.0", "", "a", "0x10", "١", "１２", "1,5", "1 2"], ids=ascii)
def test_anything_else_is_no_number(text):
    assert strict_number(text) is None
