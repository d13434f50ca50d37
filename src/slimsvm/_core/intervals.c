/* Squared distances to intervals along a line: sum_i w_i dist(f_i + t df_i, [low_i, high_i])^2 for solvers/newton.py.
 *
 * Built once per instruction set like tails.c, with infinities, since demands may be one-sided.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

/* The change that brings g into its interval; 0 inside it. */
static inline double residual_of(double g, double low, double high)
{
    double below = low - g, above = high - g;
    return (below > 0.0 ? below : 0.0) + (above < 0.0 ? above : 0.0);
}

/* Half the derivative of the sum by t, and half its second derivative. */
static void slope_at(const Line *line, ptrdiff_t n, double t, double *slope, double *curvature)
{
    const double *restrict low = line->low, *restrict high = line->high, *restrict f = line->outputs;
    const double *restrict df = line->change, *restrict w = line->weights;
    double first = 0.0, second = 0.0;
#pragma omp simd reduction(+ : first, second)
    for (ptrdiff_t i = 0; i < n; i++) {
        double r = residual_of(f[i] + t * df[i], low[i], high[i]), pull = w[i] * df[i];
        first += pull * r;
        second += r != 0.0 ? pull * df[i] : 0.0;
    }
    *slope = line->quadratic * t + line->linear - first;
    *curvature = line->quadratic + second;
}

/* The t with the least value of quadratic t^2 + 2 linear t + the sum. The derivative is piecewise linear and grows, so
 * Newton's method ends at its root after a few pieces; it is kept to the interval that the signs seen so far leave. */
double BUILD(line_minimum)(const Line *line, ptrdiff_t n, double start, double precision, int64_t steps)
{
    double lowest = -INFINITY, highest = INFINITY, t = start, slope, curvature;
    for (int64_t step = 0; step < steps; step++) {
        slope_at(line, n, t, &slope, &curvature);
        if (slope > 0)
            highest = t;
        else
            lowest = t;
        if (!(curvature > 0) || fabs(slope) <= 1e-12 * curvature * fabs(t))
            break;
        double next = t - slope / curvature, before = t;
        t = lowest < next && next < highest ? next : (lowest + highest) / 2;
        if (fabs(t - before) <= precision * fabs(t))
            break;
    }
    return t;
}

/* outputs += t change; residual <- that of the new outputs. Returns the sum, and in `switched` how many rows entered or
 * left their interval. */
double BUILD(line_move)(const Line *line, ptrdiff_t n, double t, double *restrict outputs, double *restrict residual,
                        ptrdiff_t *switched)
{
    const double *restrict low = line->low, *restrict high = line->high, *restrict df = line->change;
    const double *restrict w = line->weights;
    double total = 0.0;
    ptrdiff_t count = 0;
#pragma omp simd reduction(+ : total, count)
    for (ptrdiff_t i = 0; i < n; i++) {
        double g = outputs[i] + t * df[i], r = residual_of(g, low[i], high[i]);
        count += (r != 0.0) != (residual[i] != 0.0);
        outputs[i] = g;
        residual[i] = r;
        total += w[i] * r * r;
    }
    *switched = count;
    return total;
}
