# Sums over rows of kernel values that are held, in threads: rows are in parts that do not depend on the number of threads.

#: most parts of the rows, least rows of a part, and most numbers in the sums of all parts. More parts: more threads at work, in
#: more memory
cdef enum:
    MOST_PARTS = 32
    LEAST_PART = 256
    PART_NUMBERS = 1 << 22


cdef Py_ssize_t parts_of(Py_ssize_t rows, Py_ssize_t numbers, Py_ssize_t sums) noexcept nogil:
    """The parts of so many rows, of which each sum has so many numbers, for this many sums."""
    return max(min(min(rows // LEAST_PART, <Py_ssize_t>MOST_PARTS), PART_NUMBERS // (numbers * sums + 1)), 1)


cdef struct Item:
    # a part of a sum, from `first` to `last` of its rows
    Py_ssize_t sum, first, last
    double *total


cdef void set_item(Item *item, Py_ssize_t which, Py_ssize_t part, Py_ssize_t parts, Py_ssize_t rows, double *whole,
                   double *other) noexcept nogil:
    """Make a part of a sum; the first one is added to the sum itself, others to memory of their own."""
    item.sum, item.first, item.last = which, rows * part // parts, rows * (part + 1) // parts
    item.total = whole if part == 0 else other


cdef struct SumJob:
    Shared shared  # its strips are items
    Item *items
    Squares squares
    Backward backward
    bint double
    const double *lines  # residuals or weights, `stride` apart
    Py_ssize_t stride, size  # and the numbers of a sum
    const Py_ssize_t *outputs
    unsigned char *active
    unsigned char *known
    ptrdiff_t *lists
    ptrdiff_t *came
    ptrdiff_t *went
    double *values
    const double *R
    double share, more
    int failed


cdef void sum_parts(SumJob *job, Py_ssize_t count) noexcept nogil:
    """Add the parts of each sum to its first one, in their order."""
    cdef Py_ssize_t k, j
    cdef double *whole = NULL
    cdef double *part
    for k in range(count):
        part = job.items[k].total
        if k == 0 or job.items[k].sum != job.items[k - 1].sum:
            whole = part
            continue
        for j in range(job.size):
            whole[j] += part[j]


cdef void change_job(Shared *shared, int64_t most) noexcept nogil:
    """List the rows that come to some sums and go from them."""
    cdef SumJob *job = <SumJob *>shared
    cdef Py_ssize_t k, c, turn
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n:
            return
        c = job.outputs[k]
        if build.list_changes(job.squares.n, job.lines + k * job.stride, job.active + c * job.squares.n, job.known[c],
                              job.lists + k * job.squares.n, &job.came[k], &job.went[k]):
            memset(job.values + c * job.size, 0, job.size * sizeof(double))
        job.known[c] = 1


cdef void curvature_job(Shared *shared, int64_t most) noexcept nogil:
    """Sum up some parts of curvatures."""
    cdef SumJob *job = <SumJob *>shared
    cdef Item *item
    cdef ptrdiff_t *list
    cdef Py_ssize_t k, turn, came, n = job.squares.n, last, failed
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n:
            return
        item = &job.items[k]
        list, came = job.lists + item.sum * n, job.came[item.sum]
        # the rows that went are at the end of the list
        last = min(item.last, came)
        failed = squares_of(job, list + item.first, last - item.first, last - item.first, item.total)
        if item.last > came:
            last = max(item.first, came)
            failed |= squares_of(job, list + n - job.went[item.sum] + last - came, item.last - last, 0, item.total)
        if failed:
            job.failed = 1


cdef int squares_of(SumJob *job, const ptrdiff_t *list, Py_ssize_t count, Py_ssize_t minus, double *total) noexcept nogil:
    if count <= 0:
        return 0
    if job.double:
        return build.add_squares_double(&job.squares, list, count, minus, total)
    return build.add_squares_float(&job.squares, list, count, minus, total)


cdef void back_job(Shared *shared, int64_t most) noexcept nogil:
    """Sum up weighted kernel values of some parts."""
    cdef SumJob *job = <SumJob *>shared
    cdef Item *item
    cdef Py_ssize_t k, turn
    cdef void *run = malloc((job.squares.m + 1) * sizeof(double))
    if run == NULL:
        job.failed = 1
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n or run == NULL:
            break
        item = &job.items[k]
        if job.double:
            build.add_lines_double(&job.squares, job.lines + item.sum * job.stride, item.first, item.last, <double *>run, item.total)
        else:
            build.add_lines_float(&job.squares, job.lines + item.sum * job.stride, item.first, item.last, <float *>run, item.total)
    free(run)


cdef void backward_job(Shared *shared, int64_t most) noexcept nogil:
    """Sum up the gradients of some parts."""
    cdef SumJob *job = <SumJob *>shared
    cdef Item *item
    cdef Py_ssize_t k, turn
    cdef int failed
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n:
            return
        item = &job.items[k]
        if job.double:
            failed = build.add_backward_double(&job.backward, job.lists + item.first, item.last - item.first, item.total)
        else:
            failed = build.add_backward_float(&job.backward, job.lists + item.first, item.last - item.first, item.total)
        if failed:
            job.failed = 1


cdef void factor_job(Shared *shared, int64_t most) noexcept nogil:
    """Factor some curvatures plus the regulariser."""
    cdef SumJob *job = <SumJob *>shared
    cdef Py_ssize_t k, turn
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n:
            return
        if build.factor_definite(job.stride, job.lines + job.outputs[k] * job.size, job.R, job.share, job.more,
                                 job.values + k * job.size):
            job.failed = 1


cdef void solve_job(Shared *shared, int64_t most) noexcept nogil:
    """Solve with some factors."""
    cdef SumJob *job = <SumJob *>shared
    cdef Py_ssize_t k, turn
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n:
            return
        build.solve_factored(job.items[k].total, job.stride, job.values + k * job.stride)


cdef int take_values(SumJob *job, K, list held) except -1:
    """Take kernel values, floats or doubles in lines."""
    cdef Py_buffer view
    memset(job, 0, sizeof(SumJob))
    PyObject_GetBuffer(K, &view, PyBUF_FORMAT | PyBUF_STRIDES)
    try:
        kind = chr(kind_of(&view))
        if view.ndim != 2 or not view.shape[0] or not view.shape[1] or kind not in "fd" or view.strides[1] != view.itemsize or (
                view.strides[0] % view.itemsize):
            raise ValueError(f"kernel values of shape {K.shape} and type {K.dtype}, which are not in lines of numbers")
        job.double = kind == "d"
        job.squares = Squares(view.buf, view.shape[0], view.shape[1], view.strides[0] // view.itemsize, NULL)
    finally:
        PyBuffer_Release(&view)
    held.append(K)
    return 0


cdef int run_items(SumJob *job, Work work, Py_ssize_t count, Team team, int helpers) except -1:
    Strips(count, 1).share(work, &job.shared, team, helpers)
    if job.failed:
        raise MemoryError("no memory for sums over rows")
    return 0


def update_curvatures(K, const double[::1] weights, const Py_ssize_t[::1] outputs, const double[:, ::1] residual,
                      unsigned char[:, ::1] active, unsigned char[::1] known, double[:, :, ::1] values, ptrdiff_t[:, ::1] lists,
                      ptrdiff_t[:, ::1] counts, Team team=None, int helpers=0):
    """Bring sums of w d d' over the rows with a residual up to date, d = (1, k_1 .. k_m), in lower triangles.

    `outputs` are the numbers of the sums, each at most once and with a line of `residual`. `active` are the rows that are in the
    sums so far, where these are `known`. `lists` and `counts` are
    work space.
    """
    cdef SumJob job
    cdef list held = []
    take_values(&job, K, held)
    cdef Py_ssize_t n = job.squares.n, s = job.squares.m + 1, q = active.shape[0], k, j, p, parts, changed, items = 0, extra = 0, size
    for size in (residual.shape[1], weights.shape[0], active.shape[1], lists.shape[1]):
        same(size, n)
    for size in (known.shape[0], values.shape[0]):
        same(size, q)
    for size in (residual.shape[0], lists.shape[0]):
        same(size, outputs.shape[0])
    same(values.shape[1], s)
    same(values.shape[2], s)
    same(counts.shape[0], 2)
    same(counts.shape[1], outputs.shape[0])
    for k in range(outputs.shape[0]):
        if not 0 <= outputs[k] < q:
            raise ValueError(f"output {outputs[k]} of {q}")
        for j in range(k):
            if outputs[j] == outputs[k]:
                raise ValueError(f"output {outputs[k]} twice")
    if not outputs.shape[0]:
        return
    job.squares.weights, job.outputs, job.lines, job.stride, job.size = &weights[0], &outputs[0], &residual[0, 0], n, s * s
    job.active, job.known, job.values, job.lists = &active[0, 0], &known[0], &values[0, 0, 0], &lists[0, 0]
    job.came, job.went = &counts[0, 0], &counts[1, 0]
    run_items(&job, change_job, outputs.shape[0], team, helpers)
    for k in range(outputs.shape[0]):
        parts = parts_of(job.came[k] + job.went[k], s * s, outputs.shape[0])
        items += parts
        extra += parts - 1
    job.items = <Item *>calloc(items, sizeof(Item))
    cdef double *more = <double *>calloc(extra * s * s + 1, sizeof(double))
    try:
        if job.items == NULL or more == NULL:
            raise MemoryError("no memory for sums over rows")
        items = extra = 0
        for k in range(outputs.shape[0]):
            changed = job.came[k] + job.went[k]
            parts = parts_of(changed, s * s, outputs.shape[0])
            for p in range(parts):
                set_item(&job.items[items], k, p, parts, changed, job.values + outputs[k] * s * s, more + extra * s * s)
                items += 1
                extra += p > 0
        run_items(&job, curvature_job, items, team, helpers)
        with nogil:
            sum_parts(&job, items)
    finally:
        free(job.items)
        free(more)


def factor_sums(const double[:, :, ::1] values, const Py_ssize_t[::1] outputs, const double[:, ::1] R, double share, double more,
                double[:, :, ::1] factors, Team team=None, int helpers=0):
    """factors <- lower Cholesky factors of values[outputs] + R + a ridge; returns whether all are finite.

    The ridge grows from `share` of the largest diagonal number by `more` until the matrix is definite.
    """
    cdef SumJob job
    cdef Py_ssize_t s = values.shape[1], k, size
    memset(&job, 0, sizeof(SumJob))
    for size in (values.shape[2], R.shape[0], R.shape[1], factors.shape[1], factors.shape[2]):
        same(size, s)
    same(factors.shape[0], outputs.shape[0])
    for k in range(outputs.shape[0]):
        if not 0 <= outputs[k] < values.shape[0]:
            raise ValueError(f"output {outputs[k]} of {values.shape[0]}")
    if not outputs.shape[0] or not s:
        return True
    job.lines, job.R, job.values, job.outputs = &values[0, 0, 0], &R[0, 0], &factors[0, 0, 0], &outputs[0]
    job.stride, job.size, job.share, job.more = s, s * s, share, more
    Strips(outputs.shape[0], 1).share(factor_job, &job.shared, team, helpers)
    return not job.failed


def solve_factored(list factors, double[:, ::1] right, Team team=None, int helpers=0):
    """right[k] <- (L L')^-1 right[k] for each lower Cholesky factor L."""
    cdef SumJob job
    cdef Py_ssize_t s = right.shape[1], k
    cdef list held = []
    memset(&job, 0, sizeof(SumJob))
    same(len(factors), right.shape[0])
    for factor in factors:
        if factor.shape != (s, s):
            raise ValueError(f"a factor of shape {factor.shape} for {s} unknowns")
    if not s or not right.shape[0]:
        return
    job.items, job.values, job.stride = <Item *>calloc(right.shape[0], sizeof(Item)), &right[0, 0], s
    try:
        if job.items == NULL:
            raise MemoryError
        for k in range(right.shape[0]):
            job.items[k].total = <double *>address(factors[k], b"d", s * s, held)
        run_items(&job, solve_job, right.shape[0], team, helpers)
    finally:
        free(job.items)


def back(K, const double[:, ::1] W, double[:, ::1] out, Team team=None, int helpers=0):
    """out[c, j] <- sum_i W[c, i] K[i, j]; rows of weight 0 are left out."""
    cdef SumJob job
    cdef list held = []
    take_values(&job, K, held)
    cdef Py_ssize_t n = job.squares.n, m = job.squares.m, q = W.shape[0], c, p, parts = parts_of(n // 4, m, q)
    same(W.shape[1], n)
    same(out.shape[0], q)
    same(out.shape[1], m)
    if not q:
        return
    job.lines, job.stride, job.size = &W[0, 0], n, m
    memset(&out[0, 0], 0, q * m * sizeof(double))
    job.items = <Item *>calloc(q * parts, sizeof(Item))
    cdef double *more = <double *>calloc(q * parts * m, sizeof(double))
    try:
        if job.items == NULL or more == NULL:
            raise MemoryError("no memory for sums over rows")
        for c in range(q):
            for p in range(parts):
                set_item(&job.items[c * parts + p], c, p, parts, n, &out[c, 0], more + (c * parts + p) * m)
        run_items(&job, back_job, q * parts, team, helpers)
        with nogil:
            sum_parts(&job, q * parts)
    finally:
        free(job.items)
        free(more)


def backward(K, rows, const double[:, :] W, V, squares, pulls, double[::1] out, Team team=None, int helpers=0):
    """out += the sums behind the gradient of a Gaussian model over rows with kernel values K.

    With P_ij = K_ij sum_c W_ci V_cj, or K_ij W_i for one output: lines of P' A, P' |f x|^2 and P' 1 of each point, (m, d + 2), and
    with `pulls` then (A * A)' P pulls, (d,). `rows` are an array or the data, features and starts of CSR rows, in the precision of
    K. V (q, m) and pulls (m,) are filled up to full panels, and `squares` are f^2.
    """
    cdef SumJob job
    cdef list held = []
    take_values(&job, K, held)
    cdef Backward *b = &job.backward
    cdef Py_ssize_t n = job.squares.n, m = job.squares.m, q = W.shape[0], d = len(squares), across, i, c, p, parts, count = 0, size
    cdef bint any_slope
    number = b"d" if job.double else b"f"
    across = (m + LANES - 1) // LANES * LANES
    same(W.shape[1], n)
    if W.strides[1] != sizeof(double) or W.strides[0] % <Py_ssize_t>sizeof(double) or not q:
        raise ValueError(f"slopes of {q} outputs, not in lines")
    size = m * (d + 2) + (d if pulls is not None else 0)
    same(out.shape[0], size)
    b.K, b.stride, b.points, b.features, b.outputs = job.squares.K, job.squares.stride, m, d, q
    b.W, b.w_stride = &W[0, 0], W.strides[0] // <Py_ssize_t>sizeof(double)
    b.squares = address(squares, number, d, held)
    if pulls is not None:
        b.pulls = address(pulls, number, across, held)
    if q > 1:
        b.V = address(V, number, q * across, held)
    if isinstance(rows, tuple):
        size = len(rows[2]) - 1
        b.data = address(rows[0], number, len(rows[0]), held)
        b.features_of = <const int32_t *>address(rows[1], b"i", len(rows[0]), held)
        b.starts = <const int32_t *>address(rows[2], b"i", size + 1, held)
        if not ascends(b.starts, size) or b.starts[size] > len(rows[0]):
            raise ValueError(f"rows must start at ascending entries up to {len(rows[0])}")
    else:
        size = rows.shape[0]
        b.rows = address(rows, number, size * d, held)
    same(size, n)
    job.lists = <ptrdiff_t *>malloc((n + 1) * sizeof(ptrdiff_t))
    job.items = <Item *>calloc(MOST_PARTS, sizeof(Item))
    cdef double *more = NULL
    try:
        if job.lists == NULL or job.items == NULL:
            raise MemoryError("no memory for sums over rows")
        with nogil:
            for i in range(n):
                any_slope = False
                for c in range(q):
                    any_slope |= b.W[c * b.w_stride + i] != 0
                job.lists[count] = i
                count += any_slope
        job.size, parts = out.shape[0], parts_of(count, out.shape[0], 1)
        more = <double *>calloc(parts * job.size, sizeof(double))
        if more == NULL:
            raise MemoryError("no memory for sums over rows")
        for p in range(parts):
            set_item(&job.items[p], 0, p, parts, count, &out[0], more + p * job.size)
        run_items(&job, backward_job, parts, team, helpers)
        with nogil:
            sum_parts(&job, parts)
    finally:
        free(job.lists)
        free(job.items)
        free(more)
