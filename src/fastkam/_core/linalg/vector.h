/* What the built-in densities' loops share: an exponential that vectorises, sums in a fixed order,
 * and the choice of the instruction set at load time.
 *
 * Every sum runs over 8 lanes that are added as one fixed tree, and products and sums are never
 * contracted, so that the bits do not depend on the instruction set. */
#ifndef FASTKAM_VECTOR_H
#define FASTKAM_VECTOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "lanes.h"

/* e^x within 1 ulp for x in [-708, 709], clamped outside; NaN stays NaN.
 *
 *     x = k log 2 + r,  |r| <= log(2)/2,  e^x = 2^k (1 + r + r^2/2 + ... + r^13/13!)
 *
 * k is found by adding 1.5 2^52, after which it stands in the low bits of the sum. The remainder
 * of the series is below 5e-18 of its value. */
FK_INLINE double fk_exp(double x)
{
    const double shift = 0x1.8p52;
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    const double t = x * 0x1.71547652b82fep0 + shift, k = t - shift;
    const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * (r * r) + r;
    uint64_t bits;
    double scale;
    memcpy(&bits, &t, 8);
    bits = (bits << 52) + 0x3ff0000000000000u;
    memcpy(&scale, &bits, 8);
    return scale + scale * p;
}

/* 8 lanes in the registers that every processor has: the compiler keeps these in registers where
 * it would not keep an array, nor a wider vector */
typedef double fk_pair __attribute__((vector_size(16)));
typedef struct { fk_pair a, b, c, d; } fk_lanes;
#define FK_ZERO {{0}, {0}, {0}, {0}}

FK_INLINE fk_pair fk_load_pair(const double *p)
{
    fk_pair v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* s + p w, p of 8 */
FK_INLINE fk_lanes fk_add_scaled(fk_lanes s, const double *p, double w)
{
    s.a += fk_load_pair(p) * w;
    s.b += fk_load_pair(p + 2) * w;
    s.c += fk_load_pair(p + 4) * w;
    s.d += fk_load_pair(p + 6) * w;
    return s;
}

/* s + p q, lane by lane */
FK_INLINE fk_lanes fk_add_products(fk_lanes s, const double *p, const double *q)
{
    s.a += fk_load_pair(p) * fk_load_pair(q);
    s.b += fk_load_pair(p + 2) * fk_load_pair(q + 2);
    s.c += fk_load_pair(p + 4) * fk_load_pair(q + 4);
    s.d += fk_load_pair(p + 6) * fk_load_pair(q + 6);
    return s;
}

FK_INLINE double fk_total(fk_lanes s)
{
    s.a += s.c;
    s.b += s.d;
    s.a += s.b;
    return s.a[0] + s.a[1];
}

/* the product of 8 lanes */
FK_INLINE double fk_multiply_lanes(const double *s)
{
    return ((s[0] * s[4]) * (s[2] * s[6])) * ((s[1] * s[5]) * (s[3] * s[7]));
}

/* sum_j h_j (x_j - m_j)^2, h and m of d; in 4 lanes, the last coordinates one by one: x may have been
 * stored so just now, and a vector load of it would wait for the stores (some 15 ns) */
static inline double fk_weighted_square(ptrdiff_t d, const double *restrict h,
                                        const double *restrict m, const double *restrict x)
{
    double total = 0;
    if (d >= 4) {
        double s[4] = {0};
        for (; d >= 4; d -= 4, h += 4, m += 4, x += 4)
            for (int l = 0; l < 4; l++) s[l] += h[l] * ((x[l] - m[l]) * (x[l] - m[l]));
        total = (s[0] + s[1]) + (s[2] + s[3]);
    }
    switch (d) {
    case 3: total += h[2] * ((x[2] - m[2]) * (x[2] - m[2])); /* fall through */
    case 2: total += h[1] * ((x[1] - m[1]) * (x[1] - m[1])); /* fall through */
    case 1: total += h[0] * ((x[0] - m[0]) * (x[0] - m[0]));
    }
    return total;
}

#endif
