/* Kernel rows that are evaluated when a solver needs them, sums of kernel rows, and points near boxes.
 *
 * One plain C file, built once per instruction set (see meson.build): loops over contiguous numbers that the
 * compiler turns into vectors. SUFFIX names the build; core.pyx chooses one at import.
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
