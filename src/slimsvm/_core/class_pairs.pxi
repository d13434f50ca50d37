# SMO for many small problems of two classes.

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
    """Compute v = y - f anew, then the bias, the mean v of the free rows or the middle of the bounds, and the gap."""
    cdef Py_ssize_t k, t, free_rows = 0
    cdef double high = -INFINITY, low = INFINITY, total = 0, signed
    cdef bint rise, fall
    for k in range(w):
        p.v[k] = p.y[k]
    for t in range(w):
        signed = p.alpha[t] * p.y[t]
        if signed != 0:
            for k in range(w):
                p.v[k] -= signed * p.row[t][k]
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
