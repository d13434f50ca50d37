"""The compiled part: tiles, the inner SMO loop, line searches, merging, and expansions of a few rows.

Each function checks shapes, releases the interpreter lock and calls the C build chosen at import.
"""

from libc.math cimport INFINITY, exp, fabs, log
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

cdef extern from "core.h" nogil:
    int LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2
    ctypedef struct Form:
        int kernel
        double gamma
        double coef0
        long degree
    ctypedef struct Line:
        const double *low
        const double *high
        const double *outputs
        const double *change
        const double *weights
        double linear
        double quadratic
    ctypedef struct Build:
        const char *name
        void (*rbf_tail)(float, float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *) noexcept nogil
        void (*rbf_tail_dot)(float, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *,
                             const float *, double *) noexcept nogil
        void (*sparse_dot)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const float *,
                           float *) noexcept nogil
        void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        long (*smo_float)(const float *, ptrdiff_t, const float *, const double *, double *, float *, float *, double,
                          long, ptrdiff_t, double, double *) noexcept nogil
        long (*smo_double)(const double *, ptrdiff_t, const double *, const double *, double *, double *, double *,
                           double, long, ptrdiff_t, double, double *) noexcept nogil
        void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,
                          const double *, ptrdiff_t, const double *, double *) noexcept nogil
        double (*line_minimum)(const Line *, ptrdiff_t, double, double, long) noexcept nogil
        double (*line_move)(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *) noexcept nogil
    const int LANES
    const Build *best_build()

cdef const Build *build = best_build()

SPARSE_LANES = LANES


def instruction_set():
    """The name of the build in use: "avx512", "avx2" or "base"."""
    return build.name.decode()


cdef int same(Py_ssize_t given, Py_ssize_t wanted) except -1:
    if given != wanted:
        raise ValueError(f"arrays of {given} and {wanted} elements where equal lengths are needed")
    return 0


def rbf_tail(double scale, float[:, ::1] G, const float[::1] a, const float[::1] b):
    """G <- 2^(2 scale G - a - b) in place: the RBF kernel for scale = gamma log2(e), a and b scale times squared norms."""
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail(<float>scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0])


def rbf_tail_dot(double scale, const float[:, ::1] G, const float[::1] a, const float[::1] b, const float[::1] v,
                 double[::1] out):
    """out += 2^(2 scale G - a - b) @ v in one pass."""
    same(a.shape[0], G.shape[0])
    same(out.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(v.shape[0], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_dot(<float>scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0], &v[0], &out[0])


cdef bint ascends(const int32_t *starts, Py_ssize_t m) noexcept nogil:
    """Whether starts[0] .. starts[m] ascend from 0 or more."""
    cdef Py_ssize_t t
    cdef bint fine = starts[0] >= 0
    for t in range(m):
        fine &= starts[t] <= starts[t + 1]
    return fine


def sparse_dot(const float[::1] data, const int32_t[::1] features, const int32_t[::1] starts, Py_ssize_t width,
               const float[:, ::1] Bt, float[:, ::1] G):
    """G <- A B' for the CSR rows A = (data, features, starts[0]..starts[m]); Bt is width x LANES, G is m x LANES.

    The caller has checked once that all features are below `width` (`rows.precision.narrow`): looking at each of them in
    every call would cost a tenth of the time with few points.
    """
    cdef Py_ssize_t m = G.shape[0]
    same(starts.shape[0], m + 1)
    same(Bt.shape[0], width)
    same(Bt.shape[1], LANES)
    same(G.shape[1], LANES)
    if not ascends(&starts[0], m) or starts[m] > data.shape[0] or data.shape[0] != features.shape[0]:
        raise ValueError(
            f"rows must start at ascending entries up to {data.shape[0]} values and {features.shape[0]} features; they "
            f"start at {starts[0]} and end at {starts[m]}"
        )
    if starts[0] == starts[m]:
        G[:, :] = 0
    else:
        with nogil:
            build.sparse_dot(&data[0], &features[0], &starts[0], m, &Bt[0, 0], &G[0, 0])


def sum_rows(const float[:, ::1] rows, const Py_ssize_t[::1] which, const float[::1] v, Py_ssize_t start,
             Py_ssize_t stop, double[::1] out):
    """out[start:stop] += v @ rows[which, start:stop] without a copy of the rows."""
    cdef Py_ssize_t count = which.shape[0], s
    same(v.shape[0], count)
    same(out.shape[0], rows.shape[1])
    if not 0 <= start <= stop <= rows.shape[1]:
        raise ValueError(f"columns {start}:{stop} of {rows.shape[1]}")
    if count == 0 or start == stop:
        return
    cdef const float **pointers = <const float **>malloc(count * sizeof(float *))
    if pointers == NULL:
        raise MemoryError
    try:
        for s in range(count):
            if not 0 <= which[s] < rows.shape[0]:
                raise IndexError(f"row {which[s]} of {rows.shape[0]}")
            pointers[s] = &rows[which[s], start]
        with nogil:
            build.sum_rows(pointers, &v[0], count, stop - start, &out[start])
    finally:
        free(pointers)


ctypedef fused real:
    float
    double


cdef Py_ssize_t positives_first(const real[::1] y) except -1:
    """The number of rows of label +1, all of which must come first."""
    cdef Py_ssize_t split = 0, k
    while split < y.shape[0] and y[split] > 0:
        split += 1
    for k in range(split, y.shape[0]):
        if y[k] > 0:
            raise ValueError(f"row {k} has label +1 after rows of label -1; where the sum is limited those come last")
    return split


def smo(const real[:, ::1] K, const real[::1] y, const double[::1] cap, double[::1] alpha, real[::1] v, double tol,
        long max_steps, double room=INFINITY):
    """Pair steps on a dense block until its largest violation is within `tol`; alpha and v change in place.

    With `room`, the sum of alpha may grow by that much at most; rows of label +1 then come before those of -1.
    Returns the number of steps and the largest violation left.
    """
    cdef Py_ssize_t w = K.shape[0]
    cdef double gap = 0
    cdef long steps
    for size in (K.shape[1], y.shape[0], cap.shape[0], alpha.shape[0], v.shape[0]):
        same(size, w)
    if w == 0:
        return 0, 0.0
    cdef Py_ssize_t split = positives_first(y) if room < INFINITY else w
    cdef real *work = <real *>malloc((5 * w + 1) * sizeof(real))
    if work == NULL:
        raise MemoryError
    try:
        with nogil:
            if real is float:
                steps = build.smo_float(&K[0, 0], w, &y[0], &cap[0], &alpha[0], &v[0], work, tol, max_steps,
                                        split, room, &gap)
            else:
                steps = build.smo_double(&K[0, 0], w, &y[0], &cap[0], &alpha[0], &v[0], work, tol, max_steps,
                                         split, room, &gap)
    finally:
        free(work)
    return steps, gap


cdef double merge_share(double a, double c, double b, double far) noexcept nogil:
    """The h in [0, 1/2] that maximises a u^2 + 2 c u v + b v^2, u = exp(-far (1 - h)^2), v = exp(-far h^2), for a <= b.

    With r = u / v the derivative has the sign of a r^2 (1 - h) + c r (1 - 2 h) - b h: Newton steps, kept between the
    bounds of its zero.
    """
    cdef double low = 0, high = 0.5, h = 0, r = exp(-far), value, slope, step
    if (a * r + c) * r <= 1e-16 * b:
        return 0  # as good as the partner itself
    for _ in range(60):
        r = exp(far * (2 * h - 1))
        value = (a * r * (1 - h) + c * (1 - 2 * h)) * r - b * h
        if value > 0:
            low = h
        else:
            high = h
        slope = (4 * far * a * r * (1 - h) - a * r + 2 * c * (far * (1 - 2 * h) - 1)) * r - b
        step = h - value / slope if slope < 0 else low - 1
        if not low <= step <= high:
            step = (low + high) / 2
        if fabs(step - h) <= 1e-15 * high:
            return step
        h = step
    return h


def best_merge(Py_ssize_t point, const double[::1] squares, const double[::1] products, const double[::1] kernel):
    """The other Gaussian point to merge with one, and the share h of that one in the merged point.

    `squares` are |c_j|^2 of all points, `products` <c_j, c> and `kernel` k(z_j, z) with the point's own c and z. Merged into
    h z + (1 - h) z_j, the pair loses |c|^2 + |c_j|^2 + 2 <c, c_j> k - |c u + c_j v|^2 with u and v as above; the least wins.
    The point has the smallest square of all, so that h is 1/2 at most.
    """
    cdef Py_ssize_t m = squares.shape[0], j, best = -1
    cdef double a, b, c, far, h, u, v, loss, least = 0, share = 0
    same(products.shape[0], m)
    same(kernel.shape[0], m)
    if m < 2 or not 0 <= point < m:
        raise ValueError(f"point {point} of {m} has no other to merge with")
    with nogil:
        a = squares[point]
        for j in range(m):
            if j == point:
                continue
            b, c = squares[j], products[j]
            far = -log(kernel[j]) if kernel[j] > 1e-300 else 690.0
            h = merge_share(a, c, b, far)
            u, v = exp(-far * (1 - h) * (1 - h)), exp(-far * h * h)
            loss = a + b + 2 * c * kernel[j] - (a * u * u + 2 * c * u * v + b * v * v)
            if best < 0 or loss < least:
                best, least, share = j, loss, h
    return best, share


def expansion(int form, double gamma, double coef0, long degree, const double[:, ::1] X, const double[:, ::1] points,
              const double[:, ::1] coef, const double[::1] bias, double[:, ::1] out):
    """out <- K(X, points) @ coef + bias for the kernel of number `form` in core.h, in double, row by row."""
    if not LINEAR <= form <= CHI2:
        raise ValueError(f"no kernel has the number {form}")
    cdef Form kernel = Form(form, gamma, coef0, degree)
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], m = points.shape[0], q = coef.shape[1]
    same(points.shape[1], d)
    same(coef.shape[0], m)
    same(bias.shape[0], q)
    same(out.shape[0], n)
    same(out.shape[1], q)
    if n and d and m and q:
        with nogil:
            build.expansion(&kernel, &X[0, 0], n, d, &points[0, 0], m, &coef[0, 0], q, &bias[0], &out[0, 0])
    else:
        out[:, :] = bias


def line_minimum(const double[::1] low, const double[::1] high, const double[::1] outputs, const double[::1] change,
                 const double[::1] weights, double linear, double quadratic, double start, double precision, long steps):
    """The t with the least value of quadratic t^2 + 2 linear t + sum_i w_i dist(f_i + t df_i, [low_i, high_i])^2.

    Newton steps from `start` until one is within `precision` of t, `steps` at most.
    """
    cdef Py_ssize_t n = low.shape[0]
    cdef double t = start
    for size in (high.shape[0], outputs.shape[0], change.shape[0], weights.shape[0]):
        same(size, n)
    if n == 0:
        return -linear / quadratic if quadratic > 0 else start
    cdef Line line = Line(&low[0], &high[0], &outputs[0], &change[0], &weights[0], linear, quadratic)
    with nogil:
        t = build.line_minimum(&line, n, start, precision, steps)
    return t


def line_move(const double[::1] low, const double[::1] high, const double[::1] change, const double[::1] weights,
              double t, double[::1] outputs, double[::1] residual):
    """outputs += t change, residual <- what brings the outputs into [low, high].

    Returns sum_i w_i residual_i^2 and the number of rows that entered or left their interval.
    """
    cdef Py_ssize_t n = low.shape[0]
    cdef ptrdiff_t switched = 0
    cdef double total = 0
    for size in (high.shape[0], change.shape[0], weights.shape[0], outputs.shape[0], residual.shape[0]):
        same(size, n)
    if n == 0:
        return 0.0, 0
    cdef Line line = Line(&low[0], &high[0], NULL, &change[0], &weights[0], 0, 0)
    with nogil:
        total = build.line_move(&line, n, t, &outputs[0], &residual[0], &switched)
    return total, switched
