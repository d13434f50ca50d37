/* Curvatures of squared losses, the sum of w d d' over the rows that fall short with d = (1, k), for solvers/newton.py.
 *
 * Products are those of BLAS, whose function comes from SciPy at run time.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

/* values += sign times the sum of w d d' over some rows, in the lower triangle. */
static void add_squares(const Squares *of, const ptrdiff_t *rows, ptrdiff_t count, double sign, double *values)
{
    int s = (int)of->m + 1, size;
    float one = 1.0f, zero = 0.0f;
    for (ptrdiff_t first = 0; first < count; first += of->block) {
        size = (int)(count - first < of->block ? count - first : of->block);
        for (int r = 0; r < size; r++) {
            const float *restrict k = of->K + rows[first + r] * of->stride;
            float *restrict line = of->lines + (ptrdiff_t)r * s, root = (float)sqrt(of->weights[rows[first + r]]);
            line[0] = root;
#pragma omp simd
            for (ptrdiff_t j = 0; j < of->m; j++)
                line[j + 1] = root * k[j];
        }
        of->syrk("U", "N", &s, &size, &one, of->lines, &s, &zero, of->square, &s);
        for (int i = 0; i < s; i++) {
            const float *restrict part = of->square + (ptrdiff_t)i * s;
            double *restrict total = values + (ptrdiff_t)i * s;
#pragma omp simd
            for (int j = 0; j <= i; j++)
                total[j] += sign * part[j];
        }
    }
}

/* Bring the sum over the rows with a residual up to date. The rows in `active` are those of the sum so far, if it is
 * `known`; rows are added or taken away one by one unless most of them change. */
void BUILD(update_curvature)(const Squares *of, const double *residual, unsigned char *active, int known, double *values)
{
    ptrdiff_t n = of->n, came = 0, went = 0, now = 0, *changed = of->changed;
    for (ptrdiff_t i = 0; i < n; i++) { /* rows that came from the front of the list on, those that went from its end */
        int short_of = residual[i] != 0.0, was = active[i] != 0;
        changed[came] = i;
        came += short_of > was;
        changed[n - 1 - went] = short_of < was ? i : changed[n - 1 - went];
        went += short_of < was;
        now += short_of;
        active[i] = (unsigned char)short_of;
    }
    if (!known || 2 * (came + went) >= now) {
        memset(values, 0, sizeof(double) * (size_t)(of->m + 1) * (size_t)(of->m + 1));
        came = went = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            changed[came] = i;
            came += active[i];
        }
    }
    add_squares(of, changed, came, 1.0, values);
    add_squares(of, changed + n - went, went, -1.0, values);
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
