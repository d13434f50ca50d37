"""Positive numbers as floats of 8 or 16 bits, so that small ones are as precise as large ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .artefact import Array

#: bits of the exponent at most: numbers may differ by a factor of 2^16
EXPONENT_BITS = 4
#: the code of a small float as a number, in C; `bits` are those of the mantissa
DECODER = "return (float)(((1u << bits) + (code & ((1u << bits) - 1))) << (code >> bits));"


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
    def of(cls, numbers: Array, bits: int) -> SmallFloats:
        """Return the nearest codes; the mantissa is as long as the range of the numbers allows."""
        octaves = np.log2(numbers.max() / numbers.min()) + 0.1  # 2^exponents times the last mantissa is a little less
        most = max(bits - EXPONENT_BITS, 1)
        mantissa = next((m for m in range(bits - 1, most, -1) if 2 ** (bits - m) >= octaves), most)
        one, largest = 1 << mantissa, 2 ** (bits - mantissa) - 1
        step = float(numbers.max()) / ((2 * one - 1) << largest)
        units = np.maximum(numbers / step, one)
        exponent = np.clip(np.floor(np.log2(units)).astype(np.int64) - mantissa, 0, largest)
        codes = np.rint(units / 2.0**exponent).astype(np.int64) - one + (exponent << mantissa)
        return cls(np.minimum(codes, 2**bits - 1).astype(f"u{bits // 8}"), mantissa, step)


#: the code of `upper_halves` as a number, in C
UPPER_HALF = (
    "const union { uint32_t bits; float number; } both = { (uint32_t)code << 16 };",
    "return both.number;",
)


def upper_halves(numbers: Array) -> Array:
    """Return the upper 16 bits of float32 numbers (bfloat16), which are exact to one part in 256."""
    bits = np.asarray(numbers, dtype=np.float32).view(np.uint32)
    return ((bits.astype(np.uint64) + (1 << 15)) >> 16).astype(np.uint16)


def of_upper_halves(codes: Array) -> Array:
    """Return the numbers whose upper 16 bits these are."""
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
