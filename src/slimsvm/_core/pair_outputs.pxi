# The outputs of all pairs of many classes.


cdef void add_class(Py_ssize_t i, Py_ssize_t k, Py_ssize_t count, const double *K, const double *against, double *out,
                    double *sums) noexcept nogil:
    """Add the part of the `count` points of class i to a row's outputs."""
    cdef Py_ssize_t p, j
    for j in range(k - 1):
        sums[j] = 0
    for p in range(count):
        for j in range(k - 1):
            sums[j] += K[p] * against[p * (k - 1) + j]
    cdef double *place = out + i - 1  # the pair (0, i), then (1, i), ...
    for j in range(i):
        place[0] += sums[j]
        place += k - j - 2
    place = out + i * k - i * (i + 1) // 2  # the pair (i, i + 1), then (i, i + 2), ...
    for j in range(i, k - 1):
        place[j - i] += sums[j]


def pair_outputs(const double[:, ::1] K, const double[:, ::1] against, const Py_ssize_t[::1] counts, double[:, ::1] out,
                 double[::1] space):
    """out[r, pair] += sum_p K[r, p] against[p, other] over the points p of both classes of each pair.

    Points are grouped by class, counts[i] of class i. `against` has a column for each other class, in order. The
    coefficients of a class are read once for all rows, so few rows at a time keep their outputs in the processor's cache.
    """
    cdef Py_ssize_t n = K.shape[0], m = K.shape[1], k = counts.shape[0], total = 0, start = 0, i, r
    for i in range(k):
        if counts[i] < 0:
            raise ValueError(f"class {i} has {counts[i]} points")
        total += counts[i]
    same(total, m)
    same(against.shape[0], m)
    same(against.shape[1], k - 1)
    same(out.shape[0], n)
    same(out.shape[1], k * (k - 1) // 2)
    same(space.shape[0], k)
    if n and m and k > 1:
        with nogil:
            for i in range(k):
                for r in range(n):
                    add_class(i, k, counts[i], &K[r, start], &against[start, 0], &out[r, 0], &space[0])
                start += counts[i]
                if start == m:
                    break
