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

/* As wide as the build's registers: compilers do not find this one by themselves. Those without GCC's vector types (MSVC) get
 * plain floats. */
#if !defined(__GNUC__)
enum { WIDTH = 1 };
typedef float vector;
#else
#if defined(__AVX512F__)
enum { WIDTH = 16 };
#elif defined(__AVX__)
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif
typedef float vector __attribute__((vector_size(WIDTH * sizeof(float)), aligned(sizeof(float)), may_alias));
#endif

#endif
