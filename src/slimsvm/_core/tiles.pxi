# Products of sparse rows, and sums of kernel rows that are kept.

#: points in one line of a sparse panel
SPARSE_LANES = LANES


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
