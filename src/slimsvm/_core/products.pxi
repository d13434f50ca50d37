# Kernel values times coefficients, and back.

#: numbers of outputs that kernel values can be multiplied with at a time
OUTPUT_COLUMNS = (8, 16)


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
