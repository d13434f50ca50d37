/* friedman: see friedman.c. Written by slimsvm 0.1.0; do not edit. */
#ifndef FRIEDMAN_H
#define FRIEDMAN_H

#define FRIEDMAN_FEATURES 10

#ifdef __cplusplus
extern "C" {
#endif

float friedman_predict(const float *x);

#ifdef __cplusplus
}
#endif

#endif
