"""The readers of images: sources of C, Rust and MicroPython that programs take along once, for all models."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from ..files.container import write_together

#: the files of a reader by their endings, the main one first
READERS = {"c": (".c", ".h"), "micropython": (".py",), "rust": (".rs",)}


def write_reader(language: str, path: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
    """Write the reader of images in a language, completely or not at all. Return the files written.

    The header of C is named slim.h, whatever the source is named, for the source includes it.
    """
    if language not in READERS:
        raise ValueError(f"there is no reader of images in {language!r}; there are {list(READERS)}")
    path = Path(path)
    first, *others = READERS[language]
    if path.suffix.lower() != first:
        raise ValueError(f"the reader in {language} is no {path.name!r}; name it {path.with_suffix(first).name!r}")
    places = {path: f"slim{first}"} | {path.with_name(f"slim{ending}"): f"slim{ending}" for ending in others}
    taken = [str(place) for place in places if place.exists()]
    if taken and not force:
        raise FileExistsError(
            f"{', '.join(taken)} exists already; give another name, or force=True (--force) to replace it"
        )
    folder = files(__package__).joinpath("readers")
    write_together({place: [folder.joinpath(name).read_bytes()] for place, name in places.items()})
    return list(places)
