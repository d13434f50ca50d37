/* Numbers side by side: the vector type of a build, and powers of 2 that compilers turn into vectors. */
#ifndef SLIMSVM_LANES_H
#define SLIMSVM_LANES_H

#include <stdint.h>
#include <string.h>

/* 2^x for x <= 0: x = k + r with |r| <= 1/2; 2^r by a polynomial (relative error 2e-7, exact at 0), then k is added to
 * the exponent's bits. */
static inline float exp2_of_nonpositive(float x)
{
    x = x < -126.0f ? -126.0f : x;
    int32_t k = (int32_t)(x - 0.5f); /* truncation rounds, since x <= 0 */
    float r = x - (float)k;
    float p = 1.3264727124e-3f;
    p = p * r + 9.6715126448e-3f;
    p = p * r + 5.5507337435e-2f;
    p = p * r + 2.4022242085e-1f;
    p = p * r + 6.9314697760e-1f;
    p = p * r + 1.0f;
    int32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += k * (1 << 23);
    memcpy(&p, &bits, sizeof bits);
    return p;
}

/* The same in double. Adding 1.5 2^52 rounds x to the integer k, which is then in the low bits of the sum; r = x - k, and
 * 2^r is a polynomial (relative error 2e-17 before rounding, exact at 0). */
static inline double exp2_of_nonpositive_double(double x)
{
    const double shift = 6755399441055744.0;
    x = x < -1022.0 ? -1022.0 : x;
    double sum = x + shift;
    double r = x - (sum - shift);
    double p = 4.4549605981865183938e-10;
    p = p * r + 7.0725859492692236999e-9;
    p = p * r + 1.0178062445845773521e-7;
    p = p * r + 1.3215442587921689653e-6;
    p = p * r + 1.5252733829836118394e-5;
    p = p * r + 1.5403530441736050155e-4;
    p = p * r + 1.333355814641693531e-3;
    p = p * r + 9.6181291076068885273e-3;
    p = p * r + 5.5504108664821594339e-2;
    p = p * r + 2.402265069591009822e-1;
    p = p * r + 6.9314718055994530942e-1;
    p = p * r + 1.0;
    uint64_t k, bits;
    memcpy(&k, &sum, sizeof k);
    memcpy(&bits, &p, sizeof bits);
    bits += k << 52;
    memcpy(&p, &bits, sizeof bits);
    return p;
}

/* As wide as the build's registers: compilers do not find this one by themselves. Those without GCC's vector types (MSVC) get
 * plain floats. */
#if !defined(__GNUC__)
enum { WIDTH = 1, DOUBLE_WIDTH = 1, VECTORS = 2 };
typedef float vector;
typedef double double_vector;
#define UNROLL
#else
/* VECTORS is how many vectors of each of six rows fit in the registers, beside those of the points. */
#if defined(__AVX512F__)
enum { WIDTH = 16, VECTORS = 4 };
#elif defined(__AVX__)
enum { WIDTH = 8, VECTORS = 2 };
#elif defined(__aarch64__)
enum { WIDTH = 4, VECTORS = 4 };
#else
enum { WIDTH = 4, VECTORS = 2 };
#endif
enum { DOUBLE_WIDTH = WIDTH / 2 };
typedef float vector __attribute__((vector_size(WIDTH * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef double double_vector __attribute__((vector_size(WIDTH * sizeof(float)), aligned(sizeof(double)), may_alias));
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
