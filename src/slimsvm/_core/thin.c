/* Gradients of a model with a learned metric, for rows with many zeros: only the nonzeros of a row take part.
 *
 * Points lie in panels of LANES, and a panel's values of one feature in one line. So the sums of a row and a panel stay in
 * registers, or in the first-level cache, while the row's nonzeros pass by. Kernel values are lines of `panels` * LANES.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core.h"
#include "lanes.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

enum { PARTS = LANES / WIDTH };

/* K_ij = 2^(<x_i, line_j> + norm_i reach_j + level_j) with exponents of at most 0. sums[i][v] are the SUMMED partial sums of
 * K_ij weights_vj, those of every SUMMEDth point, for two lines of weights, (2, panels * LANES). Norms, sum_f squares_f
 * x_if^2, are written too. */
void BUILD(thin_values)(const ThinRows *rows, const ThinPoints *points, const float *weights, float *norms, float *K,
                        float *sums)
{
    const ptrdiff_t stride = points->panels * LANES;
    memset(sums, 0, rows->count * 2 * SUMMED * sizeof(float));
    for (ptrdiff_t i = 0; i < rows->count; i++) {
        float norm = 0.0f;
        for (int32_t t = rows->starts[i]; t < rows->ends[i]; t++)
            norm += points->squares[rows->features[t]] * rows->data[t] * rows->data[t];
        norms[i] = norm;
    }
    for (ptrdiff_t p = 0; p < points->panels; p++) {
        const float *lines = points->lines + p * points->features * LANES;
        const float *reach = points->reach + p * LANES, *level = points->level + p * LANES;
        const float *first = weights + p * LANES, *second = first + stride;
        for (ptrdiff_t i = 0; i < rows->count; i++) {
            vector sum[PARTS];
            for (int l = 0; l < PARTS; l++)
                sum[l] = ((const vector *)level)[l] + norms[i] * ((const vector *)reach)[l];
            for (int32_t t = rows->starts[i]; t < rows->ends[i]; t++) {
                const vector *line = (const vector *)(lines + (ptrdiff_t)rows->features[t] * LANES);
#ifdef __GNUC__
#pragma GCC unroll 16
#endif
                for (int l = 0; l < PARTS; l++)
                    sum[l] += rows->data[t] * line[l];
            }
            float exponents[LANES], *restrict values = K + i * stride + p * LANES, *restrict partial = sums + i * 2 * SUMMED;
            memcpy(exponents, sum, sizeof exponents);
            for (int j = 0; j < LANES; j++)
                values[j] = exp2_of_nonpositive(exponents[j] < 0.0f ? exponents[j] : 0.0f);
            for (int from = 0; from < LANES; from += SUMMED)
                for (int j = 0; j < SUMMED; j++) {
                    partial[j] += values[from + j] * first[from + j];
                    partial[SUMMED + j] += values[from + j] * second[from + j];
                }
        }
    }
}

/* totals[f][j] += sum_i w_i K_ij x_if for each panel: (panels, features + 2, LANES). The last two lines are those of the
 * norms and of ones. spread[f] += sum_i pulled_i x_if^2. Rows of weight 0 are left out. */
void BUILD(thin_back)(const ThinRows *rows, ptrdiff_t features, ptrdiff_t panels, const float *norms, const float *weights,
                      const float *pulled, const float *K, float *totals, double *spread)
{
    for (ptrdiff_t i = 0; i < rows->count; i++)
        if (weights[i] != 0.0f)
            for (int32_t t = rows->starts[i]; t < rows->ends[i]; t++)
                spread[rows->features[t]] += pulled[i] * rows->data[t] * rows->data[t];
    for (ptrdiff_t p = 0; p < panels; p++) {
        float *found = totals + p * (features + 2) * LANES;
        vector of_norms[PARTS] = {0}, of_ones[PARTS] = {0};
        for (ptrdiff_t i = 0; i < rows->count; i++) {
            if (weights[i] == 0.0f)
                continue;
            const vector *values = (const vector *)(K + (i * panels + p) * LANES);
            vector k[PARTS];
            for (int l = 0; l < PARTS; l++) {
                k[l] = weights[i] * values[l];
                of_ones[l] += k[l];
                of_norms[l] += norms[i] * k[l];
            }
            for (int32_t t = rows->starts[i]; t < rows->ends[i]; t++) {
                vector *line = (vector *)(found + (ptrdiff_t)rows->features[t] * LANES);
#ifdef __GNUC__
#pragma GCC unroll 16
#endif
                for (int l = 0; l < PARTS; l++)
                    line[l] += rows->data[t] * k[l];
            }
        }
        vector *last = (vector *)(found + features * LANES);
        for (int l = 0; l < PARTS; l++) {
            last[l] += of_norms[l];
            last[PARTS + l] += of_ones[l];
        }
    }
}
