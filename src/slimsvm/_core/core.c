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
    void smo_bounds_##suffix(ptrdiff_t, const double *, const double *, const double *, const double *, double *,      \
                             double *);                                                                                \
    void expansion_##suffix(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,             \
                            const double *, const double *, ptrdiff_t, const double *, double *);                      \
    double line_minimum_##suffix(const Line *, ptrdiff_t, double, double, int64_t);                                    \
    double line_move_##suffix(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *);                       \
    void update_curvature_##suffix(const Squares *, const double *, unsigned char *, int, double *);                   \
    void solve_factored_##suffix(const double *, ptrdiff_t, double *);                                                 \
    void times_columns_##suffix(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, ptrdiff_t, ptrdiff_t,   \
                                double *, ptrdiff_t);                                                                  \
    void back_line_##suffix(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const double *, float *, double *);        \
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
        smo_bounds_##suffix,                                                                                           \
        expansion_##suffix,                                                                                            \
        line_minimum_##suffix,                                                                                         \
        line_move_##suffix,                                                                                            \
        update_curvature_##suffix,                                                                                     \
        solve_factored_##suffix,                                                                                       \
        times_columns_##suffix,                                                                                        \
        back_line_##suffix,                                                                                            \
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
