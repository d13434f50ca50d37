#include "core.h"

#define DECLARE(suffix)                                                                                                \
    ptrdiff_t near_box_##suffix(const double *, const double *, ptrdiff_t, const double *, ptrdiff_t, double,          \
                                double *, ptrdiff_t *);                                                                \
    void sum_rows_##suffix(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *);                       \
    const float *rbf_row_##suffix(void *, ptrdiff_t);                                                                  \
    int64_t smo_float_##suffix(const float **, const float *(*)(void *, ptrdiff_t), void *, const float *, ptrdiff_t,     \
                            const float *, const double *, double *, float *, float *, double, int64_t, ptrdiff_t,        \
                            double, double *);                                                                         \
    int64_t smo_double_##suffix(const double **, const double *(*)(void *, ptrdiff_t), void *, const double *, ptrdiff_t, \
                             const double *, const double *, double *, double *, double *, double, int64_t, ptrdiff_t,    \
                             double, double *);                                                                        \
    int64_t settle_float_##suffix(const Settling *, Room *, double *, double *);                                       \
    int64_t settle_double_##suffix(const Settling *, Room *, double *, double *);                                      \
    void settle_float_##suffix##_moved(const Settling *, Room *, const double *);                                      \
    void settle_double_##suffix##_moved(const Settling *, Room *, const double *);                                     \
    void trim_##suffix(Room *);                                                                                        \
    void advance_##suffix(const Settling *, const double *, const double *, double, double *, double *, double *);     \
    void smo_bounds_##suffix(ptrdiff_t, const double *, const double *, const double *, const double *, double *,      \
                             double *);                                                                                \
    void expansion_##suffix(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,             \
                            const double *, const double *, ptrdiff_t, const double *, double *);                      \
    double line_minimum_##suffix(const Line *, ptrdiff_t, double, double, int64_t);                                    \
    double line_move_##suffix(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *);                       \
    int list_changes_##suffix(ptrdiff_t, const double *, unsigned char *, int, ptrdiff_t *, ptrdiff_t *, ptrdiff_t *); \
    int add_squares_float_##suffix(const Squares *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, double *);                \
    int add_squares_double_##suffix(const Squares *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, double *);               \
    void add_lines_float_##suffix(const Squares *, const double *, ptrdiff_t, ptrdiff_t, float *, double *);           \
    void add_lines_double_##suffix(const Squares *, const double *, ptrdiff_t, ptrdiff_t, double *, double *);         \
    void row_products_float_##suffix(const Squares *, const void *, ptrdiff_t, ptrdiff_t, double *);                   \
    void row_products_double_##suffix(const Squares *, const void *, ptrdiff_t, ptrdiff_t, double *);                  \
    int add_backward_float_##suffix(const Backward *, const ptrdiff_t *, ptrdiff_t, double *);                         \
    int add_backward_double_##suffix(const Backward *, const ptrdiff_t *, ptrdiff_t, double *);                        \
    int factor_definite_##suffix(ptrdiff_t, const double *, const double *, double, double, double *);                 \
    void solve_factored_##suffix(const double *, ptrdiff_t, double *);                                                 \
    void times_columns_##suffix(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, ptrdiff_t, ptrdiff_t,   \
                                double *, ptrdiff_t);                                                                  \
    int pass_float_##suffix(const Pass *, const Wanted *);                                                             \
    int pass_double_##suffix(const Pass *, const Wanted *);                                                            \
    int pass_near_float_##suffix(const Pass *, const Boxes *, ptrdiff_t, ptrdiff_t, const void *, ptrdiff_t, double *); \
    int pass_near_double_##suffix(const Pass *, const Boxes *, ptrdiff_t, ptrdiff_t, const void *, ptrdiff_t, double *); \
    static const Build build_##suffix = {                                                                              \
        #suffix,                                                                                                       \
        near_box_##suffix,                                                                                             \
        sum_rows_##suffix,                                                                                             \
        rbf_row_##suffix,                                                                                              \
        smo_float_##suffix,                                                                                            \
        smo_double_##suffix,                                                                                           \
        settle_float_##suffix,                                                                                         \
        settle_double_##suffix,                                                                                        \
        settle_float_##suffix##_moved,                                                                                 \
        settle_double_##suffix##_moved,                                                                                \
        trim_##suffix,                                                                                                 \
        advance_##suffix,                                                                                              \
        smo_bounds_##suffix,                                                                                           \
        expansion_##suffix,                                                                                            \
        line_minimum_##suffix,                                                                                         \
        line_move_##suffix,                                                                                            \
        list_changes_##suffix,                                                                                         \
        add_squares_float_##suffix,                                                                                    \
        add_squares_double_##suffix,                                                                                   \
        add_lines_float_##suffix,                                                                                      \
        add_lines_double_##suffix,                                                                                     \
        row_products_float_##suffix,                                                                                   \
        row_products_double_##suffix,                                                                                  \
        add_backward_float_##suffix,                                                                                   \
        add_backward_double_##suffix,                                                                                  \
        factor_definite_##suffix,                                                                                      \
        solve_factored_##suffix,                                                                                       \
        times_columns_##suffix,                                                                                        \
        pass_float_##suffix,                                                                                           \
        pass_double_##suffix,                                                                                          \
        pass_near_float_##suffix,                                                                                      \
        pass_near_double_##suffix};

DECLARE(base)
#ifdef SLIMSVM_X86_BUILDS
DECLARE(avx2)
DECLARE(avx512)
#endif

#ifdef _MSC_VER
#include <intrin.h>
int64_t taken(int64_t *next, int64_t step)
{
    return _InterlockedExchangeAdd64(next, step);
}
#else
int64_t taken(int64_t *next, int64_t step)
{
    return __atomic_fetch_add(next, step, __ATOMIC_RELAXED);
}
#endif

const Build *best_build(void)
{
#ifdef SLIMSVM_X86_BUILDS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return &build_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &build_avx2;
#endif
    return &build_base;
}
