# SMO for many small problems of two classes.

#: rounds of pair steps by float32 kernel rows after which a pair is left as it is
cdef enum:
    ROUNDS = 20

cdef struct PairSpace:
    double *K
    const double **row
    double *diag
    double *y
    double *cap
    double *alpha
    double *v
    double *work


cdef void measure(Py_ssize_t w, const PairSpace *p, double *bias, double *gap) noexcept nogil:
    """Compute v = y - f anew, then the bias and the gap."""
    cdef Py_ssize_t k, t
    cdef double signed
    for k in range(w):
        p.v[k] = p.y[k]
    for t in range(w):
        signed = p.alpha[t] * p.y[t]
        if signed != 0:
            for k in range(w):
                p.v[k] -= signed * p.row[t][k]
    bias_and_gap(w, p, bias, gap)


cdef void bias_and_gap(Py_ssize_t w, const PairSpace *p, double *bias, double *gap) noexcept nogil:
    """Compute the bias, the mean v of the free rows or the middle of the bounds, and the gap."""
    cdef Py_ssize_t k, free_rows = 0
    cdef double high = -INFINITY, low = INFINITY, total = 0
    cdef bint rise, fall
    for k in range(w):
        rise, fall = p.alpha[k] < p.cap[k], p.alpha[k] > 0
        if rise and fall:
            free_rows += 1
            total += p.v[k]
        if (rise if p.y[k] > 0 else fall) and p.v[k] > high:
            high = p.v[k]
        if (fall if p.y[k] > 0 else rise) and p.v[k] < low:
            low = p.v[k]
    gap[0] = high - low if high > low else 0
    if free_rows:
        bias[0] = total / free_rows
    elif high > -INFINITY and low < INFINITY:
        bias[0] = (high + low) / 2
    else:
        bias[0] = high if high > -INFINITY else low


def smo_pairs(const double[:, ::1] own, const double[:, ::1] across, const double[::1] others,
              const Py_ssize_t[::1] sizes, const double[::1] cap, const double[::1] other_caps, double tol, double exact,
              int64_t max_steps, double[:, ::1] dual, double[::1] other_dual, double[::1] bias, double[::1] gap,
              int64_t[::1] steps):
    """Solve one class against each of several others: a row of `dual`, and `bias`, `gap` and `steps`, for each.

    `own` are the kernel values among the rows of the class, `across` those with all rows of the others, `others` the blocks
    of each other class, one after the other. Coefficients are signed, those of the class positive. A pair that reaches tol / 2
    within `max_steps` is solved on to `exact`, in a number of further steps that grows with its rows.
    """
    cdef Py_ssize_t m = own.shape[0], count = sizes.shape[0], j, k, t, w, at = 0, block = 0, most = 0, size
    cdef PairSpace p
    for j in range(count):
        if sizes[j] < 0:
            raise ValueError(f"a class of {sizes[j]} rows")
        at += sizes[j]
        block += sizes[j] * sizes[j]
        most = max(most, sizes[j])
    for given, wanted in ((own.shape[1], m), (across.shape[0], m), (across.shape[1], at), (others.shape[0], block),
                          (cap.shape[0], m), (other_caps.shape[0], at), (dual.shape[0], count), (dual.shape[1], m),
                          (other_dual.shape[0], at), (bias.shape[0], count), (gap.shape[0], count),
                          (steps.shape[0], count)):
        same(given, wanted)
    if m == 0 or most == 0:
        return
    w = m + most
    cdef double *space = <double *>malloc((w * w + 7 * w) * sizeof(double))
    p.row = <const double **>malloc(w * sizeof(double *))
    if space == NULL or p.row == NULL:
        free(space)
        free(p.row)
        raise MemoryError
    p.K, p.diag, p.y, p.cap = space, space + w * w, space + w * w + w, space + w * w + 2 * w
    p.alpha, p.v, p.work = space + w * w + 3 * w, space + w * w + 4 * w, space + w * w + 5 * w
    at, block = 0, 0
    with nogil:
        for j in range(count):
            size = sizes[j]
            w = m + size
            for k in range(w):
                p.row[k] = p.K + k * w
            for k in range(m):
                for t in range(m):
                    p.K[k * w + t] = own[k, t]
                for t in range(size):
                    p.K[k * w + m + t] = across[k, at + t]
                    p.K[(m + t) * w + k] = across[k, at + t]
            for k in range(size):
                for t in range(size):
                    p.K[(m + k) * w + m + t] = others[block + k * size + t]
            for k in range(w):
                p.diag[k], p.alpha[k] = p.K[k * w + k], 0
                p.y[k] = 1 if k < m else -1
                p.v[k] = p.y[k]
                p.cap[k] = cap[k] if k < m else other_caps[at + k - m]
            steps[j] = build.smo_double(p.row, NULL, NULL, p.diag, w, p.y, p.cap, p.alpha, p.v, p.work, tol / 2,
                                        max_steps, w, INFINITY, &gap[j])
            if gap[j] <= tol / 2:
                build.smo_double(p.row, NULL, NULL, p.diag, w, p.y, p.cap, p.alpha, p.v, p.work, exact, 1000 + 20 * w,
                                 w, INFINITY, &gap[j])
            measure(w, &p, &bias[j], &gap[j])
            for k in range(m):
                dual[j, k] = p.alpha[k]
            for k in range(size):
                other_dual[at + k] = -p.alpha[m + k]
            at += size
            block += size * size
    free(space)
    free(p.row)


cdef int measure_rows(Py_ssize_t w, RbfSource *source, const float **row, const double *y, const double *cap, const double *alpha,
                      double *v, double *bias, double *gap) except -1 nogil:
    """Do what `measure` does, with kernel rows that are evaluated when a coefficient is not 0."""
    cdef PairSpace p
    cdef Py_ssize_t k, t
    cdef double signed
    for k in range(w):
        v[k] = y[k]
    for t in range(w):
        signed = alpha[t] * y[t]
        if signed != 0:
            if row[t] == NULL:
                row[t] = build.rbf_row(source, t)
            for k in range(w):
                v[k] -= signed * row[t][k]
    p.v, p.y, p.alpha, p.cap = v, <double *>y, <double *>alpha, <double *>cap
    bias_and_gap(w, &p, bias, gap)
    return 0


def rbf_pairs(double scale, const float[:, ::1] X, const float[::1] norms, const Py_ssize_t[::1] own, const Py_ssize_t[::1] others,
              const Py_ssize_t[::1] sizes, const double[::1] cap, const double[::1] other_caps, double tol, int64_t max_steps,
              double[:, ::1] dual, double[::1] other_dual, double[::1] bias, double[::1] gap, int64_t[::1] steps):
    """Do what `smo_pairs` does for the rbf kernel of rows X, by kernel rows that are evaluated when a step first needs them.

    `own` and `others` are the numbers of the rows of the class and, one class after the other, of the others. `scale` and `norms`
    are those of `RbfRows`. A pair runs until its gap is within tol, or `max_steps` are made in a round. Returns the number of
    kernel values.
    """
    cdef Py_ssize_t m = own.shape[0], count = sizes.shape[0], d = X.shape[1], j, k, f, w, at = 0, most = 0, panels, evaluated = 0, rounds
    cdef const Py_ssize_t *place
    cdef RbfSource source
    for j in range(count):
        if sizes[j] < 0:
            raise ValueError(f"a class of {sizes[j]} rows")
        at += sizes[j]
        most = max(most, sizes[j])
    for given, wanted in ((norms.shape[0], X.shape[0]), (others.shape[0], at), (cap.shape[0], m), (other_caps.shape[0], at),
                          (dual.shape[0], count), (dual.shape[1], m), (other_dual.shape[0], at), (bias.shape[0], count),
                          (gap.shape[0], count), (steps.shape[0], count)):
        same(given, wanted)
    for k in range(m):
        if not 0 <= own[k] < X.shape[0]:
            raise IndexError(f"row {own[k]} of {X.shape[0]}")
    for k in range(at):
        if not 0 <= others[k] < X.shape[0]:
            raise IndexError(f"row {others[k]} of {X.shape[0]}")
    if m == 0 or most == 0:
        return 0
    w = m + most
    panels = (w + LANES - 1) // LANES
    cdef double *space = <double *>malloc(4 * w * sizeof(double))
    cdef float *numbers = <float *>malloc((panels * LANES * (d + 1) + 5 * w) * sizeof(float))
    cdef const float **row = <const float **>malloc(w * sizeof(float *))
    cdef float *values = <float *>malloc(w * panels * LANES * sizeof(float))
    if space == NULL or numbers == NULL or row == NULL or values == NULL:
        free(space)
        free(numbers)
        free(row)
        free(values)
        raise MemoryError
    cdef double *y = space
    cdef double *caps = space + w
    cdef double *alpha = space + 2 * w
    cdef double *v = space + 3 * w
    cdef float *points = numbers
    cdef float *lengths = numbers + panels * LANES * d
    cdef float *signs = lengths + panels * LANES
    cdef float *slope = signs + w
    cdef float *work = slope + w
    at = 0
    try:
        with nogil:
            for j in range(count):
                w = m + sizes[j]
                source.panels, source.features, source.evaluated = (w + LANES - 1) // LANES, d, 0
                source.scale, source.points, source.norms, source.space = <float>scale, points, lengths, values
                memset(points, 0, source.panels * LANES * d * sizeof(float))
                memset(lengths, 0, source.panels * LANES * sizeof(float))
                for k in range(w):
                    place = &own[k] if k < m else &others[at + k - m]
                    lengths[k] = norms[place[0]]
                    for f in range(d):
                        points[(k // LANES * d + f) * LANES + k % LANES] = X[place[0], f]
                    row[k], alpha[k], work[k] = NULL, 0, 1
                    y[k] = 1 if k < m else -1
                    v[k] = signs[k] = y[k]
                    caps[k] = cap[k] if k < m else other_caps[at + k - m]
                gap[j], steps[j] = INFINITY, 0
                for rounds in range(ROUNDS):
                    for k in range(w):
                        slope[k] = v[k]
                    steps[j] += build.smo_float(row, build.rbf_row, &source, work, w, signs, caps, alpha, slope, work + w, 0.5 * tol,
                                                max_steps, w, INFINITY, &gap[j])
                    measure_rows(w, &source, row, y, caps, alpha, v, &bias[j], &gap[j])
                    if gap[j] <= tol or steps[j] >= max_steps:
                        break
                evaluated += source.evaluated * w
                for k in range(m):
                    dual[j, k] = alpha[k]
                for k in range(sizes[j]):
                    other_dual[at + k] = -alpha[m + k]
                at += sizes[j]
    finally:
        free(space)
        free(numbers)
        free(row)
        free(values)
    return evaluated
