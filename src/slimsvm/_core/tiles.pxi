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


cdef struct RowsJob:
    Shared shared
    const float **rows
    const float *v
    Py_ssize_t count
    double *out


cdef void rows_job(Shared *shared, int64_t most) noexcept nogil:
    """Sum up some strips of the columns."""
    cdef RowsJob *job = <RowsJob *>shared
    cdef Py_ssize_t turn, start, s
    cdef const float **here = <const float **>malloc(job.count * sizeof(float *))
    for turn in range(most):
        start = taken(&shared.next, shared.size)
        if start >= shared.n or here == NULL:
            break
        for s in range(job.count):
            here[s] = job.rows[s] + start
        build.sum_rows(here, job.v, job.count, min(shared.size, shared.n - start), job.out + start)
    free(here)


def sum_rows(const float[:, ::1] rows, const Py_ssize_t[::1] which, const float[::1] v, double[::1] out, Py_ssize_t strip,
             Team team=None, int helpers=0):
    """out += v @ rows[which] without a copy of the rows, for strips of the columns."""
    cdef Py_ssize_t count = which.shape[0], s
    cdef RowsJob job
    same(v.shape[0], count)
    same(out.shape[0], rows.shape[1])
    if count == 0 or out.shape[0] == 0:
        return
    job.rows, job.v, job.count, job.out = <const float **>malloc(count * sizeof(float *)), &v[0], count, &out[0]
    if job.rows == NULL:
        raise MemoryError
    try:
        for s in range(count):
            if not 0 <= which[s] < rows.shape[0]:
                raise IndexError(f"row {which[s]} of {rows.shape[0]}")
            job.rows[s] = &rows[which[s], 0]
        Strips(out.shape[0], strip).share(rows_job, &job.shared, team, helpers)
    finally:
        free(job.rows)


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
