/* A step of Adam in one pass over its vectors. */
#include <math.h>
#include <stddef.h>

#include "core.h"

#define JOIN_(name, suffix) name##suffix
#define JOIN(name, suffix) JOIN_(name, suffix)
#define BUILD(name) JOIN(name, SUFFIX) /* SUFFIX is _base, _avx2 or _avx512 */

/* mean and square become the running means of slope and of its square, of decay rates a and b, and x loses rate mean /
 * (square^1/2 + tiny); settings are a, b and tiny. */
void BUILD(adam_step)(ptrdiff_t n, double rate, const double *settings, const double *restrict slope, double *restrict x,
                      double *restrict mean, double *restrict square)
{
    const double a = settings[0], b = settings[1], tiny = settings[2];
    for (ptrdiff_t i = 0; i < n; i++) {
        mean[i] = mean[i] * a + (1.0 - a) * slope[i];
        square[i] = square[i] * b + (1.0 - b) * (slope[i] * slope[i]);
        x[i] -= rate * (mean[i] / (sqrt(square[i]) + tiny));
    }
}
