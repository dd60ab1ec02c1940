/* Fused multiply-add, a b + c rounded once: the same bits on every processor.
 *
 * AVX2, AVX-512 and NEON have an instruction for it. Without one (the level "base" on x86-64) it is
 * computed by some sixty others from exact products and sums,
 *
 *     u + u' = a b,   t + t' = c + u',   v + v' = u + t,   a b + c = v + odd(t' + v'),
 *
 * where odd rounds a number between two neighbors to the one whose last bit is 1: Boldo, S. and
 * Melquiond, G. (2008). Emulation of a FMA and correctly rounded sums: proved algorithms using
 * rounding to odd. IEEE Transactions on Computers 57, 462-471. The C library's fma is also correct,
 * but took 100 ns there, against 3 ns a number; it is used if numbers could over- or underflow. */
#ifndef FASTKAM_FMA_H
#define FASTKAM_FMA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__aarch64__)
#define FK_HAS_FMA
#endif

#ifdef FK_HAS_FMA

static inline double fk_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

#else

typedef double fk_pair __attribute__((vector_size(16)));
typedef int64_t fk_ipair __attribute__((vector_size(16)));
typedef uint64_t fk_upair __attribute__((vector_size(16)));

/* -1 in the lanes where |a| <= 2^990 */
static inline fk_ipair fk_moderate(fk_pair a) { return (a <= 0x1p990) & (a >= -0x1p990); }

/* a + b = s + error */
static inline fk_pair fk_exact_sum(fk_pair a, fk_pair b, fk_pair *error)
{
    const fk_pair s = a + b, back = s - a;
    *error = (a - (s - back)) + (b - back);
    return s;
}

/* the upper half of the digits of a */
static inline fk_pair fk_upper(fk_pair a)
{
    const fk_pair far = a * 0x8000001p0;
    return far - (far - a);
}

/* a + b, rounded to odd */
static inline fk_pair fk_odd_sum(fk_pair a, fk_pair b)
{
    fk_pair error;
    const fk_pair s = fk_exact_sum(a, b, &error);
    const fk_ipair bits = (fk_ipair)s, even = ~bits & 1;
    const fk_ipair down = (fk_ipair)((fk_upair)(bits ^ (fk_ipair)error) >> 63);
    return (fk_pair)(bits + ((error != 0) & (even - 2 * (even & down))));
}

static __attribute__((noinline)) fk_pair fk_fma_pair(fk_pair a, fk_pair b, fk_pair c)
{
    const fk_pair u = a * b;
    const fk_ipair zero = (a == 0) | (b == 0), large = (u >= 0x1p-900) | (u <= -0x1p-900);
    const fk_ipair easy =
        (zero | large) & fk_moderate(a) & fk_moderate(b) & fk_moderate(c) & fk_moderate(u);
    if (!(easy[0] & easy[1])) return (fk_pair){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
    const fk_pair a1 = fk_upper(a), a2 = a - a1, b1 = fk_upper(b), b2 = b - b1;
    const fk_pair u_error = ((a1 * b1 - u) + a1 * b2 + a2 * b1) + a2 * b2;
    fk_pair t_error, v_error;
    const fk_pair t = fk_exact_sum(c, u_error, &t_error), v = fk_exact_sum(u, t, &v_error);
    const fk_pair result = v + fk_odd_sum(t_error, v_error), sum = u + c; /* with the sign of a 0 */
    return (fk_pair)((zero & (fk_ipair)sum) | (~zero & (fk_ipair)result));
}

static inline double fk_fma(double a, double b, double c)
{
    return fk_fma_pair((fk_pair){a, 0}, (fk_pair){b, 0}, (fk_pair){c, 0})[0];
}

#endif

#endif
