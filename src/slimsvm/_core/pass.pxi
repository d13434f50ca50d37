# The kernel matrix between rows and points: a strip of rows against all points in one call.

#: points in a panel, and the numbers of columns that coefficients of several outputs are filled up to a multiple of
PANEL, OUTPUTS = LANES, SUMMED
cdef int32_t ONE = 1
cdef bint LITTLE_ENDIAN = (<char *>&ONE)[0] == 1
cdef double LOG2_E = 1.4426950408889634


cdef char kind_of(const Py_buffer *view) noexcept nogil:
    """The letter of the numbers of a buffer in the machine's order of bytes; 0 for others."""
    cdef const char *form = view.format
    if form[0] == b"@" or form[0] == b"=" or (form[0] == b"<" and LITTLE_ENDIAN):
        form += 1
    return form[0] if form[0] != 0 and form[1] == 0 else 0


cdef const void *address(object array, const char *kind, Py_ssize_t size, list held) except? NULL:
    """The memory of a contiguous array of `size` numbers of this kind; `held` keeps it."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    cdef const void *memory = view.buf
    cdef Py_ssize_t given = view.len // view.itemsize
    cdef bint right = kind_of(&view) == kind[0]
    name = view.format.decode()
    PyBuffer_Release(&view)
    if given != size or not right:
        raise ValueError(f"an array of {given} numbers of the kind {name!r} where {size} of {kind.decode()!r} are needed")
    held.append(array)
    return memory


cdef class KernelPass:
    """K(rows, points) for strips of rows, in the precision of the rows, or as floats from double inner products (`narrow`).

    `form` are the four arguments of `expansion`. `rows` is an array (n, features), or the data, features and starts of CSR rows,
    whose features the caller has checked (`rows.precision.narrow`). `points` are panels (panels, features, PANEL) of `count`
    points, or for CSR rows a list of panels of sparse points: places, lines (groups, frequent, PANEL), and the starts, points and
    values of postings. `a` and `b` are the squared norms of rows and points, times gamma log2(e), for the rbf kernel; `b` and the
    factors `widths` of gamma are filled up to full panels.
    """

    cdef Pass pass_
    cdef SparsePanel *posted
    cdef list held
    cdef bint double
    cdef readonly Py_ssize_t n, count, panels

    def __cinit__(self, form, rows, points, Py_ssize_t count, Py_ssize_t features, a=None, b=None, widths=None, bint narrow=False):
        cdef Pass *p = &self.pass_
        cdef Py_ssize_t panel, nonzeros, groups = 0
        self.held, self.count = [], count
        kind, gamma, coef0, degree = form
        if not LINEAR <= kind <= CHI2:
            raise ValueError(f"no kernel has the number {kind}")
        p.form.kernel, p.form.gamma, p.form.coef0, p.form.degree = kind, gamma, coef0, degree
        p.scale, p.narrow, p.features, p.points = gamma * LOG2_E, narrow, features, count
        sparse = isinstance(rows, tuple)
        self.n = len(rows[2]) - 1 if sparse else rows.shape[0]
        self.double = (rows[0] if sparse else rows).dtype.char == "d"
        number = b"d" if self.double else b"f"
        if narrow and not self.double:
            raise ValueError("values are narrower than the inner products of doubles only")
        if sparse:
            nonzeros = len(rows[0])
            p.data = address(rows[0], number, nonzeros, self.held)
            p.features_of = <const int32_t *>address(rows[1], b"i", nonzeros, self.held)
            p.starts = <const int32_t *>address(rows[2], b"i", self.n + 1, self.held)
            if not ascends(p.starts, self.n) or p.starts[self.n] > nonzeros:
                raise ValueError(f"rows must start at ascending entries up to {nonzeros}")
            if kind >= LAPLACIAN:
                raise ValueError("kernels that are not of the inner product need dense rows")
        else:
            p.rows = address(rows, number, self.n * features, self.held)
        self.panels = (count + LANES - 1) // LANES
        if isinstance(points, list):
            self._post(points, number)
        else:
            p.lines = address(points, number, self.panels * features * LANES, self.held)
        if kind == RBF:
            p.a = address(a, number, self.n, self.held)
            p.b = address(b, number, self.panels * LANES, self.held)
        if widths is not None:
            p.widths = address(widths, number, self.panels * LANES, self.held)

    cdef int _post(self, list points, const char *number) except -1:
        """Take panels of sparse points, each of as many groups as the first but the last."""
        cdef Py_ssize_t panel, groups = 0, features = self.pass_.features, entries
        self.posted = <SparsePanel *>calloc(len(points) + 1, sizeof(SparsePanel))
        if self.posted == NULL:
            raise MemoryError
        for panel, (place, lines, starts, places, values) in enumerate(points):
            entries = len(values)
            self.posted[panel].groups, self.posted[panel].frequent = lines.shape[0], lines.shape[1]
            self.posted[panel].place = <const int32_t *>address(place, b"i", features, self.held)
            self.posted[panel].lines = address(lines, number, lines.shape[0] * lines.shape[1] * LANES, self.held)
            self.posted[panel].post_starts = <const int32_t *>address(starts, b"i", features + 1, self.held)
            self.posted[panel].post_points = <const int32_t *>address(places, b"i", entries, self.held)
            self.posted[panel].post_values = address(values, number, entries, self.held)
            if self.posted[panel].groups > self.posted[0].groups or (
                    panel + 1 < len(points) and self.posted[panel].groups != self.posted[0].groups):
                raise ValueError("panels of sparse points must have as many groups as the first one")
            groups += lines.shape[0]
        same(groups, self.panels)
        if self.pass_.rows != NULL:
            raise ValueError("sparse points need sparse rows")
        self.pass_.posted = self.posted
        return 0

    def __dealloc__(self):
        free(self.posted)

    def run(self, Py_ssize_t start, Py_ssize_t stop, V=None, double[:, ::1] out=None, values=None,
            const Py_ssize_t[::1] index=None, Py_ssize_t first_panel=0):
        """Evaluate K(rows, points) for the rows from start to stop, or those of `index`.

        out[start:stop] += K V, with coefficients V in the precision of the rows: (PANEL panels,) for one output, and for more
        (PANEL panels, columns) with columns filled up to a multiple of OUTPUTS. values[start:stop] <- K, from the panel
        `first_panel` on. Both may also have just these rows.
        """
        cdef Wanted want
        cdef Py_buffer view
        cdef Py_ssize_t k, rows = self.n if index is None else index.shape[0]
        cdef int failed = 0
        cdef list held = []
        memset(&want, 0, sizeof(want))
        if not 0 <= start <= stop <= rows or first_panel < 0:
            raise ValueError(f"rows {start}:{stop} of {rows}, from panel {first_panel} on")
        if index is not None:
            for k in range(start, stop):
                if not 0 <= index[k] < self.n:
                    raise IndexError(f"row {index[k]} of {self.n}")
        if start == stop or first_panel >= self.panels:
            return
        want.start, want.stop, want.first_panel, want.last_panel = start, stop, first_panel, self.panels
        want.index = NULL if index is None else <const ptrdiff_t *>&index[0]
        want.columns = SUMMED
        if out is not None and out.shape[1]:
            want.out_from = begin_of(out.shape[0], start, stop)
            want.outputs, want.out = out.shape[1], &out[0, 0]
            if want.outputs > 1:
                want.columns = (want.outputs + SUMMED - 1) // SUMMED * SUMMED
            want.V = address(V, b"d" if self.double else b"f",
                             self.panels * LANES * (want.columns if want.outputs > 1 else 1), held)
        if values is None:
            with nogil:
                failed = build.pass_double(&self.pass_, &want) if self.double else build.pass_float(&self.pass_, &want)
        else:
            kind = b"d" if self.double and not self.pass_.narrow else b"f"
            PyObject_GetBuffer(values, &view, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE)
            try:
                same(view.ndim, 2)
                want.values_from = begin_of(view.shape[0], start, stop)
                if (kind_of(&view) != kind[0] or view.shape[1] != self.count
                        or (view.strides[1] != view.itemsize and self.count > 1) or view.strides[0] % view.itemsize):
                    raise ValueError(f"{stop} rows of {self.count} kernel values of the kind {kind.decode()!r} need memory in lines")
                want.values, want.stride = view.buf, view.strides[0] // view.itemsize
                with nogil:
                    failed = build.pass_double(&self.pass_, &want) if self.double else build.pass_float(&self.pass_, &want)
            finally:
                PyBuffer_Release(&view)
        if failed:
            raise MemoryError("no memory for a tile of kernel values")


    def add_near(self, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] rows, const double[:, ::1] low, const double[:, ::1] high,
                 const double[:, ::1] placed, double reach, points, V, double[:, ::1] out, Py_ssize_t first, Py_ssize_t last):
        """out[rows] += K(rows, points) V for the rows of the boxes first .. last - 1 and the points near each box, as in core.h.

        The caller has checked once that `rows` are numbers of rows.
        """
        cdef Boxes boxes
        cdef int failed
        cdef list held = []
        number = b"d" if self.double else b"f"
        if (self.pass_.rows == NULL or not 0 <= first <= last < starts.shape[0] or low.shape[0] != starts.shape[0] - 1
                or starts[last] > rows.shape[0] or not ascends_far(starts)):
            raise ValueError(f"boxes {first}:{last} of {starts.shape[0] - 1}")
        for given, wanted in ((high.shape[0], low.shape[0]), (high.shape[1], low.shape[1]), (placed.shape[0], low.shape[1]),
                              (placed.shape[1], self.count), (out.shape[0], self.n)):
            same(given, wanted)
        if first == last or not self.count or not out.shape[1]:
            return
        boxes.starts, boxes.rows, boxes.axes, boxes.reach = <ptrdiff_t *>&starts[0], <ptrdiff_t *>&rows[0], low.shape[1], reach
        boxes.low, boxes.high, boxes.placed = &low[0, 0], &high[0, 0], &placed[0, 0]
        boxes.points = address(points, number, self.count * self.pass_.features, held)
        cdef const void *coefficients = address(V, number, self.count * out.shape[1], held)
        with nogil:
            if self.double:
                failed = build.pass_near_double(&self.pass_, &boxes, first, last, coefficients, out.shape[1], &out[0, 0])
            else:
                failed = build.pass_near_float(&self.pass_, &boxes, first, last, coefficients, out.shape[1], &out[0, 0])
        if failed:
            raise MemoryError("no memory for a tile of kernel values")


cdef Py_ssize_t begin_of(Py_ssize_t rows, Py_ssize_t start, Py_ssize_t stop) except -1:
    """The first row that an array of so many rows has, which are all rows up to `stop` or those from `start` on."""
    if rows < stop and rows != stop - start:
        raise ValueError(f"{rows} rows of memory for the rows {start}:{stop}")
    return start if rows == stop - start else 0


cdef bint ascends_far(const Py_ssize_t[::1] starts) noexcept nogil:
    cdef Py_ssize_t k
    cdef bint fine = starts[0] >= 0
    for k in range(starts.shape[0] - 1):
        fine &= starts[k] <= starts[k + 1]
    return fine


def panels_of(const real[:, ::1] points, real[:, :, ::1] out, Py_ssize_t first, Py_ssize_t last):
    """out[first:last] <- the panels of these numbers: points transposed, PANEL at a time, filled up with zeros."""
    cdef Py_ssize_t m = points.shape[0], d = points.shape[1], panel, f, g, j, width
    same(out.shape[1], d)
    same(out.shape[2], LANES)
    if not 0 <= first <= last <= out.shape[0] or out.shape[0] * LANES < m or d == 0:
        return
    with nogil:
        for panel in range(first, last):
            width = min(m - panel * LANES, LANES)
            for f in range(0, d, 16):
                for j in range(width):
                    for g in range(f, min(f + 16, d)):
                        out[panel, g, j] = points[panel * LANES + j, g]
                for j in range(width, LANES):
                    for g in range(f, min(f + 16, d)):
                        out[panel, g, j] = 0
