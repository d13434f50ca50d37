/* Products of kernel values with the coefficients of several outputs. */
#include <stddef.h>
#include <string.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

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
