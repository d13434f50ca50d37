"""Memory for kernel values that threads use one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..kernels import Array


class Spaces:
    """Pieces of memory that threads use one after the other: new ones take longer to allocate than to fill."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype, self.unused = dtype, list[Array]()

    @contextmanager
    def of(self, size: int) -> Iterator[Array]:
        """Yield memory for `size` numbers."""
        fitting = [place for place, space in enumerate(self.unused) if space.size >= size]
        space = self.unused.pop(min(fitting, key=lambda place: self.unused[place].size)) if fitting else None
        if space is None:
            space = np.empty(size, self.dtype)
        try:
            yield space
        finally:
            self.unused.append(space)
