"""Numbers of few bits: rounding twice is rounding once, and each number is the nearest of its levels."""

import numpy as np
import pytest

from slimsvm.rounding import Table, rounded, rounded_widths

SHAPES = [(300, 17), (5, 40), (64, 1), (1, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_a_rounded_table_has_the_same_codes(bits, shape):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=shape) * np.exp(rng.normal(size=shape[1]))
    table = Table.of(numbers, bits)
    again = Table.of(rounded(numbers, bits), bits)
    np.testing.assert_array_equal(again.codes, table.codes)
    np.testing.assert_allclose(again.values, table.values, rtol=1e-6, atol=1e-5)


def test_numbers_of_four_bits_are_the_nearest_levels():
    numbers = np.random.default_rng(1).normal(size=(50, 3))
    table = Table.of(numbers, 4)
    levels = table.low[:, None] + table.step[:, None] * np.arange(16)
    nearest = np.abs(numbers[:, :, None] - levels).min(axis=2)
    np.testing.assert_allclose(np.abs(table.values - numbers), nearest, atol=1e-6)
    assert table.packed.nbytes == 75


def test_constant_columns_and_widths_keep_their_numbers():
    assert (rounded(np.full((4, 2), 0.5), 4) == 0.5).all()
    widths = np.geomspace(0.1, 90, 40)
    held = rounded_widths(widths)
    assert np.abs(held / widths - 1).max() < 1 / 32
    np.testing.assert_allclose(rounded_widths(held), held, rtol=1e-12)
