/* Vectors of doubles in plain C, for the sources that are compiled for each instruction set.
 *
 * A vector holds 2, 4 or 8 of the 8 lanes (at most 4 with FK_NARROW). Every lane is computed
 * alone, products are fused with sums only by fk_fma and its vector forms, and lanes are added in
 * one fixed order: the result has the same bits on every instruction set. */
#ifndef FASTKAM_VECTOR_H
#define FASTKAM_VECTOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fma.h"
#include "levels.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define FK_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__) && !defined(FK_NARROW)
#define FK_WIDTH 8
#elif defined(__AVX__)
#define FK_WIDTH 4
#else
#define FK_WIDTH 2
#endif
#define FK_PARTS (FK_LANES / FK_WIDTH) /* vectors of 8 lanes */

typedef double fk_vec __attribute__((vector_size(8 * FK_WIDTH), aligned(8), may_alias));
typedef int64_t fk_ivec __attribute__((vector_size(8 * FK_WIDTH), aligned(8), may_alias));

/* four lanes at every level: for groups of four, and comparisons whose results become bits */
typedef double fk_quad __attribute__((vector_size(32)));

FK_INLINE fk_quad fk_load_quad(const double *p)
{
    fk_quad v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* a b + c, rounded once, four lanes at every level */
FK_INLINE fk_quad fk_fma_quad(fk_quad a, fk_quad b, fk_quad c)
{
#if defined(__FMA__)
    return (fk_quad)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(FK_HAS_FMA)
    for (int l = 0; l < 4; l++) c[l] = fk_fma(a[l], b[l], c[l]);
    return c;
#else
    const fk_pair low = fk_fma_pair((fk_pair){a[0], a[1]}, (fk_pair){b[0], b[1]},
                                    (fk_pair){c[0], c[1]});
    const fk_pair high = fk_fma_pair((fk_pair){a[2], a[3]}, (fk_pair){b[2], b[3]},
                                     (fk_pair){c[2], c[3]});
    return (fk_quad){low[0], low[1], high[0], high[1]};
#endif
}

/* a b + c of a vector */
FK_INLINE fk_vec fk_fma_vec(fk_vec a, fk_vec b, fk_vec c)
{
#if defined(__FMA__) && FK_WIDTH == 8
    return (fk_vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && FK_WIDTH == 4
    return (fk_vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return (fk_vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(FK_HAS_FMA)
    for (int l = 0; l < FK_WIDTH; l++) c[l] = fk_fma(a[l], b[l], c[l]);
    return c;
#else
    return (fk_vec)fk_fma_pair((fk_pair)a, (fk_pair)b, (fk_pair)c);
#endif
}

/* c - a b */
FK_INLINE fk_vec fk_fnma_vec(fk_vec a, fk_vec b, fk_vec c)
{
#if defined(__FMA__) && FK_WIDTH == 8
    return (fk_vec)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && FK_WIDTH == 4
    return (fk_vec)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return fk_fma_vec(-a, b, c);
#endif
}

FK_INLINE fk_vec fk_splat(double a) { return a - (fk_vec){0}; }

FK_INLINE fk_vec fk_load(const double *p) { return *(const fk_vec *)p; }

FK_INLINE void fk_store(double *p, fk_vec v) { *(fk_vec *)p = v; }

/* the first n lanes of p, 0 elsewhere; n < FK_WIDTH */
FK_INLINE fk_vec fk_load_n(const double *p, ptrdiff_t n)
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
FK_INLINE void fk_store_between(double *p, fk_vec v, ptrdiff_t begin, ptrdiff_t end)
{
#if FK_WIDTH == 8
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << end) - (1u << (begin < end ? begin : end))),
                          (__m512d)v);
#else
    for (ptrdiff_t l = begin; l < end; l++) p[l] = v[l];
#endif
}

/* the sum of 8 lanes, in pairs: always in this order */
FK_INLINE double fk_sum_lanes(const double *p)
{
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

/* fk_sum_lanes of two sets of 8 lanes; out (2,) */
FK_INLINE void fk_sum_two(const double *p, const double *q, double *out)
{
    typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
    const pair *a = (const pair *)p, *b = (const pair *)q;
    const pair x = (a[0] + a[2]) + (a[1] + a[3]), y = (b[0] + b[2]) + (b[1] + b[3]);
    *(pair *)out = (pair){x[0], y[0]} + (pair){x[1], y[1]};
}

/* the product of 8 lanes */
FK_INLINE double fk_multiply_lanes(const double *p)
{
    return ((p[0] * p[4]) * (p[2] * p[6])) * ((p[1] * p[5]) * (p[3] * p[7]));
}

/* 8 independent sums */
typedef struct { fk_vec v[FK_PARTS]; } fk_lanes;

FK_INLINE fk_lanes fk_zero(void)
{
    fk_lanes s;
#pragma GCC unroll 4
    for (int k = 0; k < FK_PARTS; k++) s.v[k] = fk_splat(0);
    return s;
}

FK_INLINE void fk_store_lanes(double *p, fk_lanes s)
{
#pragma GCC unroll 4
    for (int k = 0; k < FK_PARTS; k++) fk_store(p + k * FK_WIDTH, s.v[k]);
}

/* s + p w, p of 8 */
FK_INLINE fk_lanes fk_add_scaled(fk_lanes s, const double *p, double w)
{
#pragma GCC unroll 4
    for (int k = 0; k < FK_PARTS; k++)
        s.v[k] = fk_fma_vec(fk_load(p + k * FK_WIDTH), fk_splat(w), s.v[k]);
    return s;
}

/* s + p q, lane by lane */
FK_INLINE fk_lanes fk_add_products(fk_lanes s, const double *p, const double *q)
{
#pragma GCC unroll 4
    for (int k = 0; k < FK_PARTS; k++)
        s.v[k] = fk_fma_vec(fk_load(p + k * FK_WIDTH), fk_load(q + k * FK_WIDTH), s.v[k]);
    return s;
}

FK_INLINE double fk_total(fk_lanes s)
{
    double lanes[FK_LANES];
    fk_store_lanes(lanes, s);
    return fk_sum_lanes(lanes);
}

/* e^x within 1.1 units of the last place for -708 <= x <= 709, 0 below; NaN stays NaN. Above 709
 * the result is undefined: callers that may exceed it cap x.
 *
 *     x = k log 2 + r,   |r| <= log(2) / 2,   e^x = 2^k e^r
 *
 * k is found by adding 1.5 2^52: it is then in the low bits of the sum, from which it is added to
 * the exponent. e^r is a polynomial of degree 11 (Chebyshev interpolation, 1.6e-17).
 *
 * This is for loops over many numbers, which become loops over vectors. Single numbers take the
 * exponential of the C library, in Python through numerics/elementary.pyx. */
FK_INLINE double fk_exp(double x)
{
    const double shift = 0x1.8p52;
    const double t = fk_fma(x, 0x1.71547652b82fep0, shift), k = t - shift;
    const double r = fk_fma(-k, 0x1.ef35793c76730p-45, fk_fma(-k, 0x1.62e42fefa3800p-1, x));
    /* in pairs: a chain of half the length */
    const double r2 = r * r, r4 = r2 * r2;
    const double a = fk_fma(fk_fma(r, 0.008333333333319589, 0.04166666666648795), r2,
                            fk_fma(r, 0.1666666666666668, 0.5000000000000019));
    const double b = fk_fma(fk_fma(r, 2.755724088722987e-06, 2.4801485441561313e-05), r2,
                            fk_fma(r, 0.00019841269890076403, 0.0013888888952352863));
    const double c = fk_fma(r, 2.5110049204818658e-08, 2.763265472252779e-07);
    double p = fk_fma(r2, fk_fma(r4, fk_fma(r4, c, b), a), r) + 1.0;
    uint64_t bits, scaled;
    memcpy(&bits, &t, 8);
    memcpy(&scaled, &p, 8);
    scaled += bits << 52;
    memcpy(&p, &scaled, 8);
    return x < -708.0 ? 0.0 : p; /* whatever p is there */
}

#endif
