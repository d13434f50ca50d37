# SMO for a problem whose kernel matrix is in memory.

cdef void add_row(const real *row, double weight, Py_ssize_t w, double *total) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(w):
        total[k] += weight * row[k]


def settle(const real[:, :] K, const double[::1] linear, const double[::1] y, const double[::1] cap, double[::1] alpha,
           double[::1] f, double tol, int64_t max_steps):
    """Pair steps on all rows until the largest violation, with f summed up in double, is within `tol`.

    `f` is K (y alpha) at the start and at the end; alpha and f change in place. Rows with a cap of 0 keep their alpha, and
    get their f. The rows of K are contiguous. Returns the number of steps and the largest violation left. It ends early after `max_steps`, or where steps
    make no progress any more.
    """
    cdef Py_ssize_t w = K.shape[0], k, count
    cdef int64_t steps = 0, most, made
    cdef double gap, left, high, low, best = INFINITY
    cdef int idle = 0
    for size in (K.shape[1], linear.shape[0], y.shape[0], cap.shape[0], alpha.shape[0], f.shape[0]):
        same(size, w)
    same(K.strides[1], sizeof(real))
    if w == 0:
        return 0, 0.0
    cdef real *work = <real *>malloc(5 * w * sizeof(real))
    cdef const real **row = <const real **>malloc(2 * w * sizeof(real *))
    cdef double *before = <double *>malloc(w * sizeof(double))
    cdef float *change = <float *>malloc(w * sizeof(float))
    cdef real *signs
    cdef real *v
    try:
        if work == NULL or row == NULL or before == NULL or change == NULL:
            raise MemoryError
        signs, v = work + 3 * w, work + 4 * w
        with nogil:
            for k in range(w):
                row[k] = &K[k, 0]
                work[k] = K[k, k]
                signs[k] = <real>y[k]
            while True:
                high, low = -INFINITY, INFINITY
                for k in range(w):
                    left = linear[k] - f[k]
                    v[k] = <real>left
                    before[k] = alpha[k]
                    if (alpha[k] < cap[k] if y[k] > 0 else alpha[k] > 0) and left > high:
                        high = left
                    if (alpha[k] > 0 if y[k] > 0 else alpha[k] < cap[k]) and left < low:
                        low = left
                gap = high - low if high > low else 0
                idle = 0 if gap < 0.9 * best else idle + 1
                best = min(best, gap)
                if gap <= tol or steps >= max_steps or idle > 20:
                    break
                most = min(max_steps - steps, 20000 + 4 * w)
                if real is float:
                    made = build.smo_float(row, NULL, NULL, work, w, signs, &cap[0], &alpha[0], v, work + w, 0.5 * tol,
                                           most, w, INFINITY, &left)
                else:
                    made = build.smo_double(row, NULL, NULL, work, w, signs, &cap[0], &alpha[0], v, work + w, 0.5 * tol,
                                            most, w, INFINITY, &left)
                steps += made
                count = 0
                for k in range(w):
                    if alpha[k] != before[k]:
                        row[w + count] = row[k]
                        before[count] = y[k] * (alpha[k] - before[k])
                        change[count] = <float>before[count]
                        count += 1
                if real is float:
                    build.sum_rows(row + w, change, count, w, &f[0])
                else:
                    for k in range(count):
                        add_row(row[w + k], before[k], w, &f[0])
                if made == 0:
                    break
    finally:
        free(work)
        free(row)
        free(before)
        free(change)
    return steps, gap


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
