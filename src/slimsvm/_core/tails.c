/* Passes over float tiles: the RBF tail that turns inner products G = A B' into kernel values, and row sums.
 *
 * One plain C file, built once per instruction set (see meson.build): loops over contiguous floats that the
 * compiler turns into vectors. SUFFIX names the build; core.pyx chooses one at import.
 *
 * a and b are the squared norms of the tile's rows and columns, multiplied by scale = gamma log2(e).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

/* 2^x for x <= 0: x = k + r with |r| <= 1/2; 2^r by a polynomial (relative error 2e-7, exact at 0), then k is added to
 * the exponent's bits. */
static inline float exp2_of_nonpositive(float x)
{
    x = x < -126.0f ? -126.0f : x;
    int32_t k = (int32_t)(x - 0.5f); /* truncation rounds, since x <= 0 */
    float r = x - (float)k;
    float p = 1.3264727124e-3f;
    p = p * r + 9.6715126448e-3f;
    p = p * r + 5.5507337435e-2f;
    p = p * r + 2.4022242085e-1f;
    p = p * r + 6.9314697760e-1f;
    p = p * r + 1.0f;
    int32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += k * (1 << 23);
    memcpy(&p, &bits, sizeof bits);
    return p;
}

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

/* As wide as the build's registers: compilers do not find this one by themselves. Those without GCC's vector types (MSVC) get
 * plain floats. */
#if !defined(__GNUC__)
enum { WIDTH = 1 };
typedef float vector;
#else
#if defined(__AVX512F__)
enum { WIDTH = 16 };
#elif defined(__AVX__)
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif
typedef float vector __attribute__((vector_size(WIDTH * sizeof(float)), aligned(sizeof(float)), may_alias));
#endif

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
