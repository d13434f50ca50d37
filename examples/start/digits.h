/* digits: see digits.c. Written by slimsvm 0.1.0; do not edit. */
#ifndef DIGITS_H
#define DIGITS_H

#define DIGITS_FEATURES 64
#define DIGITS_SCORES 10

/* The classes by number, and their labels for an array of your own. */
enum {
    DIGITS_CLASS_0 = 0, DIGITS_CLASS_1 = 1, DIGITS_CLASS_2 = 2, DIGITS_CLASS_3 = 3, DIGITS_CLASS_4 = 4,
    DIGITS_CLASS_5 = 5, DIGITS_CLASS_6 = 6, DIGITS_CLASS_7 = 7, DIGITS_CLASS_8 = 8, DIGITS_CLASS_9 = 9
};
#define DIGITS_LABELS { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }

#ifdef __cplusplus
extern "C" {
#endif

int digits_predict(const float *x);
void digits_scores(const float *x, float *scores);

#ifdef __cplusplus
}
#endif

#endif
