# SMO for a problem whose kernel matrix is in memory.

cdef void add_row(const real *row, double weight, Py_ssize_t w, double *total) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(w):
        total[k] += weight * row[k]


# rows at a bound are solved for if they are within this share of the largest violation of violating optimality; more: fewer
# rounds, of longer steps
cdef double REACH = 0.05
# the violation to which these rows are solved, as a share of that of all rows; less: fewer rounds, of more steps
cdef double CLOSE = 0.03


cdef struct Settling:
    # a problem, and work space: diag, up and down in `work`; the rest has a number for each row
    ptrdiff_t w
    const double *linear
    const double *y
    const double *cap
    double *alpha
    double *f
    double *before
    double *part_cap
    double *part_alpha
    float *change
    Py_ssize_t *place


cdef double violation(const Settling *p, double *level) noexcept nogil:
    """The largest violation; `level` is the mean v of the free rows, or the middle of the bounds if no row is free."""
    cdef double high = -INFINITY, low = INFINITY, total = 0, v
    cdef Py_ssize_t k, free_rows = 0
    cdef bint rise, fall
    for k in range(p.w):
        v = p.linear[k] - p.f[k]
        rise, fall = p.alpha[k] < p.cap[k], p.alpha[k] > 0
        if rise and fall:
            free_rows += 1
            total += v
        if (rise if p.y[k] > 0 else fall) and v > high:
            high = v
        if (fall if p.y[k] > 0 else rise) and v < low:
            low = v
    if free_rows:
        level[0] = total / free_rows
    elif high == -INFINITY or low == INFINITY:
        level[0] = 0 if high == -low else low if high == -INFINITY else high
    else:
        level[0] = (high + low) / 2
    return high - low if high > low else 0


cdef Py_ssize_t near_margin(const Settling *p, double level, double reach) noexcept nogil:
    """Set `place` to the rows that are free or within reach of violating optimality; return their number."""
    cdef Py_ssize_t k, m = 0
    cdef double v
    cdef bint rise, fall
    for k in range(p.w):
        if p.cap[k] <= 0:
            continue
        v = p.linear[k] - p.f[k]
        rise, fall = p.alpha[k] < p.cap[k], p.alpha[k] > 0
        if not (rise and fall):
            if (rise if p.y[k] > 0 else fall) and v < level - reach:
                continue
            if (fall if p.y[k] > 0 else rise) and v > level + reach:
                continue
        p.place[m] = k
        m += 1
    return m


def settle(const real[:, :] K, const double[::1] linear, const double[::1] y, const double[::1] cap, double[::1] alpha,
           double[::1] f, double tol, int64_t max_steps, Py_ssize_t most_copied):
    """Pair steps until the largest violation of all rows, with f summed up in double, is within `tol`.

    `f` is K (y alpha) at the start and at the end; alpha and f change in place. Rows with a cap of 0 keep their alpha, and
    get their f. The rows of K are contiguous. Each round takes the rows that are free or near the margin, in a copy of their
    kernel values if they are few, `most_copied` at most, since steps pass over all of them. Returns the number of steps, the largest violation left,
    and the bias. It ends early after `max_steps`, or where steps make no progress any more.
    """
    cdef Py_ssize_t w = K.shape[0], k, j, m, count, room = 0
    cdef int64_t steps = 0, most, made
    cdef double gap, left, level, best = INFINITY, weight
    cdef int idle = 0
    cdef Settling p
    for size in (K.shape[1], linear.shape[0], y.shape[0], cap.shape[0], alpha.shape[0], f.shape[0]):
        same(size, w)
    same(K.strides[1], sizeof(real))
    if w == 0:
        return 0, 0.0, 0.0
    cdef real *block = NULL
    cdef real *line
    cdef real *work = <real *>malloc(5 * w * sizeof(real))
    cdef const real **row = <const real **>malloc(2 * w * sizeof(real *))
    cdef double *space = <double *>malloc(3 * w * sizeof(double))
    p.change = <float *>malloc(w * sizeof(float))
    p.place = <Py_ssize_t *>malloc(w * sizeof(Py_ssize_t))
    p.w, p.linear, p.y, p.cap, p.alpha, p.f = w, &linear[0], &y[0], &cap[0], &alpha[0], &f[0]
    p.before, p.part_cap, p.part_alpha = space, space + w, space + 2 * w
    cdef real *signs = work + 3 * w
    cdef real *v = work + 4 * w
    try:
        if work == NULL or row == NULL or space == NULL or p.change == NULL or p.place == NULL:
            raise MemoryError
        with nogil:
            while True:
                gap = violation(&p, &level)
                idle = 0 if gap < 0.9 * best else idle + 1
                best = min(best, gap)
                if gap <= tol or steps >= max_steps or idle > 20:
                    break
                m = near_margin(&p, level, REACH * gap)
                if m > 0.7 * w or m > most_copied:
                    m = w
                if m < w and m * m > room:
                    free(block)
                    room = m * m
                    block = <real *>malloc(room * sizeof(real))
                    if block == NULL:
                        with gil:
                            raise MemoryError
                for k in range(m):
                    j = p.place[k] if m < w else k
                    p.place[k] = j
                    row[k] = block + k * m if m < w else &K[j, 0]
                    work[k] = K[j, j]
                    signs[k] = <real>p.y[j]
                    v[k] = <real>(p.linear[j] - p.f[j])
                    p.part_cap[k], p.part_alpha[k] = p.cap[j], p.alpha[j]
                if m < w:
                    for k in range(m):
                        line = block + k * m
                        for j in range(m):
                            line[j] = K[p.place[k], p.place[j]]
                most = min(max_steps - steps, 20000 + 4 * w)
                left = max(CLOSE * gap, 0.5 * tol)
                if real is float:
                    made = build.smo_float(row, NULL, NULL, work, m, signs, p.part_cap, p.part_alpha, v, work + w, left,
                                           most, m, INFINITY, &weight)
                else:
                    made = build.smo_double(row, NULL, NULL, work, m, signs, p.part_cap, p.part_alpha, v, work + w, left,
                                            most, m, INFINITY, &weight)
                steps += made
                count = 0
                for k in range(m):
                    j = p.place[k]
                    if p.part_alpha[k] != p.alpha[j]:
                        row[w + count] = &K[j, 0]
                        p.before[count] = p.y[j] * (p.part_alpha[k] - p.alpha[j])
                        p.change[count] = <float>p.before[count]
                        p.alpha[j] = p.part_alpha[k]
                        count += 1
                if real is float:
                    build.sum_rows(row + w, p.change, count, w, p.f)
                else:
                    for k in range(count):
                        add_row(row[w + k], p.before[k], w, p.f)
    finally:
        free(work)
        free(row)
        free(space)
        free(p.change)
        free(p.place)
        free(block)
    return steps, gap, level


def gathered(const real[:, ::1] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns, real[:, :] out):
    """out <- K[rows][:, columns]."""
    cdef Py_ssize_t i, j, n = rows.shape[0], m = columns.shape[0]
    cdef const real *line
    cdef real *target
    same(out.shape[0], n)
    same(out.shape[1], m)
    same(out.strides[1], sizeof(real))
    for i in range(n):
        if not 0 <= rows[i] < K.shape[0]:
            raise IndexError(f"row {rows[i]} of {K.shape[0]}")
    for j in range(m):
        if not 0 <= columns[j] < K.shape[1]:
            raise IndexError(f"column {columns[j]} of {K.shape[1]}")
    if n == 0 or m == 0:
        return
    with nogil:
        for i in range(n):
            line, target = &K[rows[i], 0], &out[i, 0]
            for j in range(m):
                target[j] = line[columns[j]]
