# Line searches on sums of squared distances to intervals.

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


cdef struct MoveJob:
    Shared shared
    const double *low
    const double *high
    const double *weights
    const double *change
    const Py_ssize_t *going
    const double *linear
    const double *quadratic
    Py_ssize_t rows
    double precision
    int64_t steps
    double *outputs
    double *residual
    double *lengths
    double *sums
    ptrdiff_t *switched


cdef void move_job(Shared *shared, int64_t most) noexcept nogil:
    """Move some outputs."""
    cdef MoveJob *job = <MoveJob *>shared
    cdef Line line
    cdef Py_ssize_t k, at, turn, n = job.rows
    for turn in range(most):
        k = taken(&shared.next, 1)
        if k >= shared.n:
            return
        at = job.going[k] * n
        line = Line(job.low + at, job.high + at, job.outputs + at, job.change + k * n, job.weights, job.linear[k], job.quadratic[k])
        job.lengths[k] = build.line_minimum(&line, n, 1.0, job.precision, job.steps)
        job.sums[k] = build.line_move(&line, n, job.lengths[k], job.outputs + at, job.residual + at, &job.switched[k])


def line_moves(const double[:, ::1] low, const double[:, ::1] high, const double[::1] weights,
               const double[:, ::1] change, const Py_ssize_t[::1] going, const double[::1] linear,
               const double[::1] quadratic, double precision, int64_t steps,
               double[:, ::1] outputs, double[:, ::1] residual, double[::1] lengths, double[::1] sums,
               ptrdiff_t[::1] switched, Team team=None, int helpers=0):
    """Move the outputs `going`, each along its own line of `change` to the least value; `residual` follows.

    Written for each: its step length (`line_minimum` from 1), sum_i w_i residual_i^2, and how many rows entered or left
    their interval.
    """
    cdef Py_ssize_t n = low.shape[1], q = low.shape[0], k
    if not going.shape[0]:
        return
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
    cdef MoveJob job
    job.low, job.high, job.weights, job.change, job.going, job.rows = &low[0, 0], &high[0, 0], &weights[0], &change[0, 0], &going[0], n
    job.linear, job.quadratic, job.precision, job.steps = &linear[0], &quadratic[0], precision, steps
    job.outputs, job.residual, job.lengths, job.sums, job.switched = &outputs[0, 0], &residual[0, 0], &lengths[0], &sums[0], &switched[0]
    Strips(going.shape[0], 1).share(move_job, &job.shared, team, helpers)
