/* Products of kernel values with the coefficients of several outputs, and with residuals that most rows do not have. */
#include <stddef.h>
#include <string.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

#define TOGETHER 4 /* rows whose sums are held in registers */
#define RUN 64     /* rows whose float32 sums are added up before they become float64 */

/* out[c][i] = sum_j K[i][j] V[j][c] for COLUMNS outputs, of which the first q are written. */
void BUILD(times_columns)(const float *K, ptrdiff_t n, ptrdiff_t m, ptrdiff_t stride, const float *V, ptrdiff_t q,
                          double *out, ptrdiff_t out_stride)
{
    for (ptrdiff_t i = 0; i < n; i += TOGETHER) {
        float sums[TOGETHER][COLUMNS];
        const float *rows[TOGETHER];
        for (int r = 0; r < TOGETHER; r++) /* beyond the end the last row once more */
            rows[r] = K + (i + r < n ? i + r : n - 1) * stride;
        memset(sums, 0, sizeof sums);
        for (ptrdiff_t j = 0; j < m; j++) {
            const float *restrict v = V + j * COLUMNS;
            for (int r = 0; r < TOGETHER; r++) {
                float k = rows[r][j];
#pragma omp simd
                for (int c = 0; c < COLUMNS; c++)
                    sums[r][c] += k * v[c];
            }
        }
        for (ptrdiff_t c = 0; c < q; c++)
            for (int r = 0; r < TOGETHER && i + r < n; r++)
                out[c * out_stride + i + r] = sums[r][c];
    }
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
