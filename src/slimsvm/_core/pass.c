/* The kernel matrix between rows and points, a strip of rows against all points in one call: inner products of six rows and
 * LANES points in registers, the rest of the kernel while they are in the nearest cache, then sums or stored values.
 *
 * A value depends on its row and point alone, and the sum of a row adds the points in their order. So results are the same to
 * the last bit however rows are divided into strips.
 */
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

#define ROWS 6      /* rows whose inner products are in registers at a time; more do not fit */
#define CHUNK 1024  /* features of a panel that stay in the second-level cache while rows pass by */
#define FLUSH 8     /* panels whose sums are added up before they become float64 */
#define BLOCK 96    /* most rows of a block, which are in the second-level cache while panels pass by; a multiple of ROWS */
#define BLOCK_NUMBERS (1 << 16)

ptrdiff_t BUILD(near_box)(const double *, const double *, ptrdiff_t, const double *, ptrdiff_t, double, double *, ptrdiff_t *);

#define REAL float
#define INTEGER int32_t
#define LANE WIDTH
#define VECTOR vector
#define POWER_OF_TWO exp2_of_nonpositive
#include "pass.h"
#undef REAL
#undef INTEGER
#undef LANE
#undef VECTOR
#undef POWER_OF_TWO

#define REAL double
#define INTEGER int64_t
#define LANE DOUBLE_WIDTH
#define VECTOR double_vector
#define POWER_OF_TWO exp2_of_nonpositive_double
#include "pass.h"
