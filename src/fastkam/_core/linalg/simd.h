/* Vectors of doubles in plain C, for sources that are compiled once for each instruction set.
 *
 * A vector holds 2, 4 or 8 of the 8 lanes (FK_NARROW asks for 4 at most). Every lane is computed
 * alone, without fused multiply-add, and lanes are added in one fixed order: the result has the
 * same bits on every instruction set. */
#ifndef FASTKAM_SIMD_H
#define FASTKAM_SIMD_H

#include <stddef.h>
#include <stdint.h>

#include "lanes.h"

#if defined(__AVX512F__) && !defined(FK_NARROW)
#include <immintrin.h>
#define FK_WIDTH 8
#elif defined(__AVX__)
#define FK_WIDTH 4
#else
#define FK_WIDTH 2
#endif

#define FK_JOIN_(a, b) a##b
#define FK_JOIN(a, b) FK_JOIN_(a, b)
#define FK_LEVEL(name) FK_JOIN(name, FK_SUFFIX) /* FK_SUFFIX is set for each instruction set */

typedef double fk_vec __attribute__((vector_size(8 * FK_WIDTH), aligned(8), may_alias));
typedef int64_t fk_ivec __attribute__((vector_size(8 * FK_WIDTH), aligned(8), may_alias));
typedef uint64_t fk_uvec __attribute__((vector_size(8 * FK_WIDTH), aligned(8), may_alias));

static inline fk_vec fk_splat(double a) { return a - (fk_vec){0}; }

static inline fk_vec fk_load(const double *p) { return *(const fk_vec *)p; }

static inline void fk_store(double *p, fk_vec v) { *(fk_vec *)p = v; }

/* the first n lanes of p, 0 elsewhere; n < FK_WIDTH */
static inline fk_vec fk_load_n(const double *p, ptrdiff_t n)
{
#if FK_WIDTH == 8
    return (fk_vec)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
#else
    fk_vec v = {0};
    for (ptrdiff_t l = 0; l < n; l++) v[l] = p[l];
    return v;
#endif
}

/* lanes begin to end of v to their places in p */
static inline void fk_store_between(double *p, fk_vec v, ptrdiff_t begin, ptrdiff_t end)
{
#if FK_WIDTH == 8
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << end) - (1u << (begin < end ? begin : end))),
                          (__m512d)v);
#else
    for (ptrdiff_t l = begin; l < end; l++) p[l] = v[l];
#endif
}

/* mask ? a : 0, from an all-ones or all-zeros mask a lane */
static inline fk_vec fk_where(fk_ivec mask, fk_vec a) { return (fk_vec)(mask & (fk_ivec)a); }

/* fk_sum_lanes of two times 8 lanes; out of 2 */
static inline void fk_sum_two(const double *p, const double *q, double *out)
{
    typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
    const pair *a = (const pair *)p, *b = (const pair *)q;
    const pair x = (a[0] + a[2]) + (a[1] + a[3]), y = (b[0] + b[2]) + (b[1] + b[3]);
    *(pair *)out = (pair){x[0], y[0]} + (pair){x[1], y[1]};
}

/* exp(x) for x <= 0, below 1 ulp; 0 below -708. x = k log 2 + r, |r| <= log(2) / 2; a polynomial
 * of degree 11 in r (Chebyshev interpolation, 1.6e-17); 2^k is added to the exponent's bits. */
static inline fk_vec fk_exp_below_0(fk_vec x)
{
    const fk_ivec tiny = x < fk_splat(-708.0); /* whatever comes of these is replaced at the end */
    const fk_vec shift = fk_splat(6755399441055744.0); /* 1.5 2^52: rounds to an integer */
    fk_vec k = x * 1.4426950408889634074 + shift;
    const fk_uvec bits = (fk_uvec)k; /* without a sign: what overflows is defined */
    k -= shift;
    const fk_vec r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
    /* in pairs: a chain of half the length */
    const fk_vec r2 = r * r, r4 = r2 * r2;
    const fk_vec a = (r * 0.1666666666666668 + 0.5000000000000019)
                     + (r * 0.008333333333319589 + 0.04166666666648795) * r2;
    const fk_vec b = (r * 0.00019841269890076403 + 0.0013888888952352863)
                     + (r * 2.755724088722987e-06 + 2.4801485441561313e-05) * r2;
    const fk_vec c = r * 2.5110049204818658e-08 + 2.763265472252779e-07;
    const fk_vec p = (r + r2 * (a + r4 * (b + r4 * c))) + 1.0;
    return fk_where(~tiny, (fk_vec)((fk_uvec)p + (bits << 52)));
}

#endif
