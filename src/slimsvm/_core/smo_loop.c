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

#define REAL float
#define BITS uint32_t
#define GUESS 0x7ef311c7u
#define SMO smo_float
#include "smo_loop.h"
#undef REAL
#undef BITS
#undef GUESS
#undef SMO

#define REAL double
#define BITS uint64_t
#define GUESS 0x7fde623822fc16e6u
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
