"""A check against small files that unpack to gigabytes, made before memory is allocated."""

from __future__ import annotations

#: a file that unpacks to more than `LARGE` bytes may grow by at most this factor; deflate reaches 1,032 for equal bytes
LARGE, MOST_EXPANSION = 1 << 28, 500


def check_unpacked_size(packed: int, unpacked: int, remedy: str) -> None:
    """Raise ValueError for a file that would fill the memory; `remedy` tells how to save such data on purpose."""
    if unpacked > LARGE and unpacked > MOST_EXPANSION * packed:
        raise ValueError(f"its {packed:,} bytes unpack to {unpacked:,}; if that is intended, {remedy}")
