# Which two points are merged best.

cdef double merge_share(double a, double c, double b, double far) noexcept nogil:
    """The h in [0, 1/2] that maximises a u^2 + 2 c u v + b v^2, u = exp(-far (1 - h)^2), v = exp(-far h^2), for a <= b.

    With r = u / v the derivative has the sign of a r^2 (1 - h) + c r (1 - 2 h) - b h: Newton steps, kept between the
    bounds of its zero.
    """
    cdef double low = 0, high = 0.5, h = 0, r = exp(-far), value, slope, step
    if (a * r + c) * r <= 1e-16 * b:
        return 0  # as good as the partner itself
    for _ in range(60):
        r = exp(far * (2 * h - 1))
        value = (a * r * (1 - h) + c * (1 - 2 * h)) * r - b * h
        if value > 0:
            low = h
        else:
            high = h
        slope = (4 * far * a * r * (1 - h) - a * r + 2 * c * (far * (1 - 2 * h) - 1)) * r - b
        step = h - value / slope if slope < 0 else low - 1
        if not low <= step <= high:
            step = (low + high) / 2
        if fabs(step - h) <= 1e-15 * high:
            return step
        h = step
    return h


def best_merge(Py_ssize_t point, const double[::1] squares, const double[::1] products, const double[::1] kernel):
    """The other Gaussian point to merge with one, and the share h of that one in the merged point.

    `squares` are |c_j|^2 of all points, `products` <c_j, c> and `kernel` k(z_j, z) with the point's own c and z. Merged into
    h z + (1 - h) z_j, the pair loses |c|^2 + |c_j|^2 + 2 <c, c_j> k - |c u + c_j v|^2 with u and v as above; the least wins.
    The point has the smallest square of all, so that h is 1/2 at most.
    """
    cdef Py_ssize_t m = squares.shape[0], j, best = -1
    cdef double a, b, c, far, h, u, v, loss, least = 0, share = 0
    same(products.shape[0], m)
    same(kernel.shape[0], m)
    if m < 2 or not 0 <= point < m:
        raise ValueError(f"point {point} of {m} has no other to merge with")
    with nogil:
        a = squares[point]
        for j in range(m):
            if j == point:
                continue
            b, c = squares[j], products[j]
            far = -log(kernel[j]) if kernel[j] > 1e-300 else 690.0
            h = merge_share(a, c, b, far)
            u, v = exp(-far * (1 - h) * (1 - h)), exp(-far * h * h)
            loss = a + b + 2 * c * kernel[j] - (a * u * u + 2 * c * u * v + b * v * v)
            if best < 0 or loss < least:
                best, least, share = j, loss, h
    return best, share
