# cython: freethreading_compatible=True
"""The compiled part: tiles, the inner SMO loop, line searches, merging, and expansions of a few rows.

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
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.math cimport INFINITY, exp, fabs, log
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport strcmp

cdef extern from "core.h" nogil:
    int LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2
    ctypedef struct Form:
        int kernel
        double gamma
        double coef0
        int64_t degree
    ctypedef struct RbfSource:
        ptrdiff_t panels, features, evaluated
        float scale
        const float *points
        const float *norms
        float *space
    ctypedef struct SparsePanel:
        ptrdiff_t groups, frequent
        const int32_t *place
        const float *lines
        const int32_t *post_starts
        const int32_t *post_points
        const float *post_values
    ctypedef struct Line:
        const double *low
        const double *high
        const double *outputs
        const double *change
        const double *weights
        double linear
        double quadratic
    ctypedef void (*Ssyrk)(char *, char *, int *, int *, float *, float *, int *, float *, float *, int *) noexcept nogil
    ctypedef struct Squares:
        const float *K
        ptrdiff_t n, m, stride
        const double *weights
        Ssyrk syrk
        ptrdiff_t block
        float *square
        float *lines
        ptrdiff_t *changed
    ctypedef struct Build:
        const char *name
        void (*rbf_tail)(float, float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *,
                         const float *) noexcept nogil
        void (*rbf_tail_dot)(float, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *,
                             const float *, const float *, double *) noexcept nogil
        void (*rbf_tail_double)(double, double *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *,
                                const double *) noexcept nogil
        void (*rbf_tail_mixed)(double, const double *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *,
                               float *) noexcept nogil
        void (*rbf_tail_dot_mixed)(double, const double *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *,
                                   const double *, const double *, double *) noexcept nogil
        ptrdiff_t (*near_box)(const double *, const double *, ptrdiff_t, const double *, ptrdiff_t, double, double *,
                              ptrdiff_t *) noexcept nogil
        void (*sparse_panel)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const SparsePanel *, int32_t *,
                             float *, int32_t *, float *) noexcept nogil
        void (*sparse_dot)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const float *,
                           float *) noexcept nogil
        void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        const float *(*rbf_row)(void *, ptrdiff_t) noexcept nogil
        int64_t (*smo_float)(const float **, const float *(*)(void *, ptrdiff_t) noexcept nogil, void *, const float *,
                          ptrdiff_t, const float *, const double *, double *, float *, float *, double, int64_t, ptrdiff_t,
                          double, double *) noexcept nogil
        int64_t (*smo_double)(const double **, const double *(*)(void *, ptrdiff_t) noexcept nogil, void *, const double *,
                           ptrdiff_t, const double *, const double *, double *, double *, double *, double, int64_t,
                           ptrdiff_t, double, double *) noexcept nogil
        void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,
                          const double *, const double *, ptrdiff_t, const double *, double *) noexcept nogil
        double (*line_minimum)(const Line *, ptrdiff_t, double, double, int64_t) noexcept nogil
        double (*line_move)(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *) noexcept nogil
        void (*update_curvature)(const Squares *, const double *, unsigned char *, int, double *) noexcept nogil
        void (*solve_factored)(const double *, ptrdiff_t, double *) noexcept nogil
        void (*times_columns)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, ptrdiff_t, ptrdiff_t, double *,
                              ptrdiff_t) noexcept nogil
        void (*back_line)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, float *, double *) noexcept nogil
    const int LANES
    const Build *best_build()

cdef const Build *build = best_build()

SPARSE_LANES = LANES
#: numbers of outputs that kernel values can be multiplied with at a time
OUTPUT_COLUMNS = (8, 16)
#: rows and points of one product of BLAS, whose sizes are C's int
cdef enum:
    MOST_ROWS = 1 << 24


def instruction_set():
    """The name of the build in use: "avx512", "avx2" or "base"."""
    return build.name.decode()


cdef int same(Py_ssize_t given, Py_ssize_t wanted) except -1:
    if given != wanted:
        raise ValueError(f"arrays of {given} and {wanted} elements where equal lengths are needed")
    return 0


cdef int same_or_none(const float[::1] widths, Py_ssize_t wanted) except -1:
    return 0 if widths is None else same(widths.shape[0], wanted)


def rbf_tail(double scale, float[:, ::1] G, const float[::1] a, const float[::1] b, const float[::1] widths=None):
    """G <- 2^(2 scale G - a - b) in place: the RBF kernel for scale = gamma log2(e), a and b scale times squared norms.

    `widths` has a factor of the exponent for each column.
    """
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same_or_none(widths, G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail(<float>scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0],
                           NULL if widths is None else &widths[0])


def rbf_tail_dot(double scale, const float[:, ::1] G, const float[::1] a, const float[::1] b, const float[::1] v,
                 double[::1] out, const float[::1] widths=None):
    """out += 2^(2 scale G - a - b) @ v in one pass; `widths` as in `rbf_tail`."""
    same(a.shape[0], G.shape[0])
    same(out.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(v.shape[0], G.shape[1])
    same_or_none(widths, G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_dot(<float>scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0],
                               NULL if widths is None else &widths[0], &v[0], &out[0])


def rbf_tail_double(double scale, double[:, ::1] G, const double[::1] a, const double[::1] b):
    """Do what `rbf_tail` does, in double."""
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_double(scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0])


def rbf_tail_mixed(double scale, const double[:, ::1] G, const double[::1] a, const double[::1] b, float[:, ::1] K):
    """K <- 2^(2 scale G - a - b) in float, from exponents in double."""
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(K.shape[0], G.shape[0])
    same(K.shape[1], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_mixed(scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0], &K[0, 0])


def rbf_tail_dot_mixed(double scale, const double[:, ::1] G, const double[::1] a, const double[::1] b,
                       const double[::1] v, double[::1] out):
    """out += 2^(2 scale G - a - b) @ v with powers in float, exponents and sums in double."""
    same(a.shape[0], G.shape[0])
    same(out.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(v.shape[0], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_dot_mixed(scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0], &v[0], &out[0])


def near_box(const double[::1] low, const double[::1] high, const double[:, ::1] Zt, double reach, double[::1] scratch,
             Py_ssize_t[::1] found):
    """found <- the points, columns of Zt, whose squared distance from the box [low, high] is at most `reach`; their number.

    The box has an axis for each line of Zt. `scratch` and `found` have a place for each point.
    """
    cdef Py_ssize_t axes = Zt.shape[0], m = Zt.shape[1], count = 0
    same(low.shape[0], axes)
    same(high.shape[0], axes)
    same(scratch.shape[0], m)
    same(found.shape[0], m)
    if axes == 0:
        raise ValueError("a box without axes is near everything")
    if m:
        with nogil:
            count = build.near_box(&low[0], &high[0], axes, &Zt[0, 0], m, reach, &scratch[0], <ptrdiff_t *>&found[0])
    return count


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


def sparse_panel(const float[::1] data, const int32_t[::1] features, const int32_t[::1] starts, const int32_t[::1] place,
                 const float[:, :, ::1] lines, const int32_t[::1] post_starts, const int32_t[::1] post_points,
                 const float[::1] post_values, float[:, ::1] G):
    """G <- A B' for the CSR rows A = (data, features, starts[0]..starts[m]) and sparse points B, as core.h has them.

    `place` and `post_starts` have a number for each feature (and one more). The caller has checked once that all features
    of A are below their number, places are below that of lines, and postings are points of G.
    """
    cdef Py_ssize_t m = G.shape[0], entries = 0
    same(starts.shape[0], m + 1)
    same(post_starts.shape[0], place.shape[0] + 1)
    same(post_points.shape[0], post_values.shape[0])
    same(lines.shape[2], LANES)
    same(G.shape[1], lines.shape[0] * LANES)
    if not ascends(&starts[0], m) or starts[m] > data.shape[0] or data.shape[0] != features.shape[0]:
        raise ValueError(
            f"rows must start at ascending entries up to {data.shape[0]} values and {features.shape[0]} features; they "
            f"start at {starts[0]} and end at {starts[m]}"
        )
    entries = starts[m] - starts[0]
    if m == 0 or G.shape[1] == 0:
        return
    if entries == 0:
        G[:, :] = 0
        return
    cdef SparsePanel panel
    panel.groups, panel.frequent = lines.shape[0], lines.shape[1]
    panel.place, panel.post_starts = &place[0], &post_starts[0]
    panel.lines = &lines[0, 0, 0] if lines.shape[1] else NULL
    panel.post_points = &post_points[0] if post_points.shape[0] else NULL
    panel.post_values = &post_values[0] if post_points.shape[0] else NULL
    cdef int32_t *frequent = <int32_t *>malloc((entries + 1 + m) * sizeof(int32_t))
    cdef float *values = <float *>malloc((entries + 1) * sizeof(float))
    try:
        if frequent == NULL or values == NULL:
            raise MemoryError
        with nogil:
            build.sparse_panel(&data[0], &features[0], &starts[0], m, &panel, frequent, values, frequent + entries + 1,
                               &G[0, 0])
    finally:
        free(frequent)
        free(values)


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
    cdef Py_ssize_t split = positives_first(y) if room < INFINITY else w, k
    cdef real *work = <real *>malloc((5 * w + 1) * sizeof(real))
    cdef const real **row = <const real **>malloc(w * sizeof(real *))
    try:
        if work == NULL or row == NULL:
            raise MemoryError
        for k in range(w):
            row[k] = &K[k, 0]
            work[k] = K[k, k]
        with nogil:
            if real is float:
                steps = build.smo_float(row, NULL, NULL, work, w, &y[0], &cap[0], &alpha[0], &v[0], work + w, tol,
                                        max_steps, split, room, &gap)
            else:
                steps = build.smo_double(row, NULL, NULL, work, w, &y[0], &cap[0], &alpha[0], &v[0], work + w, tol,
                                         max_steps, split, room, &gap)
    finally:
        free(work)
        free(row)
    return steps, gap


def bounds(const double[::1] alpha, const double[::1] cap, const double[::1] y, const double[::1] v, double[::1] grow,
           double[::1] shrink):
    """grow <- v where y alpha can grow within 0 <= alpha <= cap, else -inf; shrink <- v where it can shrink, else inf."""
    cdef Py_ssize_t n = alpha.shape[0], i
    cdef bint rise, fall
    for size in (cap.shape[0], y.shape[0], v.shape[0], grow.shape[0], shrink.shape[0]):
        same(size, n)
    with nogil:
        for i in range(n):
            rise, fall = alpha[i] < cap[i], alpha[i] > 0
            if y[i] <= 0:
                rise, fall = fall, rise
            grow[i] = v[i] if rise else -INFINITY
            shrink[i] = v[i] if fall else INFINITY


cdef class RbfRows:
    """The RBF kernel among all rows of X in float: each kernel row is evaluated when it is first needed, and then kept.

    `scale` is gamma log2(e), `norms` are the squared norms of the rows times scale.
    """

    cdef RbfSource source
    cdef Py_ssize_t count
    cdef float *points
    cdef float *norms
    cdef const float **row

    def __cinit__(self, double scale, const float[:, ::1] X, const float[::1] norms):
        cdef Py_ssize_t w = X.shape[0], d = X.shape[1], panels = (w + LANES - 1) // LANES, i, f
        same(norms.shape[0], w)
        self.count = w
        self.points = <float *>calloc(panels * LANES * d + 1, sizeof(float))
        self.norms = <float *>calloc(panels * LANES + 1, sizeof(float))
        self.row = <const float **>calloc(w + 1, sizeof(float *))
        # the system hands out pages as rows are written
        self.source.space = <float *>malloc((w * panels * LANES + 1) * sizeof(float))
        if self.points == NULL or self.norms == NULL or self.row == NULL or self.source.space == NULL:
            raise MemoryError
        self.source.panels, self.source.features, self.source.evaluated = panels, d, 0
        self.source.scale, self.source.points, self.source.norms = <float>scale, self.points, self.norms
        with nogil:
            for i in range(w):
                self.norms[i] = norms[i]
                for f in range(d):
                    self.points[(i // LANES * d + f) * LANES + i % LANES] = X[i, f]

    def __dealloc__(self):
        free(self.points)
        free(self.norms)
        free(self.row)
        free(self.source.space)

    @property
    def evaluated(self):
        """The number of kernel rows evaluated so far."""
        return self.source.evaluated

    def smo(self, const float[::1] y, const double[::1] cap, double[::1] alpha, float[::1] v, double tol, int64_t max_steps):
        """Do what the function `smo` does, on all rows."""
        cdef Py_ssize_t w = self.count, k
        cdef double gap = 0
        cdef int64_t steps
        for size in (y.shape[0], cap.shape[0], alpha.shape[0], v.shape[0]):
            same(size, w)
        if w == 0:
            return 0, 0.0
        cdef float *work = <float *>malloc((5 * w + 1) * sizeof(float))
        if work == NULL:
            raise MemoryError
        with nogil:
            for k in range(w):
                work[k] = 1.0
            steps = build.smo_float(self.row, build.rbf_row, &self.source, work, w, &y[0], &cap[0], &alpha[0], &v[0],
                                    work + w, tol, max_steps, w, INFINITY, &gap)
        free(work)
        return steps, gap

    def add_product(self, const double[::1] v, double[::1] out):
        """out += K @ v in double, by the rows where v is not 0."""
        cdef Py_ssize_t w = self.count, i, k
        same(v.shape[0], w)
        same(out.shape[0], w)
        with nogil:
            for i in range(w):
                if v[i] != 0:
                    if self.row[i] == NULL:
                        self.row[i] = build.rbf_row(&self.source, i)
                    for k in range(w):
                        out[k] += v[i] * self.row[i][k]


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
    cdef double *space = <double *>malloc((w * w + 9 * w + 1) * sizeof(double))
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
    """Take hold of a contiguous array of doubles until PyBuffer_Release; return 1, the number of arrays held."""
    PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | flags)
    if view.ndim != axes or strcmp(view.format, b"d") != 0:
        try:
            raise ValueError(
                f"an array of {view.ndim} axes and format {view.format.decode()!r} where {axes} axes and doubles are needed"
            )
        finally:
            PyBuffer_Release(view)
    return 1


def expansion(int form, double gamma, double coef0, int64_t degree, X, points, coef, bias, out, widths=None):
    """out <- K(X, points) @ coef + bias for the kernel of number `form` in core.h, in double, row by row.

    `widths` has a factor of gamma for each point.
    Buffers, not memoryviews or a loop over the arrays: these would take longer than the sum over a few points.
    """
    if not LINEAR <= form <= CHI2:
        raise ValueError(f"no kernel has the number {form}")
    cdef Form kernel = Form(form, gamma, coef0, degree)
    cdef Py_buffer views[6]
    cdef Py_buffer *x = views
    cdef Py_buffer *z = views + 1
    cdef Py_buffer *c = views + 2
    cdef Py_buffer *b = views + 3
    cdef Py_buffer *o = views + 4
    cdef Py_buffer *w = views + 5
    cdef Py_ssize_t n, d, m, q
    cdef int held = 0
    try:
        held += hold(X, x, 2, 0)
        held += hold(points, z, 2, 0)
        held += hold(coef, c, 2, 0)
        held += hold(bias, b, 1, 0)
        held += hold(out, o, 2, PyBUF_WRITABLE)
        if widths is not None:
            held += hold(widths, w, 1, 0)
            same(w.shape[0], z.shape[0])
        n, d, m, q = x.shape[0], x.shape[1], z.shape[0], c.shape[1]
        same(z.shape[1], d)
        same(c.shape[0], m)
        same(b.shape[0], q)
        same(o.shape[0], n)
        same(o.shape[1], q)
        with nogil:
            build.expansion(&kernel, <const double *>x.buf, n, d, <const double *>z.buf, m if d else 0,
                            <const double *>w.buf if held > 5 else NULL, <const double *>c.buf, q, <const double *>b.buf, <double *>o.buf)
    finally:
        while held:
            held -= 1
            PyBuffer_Release(views + held)


def line_minimum(const double[::1] low, const double[::1] high, const double[::1] outputs, const double[::1] change,
                 const double[::1] weights, double linear, double quadratic, double start, double precision,
                 int64_t steps):
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


def line_moves(const double[:, ::1] low, const double[:, ::1] high, const double[::1] weights,
               const double[:, ::1] change, const Py_ssize_t[::1] going, const double[::1] linear,
               const double[::1] quadratic, double precision, int64_t steps,
               double[:, ::1] outputs, double[:, ::1] residual, double[::1] lengths, double[::1] sums,
               ptrdiff_t[::1] switched):
    """Move the outputs `going`, each along its own line of `change` to the least value; `residual` follows.

    Written for each: its step length (`line_minimum` from 1), sum_i w_i residual_i^2, and how many rows entered or left
    their interval.
    """
    cdef Py_ssize_t n = low.shape[1], q = low.shape[0], k
    cdef Line line
    for size in (high.shape[1], weights.shape[0], change.shape[1], outputs.shape[1], residual.shape[1]):
        same(size, n)
    for size in (high.shape[0], outputs.shape[0], residual.shape[0]):
        same(size, q)
    for size in (change.shape[0], linear.shape[0], quadratic.shape[0], lengths.shape[0], sums.shape[0], switched.shape[0]):
        same(size, going.shape[0])
    for k in range(going.shape[0]):
        if not 0 <= going[k] < q:
            raise ValueError(f"output {going[k]} of {q}")
    if n == 0:
        for k in range(going.shape[0]):
            lengths[k] = -linear[k] / quadratic[k] if quadratic[k] > 0 else 1.0
            sums[k] = 0.0
            switched[k] = 0
        return
    with nogil:
        for k in range(going.shape[0]):
            line = Line(&low[going[k], 0], &high[going[k], 0], &outputs[going[k], 0], &change[k, 0], &weights[0],
                        linear[k], quadratic[k])
            lengths[k] = build.line_minimum(&line, n, 1.0, precision, steps)
            sums[k] = build.line_move(&line, n, lengths[k], &outputs[going[k], 0], &residual[going[k], 0], &switched[k])


cdef bytes NUMBER = b"__pyx_t_5scipy_6linalg_11cython_blas_s *"
cdef bytes SSYRK = b"void (char *, char *, int *, int *, %b, %b, int *, %b, %b, int *)" % (NUMBER, NUMBER, NUMBER, NUMBER)


def knows_ssyrk(object capsule):
    """Return whether this is a capsule of scipy.linalg.cython_blas with the ssyrk called here; its name is its signature."""
    return bool(PyCapsule_IsValid(capsule, <const char *>SSYRK))


cdef Ssyrk ssyrk_of(object capsule) except NULL:
    if not knows_ssyrk(capsule):
        raise ValueError(f"not a ssyrk of this kind: {capsule!r}")
    return <Ssyrk>PyCapsule_GetPointer(capsule, <const char *>SSYRK)


cdef Py_ssize_t line_stride(const float[:, :] K) except -1:
    """How far apart the lines of kernel values are; there must be some, each in one piece."""
    if K.shape[0] == 0 or K.shape[1] == 0 or K.strides[1] != sizeof(float) or K.strides[0] % <Py_ssize_t>sizeof(float):
        raise ValueError(f"kernel values of {K.shape[0]} rows and {K.shape[1]} points, not in lines")
    return K.strides[0] // <Py_ssize_t>sizeof(float)


def times(const float[:, :] K, const float[:, :, ::1] V, double[:, :] out):
    """out[c, i] <- sum_j K[i, j] V[j, c], with the outputs c of V in groups of one of OUTPUT_COLUMNS: (groups, m, columns)."""
    cdef Py_ssize_t n = K.shape[0], m = K.shape[1], q = out.shape[0], columns = V.shape[2], stride = line_stride(K), group
    cdef Py_ssize_t out_stride = out.strides[0] // <Py_ssize_t>sizeof(double)
    same(V.shape[1], m)
    same(out.shape[1], n)
    if ((columns != 8 and columns != 16) or q == 0 or q > V.shape[0] * columns or out.strides[1] != sizeof(double)
            or out.strides[0] % <Py_ssize_t>sizeof(double)):
        raise ValueError(f"{q} outputs in {V.shape[0]} groups of {columns}, not in lines")
    with nogil:
        for group in range((q + columns - 1) // columns):
            build.times_columns(&K[0, 0], n, m, stride, &V[group, 0, 0], columns, min(q - group * columns, columns),
                                &out[group * columns, 0], out_stride)


def back(const float[:, :] K, const double[:, :] W, float[::1] space, double[:, ::1] out):
    """out[c, j] <- sum_i W[c, i] K[i, j], where most of W is 0; `space` holds a line of K."""
    cdef Py_ssize_t n = K.shape[0], m = K.shape[1], stride = line_stride(K), c
    same(W.shape[1], n)
    same(out.shape[0], W.shape[0])
    same(out.shape[1], m)
    same(space.shape[0], m)
    if W.strides[1] != sizeof(double):
        raise ValueError("weights are not in lines")
    with nogil:
        for c in range(W.shape[0]):
            build.back_line(&K[0, 0], n, m, stride, &W[c, 0], &space[0], &out[c, 0])


def update_curvatures(object ssyrk, const float[:, :] K, const double[::1] weights, const Py_ssize_t[::1] outputs,
                      const double[:, ::1] residual, unsigned char[:, ::1] active, unsigned char[::1] known,
                      double[:, :, ::1] values, ptrdiff_t[::1] changed, float[::1] space):
    """Bring sums of w d d' over the rows with a residual up to date, d = (1, k_1 .. k_m), in lower triangles.

    `outputs` are the numbers of the sums, each with a line of `residual`. `active` are the rows that are in the sums so far,
    where these are `known`. `changed` and `space` are work space; `ssyrk` is a capsule of scipy.linalg.cython_blas.
    """
    cdef Py_ssize_t n = K.shape[0], m = K.shape[1], stride = line_stride(K), q = active.shape[0], s = m + 1, block, k
    cdef Squares squares
    for size in (residual.shape[1], weights.shape[0], active.shape[1], changed.shape[0]):
        same(size, n)
    for size in (known.shape[0], values.shape[0]):
        same(size, q)
    same(residual.shape[0], outputs.shape[0])
    same(values.shape[1], s)
    same(values.shape[2], s)
    if m > MOST_ROWS or space.shape[0] < s * (s + 1):
        raise ValueError(f"work space of {space.shape[0]} numbers for {m} points")
    for k in range(outputs.shape[0]):
        if not 0 <= outputs[k] < q:
            raise ValueError(f"output {outputs[k]} of {q}")
    block = min(space.shape[0] // s - s, <Py_ssize_t>MOST_ROWS)
    squares = Squares(&K[0, 0], n, m, stride, &weights[0], ssyrk_of(ssyrk), block, &space[0], &space[s * s], &changed[0])
    with nogil:
        for k in range(outputs.shape[0]):
            build.update_curvature(&squares, &residual[k, 0], &active[outputs[k], 0], known[outputs[k]],
                                   &values[outputs[k], 0, 0])
            known[outputs[k]] = 1


def solve_factored(const double[:, ::1] factor, double[::1] right):
    """right <- (L L')^-1 right for a lower Cholesky factor L."""
    cdef Py_ssize_t s = right.shape[0]
    same(factor.shape[0], s)
    same(factor.shape[1], s)
    if s > 0:
        with nogil:
            build.solve_factored(&factor[0, 0], s, &right[0])
