# The inner SMO loop, and kernel rows that are evaluated on demand.

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

    v of a row whose cap is 0 does not change. With `room`, the sum of alpha may grow by that much at most; rows of label +1
    then come before those of -1. Returns the number of steps and the largest violation left.
    """
    cdef Py_ssize_t w = K.shape[0]
    cdef double gap = 0
    cdef int64_t steps
    for size in (K.shape[1], y.shape[0], cap.shape[0], alpha.shape[0], v.shape[0]):
        same(size, w)
    if w == 0:
        return 0, 0.0
    cdef Py_ssize_t split = positives_first(y) if room < INFINITY else w, k
    cdef real *work = <real *>malloc(3 * w * sizeof(real))
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
    cdef Py_ssize_t n = alpha.shape[0]
    for size in (cap.shape[0], y.shape[0], v.shape[0], grow.shape[0], shrink.shape[0]):
        same(size, n)
    if n:
        with nogil:
            build.smo_bounds(n, &alpha[0], &cap[0], &y[0], &v[0], &grow[0], &shrink[0])


cdef class RbfRows:
    """The RBF kernel among all rows of X in float: each kernel row is evaluated when it is first needed, and then kept.

    `scale` is gamma log2(e), `norms` are the squared norms of the rows times scale.
    """

    cdef RbfSource source
    cdef Py_ssize_t count
    cdef float *points
    cdef float *norms
    cdef const float **row
    cdef float[::1] space

    def __cinit__(self, double scale, const float[:, ::1] X, const float[::1] norms):
        import numpy as np

        cdef Py_ssize_t w = X.shape[0], d = X.shape[1], panels = (w + LANES - 1) // LANES, i, f
        same(norms.shape[0], w)
        self.count = w
        self.points = <float *>calloc(panels * LANES * d + 1, sizeof(float))
        self.norms = <float *>calloc(panels * LANES + 1, sizeof(float))
        self.row = <const float **>calloc(w + 1, sizeof(float *))
        # the system hands out pages as rows are written: large pages, which take less time, if NumPy asks for the memory
        self.space = np.empty(w * panels * LANES + 1, np.float32)
        self.source.space = &self.space[0]
        if self.points == NULL or self.norms == NULL or self.row == NULL:
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
        cdef float *work = <float *>malloc(3 * w * sizeof(float))
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
