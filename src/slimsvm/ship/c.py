"""C: one C99 source with constant tables and a fixed loop, and a small header beside it.

The source compiles by itself, allocates nothing and prints nothing; most kernels call expf or tanhf of the C library.
Tables are float32, or integers of 8 or 16 bits with integer sums over the features. Sparse points are tables of their
nonzeros (`c_layout`), and rows may be given by their nonzeros too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import Matrix, dense
from ..kernels.spec import spec_of
from ..selection.costs import BITS
from .artefact import Array, Artefact
from .balance import balanced, typical_rows
from .c_source import Cost, CSource, SparseCSource
from .literals import check_float32, identifier
from .quantise import predicted_alike, quantise, warn_where_coarse
from .runtime import Runtime
from .sparse import SparsePoints

#: tables of all features are smaller than those of nonzeros only if these are more than this part of the numbers
DENSE = 4


@dataclass(frozen=True)
class CExporter:
    """model.c and model.h, whose functions begin with the name of the file.

    `precision` is float32, int16 or int8. Integers cover features (after scaling) from -limit to limit, or the range of the
    points and of `rows`, raw rows like those to predict; features beyond that range are clipped. Sparse points are tables
    of their nonzeros, and the integers of such points have a step for each point: rows are not rounded or clipped.
    """

    ending: ClassVar[str] = ".c"
    precision: str = "float32"
    limit: float | None = None
    rows: Matrix | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        if self.precision not in BITS:
            raise ValueError(f"unknown precision {self.precision!r} of C tables; there are {sorted(BITS)}")

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:
        """Return the source and the header, by ending."""
        source = self._source(artefact.covering(self.coverage), identifier(stem))
        if source.small is not None:
            warn_where_coarse(source.a, source.small, self._rows_like(replace(artefact, points=artefact.table)))
        return {".c": source.text().encode(), ".h": source.header().encode()}

    def cost(self, artefact: Artefact) -> Cost:
        """Return the costs of the exported model."""
        return self._source(artefact, "model", fit=False).cost

    def predicted_alike(self, artefact: Artefact, rows: Matrix) -> int:
        """Return on how many rows integer tables lead to the artefact's predictions."""
        source = self._source(artefact, "model")
        if isinstance(source, SparseCSource):
            return int(np.count_nonzero(Runtime(source.held)(rows) == Runtime(artefact)(rows)))
        rows = dense(rows) if artefact.preparation is None else artefact.preparation(rows)
        return rows.shape[0] if source.small is None else predicted_alike(source.a, source.small, rows)

    def _rows_like(self, artefact: Artefact) -> Array:
        """Return raw rows like those to predict."""
        if self.rows is None:
            return typical_rows(artefact)
        rows = dense(self.rows) if artefact.preparation is None else artefact.preparation(self.rows)
        if rows.ndim != 2 or rows.shape[1] != artefact.features:
            raise ValueError(
                f"rows= is of shape {rows.shape}, and the model has {artefact.features} features; give raw rows like those "
                "to predict, one number for each feature"
            )
        return rows

    def _source(self, artefact: Artefact, prefix: str, *, fit: bool = True) -> CSource:
        """Return the source of dense points, or of sparse ones; with many nonzeros, whichever has the smaller tables."""
        spec_of(artefact.kernel, "the C export")
        artefact.check_rows("the C export", tables=True)
        if not isinstance(artefact.points, SparsePoints):
            return self._dense_source(artefact, prefix, fit=fit)
        written = DENSE * artefact.points.nonzeros > artefact.size * artefact.features and artefact.kernel != "linear"
        if self.limit is not None and not written:
            raise ValueError(
                f"limit={self.limit:g} is for integer tables of dense points; those of sparse points take any row. "
                "Leave the limit out"
            )
        check_float32(artefact.compact())
        sparse = SparseCSource.of(artefact, prefix, self.precision)
        if not written:
            return sparse
        dense = self._dense_source(replace(artefact, points=artefact.table), prefix, fit=fit)
        return dense if self.limit is not None or dense.cost.flash < sparse.cost.flash else sparse

    def _dense_source(self, artefact: Artefact, prefix: str, *, fit: bool) -> CSource:
        if self.precision == "float32":
            if self.limit is not None:
                raise ValueError(
                    f"limit={self.limit:g} is for integer tables; give precision='int8', or leave the limit out"
                )
            a, small = artefact.compact(), None
        else:
            like = self._rows_like(artefact)
            a = artefact.compact() if self.limit is not None else balanced(artefact, like)
            typical = like if a.spec.total.inner else None
            rows = None if self.rows is None else like
            small = quantise(a, BITS[self.precision], self.limit, rows, typical=typical, fit=fit)
        check_float32(a)
        return CSource(a, prefix, self.precision, small)
