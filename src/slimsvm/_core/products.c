/* Products of kernel values with the coefficients of several outputs, and with residuals that most rows do not have. */
#include <stddef.h>
#include <string.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

#define RUN 64 /* rows whose float32 sums are added up before they become float64 */

/* out[c][i] = sum_j K[i][j] V[j][c] for `columns` outputs, of which the first q are written. The sums of `together` rows are
 * held in registers, and beyond the end the last row is taken once more. */
#define TIMES(columns, together)                                                                                       \
    static void times_##columns(const float *K, ptrdiff_t n, ptrdiff_t m, ptrdiff_t stride, const float *V, ptrdiff_t q, \
                                double *out, ptrdiff_t out_stride)                                                     \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < n; i += together) {                                                                  \
            float sums[together][columns];                                                                             \
            const float *rows[together];                                                                               \
            for (int r = 0; r < together; r++)                                                                         \
                rows[r] = K + (i + r < n ? i + r : n - 1) * stride;                                                    \
            memset(sums, 0, sizeof sums);                                                                              \
            for (ptrdiff_t j = 0; j < m; j++)                                                                          \
                for (int r = 0; r < together; r++) {                                                                   \
                    float k = rows[r][j];                                                                              \
                    _Pragma("omp simd")                                                                                \
                    for (int c = 0; c < columns; c++)                                                                  \
                        sums[r][c] += k * V[j * columns + c];                                                          \
                }                                                                                                      \
            for (ptrdiff_t c = 0; c < q; c++)                                                                          \
                for (int r = 0; r < together && i + r < n; r++)                                                        \
                    out[c * out_stride + i + r] = sums[r][c];                                                          \
        }                                                                                                              \
    }

TIMES(8, 8)
TIMES(16, 4)

void BUILD(times_columns)(const float *K, ptrdiff_t n, ptrdiff_t m, ptrdiff_t stride, const float *V, ptrdiff_t columns,
                          ptrdiff_t q, double *out, ptrdiff_t out_stride)
{
    (columns == 8 ? times_8 : times_16)(K, n, m, stride, V, q, out, out_stride);
}

/* out[j] = sum_i w[i] K[i][j]; rows of weight 0 are left out. */
void BUILD(back_line)(const float *K, ptrdiff_t n, ptrdiff_t m, ptrdiff_t stride, const double *w, float *run, double *out)
{
    int count = 0;
    memset(run, 0, sizeof(float) * (size_t)m);
    for (ptrdiff_t j = 0; j < m; j++)
        out[j] = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (w[i] == 0.0)
            continue;
        const float *restrict k = K + i * stride;
        float weight = (float)w[i], *restrict sum = run;
#pragma omp simd
        for (ptrdiff_t j = 0; j < m; j++)
            sum[j] += weight * k[j];
        if (++count == RUN) {
            for (ptrdiff_t j = 0; j < m; j++)
                out[j] += sum[j];
            memset(run, 0, sizeof(float) * (size_t)m);
            count = 0;
        }
    }
    for (ptrdiff_t j = 0; j < m; j++)
        out[j] += run[j];
}
