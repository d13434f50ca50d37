/* Passes over tiles: the RBF tail that turns inner products G = A B' into kernel values, sparse products, and row sums.
 *
 * One plain C file, built once per instruction set (see meson.build): loops over contiguous numbers that the
 * compiler turns into vectors. SUFFIX names the build; core.pyx chooses one at import.
 *
 * a and b are the squared norms of the tile's rows and columns, multiplied by scale = gamma log2(e).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core.h"
#include "lanes.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

/* exp(-gamma |x - z|^2) = 2^(2 scale g - a - b), scale = gamma log2(e), a and b scale times the squared norms */
static inline float rbf(float g, float two_scale, float a, float b)
{
    float x = two_scale * g - a - b;
    return exp2_of_nonpositive(x < 0.0f ? x : 0.0f);
}

/* The same for a point of its own width: exp(-gamma width |x - z|^2). */
static inline float wide_rbf(float g, float two_scale, float a, float b, float width)
{
    float x = width * (two_scale * g - a - b);
    return exp2_of_nonpositive(x < 0.0f ? x : 0.0f);
}

/* Replace a tile of inner products by exp(-gamma width |x - z|^2); widths, one for each column, are NULL for ones. */
void BUILD(rbf_tail)(float scale, float *G, ptrdiff_t stride, ptrdiff_t m, ptrdiff_t n, const float *a, const float *b,
                     const float *restrict widths)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        float *restrict g = G + i * stride;
        if (widths)
            for (ptrdiff_t j = 0; j < n; j++)
                g[j] = wide_rbf(g[j], 2.0f * scale, a[i], b[j], widths[j]);
        else
            for (ptrdiff_t j = 0; j < n; j++)
                g[j] = rbf(g[j], 2.0f * scale, a[i], b[j]);
    }
}

/* out[i] += sum_j exp(-gamma width_j |x_i - z_j|^2) v_j, in one pass over the tile; widths may be NULL as above. */
void BUILD(rbf_tail_dot)(float scale, const float *G, ptrdiff_t stride, ptrdiff_t m, ptrdiff_t n, const float *a,
                         const float *b, const float *widths, const float *v, double *out)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        const float *restrict g = G + i * stride;
        float s = 0.0f;
        if (widths) {
#pragma omp simd reduction(+ : s)
            for (ptrdiff_t j = 0; j < n; j++)
                s += wide_rbf(g[j], 2.0f * scale, a[i], b[j], widths[j]) * v[j];
        } else {
#pragma omp simd reduction(+ : s)
            for (ptrdiff_t j = 0; j < n; j++)
                s += rbf(g[j], 2.0f * scale, a[i], b[j]) * v[j];
        }
        out[i] += s;
    }
}

/* The same in double. Adding 1.5 2^52 rounds x to the integer k, which is then in the low bits of the sum; r = x - k, and
 * 2^r is a polynomial (relative error 2e-17 before rounding, exact at 0). */
static inline double exp2_of_nonpositive_double(double x)
{
    const double shift = 6755399441055744.0;
    x = x < -1022.0 ? -1022.0 : x;
    double sum = x + shift;
    double r = x - (sum - shift);
    double p = 4.4549605981865183938e-10;
    p = p * r + 7.0725859492692236999e-9;
    p = p * r + 1.0178062445845773521e-7;
    p = p * r + 1.3215442587921689653e-6;
    p = p * r + 1.5252733829836118394e-5;
    p = p * r + 1.5403530441736050155e-4;
    p = p * r + 1.333355814641693531e-3;
    p = p * r + 9.6181291076068885273e-3;
    p = p * r + 5.5504108664821594339e-2;
    p = p * r + 2.402265069591009822e-1;
    p = p * r + 6.9314718055994530942e-1;
    p = p * r + 1.0;
    uint64_t k, bits;
    memcpy(&k, &sum, sizeof k);
    memcpy(&bits, &p, sizeof bits);
    bits += k << 52;
    memcpy(&p, &bits, sizeof bits);
    return p;
}

/* The exponent in double: differences of large numbers lose no digits that a float can hold. */
static inline double exponent(double g, double two_scale, double a, double b)
{
    double x = two_scale * g - a - b;
    return x < 0.0 ? x : 0.0;
}

/* rbf_tail for a tile of doubles. */
void BUILD(rbf_tail_double)(double scale, double *G, ptrdiff_t stride, ptrdiff_t m, ptrdiff_t n, const double *a,
                            const double *b)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        double *restrict g = G + i * stride;
        for (ptrdiff_t j = 0; j < n; j++)
            g[j] = exp2_of_nonpositive_double(exponent(g[j], 2.0 * scale, a[i], b[j]));
    }
}

/* K = the kernel values as floats of a tile of inner products in double. */
void BUILD(rbf_tail_mixed)(double scale, const double *G, ptrdiff_t stride, ptrdiff_t m, ptrdiff_t n, const double *a,
                           const double *b, float *K)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        const double *restrict g = G + i * stride;
        float *restrict values = K + i * stride;
        for (ptrdiff_t j = 0; j < n; j++)
            values[j] = exp2_of_nonpositive((float)exponent(g[j], 2.0 * scale, a[i], b[j]));
    }
}

/* out[i] += sum_j k_ij v_j with kernel values as floats of inner products in double, summed in double. */
void BUILD(rbf_tail_dot_mixed)(double scale, const double *G, ptrdiff_t stride, ptrdiff_t m, ptrdiff_t n,
                               const double *a, const double *b, const double *v, double *out)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        const double *restrict g = G + i * stride;
        double s = 0.0;
#pragma omp simd reduction(+ : s)
        for (ptrdiff_t j = 0; j < n; j++)
            s += (double)exp2_of_nonpositive((float)exponent(g[j], 2.0 * scale, a[i], b[j])) * v[j];
        out[i] += s;
    }
}

/* found = the numbers of the points whose squared distance from the box [low, high] is at most `reach`. Zt holds the points'
 * transpose, one line of m values per axis; distance is scratch for m values. Returns how many points were found. */
ptrdiff_t BUILD(near_box)(const double *low, const double *high, ptrdiff_t axes, const double *Zt, ptrdiff_t m, double reach,
                          double *restrict distance, ptrdiff_t *found)
{
    for (ptrdiff_t j = 0; j < m; j++)
        distance[j] = 0.0;
    for (ptrdiff_t k = 0; k < axes; k++) {
        const double *restrict z = Zt + k * m;
        const double from = low[k], to = high[k];
        for (ptrdiff_t j = 0; j < m; j++) {
            double below = from - z[j], above = z[j] - to;
            double outside = below > above ? below : above;
            outside = outside > 0.0 ? outside : 0.0;
            distance[j] += outside * outside;
        }
    }
    ptrdiff_t count = 0;
    for (ptrdiff_t j = 0; j < m; j++) {
        found[count] = j;
        count += distance[j] <= reach;
    }
    return count;
}

/* G = A B' for m sparse rows A and LANES dense columns: Bt holds the points' transpose, one line of LANES per feature,
 * so that a row's inner products stay in registers while its nonzeros pass by. */
void BUILD(sparse_dot)(const float *data, const int32_t *features, const int32_t *starts, ptrdiff_t m, const float *Bt,
                       float *restrict G)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        vector sum[LANES / WIDTH] = {0};
        for (int32_t t = starts[i]; t < starts[i + 1]; t++) {
            const vector *line = (const vector *)(Bt + (ptrdiff_t)features[t] * LANES);
#ifdef __GNUC__
#pragma GCC unroll 16
#endif
            for (int l = 0; l < LANES / WIDTH; l++)
                sum[l] += data[t] * line[l];
        }
        memcpy(G + i * LANES, sum, sizeof sum);
    }
}

/* G = A B' for m sparse rows A and sparse points B, `groups` lines of LANES of them. Features that many points have are
 * written out: place[f] is then the line of feature f in each group of `lines`, else -1. Of the others, `post` lists the
 * points that have feature f, from post_starts[f] on, and their values. frequent and values are scratch for A's entries,
 * ends for m numbers. */
void BUILD(sparse_panel)(const float *data, const int32_t *features, const int32_t *starts, ptrdiff_t m,
                         const SparsePanel *panel, int32_t *frequent, float *values, int32_t *ends, float *restrict G)
{
    const ptrdiff_t stride = panel->groups * LANES;
    int32_t used = 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        float *restrict g = G + i * stride;
        memset(g, 0, stride * sizeof(float));
        for (int32_t t = starts[i]; t < starts[i + 1]; t++) {
            const int32_t f = features[t], line = panel->place[f];
            const float value = data[t];
            frequent[used] = line;
            values[used] = value;
            used += line >= 0;
            for (int32_t s = panel->post_starts[f]; s < panel->post_starts[f + 1]; s++)
                g[panel->post_points[s]] += value * panel->post_values[s];
        }
        ends[i] = used;
    }
    for (ptrdiff_t group = 0; group < panel->groups; group++) {
        const float *lines = panel->lines + group * panel->frequent * LANES;
        for (ptrdiff_t i = 0; i < m; i++) {
            vector *g = (vector *)(G + i * stride + group * LANES);
            vector sum[LANES / WIDTH] = {0};
            for (int32_t t = i ? ends[i - 1] : 0; t < ends[i]; t++) {
                const vector *line = (const vector *)(lines + (ptrdiff_t)frequent[t] * LANES);
#ifdef __GNUC__
#pragma GCC unroll 16
#endif
                for (int l = 0; l < LANES / WIDTH; l++)
                    sum[l] += values[t] * line[l];
            }
            for (int l = 0; l < LANES / WIDTH; l++)
                g[l] += sum[l];
        }
    }
}

/* Evaluate row i of the kernel matrix into the next free place. */
const float *BUILD(rbf_row)(void *given, ptrdiff_t i)
{
    RbfSource *source = given;
    const ptrdiff_t panel_size = source->features * LANES;
    float *const row = source->space + source->evaluated++ * source->panels * LANES;
    const float *point = source->points + i / LANES * panel_size + i % LANES; /* one value in LANES is the point's own */
    for (ptrdiff_t p = 0; p < source->panels; p++) {
        const float *panel = source->points + p * panel_size, *norms = source->norms + p * LANES;
        vector sum[LANES / WIDTH] = {0};
        for (ptrdiff_t f = 0; f < source->features; f++) {
            const vector *line = (const vector *)(panel + f * LANES);
#pragma GCC unroll 16
            for (int l = 0; l < LANES / WIDTH; l++)
                sum[l] += point[f * LANES] * line[l];
        }
        float *restrict values = row + p * LANES;
        memcpy(values, sum, sizeof sum);
        for (int j = 0; j < LANES; j++)
            values[j] = rbf(values[j], 2.0f * source->scale, source->norms[i], norms[j]);
    }
    return row;
}

/* out[j] += sum_s v_s rows[s][j]: a weighted sum of rows that lie anywhere, four at a time. */
void BUILD(sum_rows)(const float *const *rows, const float *v, ptrdiff_t count, ptrdiff_t n, double *restrict out)
{
    enum { CHUNK = 1024 };
    float sum[CHUNK];
    for (ptrdiff_t from = 0; from < n; from += CHUNK) {
        ptrdiff_t size = n - from < CHUNK ? n - from : CHUNK;
        memset(sum, 0, sizeof sum);
        ptrdiff_t s = 0;
        for (; s + 4 <= count; s += 4) {
            const float *restrict p = rows[s] + from, *restrict q = rows[s + 1] + from;
            const float *restrict r = rows[s + 2] + from, *restrict t = rows[s + 3] + from;
            for (ptrdiff_t j = 0; j < size; j++)
                sum[j] += v[s] * p[j] + v[s + 1] * q[j] + v[s + 2] * r[j] + v[s + 3] * t[j];
        }
        for (; s < count; s++) {
            const float *restrict p = rows[s] + from;
            for (ptrdiff_t j = 0; j < size; j++)
                sum[j] += v[s] * p[j];
        }
        for (ptrdiff_t j = 0; j < size; j++)
            out[from + j] += sum[j];
    }
}
