"""The container of a .slim file: a JSON header and arrays, checked before anything is used.

    bytes 0-7    magic, 0x93 "SLIMSVM"
    bytes 8-11   format version
    bytes 12-19  length of the header
    bytes 20-23  CRC-32 of all other bytes
    bytes 24-    header, JSON in UTF-8
    ...          arrays, one after the other, each from a multiple of 64 bytes on

Numbers are little-endian. The header's `arrays` has for each its name, dtype, shape and offset from the first multiple of
64 after the header; `native` defines the rest of the header.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import stat
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..text import short

Array = np.ndarray

MAGIC = b"\x93SLIMSVM"
#: the newest format; a file is written in the oldest format that can hold its model
FORMAT = 4
ALIGN = 64
START = struct.Struct("<8sIQ")  # magic, format, length of the header
CHECKSUM = struct.Struct("<I")
PREFIX = START.size + CHECKSUM.size
#: the element types that a file may hold
SCALAR = re.compile(r"[|<](b1|[iu][1248]|f[248])")
DTYPE = re.compile(SCALAR.pattern + r"|<U[1-9]\d{0,6}")
#: the most rows or columns of an array
LARGEST = 1 << 40

#: the first bytes of files that people take for a model, what they are, and what reads them
OTHERS = {
    b'{"format': "a JSON export; slimsvm.runtime reads it",
    b"\x80": "a pickle; joblib.load reads it (--trust), and runs any code in it",
    b"PK": "a zip file, such as .npz or .xlsx; give the file that slimsvm.save or slimsvm train wrote",
    b"/*": "source code; give the .slim file that it was exported from",
    b"<!": "a web page; give the .slim file of the model",
}

Entry = dict[str, Any]
Arrays = dict[str, Array]


def pack_file(header: Entry, arrays: Arrays, format_version: int = FORMAT) -> list[bytes]:
    """Return the bytes of a file, in pieces."""
    table, pieces, end = [], [], 0
    for name, array in arrays.items():
        offset = aligned(end)
        table.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
        pieces += [bytes(offset - end), array.tobytes()]
        end = offset + array.nbytes
    text = json.dumps(header | {"arrays": table}).encode()
    pieces = [text, bytes(aligned(PREFIX + len(text)) - PREFIX - len(text)), *pieces]
    start = START.pack(MAGIC, format_version, len(text))
    return [start, CHECKSUM.pack(_checksum([start, *pieces])), *pieces]


def container_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file; if it is not a container, only the first few."""
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
        return start + file.read() if start == MAGIC else start


def unpack_file(data: bytes) -> tuple[Entry, Arrays]:
    """Return the header and the arrays in the bytes of a file."""
    if not data.startswith(MAGIC):
        raise ValueError(f"it is not a .slim file, {_kind_of(data) if data else 'but empty'}")
    if len(data) < PREFIX:
        _raise_damaged()
    _, format_version, length = START.unpack_from(data)
    if format_version > FORMAT:
        raise ValueError(
            f"it is of format {format_version}, and slimsvm {version()} reads up to format {FORMAT}; "
            "install a newer slimsvm"
        )
    (checksum,) = CHECKSUM.unpack_from(data, START.size)
    if checksum != _checksum([data[: START.size], memoryview(data)[PREFIX:]]) or length > len(data) - PREFIX:
        _raise_damaged()
    try:
        header = json.loads(data[PREFIX : PREFIX + length].decode())
    except RecursionError:
        raise ValueError("its header is nested too deeply") from None
    return header, _read_arrays(entry_of(header, "arrays", list), data, aligned(PREFIX + length))


def _kind_of(data: bytes) -> str:
    """Return what a file of another kind probably is, by its first bytes, and what reads it."""
    known = next((words for begin, words in OTHERS.items() if data.startswith(begin)), None)
    return f"it begins with {data[:8]!r}" if known is None else f"but {known}"


def _read_arrays(table: list[Any], data: bytes, start: int) -> Arrays:
    """Return the arrays by name; they must fill the file from `start` to its end."""
    arrays, end = {}, 0
    for entry in table:
        name, dtype, shape = (
            entry_of(entry, "name", str),
            _dtype(entry_of(entry, "dtype", str)),
            checked_shape(entry_of(entry, "shape", list)),
        )
        offset = aligned(end)
        end = offset + dtype.itemsize * math.prod(shape)
        if entry.get("offset") != offset or start + end > len(data):
            raise ValueError(f"its array {name!r} is not where the sizes of the arrays put it")
        array = np.ndarray(shape, dtype, data, start + offset)
        arrays[name] = array.astype(dtype.newbyteorder("="))
        check_letters(arrays[name], f"array {name!r}")
    if table and start + end != len(data):
        raise ValueError("it has bytes after its last array")
    return arrays


def check_letters(array: np.ndarray, name: str) -> None:
    """Raise ValueError if words of an array have letters beyond Unicode, which NumPy reads and Python cannot hold."""
    if array.dtype.kind == "U" and array.dtype.itemsize and array.size:
        codes = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
        if codes.max() > sys.maxunicode:
            raise ValueError(f"its {name} has letters beyond Unicode")


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file under another name and move it into place when it is complete."""
    write_together({path: pieces})


def write_together(files: Mapping[Path, Iterable[bytes]]) -> None:
    """Replace all of these files or none: write them under other names and move them into place when all are complete.

    A file that is replaced keeps its permissions. Files and their folders are synced to the disk.
    """
    for path in files:
        if path.exists() and not path.is_file():
            raise ValueError(
                f"cannot save to {str(path)!r}, which is not a file; give the name of a new or an existing file"
            )
    temporary = {path: _beside(path) for path in files}
    current = next(iter(files))
    try:
        for current, pieces in files.items():
            _write(temporary[current], pieces, _mode(current))
        _move_together(temporary)
    except OSError as error:
        error.filename = str(current)  # the caller's name of the file
        raise
    finally:
        _remove(temporary.values())
    for folder in {path.parent for path in files}:
        _sync_folder(folder)


def _move_together(names: Mapping[Path, Path]) -> None:
    """Move files into place from their other names, all or none."""
    backups: dict[Path, Path | None] = {}
    try:
        for path in list(names)[:-1]:  # the last move either happens or does not
            backups[path] = _backup(path)
        for path, name in names.items():
            os.replace(name, path)
    except BaseException:
        for path, backup in backups.items():
            if names[path].exists():
                continue  # not moved yet
            if backup is None:
                path.unlink()
            else:
                os.rename(backup, path)
        raise
    finally:
        _remove(backup for backup in backups.values() if backup is not None)


def _remove(names: Iterable[Path]) -> None:
    for name in names:
        name.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Return a new name in the folder of a file."""
    return path.with_name(f".{secrets.token_hex(8)}.slim")


def _mode(path: Path) -> int | None:
    """Return the permissions of a file; None if there is no file."""
    return stat.S_IMODE(path.stat().st_mode) & 0o777 if path.exists() else None


def _write(path: Path, pieces: Iterable[bytes], mode: int | None) -> None:
    """Write a new file and sync it; its permissions are never wider than those of the file it replaces."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o666 if mode is None else mode), "wb") as file:
        if mode is not None:
            os.chmod(path, mode)
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _backup(path: Path) -> Path | None:
    """Return another name (hard link or copy) of the file; None if there is no file."""
    if not path.exists():
        return None
    backup = _beside(path)
    try:
        os.link(path, backup)
    except OSError:  # a file system without hard links
        shutil.copy2(path, backup)
    return backup


def _sync_folder(folder: Path) -> None:
    """Sync a folder to the disk if the system can, so that new names survive a power failure."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def aligned(position: int) -> int:
    """Return the first multiple of ALIGN that is at least `position`."""
    return -(-position // ALIGN) * ALIGN


def _checksum(pieces: Iterable[bytes | memoryview]) -> int:
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return value


def _raise_damaged() -> NoReturn:
    raise ValueError("it is truncated or damaged (its checksum differs); copy it again, or save the model again")


def entry_of(entry: Any, name: str, kind: type) -> Any:
    """Return the value of that name in an entry of the header."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind):
        raise ValueError(f"its header has {short(value)} for {name!r}, which should be of type {kind.__name__}")
    return value


def version() -> str:
    """Return the version of slimsvm."""
    from importlib import metadata  # slow to import, compared with reading a small model

    return metadata.version("slimsvm")


def _dtype(text: str) -> np.dtype:
    if not DTYPE.fullmatch(text):
        raise ValueError(f"it has an array of type {short(text)}; there are numbers, truth values and strings only")
    return np.dtype(text)


def checked_shape(sizes: list[Any]) -> tuple[int, ...]:
    """Return the sizes of an array of one or two axes."""
    if len(sizes) > 2 or not all(type(size) is int and 0 <= size <= LARGEST for size in sizes):
        raise ValueError(f"it has an array of shape {short(sizes)}; there are one or two axes only")
    return tuple(sizes)
