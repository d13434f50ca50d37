# The last step of RBF tiles: products become kernel values, or their sums.

def rbf_tail(double scale, float[:, ::1] G, const float[::1] a, const float[::1] b, const float[::1] widths=None):
    """G <- 2^(2 scale G - a - b) in place: the RBF kernel for scale = gamma log2(e), a and b scale times squared norms.

    `widths` has a factor of the exponent for each column.
    """
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same_or_none(widths, G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail(<float>scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0],
                           NULL if widths is None else &widths[0])


def rbf_tail_dot(double scale, const float[:, ::1] G, const float[::1] a, const float[::1] b, const float[::1] v,
                 double[::1] out, const float[::1] widths=None):
    """out += 2^(2 scale G - a - b) @ v in one pass; `widths` as in `rbf_tail`."""
    same(a.shape[0], G.shape[0])
    same(out.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(v.shape[0], G.shape[1])
    same_or_none(widths, G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_dot(<float>scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0],
                               NULL if widths is None else &widths[0], &v[0], &out[0])


def rbf_tail_double(double scale, double[:, ::1] G, const double[::1] a, const double[::1] b):
    """Do what `rbf_tail` does, in double."""
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_double(scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0])


def rbf_tail_mixed(double scale, const double[:, ::1] G, const double[::1] a, const double[::1] b, float[:, ::1] K):
    """K <- 2^(2 scale G - a - b) in float, from exponents in double."""
    same(a.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(K.shape[0], G.shape[0])
    same(K.shape[1], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_mixed(scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0], &K[0, 0])


def rbf_tail_dot_mixed(double scale, const double[:, ::1] G, const double[::1] a, const double[::1] b,
                       const double[::1] v, double[::1] out):
    """out += 2^(2 scale G - a - b) @ v with powers in float, exponents and sums in double."""
    same(a.shape[0], G.shape[0])
    same(out.shape[0], G.shape[0])
    same(b.shape[0], G.shape[1])
    same(v.shape[0], G.shape[1])
    if G.shape[0] and G.shape[1]:
        with nogil:
            build.rbf_tail_dot_mixed(scale, &G[0, 0], G.shape[1], G.shape[0], G.shape[1], &a[0], &b[0], &v[0], &out[0])
