"""Mutants of containers (.slim files and checkpoints): header, arrays and table of arrays change, the checksum is right."""

from __future__ import annotations

import json
from typing import Any

from slimsvm.files import container

from .mutations import Rng, mutate_array, mutate_tree, pick


def container_content(data: bytes) -> Any:
    """Return the contents of a container that is right."""
    header, arrays = container.unpack_file(data)
    del header["arrays"]
    return {"header": header, "arrays": arrays, "table": None}


def mutate_container(rng: Rng, content: Any, header: float = 0.5) -> None:
    """Change the header with that chance, otherwise an array, now and then the table of arrays."""
    if rng.random() < header or not content["arrays"]:
        mutate_tree(rng, content["header"])
    elif rng.random() < 0.9:
        name = pick(rng, list(content["arrays"]))
        content["arrays"][name] = mutate_array(rng, content["arrays"][name])
    else:
        content["table"] = content["table"] or _table(content["arrays"])
        (_grow if rng.random() < 0.2 else mutate_tree)(rng, content["table"])


def _grow(rng: Rng, table: Any) -> None:
    """Let an array claim a thousand times the size that the file has bytes for."""
    if not isinstance(table, list) or not table or not isinstance(entry := pick(rng, table), dict):
        return
    shape = entry.get("shape")
    if isinstance(shape, list) and shape and type(shape[0]) is int:
        shape[0] *= 1000


def _table(arrays: dict[str, Any]) -> list[Any]:
    data = b"".join(container.pack_file({}, arrays))
    _, _, length = container.START.unpack_from(data)
    return json.loads(data[container.PREFIX : container.PREFIX + length])["arrays"]


def container_bytes(content: Any) -> bytes:
    """Return the file with these contents."""
    if content["table"] is None:
        return b"".join(container.pack_file(content["header"], content["arrays"]))
    plain = b"".join(container.pack_file({}, content["arrays"]))
    _, _, length = container.START.unpack_from(plain)
    payload = plain[container.aligned(container.PREFIX + length) :]
    header = content["header"] if isinstance(content["header"], dict) else {}
    text = json.dumps(header | {"arrays": content["table"]}).encode()
    rest = text + bytes(container.aligned(container.PREFIX + len(text)) - container.PREFIX - len(text)) + payload
    start = container.START.pack(container.MAGIC, container.FORMAT, len(text))
    return start + container.CHECKSUM.pack(container._checksum([start, rest])) + rest
