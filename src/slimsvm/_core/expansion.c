/* f(x) = sum_j k(x, z_j) coef_j + bias for a few rows, in double and in one pass; built once per instruction set.
 *
 * Many rows are faster by matrix products (rows/tiles.py); this is for single rows and small batches.
 */
#include <math.h>
#include <stddef.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

/* A sum over the features of a row x and a point z, in as many lanes as the CPU has. */
#define SUM_OVER_FEATURES(name, term)                                                                                  \
    static inline double name(const double *restrict x, const double *restrict z, ptrdiff_t d)                         \
    {                                                                                                                  \
        double s = 0.0;                                                                                                \
        _Pragma("omp simd reduction(+ : s)") for (ptrdiff_t i = 0; i < d; i++) s += term;                              \
        return s;                                                                                                      \
    }

SUM_OVER_FEATURES(inner_product, x[i] * z[i])
SUM_OVER_FEATURES(squared_distance, (x[i] - z[i]) * (x[i] - z[i]))
SUM_OVER_FEATURES(manhattan, fabs(x[i] - z[i]))
SUM_OVER_FEATURES(chi_squared, x[i] + z[i] != 0.0 ? (x[i] - z[i]) * (x[i] - z[i]) / (x[i] + z[i]) : 0.0)

/* By squaring: about log2(degree) products, and the same bits as repeated products up to degree 3. */
static inline double power(double base, int64_t degree)
{
    double p = 1.0;
    for (; degree > 0; degree /= 2, base *= base)
        if (degree % 2)
            p *= base;
    return p;
}

static inline double value(const Form *k, double gamma, const double *x, const double *z, ptrdiff_t d)
{
    switch (k->kernel) {
    case RBF: return exp(-gamma * squared_distance(x, z, d));
    case POLY: return power(gamma * inner_product(x, z, d) + k->coef0, k->degree);
    case SIGMOID: return tanh(gamma * inner_product(x, z, d) + k->coef0);
    case LAPLACIAN: return exp(-gamma * manhattan(x, z, d));
    case CHI2: return exp(-gamma * chi_squared(x, z, d));
    default: return inner_product(x, z, d);
    }
}

/* out (n, q) for rows X (n, d), points Z (m, d) and coefficients (m, q); widths (m) multiply gamma, NULL for ones. */
void BUILD(expansion)(const Form *k, const double *X, ptrdiff_t n, ptrdiff_t d, const double *Z, ptrdiff_t m,
                      const double *widths, const double *coef, ptrdiff_t q, const double *bias, double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++, X += d, out += q) {
        for (ptrdiff_t c = 0; c < q; c++)
            out[c] = bias[c];
        for (ptrdiff_t j = 0; j < m; j++) {
            double v = value(k, widths ? widths[j] * k->gamma : k->gamma, X, Z + j * d, d);
            for (ptrdiff_t c = 0; c < q; c++)
                out[c] += v * coef[j * q + c];
        }
    }
}
