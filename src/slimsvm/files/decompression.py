"""Packed files, and a check against small ones that unpack to gigabytes, made before memory is allocated."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: a file that unpacks to more than `LARGE` bytes may grow by at most this factor; deflate reaches 1,032 for equal bytes
LARGE, MOST_EXPANSION = 1 << 28, 500


def check_unpacked_size(packed: int, unpacked: int, remedy: str) -> None:
    """Raise ValueError for a file that would fill the memory; `remedy` tells how to save such data on purpose."""
    if unpacked > LARGE and unpacked > MOST_EXPANSION * packed:
        raise ValueError(f"its {packed:,} bytes unpack to {unpacked:,}; if that is intended, {remedy}")


#: how files of these endings are opened
PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: bytes that are unpacked at a time
BLOCK = 1 << 24


def unpacked(path: Path) -> bytes:
    """Return the contents of a packed file; raise ValueError for a damaged one, and for one that grows too much."""
    packed, blocks, size = path.stat().st_size, [], 0
    try:
        with PACKED[path.suffix.lower()](path, "rb") as file:
            while block := file.read(BLOCK):
                size += len(block)
                check_unpacked_size(packed, size, "unpack it first")
                blocks.append(block)
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise ValueError(f"it is damaged, or not packed as its ending says ({error})") from error
    except OSError as error:  # which bz2 raises for damage, without a number
        if error.errno is not None:
            raise
        raise ValueError(f"it is damaged, or not packed as its ending says ({error})") from error
    return b"".join(blocks)
