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


cdef void mirror(real *K, Py_ssize_t stride, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n) noexcept nogil:
    """K[stop:, start:stop] <- K[start:stop, stop:].T, in squares that fit in the processor's nearest cache."""
    cdef Py_ssize_t top, left, i, j
    for left in range(stop, n, 16):
        for top in range(start, stop, 16):
            for j in range(left, min(left + 16, n)):
                for i in range(top, min(top + 16, stop)):
                    K[j * stride + i] = K[i * stride + j]


cdef struct StripJob:
    Shared shared
    const Pass *form
    Wanted want
    bint double, symmetric, narrow
    int failed


cdef int evaluated(const Pass *form, bint double, const Wanted *want) noexcept nogil:
    """Run a pass; returns 0, or -1 without memory."""
    if want.start >= want.stop or want.first_panel >= want.last_panel:
        return 0
    return build.pass_double(form, want) if double else build.pass_float(form, want)


cdef void strip_job(Shared *shared, int64_t most) noexcept nogil:
    """Evaluate `most` strips of rows."""
    cdef StripJob *job = <StripJob *>shared
    cdef Wanted want = job.want
    cdef int64_t turn
    for turn in range(most):
        want.start = taken(&shared.next, shared.size)
        want.stop = min(want.start + shared.size, shared.n)
        if want.start >= want.stop:
            return
        if job.symmetric:
            want.first_panel = want.start // LANES
        if evaluated(job.form, job.double, &want):
            job.failed = 1
            shared.next = shared.n
        if job.symmetric and job.double and not job.narrow:
            mirror(<double *>want.values, want.stride, want.start, want.stop, shared.n)
        elif job.symmetric:
            mirror(<float *>want.values, want.stride, want.start, want.stop, shared.n)


cdef struct FillJob:
    Shared shared
    const Pass *form
    bint double
    Py_ssize_t size, panels  # of a number
    const Py_ssize_t *which
    char *values
    int failed


cdef void fill_job(Shared *shared, int64_t most) noexcept nogil:
    """Evaluate some strips of rows, and copy them to the lines of points."""
    cdef FillJob *job = <FillJob *>shared
    cdef Wanted want
    cdef Py_ssize_t turn, j, m = job.form.points
    cdef void *tile = malloc(shared.size * m * job.size)
    memset(&want, 0, sizeof(Wanted))
    want.last_panel, want.columns, want.values, want.stride = job.panels, SUMMED, tile, m
    for turn in range(most):
        want.start = want.values_from = taken(&shared.next, shared.size)
        want.stop = min(want.start + shared.size, shared.n)
        if want.start >= want.stop:
            break
        if tile == NULL or evaluated(job.form, job.double, &want):
            job.failed = 1
            break
        if job.size == sizeof(double):
            turned(<double *>tile, want.stop - want.start, m, job.which, <double *>job.values + want.start, shared.n)
        else:
            turned(<float *>tile, want.stop - want.start, m, job.which, <float *>job.values + want.start, shared.n)
    free(tile)


cdef void turned(const real *tile, Py_ssize_t rows, Py_ssize_t m, const Py_ssize_t *which, real *out, Py_ssize_t stride) noexcept nogil:
    """out[which[j], i] <- tile[i, j], in squares that fit in the processor's nearest cache."""
    cdef Py_ssize_t top, left, i, j
    cdef real *line
    for top in range(0, rows, 16):
        for left in range(0, m, 16):
            for j in range(left, min(left + 16, m)):
                line = out + which[j] * stride
                for i in range(top, min(top + 16, rows)):
                    line[i] = tile[i * m + j]


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

    cdef int wish(self, Wanted *want, V, Py_ssize_t outputs, double *out, list held) except -1:
        """Set what is wanted of all points; `held` keeps the coefficients."""
        memset(want, 0, sizeof(Wanted))
        want.last_panel, want.columns = self.panels, SUMMED
        if outputs:
            want.outputs, want.out = outputs, out
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
        self.wish(&want, V, outputs_of(out), first_of(out), held)
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
                failed = evaluated(&self.pass_, self.double, &want)
        finally:
            if values is not None:
                PyBuffer_Release(&view)
        if failed:
            raise MemoryError("no memory for a tile of kernel values")

    def run_strips(self, Strips strips, Team team=None, int helpers=0, V=None, double[:, ::1] out=None, values=None,
                   bint symmetric=False):
        """Do what `run` does for strips of rows, here and in so many threads of the team, until none is left.

        With `symmetric` the points are the rows, and values below the diagonal are copies of those above it; strips must begin
        with a panel.
        """
        cdef StripJob job
        cdef Py_buffer view
        cdef list held = []
        same(strips.n, self.n)
        memset(&job, 0, sizeof(StripJob))
        self.wish(&job.want, V, outputs_of(out), first_of(out), held)
        if job.want.outputs:
            same(out.shape[0], self.n)
        if values is not None:
            PyObject_GetBuffer(values, &view, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE)
        try:
            if values is not None:
                self.fill(&job.want, &view)
                same(view.shape[0], self.n)
            if symmetric and (values is None or self.n != self.count or strips.size % LANES):
                raise ValueError(f"{self.n} rows, {self.count} points and strips of {strips.size} rows are not symmetric")
            job.form, job.double, job.symmetric, job.narrow = &self.pass_, self.double, symmetric, self.pass_.narrow
            strips.share(strip_job, &job.shared, team, helpers)
        finally:
            if values is not None:
                PyBuffer_Release(&view)
        if job.failed:
            raise MemoryError("no memory for a tile of kernel values")

    def fill_rows(self, Strips strips, Team team, int helpers, values, const Py_ssize_t[::1] which):
        """values[which[j], i] <- K_ij for all rows i: a line for each point."""
        cdef FillJob job
        cdef Py_buffer view
        cdef Py_ssize_t j
        same(strips.n, self.n)
        same(which.shape[0], self.count)
        memset(&job, 0, sizeof(FillJob))
        kind = b"d" if self.double and not self.pass_.narrow else b"f"
        PyObject_GetBuffer(values, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        try:
            if kind_of(&view) != kind[0] or view.ndim != 2 or view.shape[1] != self.n:
                raise ValueError(f"lines of {self.n} numbers of the kind {kind.decode()!r} are needed, not {values.shape}")
            for j in range(self.count):
                if not 0 <= which[j] < view.shape[0]:
                    raise IndexError(f"line {which[j]} of {view.shape[0]}")
            if not self.count:
                return
            job.form, job.double, job.size, job.which, job.values = &self.pass_, self.double, view.itemsize, &which[0], <char *>view.buf
            job.panels = self.panels
            strips.share(fill_job, &job.shared, team, helpers)
        finally:
            PyBuffer_Release(&view)
        if job.failed:
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


cdef Py_ssize_t outputs_of(double[:, ::1] out) noexcept:
    return 0 if out is None else out.shape[1]


cdef double *first_of(double[:, ::1] out) noexcept:
    return &out[0, 0] if out is not None and out.shape[0] and out.shape[1] else NULL


cdef Py_ssize_t begin_of(Py_ssize_t rows, Py_ssize_t start, Py_ssize_t stop) except -1:
    """The first row that an array of so many rows has, which are all rows up to `stop` or those from `start` on."""
    if rows < stop and rows != stop - start:
        raise ValueError(f"{rows} rows of memory for the rows {start}:{stop}")
    return start if rows == stop - start else 0


cdef struct ClassJob:
    Shared shared
    Py_ssize_t count, most  # passes, and outputs of the one with most
    Wanted *wants
    Pass *forms
    bint *doubles
    const Py_ssize_t **places
    double *out
    int failed


cdef void class_job(Shared *shared, int64_t most) noexcept nogil:
    """Add the sums of all passes for `most` strips of rows."""
    cdef ClassJob *job = <ClassJob *>shared
    cdef Wanted want
    cdef int64_t turn
    cdef Py_ssize_t start, stop, k
    cdef double *sums = <double *>malloc(shared.size * job.most * sizeof(double))
    for turn in range(most):
        start = taken(&shared.next, shared.size)
        stop = min(start + shared.size, shared.n)
        if start >= stop:
            break
        for k in range(job.count):
            want = job.wants[k]
            if sums == NULL or job.failed:
                job.failed = 1
                break
            if want.outputs:
                want.start, want.stop, want.out, want.out_from = start, stop, sums, start
                memset(sums, 0, (stop - start) * want.outputs * sizeof(double))
                job.failed |= evaluated(&job.forms[k], job.doubles[k], &want)
                add_columns(sums, start, stop, job.places[k], want.outputs, job.out, shared.n)
    free(sums)


def run_together(list passes, list weights, list columns, Strips strips, double[:, ::1] out, Team team=None, int helpers=0):
    """out (outputs, rows) += the sums of passes of the same rows, for strips of all rows until none is left.

    `columns` are the outputs that the sums of each pass are added to, in their order.
    """
    cdef Py_ssize_t count = len(passes), k, c
    cdef KernelPass one
    cdef list held = []
    cdef const Py_ssize_t[::1] places
    cdef ClassJob job
    memset(&job, 0, sizeof(ClassJob))
    same(out.shape[1], strips.n)
    if not strips.n:
        return
    job.count, job.most, job.out = count, 1, &out[0, 0]
    for places in columns:
        job.most = max(job.most, places.shape[0])
        for c in range(places.shape[0]):
            if not 0 <= places[c] < out.shape[0]:
                raise IndexError(f"output {places[c]} of {out.shape[0]}")
    job.wants = <Wanted *>calloc(count + 1, sizeof(Wanted))
    job.places = <const Py_ssize_t **>calloc(count + 1, sizeof(Py_ssize_t *))
    job.forms = <Pass *>calloc(count + 1, sizeof(Pass))
    job.doubles = <bint *>calloc(count + 1, sizeof(bint))
    try:
        if job.wants == NULL or job.places == NULL or job.forms == NULL or job.doubles == NULL:
            raise MemoryError
        for k in range(count):
            one, places = passes[k], columns[k]
            same(one.n, strips.n)
            if not places.shape[0]:
                continue
            one.wish(&job.wants[k], weights[k], places.shape[0], NULL, held)
            job.places[k], job.forms[k], job.doubles[k] = &places[0], one.pass_, one.double
        strips.share(class_job, &job.shared, team, helpers)
    finally:
        free(job.wants)
        free(job.places)
        free(job.forms)
        free(job.doubles)
    if job.failed:
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
