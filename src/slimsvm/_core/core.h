/* The builds of the C part and the choice among them: the best that this CPU runs. */
#ifndef SLIMSVM_CORE_H
#define SLIMSVM_CORE_H

#include <stddef.h>
#include <stdint.h>

#define LANES 64  /* columns of a sparse tile, and rows of a panel */
#define SUMMED 16 /* partial sums over the columns of a row, as many as floats in the widest register */

/* A kernel by its number and parameters. */
enum { LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2 };
typedef struct {
    int kernel;
    double gamma, coef0;
    int64_t degree;
} Form;

/* Rows of the RBF kernel among `count` points, evaluated one at a time. Panels hold the points' transpose, LANES points
 * each: (panels, features, LANES). Norms are squared, times scale = gamma log2(e). Rows lie one after the other in space. */
typedef struct {
    ptrdiff_t panels, features, evaluated;
    float scale;
    const float *points, *norms;
    float *space;
} RbfSource;

/* Sparse points, `groups` times LANES of them: the values of frequent features in lines, postings of the others. */
typedef struct {
    ptrdiff_t groups, frequent;
    const int32_t *place;      /* (features,) */
    const float *lines;        /* (groups, frequent, LANES) */
    const int32_t *post_starts; /* (features + 1,) */
    const int32_t *post_points;
    const float *post_values;
} SparsePanel;

/* Rows of few nonzeros, each from its start to its end among the entries. */
typedef struct {
    ptrdiff_t count;
    const float *data;
    const int32_t *features, *starts, *ends; /* starts and ends: (count,) */
} ThinRows;

/* Points of a model with a metric, in panels of LANES: K_ij = 2^(<x_i, line_j> + sum_f squares_f x_if^2 reach_j + level_j). */
typedef struct {
    ptrdiff_t panels, features;
    const float *lines;         /* (panels, features, LANES) */
    const float *reach, *level; /* (panels * LANES,) */
    const float *squares;       /* (features,) */
} ThinPoints;

/* quadratic t^2 + 2 linear t + the sum over rows of w dist(f + t df, [low, high])^2, as a function of t. */
typedef struct {
    const double *low, *high, *outputs, *change, *weights;
    double linear, quadratic;
} Line;

/* The function ssyrk of BLAS: C <- alpha A A' + beta C. */
typedef void (*Ssyrk)(char *, char *, int *, int *, float *, float *, int *, float *, float *, int *);

/* Kernel values K of n rows in lines of m, `stride` apart, to sum up; `square`, `lines` (of `block` rows) and `changed` (of
 * n) are work space. */
typedef struct {
    const float *K;
    ptrdiff_t n, m, stride;
    const double *weights;
    Ssyrk syrk;
    ptrdiff_t block;
    float *square, *lines;
    ptrdiff_t *changed;
} Squares;

typedef struct {
    const char *name;
    void (*rbf_tail)(float, float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *, const float *);
    void (*rbf_tail_dot)(float, const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, const float *,
                         const float *, const float *, double *);
    void (*rbf_tail_double)(double, double *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *);
    void (*rbf_tail_mixed)(double, const double *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *,
                           float *);
    void (*rbf_tail_dot_mixed)(double, const double *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, const double *,
                               const double *, double *);
    ptrdiff_t (*near_box)(const double *, const double *, ptrdiff_t, const double *, ptrdiff_t, double, double *,
                          ptrdiff_t *);
    void (*sparse_panel)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const SparsePanel *, int32_t *,
                         float *, int32_t *, float *);
    void (*sparse_dot)(const float *, const int32_t *, const int32_t *, ptrdiff_t, const float *, float *);
    void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *);
    const float *(*rbf_row)(void *, ptrdiff_t);
    int64_t (*smo_float)(const float **, const float *(*)(void *, ptrdiff_t), void *, const float *, ptrdiff_t,
                      const float *, const double *, double *, float *, float *, double, int64_t, ptrdiff_t, double,
                      double *);
    int64_t (*smo_double)(const double **, const double *(*)(void *, ptrdiff_t), void *, const double *, ptrdiff_t,
                       const double *, const double *, double *, double *, double *, double, int64_t, ptrdiff_t, double,
                       double *);
    void (*smo_bounds)(ptrdiff_t, const double *, const double *, const double *, const double *, double *, double *);
    void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t, const double *,
                      const double *, ptrdiff_t, const double *, double *);
    double (*line_minimum)(const Line *, ptrdiff_t, double, double, int64_t);
    double (*line_move)(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *);
    void (*update_curvature)(const Squares *, const double *, unsigned char *, int, double *);
    void (*solve_factored)(const double *, ptrdiff_t, double *);
    void (*times_columns)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, ptrdiff_t, ptrdiff_t, double *,
                          ptrdiff_t);
    void (*back_line)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, float *, double *);
    void (*thin_values)(const ThinRows *, const ThinPoints *, const float *, float *, float *, float *);
    void (*thin_back)(const ThinRows *, ptrdiff_t, ptrdiff_t, const float *, const float *, const float *, const float *,
                      float *, double *);
    void (*adam_step)(ptrdiff_t, double, const double *, const double *, double *, double *, double *);
} Build;

const Build *best_build(void);

#endif
