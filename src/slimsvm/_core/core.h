/* The builds of the C part and the choice among them: the best that this CPU runs. */
#ifndef SLIMSVM_CORE_H
#define SLIMSVM_CORE_H

#include <stddef.h>
#include <stdint.h>

#define LANES 64 /* columns of a sparse tile */

/* A kernel by its number and parameters. */
enum { LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2 };
typedef struct {
    int kernel;
    double gamma, coef0;
    long degree;
} Form;

/* quadratic t^2 + 2 linear t + the sum over rows of w dist(f + t df, [low, high])^2, as a function of t. */
typedef struct {
    const double *low, *high, *outputs, *change, *weights;
    double linear, quadratic;
} Line;

typedef struct {
    const char *name;
    void (*rbf_tail)(float, float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *);
    void (*rbf_tail_dot)(float, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *,
                         const float *, double *);
    void (*sparse_dot)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const float *, float *);
    void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *);
    long (*smo_float)(const float *, ptrdiff_t, const float *, const double *, double *, float *, float *, double,
                      long, ptrdiff_t, double, double *);
    long (*smo_double)(const double *, ptrdiff_t, const double *, const double *, double *, double *, double *, double,
                       long, ptrdiff_t, double, double *);
    void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t, const double *,
                      ptrdiff_t, const double *, double *);
    double (*line_minimum)(const Line *, ptrdiff_t, double, double, long);
    double (*line_move)(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *);
} Build;

const Build *best_build(void);

#endif
