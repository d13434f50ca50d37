# Which rows may lie near a box.

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
