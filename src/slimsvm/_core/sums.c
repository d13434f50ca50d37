/* Sums over rows of kernel values that are held: curvatures of squared losses, products, and the gradients of a model by its
 * points, metric and coefficients. Sums of a few rows are in the precision of the values, all others in double. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "lanes.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

#define ROWS 6                /* lines whose products are in registers at a time; more do not fit */
#define SUM_ROWS 128          /* most rows whose sums are in the precision of the values; more: faster, less accurate */
#define SUM_NUMBERS (1 << 16) /* numbers of rows and kernel values that stay in the second-level cache */

#define REAL float
#define LANE WIDTH
#define VECTOR vector
#include "sums.h"
#undef REAL
#undef LANE
#undef VECTOR

#define REAL double
#define LANE DOUBLE_WIDTH
#define VECTOR double_vector
#include "sums.h"

/* List the rows that came to the sum over rows with a residual, from the front on, and those that went, from its end. `active`
 * are the rows in the sum so far, if it is `known`; it begins anew, which is returned, where most of its rows change. */
int BUILD(list_changes)(ptrdiff_t n, const double *residual, unsigned char *active, int known, ptrdiff_t *list, ptrdiff_t *added,
                        ptrdiff_t *removed)
{
    ptrdiff_t came = 0, went = 0, now = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int is = residual[i] != 0.0, was = active[i] != 0;
        list[came] = i;
        came += is > was;
        list[n - 1 - went] = is < was ? i : list[n - 1 - went];
        went += is < was;
        now += is;
        active[i] = (unsigned char)is;
    }
    const int anew = !known || 2 * (came + went) >= now;
    if (anew) {
        came = went = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            list[came] = i;
            came += active[i];
        }
    }
    *added = came;
    *removed = went;
    return anew;
}

/* The lower Cholesky factor L of H + R + ridge I, with a ridge that grows from `share` of the largest diagonal number by `more`
 * until the sum is definite; lower triangles are read. Returns 0, or -1 for a matrix that is not finite. */
int BUILD(factor_definite)(ptrdiff_t s, const double *H, const double *R, double share, double more, double *restrict L)
{
    double largest = -INFINITY;
    for (ptrdiff_t i = 0; i < s; i++) {
        const double value = H[i * s + i] + R[i * s + i];
        largest = value > largest ? value : largest;
    }
    largest = largest != 0.0 ? largest : 1.0;
    for (double ridge = share * largest; ridge < INFINITY; ridge *= more) {
        ptrdiff_t i = 0;
        for (; i < s; i++) {
            double *restrict line = L + i * s;
            for (ptrdiff_t j = 0; j <= i; j++) {
                const double *restrict other = L + j * s;
                double total = 0.0;
#pragma omp simd reduction(+ : total)
                for (ptrdiff_t k = 0; k < j; k++)
                    total += line[k] * other[k];
                total = H[i * s + j] + R[i * s + j] - total;
                if (j < i)
                    line[j] = total / other[j];
                else if (!((total += ridge) > 0.0))
                    goto next;
                else
                    line[i] = sqrt(total);
            }
            for (ptrdiff_t j = i + 1; j < s; j++)
                line[j] = 0.0;
        }
        return 0;
    next:;
    }
    return -1;
}

/* x <- (L L')^-1 x for a lower triangular L of s lines. */
void BUILD(solve_factored)(const double *L, ptrdiff_t s, double *x)
{
    for (ptrdiff_t i = 0; i < s; i++) {
        const double *restrict line = L + i * s;
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (ptrdiff_t j = 0; j < i; j++)
            total += line[j] * x[j];
        x[i] = (x[i] - total) / line[i];
    }
    for (ptrdiff_t i = s - 1; i >= 0; i--) {
        const double *restrict line = L + i * s;
        double here = x[i] / line[i];
        x[i] = here;
#pragma omp simd
        for (ptrdiff_t j = 0; j < i; j++)
            x[j] -= line[j] * here;
    }
}
