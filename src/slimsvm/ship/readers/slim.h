/* slim.h: models of slimsvm as images, which slimsvm.export(model, "model.bin") writes. SPDX-License-Identifier: 0BSD
 *
 *   slim_model model;
 *   if (slim_load(&model, image, size) == SLIM_OK)
 *       label = slim_predict(&model, row, work);      float work[...], of slim_work(&model) floats at least
 *
 * An image may be in flash, in a file or anywhere, at any address; it must stay there, for nothing is copied or allocated.
 * slim_load checks every length in it. Compile with -ffp-contract=off for the very numbers that Python computes. */
#ifndef SLIM_H
#define SLIM_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    SLIM_OK,
    SLIM_SHORT,    /* fewer bytes than the image says it has */
    SLIM_OTHER,    /* no image, or one of another byte order */
    SLIM_VERSION,  /* an image of another version */
    SLIM_CHECKSUM, /* damaged */
    SLIM_UNKNOWN,  /* a kernel, goal or precision that this reader does not know */
    SLIM_LENGTHS   /* lengths that do not fit together */
} slim_status;

typedef enum { SLIM_SIGN, SLIM_LARGEST, SLIM_VOTES, SLIM_SCORED_VOTES, SLIM_DAG, SLIM_VALUE, SLIM_SIDE } slim_decision;

/* A table of numbers in an image. */
typedef struct {
    const uint8_t *codes, *low, *step;
    uint32_t rows, columns;
    uint8_t bits;
} slim_table;

typedef struct {
    slim_table projection, points, coef;
    const uint8_t *centre, *low, *widths, *bias, *map, *labels;
    uint32_t features, columns, size, outputs, classes, knots, degree, scores;
    float gamma, coef0, temperature;
    uint8_t kernel, decision, map_kind, flags;
} slim_model;

/* Checks an image and fills in the model. */
slim_status slim_load(slim_model *model, const void *image, size_t size);

/* The floats that predictions need as a place to work. */
size_t slim_work(const slim_model *model);

/* The number of the class of a row; 1, or -1 for a novel row; 0 for regression, whose value is the only score. */
int slim_predict(const slim_model *model, const float *row, float *work);

/* model->scores scores of a row; the largest wins, and a single one is above 0 for class 1. */
void slim_scores(const slim_model *model, const float *row, float *scores, float *work);

/* The probability of each class; -1 if the model has none. */
int slim_proba(const slim_model *model, const float *row, float *proba, float *work);

/* The label of a class in UTF-8, of *length bytes without a 0 at the end. */
const char *slim_label(const slim_model *model, uint32_t number, size_t *length);

#endif
