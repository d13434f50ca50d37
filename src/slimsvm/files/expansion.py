"""Files of some kilobytes that unpack to gigabytes are refused by what their directory says, before memory is asked for."""

from __future__ import annotations

#: a file that unpacks to more bytes than this may unpack to so many times its own; deflate reaches 1,032 for equal bytes
LARGE, MOST_EXPANSION = 1 << 28, 500


def check_expansion(packed: int, unpacked: int, remedy: str) -> None:
    """Raise ValueError for a file that would fill the memory; the remedy is for those who mean it."""
    if unpacked > LARGE and unpacked > MOST_EXPANSION * packed:
        raise ValueError(f"its {packed:,} bytes unpack to {unpacked:,}; where that is meant, {remedy}")
