# cython: freethreading_compatible=True
"""The compiled part: passes over float tiles, the inner SMO loop, merging, and expansions of a few rows.

Each function checks shapes, releases the interpreter lock and calls the C build chosen at import.
"""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    Py_buffer,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.math cimport INFINITY, exp, fabs, log
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp

cdef extern from "core.h" nogil:
    int LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2
    ctypedef struct Form:
        int kernel
        double gamma
        double coef0
        int64_t degree
    ctypedef struct Build:
        const char *name
        void (*rbf_tail)(float, float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *) noexcept nogil
        void (*rbf_tail_dot)(float, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *,
                             const float *, double *) noexcept nogil
        void (*sparse_dot)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const float *,
                           float *) noexcept nogil
        void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        int64_t (*smo_float)(const float *, ptrdiff_t, const float *, const double *, double *, float *, float *, double,
                          int64_t, ptrdiff_t, double, double *) noexcept nogil
        int64_t (*smo_double)(const double *, ptrdiff_t, const double *, const double *, double *, double *, double *,
                           double, int64_t, ptrdiff_t, double, double *) noexcept nogil
        void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,
                          const double *, ptrdiff_t, const double *, double *) noexcept nogil
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
        int64_t max_steps, double room=INFINITY):
    """Pair steps on a dense block until its largest violation is within `tol`; alpha and v change in place.

    With `room`, the sum of alpha may grow by that much at most; rows of label +1 then come before those of -1.
    Returns the number of steps and the largest violation left.
    """
    cdef Py_ssize_t w = K.shape[0]
    cdef double gap = 0
    cdef int64_t steps
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


cdef int hold(object array, Py_buffer *view, int axes, int flags) except -1:
    """Take hold of a contiguous array of doubles until PyBuffer_Release."""
    PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | flags)
    if view.ndim != axes or strcmp(view.format, b"d") != 0:
        try:
            raise ValueError(
                f"an array of {view.ndim} axes and format {view.format.decode()!r} where {axes} axes and doubles are needed"
            )
        finally:
            PyBuffer_Release(view)
    return 0


def expansion(int form, double gamma, double coef0, int64_t degree, X, points, coef, bias, out):
    """out <- K(X, points) @ coef + bias for the kernel of number `form` in core.h, in double, row by row.

    Buffers, not memoryviews: making five of those would take longer than the sum over a few points.
    """
    if not LINEAR <= form <= CHI2:
        raise ValueError(f"no kernel has the number {form}")
    cdef Form kernel = Form(form, gamma, coef0, degree)
    cdef Py_buffer views[5]
    cdef Py_buffer *x = views, *z = views + 1, *c = views + 2, *b = views + 3, *o = views + 4
    cdef Py_ssize_t n, d, m, q
    cdef int held = 0
    try:
        for array in (X, points, coef, bias, out):
            hold(array, views + held, 1 if held == 3 else 2, PyBUF_WRITABLE if held == 4 else 0)
            held += 1
        n, d, m, q = x.shape[0], x.shape[1], z.shape[0], c.shape[1]
        same(z.shape[1], d)
        same(c.shape[0], m)
        same(b.shape[0], q)
        same(o.shape[0], n)
        same(o.shape[1], q)
        with nogil:
            build.expansion(&kernel, <const double *>x.buf, n, d, <const double *>z.buf, m if d else 0,
                            <const double *>c.buf, q, <const double *>b.buf, <double *>o.buf)
    finally:
        while held:
            held -= 1
            PyBuffer_Release(views + held)
