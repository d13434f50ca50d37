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
    const int32_t *place;       /* (features,): the line of a feature, or -1 */
    const void *lines;          /* (groups, frequent, LANES) */
    const int32_t *post_starts; /* (features + 1,) */
    const int32_t *post_points;
    const void *post_values;
} SparsePanel;

/* The kernel matrix between rows and points, floats or doubles. Points are in panels of LANES: (panels, features, LANES). Norms
 * are squared, times scale = gamma log2(e), and those of points and the widths are filled up to full panels. */
typedef struct {
    Form form;
    double scale;
    int narrow; /* whether the values of doubles are computed and stored as floats */
    ptrdiff_t features, points;
    const void *rows;                         /* (rows, features), or NULL for CSR rows: */
    const void *data;
    const int32_t *features_of, *starts;
    const void *a, *b, *widths;               /* norms of rows and of points, and widths; each may be NULL */
    const void *lines;                        /* dense points, or NULL for sparse ones: */
    const SparsePanel *posted;
} Pass;

/* What is wanted of some rows: their values, their outputs, or both. Outputs are sums over the points of some panels. */
typedef struct {
    const ptrdiff_t *index;           /* the numbers of the rows; NULL for all */
    ptrdiff_t start, stop;            /* among these */
    ptrdiff_t first_panel, last_panel;
    void *values;                     /* NULL, or lines `stride` apart for the rows from `values_from` on */
    ptrdiff_t stride, values_from;
    ptrdiff_t outputs, columns;       /* the outputs are 0 without coefficients V */
    const void *V;                    /* (points,) for one output, or (points, columns), filled up to full panels */
    double *out;                      /* (rows, outputs) for the rows from `out_from` on, which is added to */
    ptrdiff_t out_from;
} Wanted;

/* quadratic t^2 + 2 linear t + the sum over rows of w dist(f + t df, [low, high])^2, as a function of t. */
typedef struct {
    const double *low, *high, *outputs, *change, *weights;
    double linear, quadratic;
} Line;

/* Kernel values K of n rows in lines of m, `stride` apart, and the weights of the rows. */
typedef struct {
    const void *K;
    ptrdiff_t n, m, stride;
    const double *weights;
} Squares;

/* What the gradient of a Gaussian model takes sums of: rows in one of two forms, their kernel values in lines
 * `stride` apart, and their slopes W by each output. */
typedef struct {
    ptrdiff_t features, points, outputs;
    const void *rows;                       /* (rows, features), or NULL for CSR rows: */
    const void *data;
    const int32_t *features_of, *starts;
    const void *K;
    ptrdiff_t stride;
    const double *W;                        /* lines w_stride apart */
    ptrdiff_t w_stride;
    const void *V, *squares, *pulls;        /* (outputs, points) and (points,) filled up to LANES; (features,) */
} Backward;

/* Rows in boxes: the numbers of the rows of box k are rows[starts[k]] .. rows[starts[k + 1] - 1]. Points within a squared distance
 * of `reach` of a box count; `placed` has their coordinates along the axes, (axes, points), and `points` their features. */
typedef struct {
    const ptrdiff_t *starts, *rows;
    ptrdiff_t axes;
    const double *low, *high; /* (boxes, axes) */
    const double *placed;
    double reach;
    const void *points;
} Boxes;

/* max linear'c - 1/2 c'K c, c = y alpha, 0 <= alpha <= cap, y'alpha constant, with f = K c. Row k is line and column line[k] of
 * K; these columns are `ranges` of K's, each of `counts` columns from `starts` on. */
typedef struct {
    ptrdiff_t rows, stride, ranges;
    const ptrdiff_t *line, *starts, *counts;
    const void *K;
    const double *linear, *y, *cap;
    double *alpha, *f, tol;
    int64_t max_steps;
} Settling;

/* Work space for a problem: `row` to `change` for each row, `work` for five numbers a row. `block` has lines of `most` kernel
 * values for at most so many rows; the first `held` are those of the rows `place`, columns `column` of K, and slot[place[k]] is k,
 * and -1 for other rows. `needed` rows at most were solved for at a time since `trim`. */
typedef struct {
    const void **row;
    ptrdiff_t *near, *place, *column, *slot, held, most, needed;
    double *cap, *alpha, *change;
    void *work, *block;
} Room;

typedef struct {
    const char *name;
    ptrdiff_t (*near_box)(const double *, const double *, ptrdiff_t, const double *, ptrdiff_t, double, double *,
                          ptrdiff_t *);
    void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *);
    const float *(*rbf_row)(void *, ptrdiff_t);
    int64_t (*smo_float)(const float **, const float *(*)(void *, ptrdiff_t), void *, const float *, ptrdiff_t,
                      const float *, const double *, double *, float *, float *, double, int64_t, ptrdiff_t, double,
                      double *);
    int64_t (*smo_double)(const double **, const double *(*)(void *, ptrdiff_t), void *, const double *, ptrdiff_t,
                       const double *, const double *, double *, double *, double *, double, int64_t, ptrdiff_t, double,
                       double *);
    int64_t (*settle_float)(const Settling *, Room *, double *, double *);
    int64_t (*settle_double)(const Settling *, Room *, double *, double *);
    void (*moved_float)(const Settling *, Room *, const double *);
    void (*moved_double)(const Settling *, Room *, const double *);
    void (*trim)(Room *);
    void (*advance)(const Settling *, const double *, const double *, double, double *, double *, double *);
    void (*smo_bounds)(ptrdiff_t, const double *, const double *, const double *, const double *, double *, double *);
    void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t, const double *,
                      const double *, ptrdiff_t, const double *, double *);
    double (*line_minimum)(const Line *, ptrdiff_t, double, double, int64_t);
    double (*line_move)(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *);
    int (*list_changes)(ptrdiff_t, const double *, unsigned char *, int, ptrdiff_t *, ptrdiff_t *, ptrdiff_t *);
    int (*add_squares_float)(const Squares *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, double *);
    int (*add_squares_double)(const Squares *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, double *);
    void (*add_lines_float)(const Squares *, const double *, ptrdiff_t, ptrdiff_t, float *, double *);
    void (*add_lines_double)(const Squares *, const double *, ptrdiff_t, ptrdiff_t, double *, double *);
    void (*row_products_float)(const Squares *, const void *, ptrdiff_t, ptrdiff_t, double *);
    void (*row_products_double)(const Squares *, const void *, ptrdiff_t, ptrdiff_t, double *);
    int (*add_backward_float)(const Backward *, const ptrdiff_t *, ptrdiff_t, double *);
    int (*add_backward_double)(const Backward *, const ptrdiff_t *, ptrdiff_t, double *);
    int (*factor_definite)(ptrdiff_t, const double *, const double *, double, double, double *);
    void (*solve_factored)(const double *, ptrdiff_t, double *);
    void (*times_columns)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, ptrdiff_t, ptrdiff_t, double *,
                          ptrdiff_t);
    int (*pass_float)(const Pass *, const Wanted *);
    int (*pass_double)(const Pass *, const Wanted *);
    int (*pass_near_float)(const Pass *, const Boxes *, ptrdiff_t, ptrdiff_t, const void *, ptrdiff_t, double *);
    int (*pass_near_double)(const Pass *, const Boxes *, ptrdiff_t, ptrdiff_t, const void *, ptrdiff_t, double *);
} Build;

/* The number before, which other threads may raise at the same time. */
int64_t taken(int64_t *next, int64_t step);

const Build *best_build(void);

#endif
