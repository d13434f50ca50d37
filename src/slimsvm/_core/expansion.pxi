# Outputs of a kernel expansion for a few rows.

cdef int hold(object array, Py_buffer *view, int axes, int flags) except -1:
    """Take hold of a contiguous array of doubles until PyBuffer_Release; return 1, the number of arrays held."""
    PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | flags)
    if view.ndim != axes or strcmp(view.format, b"d") != 0:
        try:
            raise ValueError(
                f"an array of {view.ndim} axes and format {view.format.decode()!r} where {axes} axes and doubles are needed"
            )
        finally:
            PyBuffer_Release(view)
    return 1


def expansion(int form, double gamma, double coef0, int64_t degree, X, points, coef, bias, out, widths=None):
    """out <- K(X, points) @ coef + bias for the kernel of number `form` in core.h, in double, row by row.

    `widths` has a factor of gamma for each point.
    Buffers, not memoryviews or a loop over the arrays: these would take longer than the sum over a few points.
    """
    if not LINEAR <= form <= CHI2:
        raise ValueError(f"no kernel has the number {form}")
    cdef Form kernel = Form(form, gamma, coef0, degree)
    cdef Py_buffer views[6]
    cdef Py_buffer *x = views
    cdef Py_buffer *z = views + 1
    cdef Py_buffer *c = views + 2
    cdef Py_buffer *b = views + 3
    cdef Py_buffer *o = views + 4
    cdef Py_buffer *w = views + 5
    cdef Py_ssize_t n, d, m, q
    cdef int held = 0
    try:
        held += hold(X, x, 2, 0)
        held += hold(points, z, 2, 0)
        held += hold(coef, c, 2, 0)
        held += hold(bias, b, 1, 0)
        held += hold(out, o, 2, PyBUF_WRITABLE)
        if widths is not None:
            held += hold(widths, w, 1, 0)
            same(w.shape[0], z.shape[0])
        n, d, m, q = x.shape[0], x.shape[1], z.shape[0], c.shape[1]
        same(z.shape[1], d)
        same(c.shape[0], m)
        same(b.shape[0], q)
        same(o.shape[0], n)
        same(o.shape[1], q)
        with nogil:
            build.expansion(&kernel, <const double *>x.buf, n, d, <const double *>z.buf, m if d else 0,
                            <const double *>w.buf if held > 5 else NULL, <const double *>c.buf, q, <const double *>b.buf, <double *>o.buf)
    finally:
        while held:
            held -= 1
            PyBuffer_Release(views + held)
