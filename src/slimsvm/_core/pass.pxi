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


cdef class Strips:
    """Strips of `size` of n rows, which threads take one after the other. They look for Ctrl-C after `turns` strips."""

    cdef int64_t next
    cdef readonly int64_t n, size, turns

    def __cinit__(self, int64_t n, int64_t size, int64_t turns=1):
        if n < 0 or size < 1 or turns < 1:
            raise ValueError(f"strips of {size} of {n} rows")
        self.next, self.n, self.size, self.turns = 0, n, size, turns

    def end(self):
        """Let no thread take another strip."""
        self.next = self.n


cdef void mirror(real *K, Py_ssize_t stride, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n) noexcept nogil:
    """K[stop:, start:stop] <- K[start:stop, stop:].T, in squares that fit in the processor's nearest cache."""
    cdef Py_ssize_t top, left, i, j
    for left in range(stop, n, 16):
        for top in range(start, stop, 16):
            for j in range(left, min(left + 16, n)):
                for i in range(top, min(top + 16, stop)):
                    K[j * stride + i] = K[i * stride + j]


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

    cdef int wish(self, Wanted *want, V, const double[:, ::1] out, list held) except -1:
        """Set what is wanted of all points; `held` keeps the coefficients."""
        memset(want, 0, sizeof(Wanted))
        want.last_panel, want.columns = self.panels, SUMMED
        if out is not None and out.shape[1]:
            want.outputs, want.out = out.shape[1], <double *>&out[0, 0] if out.shape[0] else NULL
            if want.outputs > 1:
                want.columns = (want.outputs + SUMMED - 1) // SUMMED * SUMMED
            want.V = address(V, b"d" if self.double else b"f",
                             self.panels * LANES * (want.columns if want.outputs > 1 else 1), held)
        return 0

    cdef int fill(self, Wanted *want, const Py_buffer *view) except -1:
        """Set where kernel values are wanted."""
        kind = b"d" if self.double and not self.pass_.narrow else b"f"
        same(view.ndim, 2)
        if (kind_of(view) != kind[0] or view.shape[1] != self.count or (view.strides[1] != view.itemsize and self.count > 1)
                or view.strides[0] % view.itemsize):
            raise ValueError(f"values of {self.count} points need memory in lines of numbers of the kind {kind.decode()!r}")
        want.values, want.stride = view.buf, view.strides[0] // view.itemsize
        return 0

    cdef int evaluate(self, const Wanted *want) noexcept nogil:
        """Run the pass; returns 0, or -1 without memory."""
        if want.start >= want.stop or want.first_panel >= want.last_panel:
            return 0
        return build.pass_double(&self.pass_, want) if self.double else build.pass_float(&self.pass_, want)

    def run(self, Py_ssize_t start, Py_ssize_t stop, V=None, double[:, ::1] out=None, values=None):
        """Evaluate K(rows, points) for the rows from start to stop.

        out[start:stop] += K V, with coefficients V in the precision of the rows: (PANEL panels,) for one output, and for more
        (PANEL panels, columns) with columns filled up to a multiple of OUTPUTS. values[start:stop] <- K. Both may also have just
        these rows.
        """
        cdef Wanted want
        cdef Py_buffer view
        cdef int failed = 0
        cdef list held = []
        if not 0 <= start <= stop <= self.n:
            raise ValueError(f"rows {start}:{stop} of {self.n}")
        self.wish(&want, V, out, held)
        want.start, want.stop = start, stop
        if want.outputs:
            want.out_from = begin_of(out.shape[0], start, stop)
        if values is not None:
            PyObject_GetBuffer(values, &view, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE)
        try:
            if values is not None:
                self.fill(&want, &view)
                want.values_from = begin_of(view.shape[0], start, stop)
            with nogil:
                failed = self.evaluate(&want)
        finally:
            if values is not None:
                PyBuffer_Release(&view)
        if failed:
            raise MemoryError("no memory for a tile of kernel values")

    def run_strips(self, Strips strips, V=None, double[:, ::1] out=None, values=None, bint symmetric=False):
        """Do what `run` does for strips of all rows, until none is left; several threads may work through the same strips.

        With `symmetric` the points are the rows, and values below the diagonal are copies of those above it; strips must begin
        with a panel.
        """
        cdef Wanted want
        cdef Py_buffer view
        cdef int failed = 0
        cdef int64_t turn
        cdef list held = []
        same(strips.n, self.n)
        self.wish(&want, V, out, held)
        if want.outputs:
            same(out.shape[0], self.n)
        if values is not None:
            PyObject_GetBuffer(values, &view, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE)
        try:
            if values is not None:
                self.fill(&want, &view)
                same(view.shape[0], self.n)
            if symmetric and (values is None or self.n != self.count or strips.size % LANES):
                raise ValueError(f"{self.n} rows, {self.count} points and strips of {strips.size} rows are not symmetric")
            while not failed and strips.next < strips.n:
                with nogil:
                    for turn in range(strips.turns):
                        want.start = taken(&strips.next, strips.size)
                        want.stop = min(want.start + strips.size, strips.n)
                        if failed or want.start >= want.stop:
                            break
                        want.first_panel = want.start // LANES if symmetric else 0
                        failed = self.evaluate(&want)
                        if symmetric and view.itemsize == sizeof(double):
                            mirror(<double *>want.values, want.stride, want.start, want.stop, self.n)
                        elif symmetric:
                            mirror(<float *>want.values, want.stride, want.start, want.stop, self.n)
                PyErr_CheckSignals()  # in the main thread
        finally:
            if values is not None:
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


def run_together(list passes, list weights, list columns, Strips strips, double[:, ::1] out):
    """out (outputs, rows) += the sums of passes of the same rows, for strips of all rows until none is left.

    `columns` are the outputs that the sums of each pass are added to, in their order.
    """
    cdef Py_ssize_t count = len(passes), k, most = 1, i, c, stop
    cdef KernelPass one
    cdef list held = []
    cdef const Py_ssize_t[::1] places
    cdef int failed = 0
    cdef double[:, ::1] shape
    same(out.shape[1], strips.n)
    for places in columns:
        most = max(most, places.shape[0])
        for c in range(places.shape[0]):
            if not 0 <= places[c] < out.shape[0]:
                raise IndexError(f"output {places[c]} of {out.shape[0]}")
    cdef Wanted *wants = <Wanted *>calloc(count + 1, sizeof(Wanted))
    cdef const Py_ssize_t **places_of = <const Py_ssize_t **>calloc(count + 1, sizeof(Py_ssize_t *))
    cdef Pass *forms = <Pass *>calloc(count + 1, sizeof(Pass))
    cdef bint *doubles = <bint *>calloc(count + 1, sizeof(bint))
    cdef double *sums = <double *>malloc(strips.size * most * sizeof(double))
    try:
        if wants == NULL or places_of == NULL or forms == NULL or doubles == NULL or sums == NULL:
            raise MemoryError
        for k in range(count):
            one, places = passes[k], columns[k]
            same(one.n, strips.n)
            if not places.shape[0]:
                continue
            shape = <double[:1, :places.shape[0]]>sums
            one.wish(&wants[k], weights[k], shape, held)
            wants[k].out, places_of[k], forms[k], doubles[k] = sums, &places[0], one.pass_, one.double
        while not failed and strips.next < strips.n:
            with nogil:
                i = taken(&strips.next, strips.size)
                stop = min(i + strips.size, strips.n)
                for k in range(count):
                    if failed or i >= stop or not wants[k].outputs or wants[k].first_panel >= wants[k].last_panel:
                        continue
                    wants[k].start, wants[k].stop, wants[k].out_from = i, stop, i
                    memset(sums, 0, (stop - i) * wants[k].outputs * sizeof(double))
                    failed = build.pass_double(&forms[k], &wants[k]) if doubles[k] else build.pass_float(&forms[k], &wants[k])
                    add_columns(sums, i, stop, places_of[k], wants[k].outputs, &out[0, 0], strips.n)
            PyErr_CheckSignals()
    finally:
        free(wants)
        free(places_of)
        free(forms)
        free(doubles)
        free(sums)
    if failed:
        raise MemoryError("no memory for a tile of kernel values")


cdef void add_columns(const double *sums, Py_ssize_t start, Py_ssize_t stop, const Py_ssize_t *places, Py_ssize_t count, double *out,
                      Py_ssize_t n) noexcept nogil:
    """out[places[c], start + i] += sums[i, c]."""
    cdef Py_ssize_t i, c
    for i in range(start, stop):
        for c in range(count):
            out[places[c] * n + i] += sums[(i - start) * count + c]


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


def panels_of_sparse(const real[::1] data, const int32_t[::1] features, const int32_t[::1] starts, real[:, :, ::1] out,
                     Py_ssize_t first, Py_ssize_t last):
    """Do what `panels_of` does for CSR points."""
    cdef Py_ssize_t m = starts.shape[0] - 1, d = out.shape[1], panel, j, t
    same(out.shape[2], LANES)
    if not ascends(&starts[0], m) or starts[m] > data.shape[0] or data.shape[0] != features.shape[0]:
        raise ValueError(f"points must start at ascending entries up to {data.shape[0]}")
    if not 0 <= first <= last <= out.shape[0] or out.shape[0] * LANES < m or d == 0 or first == last:
        return
    with nogil:
        memset(&out[first, 0, 0], 0, (last - first) * d * LANES * sizeof(real))
        for panel in range(first, last):
            for j in range(panel * LANES, min(panel * LANES + LANES, m)):
                for t in range(starts[j], starts[j + 1]):
                    if 0 <= features[t] < d:
                        out[panel, features[t], j - panel * LANES] += data[t]


def count_nonzeros(const real[:, ::1] X, Py_ssize_t first, Py_ssize_t last, int32_t[::1] counts):
    """counts[i] <- the numbers that are not 0 in row i, for the rows from first to last."""
    cdef Py_ssize_t i, f, d = X.shape[1]
    cdef int32_t count
    cdef const real *row
    same(counts.shape[0], X.shape[0])
    if not 0 <= first <= last <= X.shape[0] or d == 0:
        return
    with nogil:
        for i in range(first, last):
            row, count = &X[i, 0], 0
            for f in range(d):
                count += row[f] != 0
            counts[i] = count


def fill_sparse(const real[:, ::1] X, Py_ssize_t first, Py_ssize_t last, const int32_t[::1] starts, float[::1] narrow_data,
                double[::1] data, int32_t[::1] features):
    """Write the nonzeros of the rows from first to last from starts[row] on, as floats or as doubles (the other is None)."""
    cdef Py_ssize_t i, f, d = X.shape[1], at
    cdef const real *row
    same(starts.shape[0], X.shape[0] + 1)
    same(features.shape[0], starts[X.shape[0]])
    same(narrow_data.shape[0] if data is None else data.shape[0], features.shape[0])
    if not ascends(&starts[0], X.shape[0]) or not 0 <= first <= last <= X.shape[0] or d == 0:
        return
    cdef bint narrow = data is None
    with nogil:
        for i in range(first, last):
            row, at = &X[i, 0], starts[i]
            for f in range(d):
                if row[f] != 0 and at < starts[i + 1]:
                    features[at] = <int32_t>f
                    if narrow:
                        narrow_data[at] = <float>row[f]
                    else:
                        data[at] = row[f]
                    at += 1


def convert_rows(const real[:, ::1] X, const double[::1] centre, float[:, ::1] floats, double[:, ::1] doubles, double[::1] norms,
                 Py_ssize_t first, Py_ssize_t last):
    """Write the rows from first to last, relative to `centre` if there is one, as floats or as doubles, and their squared norms.

    One of `floats` and `doubles` is None, or both: then only norms are computed, of X itself.
    """
    cdef Py_ssize_t i, f, d = X.shape[1], n = X.shape[0]
    cdef const real *row
    cdef const double *middle = NULL
    cdef float *narrow
    cdef double *wide
    cdef double total
    same(norms.shape[0], n)
    if centre is not None:
        same(centre.shape[0], d)
    if not 0 <= first <= last <= n:
        raise ValueError(f"rows {first}:{last} of {n}")
    if floats is not None:
        same(floats.shape[0], n)
        same(floats.shape[1], d)
    if doubles is not None:
        same(doubles.shape[0], n)
        same(doubles.shape[1], d)
    if d == 0 or first == last:
        norms[first:last] = 0
        return
    if centre is not None:
        middle = &centre[0]
    cdef bint narrows = floats is not None, widens = doubles is not None
    with nogil:
        for i in range(first, last):
            row, total = &X[i, 0], 0
            if narrows:
                narrow = &floats[i, 0]
                for f in range(d):
                    narrow[f] = <float>(row[f] - middle[f] if middle != NULL else row[f])
                for f in range(d):
                    total += <double>narrow[f] * narrow[f]
            elif widens:
                wide = &doubles[i, 0]
                for f in range(d):
                    wide[f] = row[f] - middle[f] if middle != NULL else row[f]
                for f in range(d):
                    total += wide[f] * wide[f]
            else:
                for f in range(d):
                    total += <double>row[f] * row[f]
            norms[i] = total


def row_squares(const real[::1] data, const int32_t[::1] starts, double[::1] norms, Py_ssize_t first, Py_ssize_t last):
    """norms[i] <- the sum of squares of row i of CSR rows, for the rows from first to last."""
    cdef Py_ssize_t i, t, n = norms.shape[0]
    cdef double total
    same(starts.shape[0], n + 1)
    if not ascends(&starts[0], n) or starts[n] > data.shape[0] or not 0 <= first <= last <= n:
        raise ValueError(f"rows must start at ascending entries up to {data.shape[0]}")
    with nogil:
        for i in range(first, last):
            total = 0
            for t in range(starts[i], starts[i + 1]):
                total += <double>data[t] * data[t]
            norms[i] = total
