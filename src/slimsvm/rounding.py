"""Numbers of few bits: tables of 4, 8 or 16 bits, small floats for widths, and upper halves of floats. Needs NumPy only.

A table of b bits has a pair (low, step) for each column, or for each row if there are fewer rows than columns:

    step = (max - low) / (2^b - 1)       code = rint((number - low) / step)       number = low + step code

Pairs of 4 bits are upper halves of floats (bfloat16). Rounding a rounded table gives the same codes again, so a model that
was trained through the rounding just holds the rounded numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
#: bits of the exponent at most: numbers may differ by a factor of 2^16
EXPONENT_BITS = 4


@dataclass(frozen=True)
class SmallFloats:
    """Numbers whose code w has a mantissa in its lower bits and an exponent of 2 in its upper ones.

    Its value is (M + w mod M) 2^(w / M) steps, M = 2^mantissa.
    """

    codes: Array  # unsigned integers
    mantissa: int  # bits
    step: float

    @property
    def values(self) -> Array:
        """The numbers of the codes."""
        codes, one = self.codes.astype(np.int64), 1 << self.mantissa
        return self.step * ((one + codes % one) << (codes >> self.mantissa))

    @classmethod
    def of(cls, numbers: Array, bits: int, mantissa: int | None = None) -> SmallFloats:
        """Return the nearest codes; by default the mantissa is as long as the range of the numbers allows."""
        if mantissa is None:
            octaves = np.log2(numbers.max() / numbers.min()) + 0.1  # 2^exponents times the last mantissa is a little less
            most = max(bits - EXPONENT_BITS, 1)
            mantissa = next((m for m in range(bits - 1, most, -1) if 2 ** (bits - m) >= octaves), most)
        one, largest = 1 << mantissa, 2 ** (bits - mantissa) - 1
        step = float(numbers.max()) / ((2 * one - 1) << largest)
        units = np.maximum(numbers / step, one)
        exponent = np.clip(np.floor(np.log2(units)).astype(np.int64) - mantissa, 0, largest)
        codes = np.rint(units / 2.0**exponent).astype(np.int64) - one + (exponent << mantissa)
        return cls(np.minimum(codes, 2**bits - 1).astype(f"u{bits // 8}"), mantissa, step)


def upper_halves(numbers: Array) -> Array:
    """Return the upper 16 bits of float32 numbers (bfloat16), which are exact to one part in 256."""
    bits = np.asarray(numbers, dtype=np.float32).view(np.uint32)
    return ((bits.astype(np.uint64) + (1 << 15)) >> 16).astype(np.uint16)


def of_upper_halves(codes: Array) -> Array:
    """Return the numbers whose upper 16 bits these are."""
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def nearest_upper_halves(numbers: Array) -> Array:
    """Return the nearest numbers that upper halves of floats hold."""
    return of_upper_halves(upper_halves(numbers))


@dataclass(frozen=True)
class Table:
    """Numbers as codes of 4, 8 or 16 bits, with the low end and the step of each column, or of each row."""

    codes: Array  # (rows, columns), unsigned integers
    low: Array  # float32, one for each column or row
    step: Array
    bits: int

    @property
    def by_column(self) -> bool:
        """Whether pairs are those of columns."""
        return self.codes.shape[1] <= self.codes.shape[0]

    @property
    def values(self) -> Array:
        """The numbers of the codes, in float32: the product is rounded, then the sum."""
        low, step = (part if self.by_column else part[:, None] for part in (self.low, self.step))
        return low + step * self.codes.astype(np.float32)

    @property
    def packed(self) -> Array:
        """The codes in a row; of 4 bits two in a byte, the first one in its lower half."""
        codes = self.codes.ravel()
        if self.bits > 4:
            return codes
        pairs = np.append(codes, np.zeros(codes.size % 2, codes.dtype)).reshape(-1, 2)
        return pairs[:, 0] | pairs[:, 1] << 4

    @classmethod
    def of(cls, numbers: Array, bits: int) -> Table:
        """Return the nearest codes."""
        numbers, short = np.asarray(numbers, dtype=np.float64), bits == 4
        axis = 0 if numbers.shape[1] <= numbers.shape[0] else 1
        round_to = nearest_upper_halves if short else np.float32
        low = np.asarray(round_to(numbers.min(axis, keepdims=True)), dtype=np.float64)
        step = np.asarray(round_to((numbers.max(axis, keepdims=True) - low) / (2**bits - 1)), dtype=np.float64)
        units = np.divide(numbers - low, step, out=np.zeros_like(numbers), where=step > 0)
        codes = np.clip(np.rint(units), 0, 2**bits - 1).astype(f"u{max(bits // 8, 1)}")
        return cls(codes, low.ravel().astype(np.float32), step.ravel().astype(np.float32), bits)


def rounded(numbers: Array, bits: int) -> Array:
    """Return the numbers of a table as so many bits hold them, in float64.

    >>> rounded(np.array([[0.0], [0.4], [1.5]]), 4).ravel().tolist()
    [0.0, 0.400390625, 1.50146484375]
    """
    return Table.of(numbers, bits).values.astype(np.float64)


def rounded_widths(widths: Array) -> Array:
    """Return widths as tables of 4 bits hold them, in a byte each."""
    return SmallFloats.of(widths, 8, mantissa=4).values
