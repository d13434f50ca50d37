# Gradients of a learned metric for rows of few nonzeros.

#: parts in which `thin_values` returns each sum
PARTIAL_SUMS = SUMMED


cdef ThinRows thin_rows(const float[::1] data, const int32_t[::1] features, const int32_t[::1] starts,
                        const int32_t[::1] ends, Py_ssize_t count) except *:
    """Rows from their starts to their ends among the entries, after a look at both; there must be some rows."""
    cdef Py_ssize_t i
    cdef bint within = count > 0 and data.shape[0] == features.shape[0]
    same(starts.shape[0], count)
    same(ends.shape[0], count)
    for i in range(count):
        within = within and 0 <= starts[i] <= ends[i] <= data.shape[0]
    if not within:
        raise ValueError(f"{count} rows, which must lie within {data.shape[0]} values and {features.shape[0]} features")
    if data.shape[0] == 0:
        return ThinRows(count, NULL, NULL, &starts[0], &ends[0])
    return ThinRows(count, &data[0], &features[0], &starts[0], &ends[0])


def thin_values(const float[::1] data, const int32_t[::1] features, const int32_t[::1] starts,
                const int32_t[::1] ends, const float[:, :, ::1] lines, const float[::1] reach, const float[::1] level, const float[::1] squares,
                const float[:, ::1] weights, float[::1] norms, float[:, ::1] K, float[:, :, ::1] sums):
    """K <- kernel values of rows and points in panels, as `ThinPoints` has them; norms <- those of the rows.

    `weights` has two lines, and sums <- the PARTIAL_SUMS parts of K @ weights'. The caller has checked once that all features are below the width of `squares`.
    """
    cdef Py_ssize_t count = K.shape[0], across = lines.shape[0] * LANES
    cdef ThinRows rows = thin_rows(data, features, starts, ends, count)
    same(lines.shape[1], squares.shape[0])
    same(lines.shape[2], LANES)
    same(weights.shape[0], 2)
    same(sums.shape[1], 2)
    same(sums.shape[2], SUMMED)
    for each in (reach.shape[0], level.shape[0], weights.shape[1], K.shape[1]):
        same(each, across)
    for each in (norms.shape[0], sums.shape[0]):
        same(each, count)
    cdef ThinPoints points = ThinPoints(lines.shape[0], lines.shape[1], &lines[0, 0, 0], &reach[0], &level[0], &squares[0])
    with nogil:
        build.thin_values(&rows, &points, &weights[0, 0], &norms[0], &K[0, 0], &sums[0, 0, 0])


def thin_back(const float[::1] data, const int32_t[::1] features, const int32_t[::1] starts, const int32_t[::1] ends,
              const float[::1] norms,
              const float[::1] weights, const float[::1] pulled, const float[:, ::1] K, float[:, :, ::1] totals,
              double[::1] spread):
    """totals += the sums over rows x of w K (x, norm, 1), in panels of points; spread += those of `pulled` x^2."""
    cdef Py_ssize_t count = K.shape[0]
    cdef ThinRows rows = thin_rows(data, features, starts, ends, count)
    same(totals.shape[1], spread.shape[0] + 2)
    same(totals.shape[2], LANES)
    same(K.shape[1], totals.shape[0] * LANES)
    for each in (norms.shape[0], weights.shape[0], pulled.shape[0]):
        same(each, count)
    with nogil:
        build.thin_back(&rows, spread.shape[0], totals.shape[0], &norms[0], &weights[0], &pulled[0], &K[0, 0],
                        &totals[0, 0, 0], &spread[0])
