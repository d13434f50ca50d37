"""Memory for kernel values that threads use one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from ..kernels import Array


class Spaces:
    """Pieces of memory that threads use one after the other: new ones take longer to allocate than to fill."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype, self.unused, self.lock = dtype, list[Array](), Lock()

    @contextmanager
    def of(self, size: int) -> Iterator[Array]:
        """Yield memory for `size` numbers; a larger piece takes the place of one that is too small."""
        space = self._taken(size)
        if space.size < size:
            del space  # before the new one is allocated
            space = np.empty(size, self.dtype)
        try:
            yield space
        finally:
            with self.lock:
                self.unused.append(space)

    def _taken(self, size: int) -> Array:
        """Return the smallest unused piece that is large enough, else the last one."""
        with self.lock:
            fitting = [place for place, space in enumerate(self.unused) if space.size >= size]
            place = min(fitting, key=lambda place: self.unused[place].size) if fitting else -1
            return self.unused.pop(place) if self.unused else np.empty(0, self.dtype)
