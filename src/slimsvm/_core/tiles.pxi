# Sums of kernel rows that are kept, and their memory.

#: points in one line of a sparse panel
SPARSE_LANES = LANES


cdef bint ascends(const int32_t *starts, Py_ssize_t m) noexcept nogil:
    """Whether starts[0] .. starts[m] ascend from 0 or more."""
    cdef Py_ssize_t t
    cdef bint fine = starts[0] >= 0
    for t in range(m):
        fine &= starts[t] <= starts[t + 1]
    return fine


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


def copy_transposed(const real[:, :] tile, real[:, :] out):
    """out <- tile.T, for arrays whose rows are contiguous, in squares that fit in the processor's nearest cache."""
    cdef Py_ssize_t m = tile.shape[0], n = tile.shape[1], step, top, left, i, j
    cdef const real *values
    cdef real *line
    same(out.shape[0], n)
    same(out.shape[1], m)
    if m == 0 or n == 0:
        return
    same(tile.strides[1], sizeof(real))
    same(out.strides[1], sizeof(real))
    values, step = &tile[0, 0], tile.strides[0] // <Py_ssize_t>sizeof(real)
    with nogil:
        for top in range(0, m, 16):
            for left in range(0, n, 16):
                for j in range(left, min(left + 16, n)):
                    line = &out[j, 0]
                    for i in range(top, min(top + 16, m)):
                        line[i] = values[i * step + j]


def copy_to_rows(const real[:, ::1] tile, real[:, ::1] rows, const Py_ssize_t[::1] which, Py_ssize_t start):
    """rows[which[j], start + i] <- tile[i, j], in squares that fit in the processor's nearest cache."""
    cdef Py_ssize_t m = tile.shape[0], n = tile.shape[1], top, left, i, j
    cdef real *line
    same(which.shape[0], n)
    if not 0 <= start <= start + m <= rows.shape[1]:
        raise ValueError(f"columns {start}:{start + m} of {rows.shape[1]}")
    for j in range(n):
        if not 0 <= which[j] < rows.shape[0]:
            raise IndexError(f"row {which[j]} of {rows.shape[0]}")
    with nogil:
        for top in range(0, m, 16):
            for left in range(0, n, 16):
                for j in range(left, min(left + 16, n)):
                    line = &rows[which[j], start]
                    for i in range(top, min(top + 16, m)):
                        line[i] = tile[i, j]
