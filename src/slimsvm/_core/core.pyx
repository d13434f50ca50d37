# cython: freethreading_compatible=True
"""The compiled part, one file for each idea.

Each function checks shapes, releases the interpreter lock and calls the C build chosen at import.
"""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    Py_buffer,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, fabs, floor, log, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset, strcmp

cdef extern from "core.h" nogil:
    int LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2
    ctypedef struct Form:
        int kernel
        double gamma
        double coef0
        int64_t degree
    ctypedef struct RbfSource:
        ptrdiff_t panels, features, evaluated
        float scale
        const float *points
        const float *norms
        float *space
    ctypedef struct SparsePanel:
        ptrdiff_t groups, frequent
        const int32_t *place
        const void *lines
        const int32_t *post_starts
        const int32_t *post_points
        const void *post_values
    ctypedef struct Pass:
        Form form
        double scale
        int narrow
        ptrdiff_t features, points
        const void *rows
        const void *data
        const int32_t *features_of
        const int32_t *starts
        const void *a
        const void *b
        const void *widths
        const void *lines
        const SparsePanel *posted
    ctypedef struct Wanted:
        const ptrdiff_t *index
        ptrdiff_t start, stop, first_panel, last_panel
        void *values
        ptrdiff_t stride, values_from, outputs, columns
        const void *V
        double *out
        ptrdiff_t out_from
    ctypedef struct Line:
        const double *low
        const double *high
        const double *outputs
        const double *change
        const double *weights
        double linear
        double quadratic
    ctypedef struct Squares:
        const void *K
        ptrdiff_t n, m, stride
        const double *weights
    ctypedef struct Backward:
        ptrdiff_t features, points, outputs
        const void *rows
        const void *data
        const int32_t *features_of
        const int32_t *starts
        const void *K
        ptrdiff_t stride
        const double *W
        ptrdiff_t w_stride
        const void *V
        const void *squares
        const void *pulls
    ctypedef struct Boxes:
        const ptrdiff_t *starts
        const ptrdiff_t *rows
        ptrdiff_t axes
        const double *low
        const double *high
        const double *placed
        double reach
        const void *points
    ctypedef struct Settling:
        ptrdiff_t rows, stride, ranges
        const ptrdiff_t *line
        const ptrdiff_t *starts
        const ptrdiff_t *counts
        const void *K
        const double *linear
        const double *y
        const double *cap
        double *alpha
        double *f
        double tol
        int64_t max_steps
    ctypedef struct Room:
        const void **row
        ptrdiff_t *near
        ptrdiff_t *place
        ptrdiff_t *column
        ptrdiff_t *slot
        ptrdiff_t held, most, needed
        double *cap
        double *alpha
        double *change
        void *work
        void *block
    ctypedef struct Build:
        const char *name
        ptrdiff_t (*near_box)(const double *, const double *, ptrdiff_t, const double *, ptrdiff_t, double, double *,
                              ptrdiff_t *) noexcept nogil
        void (*sum_rows)(const float *const *, const float *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        const float *(*rbf_row)(void *, ptrdiff_t) noexcept nogil
        int64_t (*smo_float)(const float **, const float *(*)(void *, ptrdiff_t) noexcept nogil, void *, const float *,
                          ptrdiff_t, const float *, const double *, double *, float *, float *, double, int64_t, ptrdiff_t,
                          double, double *) noexcept nogil
        int64_t (*smo_double)(const double **, const double *(*)(void *, ptrdiff_t) noexcept nogil, void *, const double *,
                           ptrdiff_t, const double *, const double *, double *, double *, double *, double, int64_t,
                           ptrdiff_t, double, double *) noexcept nogil
        int64_t (*settle_float)(const Settling *, Room *, double *, double *) noexcept nogil
        int64_t (*settle_double)(const Settling *, Room *, double *, double *) noexcept nogil
        void (*moved_float)(const Settling *, Room *, const double *) noexcept nogil
        void (*moved_double)(const Settling *, Room *, const double *) noexcept nogil
        void (*trim)(Room *) noexcept nogil
        void (*advance)(const Settling *, const double *, const double *, double, double *, double *, double *) noexcept nogil
        void (*smo_bounds)(ptrdiff_t, const double *, const double *, const double *, const double *, double *,
                           double *) noexcept nogil
        void (*expansion)(const Form *, const double *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,
                          const double *, const double *, ptrdiff_t, const double *, double *) noexcept nogil
        double (*line_minimum)(const Line *, ptrdiff_t, double, double, int64_t) noexcept nogil
        double (*line_move)(const Line *, ptrdiff_t, double, double *, double *, ptrdiff_t *) noexcept nogil
        int (*list_changes)(ptrdiff_t, const double *, unsigned char *, int, ptrdiff_t *, ptrdiff_t *, ptrdiff_t *) noexcept nogil
        int (*add_squares_float)(const Squares *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        int (*add_squares_double)(const Squares *, const ptrdiff_t *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        void (*add_lines_float)(const Squares *, const double *, ptrdiff_t, ptrdiff_t, float *, double *) noexcept nogil
        void (*add_lines_double)(const Squares *, const double *, ptrdiff_t, ptrdiff_t, double *, double *) noexcept nogil
        void (*row_products_float)(const Squares *, const void *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        void (*row_products_double)(const Squares *, const void *, ptrdiff_t, ptrdiff_t, double *) noexcept nogil
        int (*add_backward_float)(const Backward *, const ptrdiff_t *, ptrdiff_t, double *) noexcept nogil
        int (*add_backward_double)(const Backward *, const ptrdiff_t *, ptrdiff_t, double *) noexcept nogil
        int (*factor_definite)(ptrdiff_t, const double *, const double *, double, double, double *) noexcept nogil
        void (*solve_factored)(const double *, ptrdiff_t, double *) noexcept nogil
        void (*times_columns)(const float *, ptrdiff_t, ptrdiff_t, ptrdiff_t, const float *, ptrdiff_t, ptrdiff_t, double *,
                              ptrdiff_t) noexcept nogil
        int (*pass_float)(const Pass *, const Wanted *) noexcept nogil
        int (*pass_double)(const Pass *, const Wanted *) noexcept nogil
        int (*pass_near_float)(const Pass *, const Boxes *, ptrdiff_t, ptrdiff_t, const void *, ptrdiff_t, double *) noexcept nogil
        int (*pass_near_double)(const Pass *, const Boxes *, ptrdiff_t, ptrdiff_t, const void *, ptrdiff_t, double *) noexcept nogil
    const int LANES, SUMMED
    int64_t taken(int64_t *, int64_t)
    const Build *best_build()

cdef const Build *build = best_build()


def instruction_set():
    """The name of the build in use: "avx512", "avx2" or "base"."""
    return build.name.decode()


cdef int same(Py_ssize_t given, Py_ssize_t wanted) except -1:
    if given != wanted:
        raise ValueError(f"arrays of {given} and {wanted} elements where equal lengths are needed")
    return 0


ctypedef fused real:
    float
    double


include "team.pxi"
include "boxes.pxi"
include "tiles.pxi"
include "smo.pxi"
include "settle.pxi"
include "class_pairs.pxi"
include "merging.pxi"
include "expansion.pxi"
include "intervals.pxi"
include "pass.pxi"
include "pair_outputs.pxi"
include "sums.pxi"
include "products.pxi"
