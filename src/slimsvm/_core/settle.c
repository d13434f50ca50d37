/* Problems whose kernel values are in memory, and their solutions from one C to the next; built once per instruction set.
 *
 *   max  linear'c - 1/2 c'K c     c_k = y_k a_k,  0 <= a_k <= cap_k,  y'a constant,   f = K c,  v = linear - f
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */
/* columns that are summed at a time */
#define CHUNK 1024
/* rows at a bound are solved for if they are within this share of the largest violation of violating optimality; more: fewer
 * rounds, of longer steps */
#define REACH 0.05
/* the violation to which these rows are solved, as a share of that of all rows; less: fewer rounds, of more steps */
#define CLOSE 0.005
/* rows are copied if they are at most this share of all */
#define FEW 0.7
/* rounds in which the violation does not fall, for each part of the rows that there is room for */
#define PATIENCE 20
/* coefficients within this share of their box from a bound are at the bound, but for rounding */
#define ROUNDED 1e-10

static inline double at_bound(double a, double cap)
{
    return a >= (1 - ROUNDED) * cap ? cap : a > ROUNDED * cap ? a : 0;
}

/* The largest violation; `level` is the mean v of the free rows, or the middle of the bounds if no row is free. */
static double violation(const Settling *p, double *level)
{
    double high = -INFINITY, low = INFINITY, total = 0, count = 0;
#pragma omp simd reduction(max : high) reduction(min : low) reduction(+ : total, count)
    for (ptrdiff_t k = 0; k < p->rows; k++) {
        const double v = p->linear[k] - p->f[k];
        const int can_rise = p->alpha[k] < p->cap[k], can_fall = p->alpha[k] > 0, up = p->y[k] > 0;
        const double rising = (up & can_rise) | ((!up) & can_fall) ? v : -INFINITY;
        const double falling = (up & can_fall) | ((!up) & can_rise) ? v : INFINITY;
        high = rising > high ? rising : high;
        low = falling < low ? falling : low;
        total += can_rise & can_fall ? v : 0;
        count += can_rise & can_fall ? 1 : 0;
    }
    if (count > 0)
        *level = total / count;
    else if (high == -INFINITY || low == INFINITY)
        *level = high == -low ? 0 : high == -INFINITY ? low : high;
    else
        *level = (high + low) / 2;
    return high > low ? high - low : 0;
}

/* By how much a row violates optimality, or, below 0, by how much it does not; -infinity for a row that cannot move. */
static inline double wrong(const Settling *p, ptrdiff_t k, double level)
{
    const double v = p->linear[k] - p->f[k] - level;
    const int can_rise = p->alpha[k] < p->cap[k], can_fall = p->alpha[k] > 0, up = p->y[k] > 0;
    const int rises = (up & can_rise) | ((!up) & can_fall), falls = (up & can_fall) | ((!up) & can_rise);
    return rises & falls ? fabs(v) : rises ? v : falls ? -v : -INFINITY;
}

/* place <- the rows that violate optimality by more than `least`; returns their number. */
static ptrdiff_t near_margin(const Settling *p, ptrdiff_t *place, double level, double least)
{
    ptrdiff_t m = 0;
    for (ptrdiff_t k = 0; k < p->rows; k++) {
        place[m] = k;
        m += wrong(p, k, level) > least;
    }
    return m;
}

/* place <- the rows that violate optimality most, at most `most`; some of those that violate it as much. Returns their number. */
static ptrdiff_t worst(const Settling *p, ptrdiff_t *place, double gap, ptrdiff_t most)
{
    double low = -gap, high = gap, top = -INFINITY;
    for (ptrdiff_t k = 0; k < p->rows; k++) {
        const double v = p->linear[k] - p->f[k];
        top = (p->y[k] > 0 ? p->alpha[k] < p->cap[k] : p->alpha[k] > 0) && v > top ? v : top;
    }
    const double level = top - gap / 2; /* the rows that most want to rise and to fall violate it as much */
    for (int halving = 0; halving < 20; halving++) {
        const double middle = (low + high) / 2;
        if (near_margin(p, place, level, middle) > most)
            low = middle;
        else
            high = middle;
    }
    ptrdiff_t count = near_margin(p, place, level, high);
    if (count >= most / 2)
        return count;
    count = near_margin(p, place, level, low);
    for (ptrdiff_t k = 0; k < most; k++)
        place[k] = place[k * count / most];
    return most;
}

static void drop(Room *r)
{
    for (ptrdiff_t k = 0; k < r->held; k++)
        r->slot[r->place[k]] = -1;
    r->held = 0;
}

/* Hold fewer rows if the last C needed less than half of them. */
void BUILD(trim)(Room *r)
{
    if (r->held > 2 * r->needed)
        drop(r);
    r->needed = 0;
}

/* Move along the line from `earlier` through the present solution, times t, into the box of `cap`; y'a stays 0.
 *
 * Coefficients of a path over C lie on such lines between changes of sides. The end point is next_alpha, with f of the point on
 * the line in next_f, and `change` is the change of c from there, whose kernel values are to be added. Where the objective is no
 * higher on the line, t is 0. The rows that gain least, or most, balance the sum. */
void BUILD(advance)(const Settling *p, const double *earlier, const double *earlier_f, double t, double *next_alpha,
                    double *next_f, double *change)
{
    double slope = 0, square = 0, excess = 0, size = 0;
    for (ptrdiff_t k = 0; k < p->rows; k++) {
        const double d = p->y[k] * (p->alpha[k] - earlier[k]);
        slope += d * (p->linear[k] - p->f[k]);
        square += d * (p->f[k] - earlier_f[k]);
    }
    if (t * square > 2 * slope)
        t = 0;
    for (ptrdiff_t k = 0; k < p->rows; k++) {
        const double there = p->alpha[k] + t * (p->alpha[k] - earlier[k]), cap = p->cap[k];
        const double a = at_bound(there < cap ? there : cap, cap);
        next_f[k] = p->f[k] + t * (p->f[k] - earlier_f[k]);
        next_alpha[k] = a;
        change[k] = p->y[k] * (a - there);
        excess += p->y[k] * a;
        size += a;
    }
    while (fabs(excess) > ROUNDED * size) {
        const double sign = excess > 0 ? 1 : -1;
        double worst = INFINITY;
        ptrdiff_t at = -1;
        for (ptrdiff_t k = 0; k < p->rows; k++) {
            const double v = sign * (p->linear[k] - next_f[k]);
            const int can = p->y[k] * sign > 0 ? next_alpha[k] > 0 : next_alpha[k] < p->cap[k];
            if (can && v < worst) {
                worst = v;
                at = k;
            }
        }
        if (at < 0)
            break;
        const int shrinks = p->y[at] * sign > 0;
        const double room = shrinks ? next_alpha[at] : p->cap[at] - next_alpha[at], step = fmin(room, fabs(excess));
        next_alpha[at] = step == room ? (shrinks ? 0 : p->cap[at]) : next_alpha[at] + (shrinks ? -step : step);
        change[at] -= sign * step;
        excess -= sign * step;
    }
}

int64_t BUILD(smo_float)(const float **, const float *(*)(void *, ptrdiff_t), void *, const float *, ptrdiff_t, const float *,
                         const double *, double *, float *, float *, double, int64_t, ptrdiff_t, double, double *);
int64_t BUILD(smo_double)(const double **, const double *(*)(void *, ptrdiff_t), void *, const double *, ptrdiff_t,
                          const double *, const double *, double *, double *, double *, double, int64_t, ptrdiff_t, double,
                          double *);

#define REAL float
#define SMO smo_float
#define SETTLE BUILD(settle_float)
#include "settle_loop.h"
#undef REAL
#undef SMO
#undef SETTLE

#define REAL double
#define SMO smo_double
#define SETTLE BUILD(settle_double)
#include "settle_loop.h"
