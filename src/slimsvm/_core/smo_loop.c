/* The inner SMO loop for float and double kernel blocks; built once per instruction set like tails.c. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */
#define CHUNK 64
#define TAU 1e-12 /* LIBSVM's floor for the curvature of a pair */

#define REAL float
#define SMO smo_float
#include "smo_loop.h"
#undef REAL
#undef SMO

#define REAL double
#define SMO smo_double
#include "smo_loop.h"
