/* The inner SMO loop for float and double kernel blocks; built once per instruction set like tails.c. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */
#define CHUNK 256 /* more: fewer maxima of chunks, and a longer search in one of them */
#define TAU 1e-12 /* LIBSVM's floor for the curvature of a pair */

/* 1 / x for x > 0 to within 2 %: the subtraction negates the exponent, then one step of Newton's method. Gains only choose a pair,
 * and a division takes several times as long. */
static inline float about_reciprocal(float x)
{
    uint32_t bits;
    float r;
    memcpy(&bits, &x, sizeof bits);
    bits = 0x7ef311c7u - bits;
    memcpy(&r, &bits, sizeof r);
    return r * (2.0f - x * r);
}

#define REAL float
#define QUOTIENT(a, b) ((a) * about_reciprocal(b))
#define SMO smo_float
#include "smo_loop.h"
#undef REAL
#undef QUOTIENT
#undef SMO

#define REAL double
#define QUOTIENT(a, b) ((a) / (b))
#define SMO smo_double
#include "smo_loop.h"

/* grow <- v where y alpha can grow within 0 <= alpha <= cap, else -infinity; shrink <- v where it can shrink, else infinity. */
void BUILD(smo_bounds)(ptrdiff_t n, const double *restrict alpha, const double *restrict cap, const double *restrict y,
                       const double *restrict v, double *restrict grow, double *restrict shrink)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        int up = y[i] > 0, can_rise = alpha[i] < cap[i], can_fall = alpha[i] > 0;
        grow[i] = (up & can_rise) | ((!up) & can_fall) ? v[i] : -INFINITY;
        shrink[i] = (up & can_fall) | ((!up) & can_rise) ? v[i] : INFINITY;
    }
}
