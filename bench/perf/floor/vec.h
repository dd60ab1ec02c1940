/* Vectors of 8 doubles for the floors, which are compiled for this machine alone, with fused
 * multiply-add. */
#ifndef FLOOR_VEC_H
#define FLOOR_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef double vec __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t ivec __attribute__((vector_size(64), aligned(8), may_alias));

INLINE vec splat(double a) { return a - (vec){0}; }
INLINE vec load(const double *p) { return *(const vec *)p; }
INLINE void store(double *p, vec v) { *(vec *)p = v; }
INLINE double sum(vec v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* exp(x), -700 < x <= 0 */
INLINE vec expv(vec x)
{
    const vec shift = splat(0x1.8p52);
    vec k = x * 1.4426950408889634 + shift;
    const ivec bits = (ivec)k << 52;
    k -= shift;
    const vec r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
    const vec r2 = r * r, r4 = r2 * r2;
    const vec a = (r * 0.1666666666666668 + 0.5000000000000019)
                  + (r * 0.008333333333319589 + 0.04166666666648795) * r2;
    const vec b = (r * 0.00019841269890076403 + 0.0013888888952352863)
                  + (r * 2.755724088722987e-06 + 2.4801485441561313e-05) * r2;
    const vec c = r * 2.5110049204818658e-08 + 2.763265472252779e-07;
    const vec p = (r + r2 * (a + r4 * (b + r4 * c))) + 1.0;
    return (vec)((ivec)p + bits);
}

#endif
