# Kernel values times coefficients.

#: numbers of outputs that kernel values can be multiplied with at a time
OUTPUT_COLUMNS = (8, 16)


cdef struct TimesJob:
    Shared shared
    Squares squares
    bint double
    const void *V
    Py_ssize_t columns, outputs
    double *out


cdef void times_job(Shared *shared, int64_t most) noexcept nogil:
    """Multiply some strips of rows."""
    cdef TimesJob *job = <TimesJob *>shared
    cdef const Squares *K = &job.squares
    cdef Py_ssize_t turn, start, stop, group, columns = job.columns
    for turn in range(most):
        start = taken(&shared.next, shared.size)
        stop = min(start + shared.size, shared.n)
        if start >= stop:
            return
        if columns:
            for group in range((job.outputs + columns - 1) // columns):
                build.times_columns(<const float *>K.K + start * K.stride, stop - start, K.m, K.stride,
                                    <const float *>job.V + group * K.m * columns, columns,
                                    min(job.outputs - group * columns, columns),
                                    job.out + group * columns * K.n + start, K.n)
        else:
            for group in range(job.outputs):
                if job.double:
                    build.row_products_double(K, <const double *>job.V + group * K.m, start, stop, job.out + group * K.n)
                else:
                    build.row_products_float(K, <const float *>job.V + group * K.m, start, stop, job.out + group * K.n)


def times(K, V, double[:, ::1] out, Py_ssize_t strip, Team team=None, int helpers=0):
    """out[c, i] <- sum_j K[i, j] V_jc for the outputs c.

    V has a line for each output, (outputs, m), or for float kernel values these in groups of one of OUTPUT_COLUMNS, (groups, m,
    columns).
    """
    cdef SumJob held_job
    cdef TimesJob job
    cdef list held = []
    take_values(&held_job, K, held)
    memset(&job, 0, sizeof(TimesJob))
    job.squares, job.double, job.outputs = held_job.squares, held_job.double, out.shape[0]
    same(out.shape[1], job.squares.n)
    if V.ndim == 3:
        job.columns = V.shape[2]
        same(V.shape[1], job.squares.m)
        if job.double or V.shape[2] not in OUTPUT_COLUMNS or not 0 < job.outputs <= V.shape[0] * V.shape[2]:
            raise ValueError(f"{job.outputs} outputs in {V.shape[0]} groups of {V.shape[2]}")
    elif V.shape != (job.outputs, job.squares.m) or not job.outputs:
        raise ValueError(f"coefficients of shape {V.shape} for {job.outputs} outputs of {job.squares.m} points")
    job.V, job.out = address(V, b"d" if job.double else b"f", V.size, held), &out[0, 0]
    Strips(job.squares.n, strip).share(times_job, &job.shared, team, helpers)
