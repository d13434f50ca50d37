# Curvature of many outputs at once, and solutions with its factors.

#: rows and points of one product of BLAS, whose sizes are C's int
cdef enum:
    MOST_ROWS = 1 << 24

cdef bytes NUMBER = b"__pyx_t_5scipy_6linalg_11cython_blas_s *"
cdef bytes SSYRK = b"void (char *, char *, int *, int *, %b, %b, int *, %b, %b, int *)" % (NUMBER, NUMBER, NUMBER, NUMBER)


def knows_ssyrk(object capsule):
    """Return whether this is a capsule of scipy.linalg.cython_blas with the ssyrk called here; its name is its signature."""
    return bool(PyCapsule_IsValid(capsule, <const char *>SSYRK))


cdef Ssyrk ssyrk_of(object capsule) except NULL:
    if not knows_ssyrk(capsule):
        raise ValueError(f"not a ssyrk of this kind: {capsule!r}")
    return <Ssyrk>PyCapsule_GetPointer(capsule, <const char *>SSYRK)


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
