/* The logistic function and the sum of softplus, of many coordinates at once. */
#ifndef FASTKAM_SOFTPLUS_H
#define FASTKAM_SOFTPLUS_H

#include "vector.h"

#define FK_BLOCK 64 /* 2^64 is far from overflow */

/* p_i = 1 / (1 + exp(-g_i w_i)) */
FK_CLONES static void fk_logistic(ptrdiff_t d, const double *restrict g, const double *restrict w,
                                  double *restrict p)
{
    for (ptrdiff_t i = 0; i < d; i++) p[i] = 1.0 / (1.0 + fk_exp(-(g[i] * w[i])));
}

/* sum_i log(1 + exp(a g_i w_i)), of which the part above max(0, a g_i w_i) is one logarithm of a
 * product of at most 64 numbers between 1 and 2 */
FK_CLONES static double fk_sum_softplus(ptrdiff_t d, double a, const double *restrict g,
                                        const double *restrict w)
{
    double total = 0;
    for (ptrdiff_t j = 0; j < d; j += FK_BLOCK) {
        const ptrdiff_t n = d - j < FK_BLOCK ? d - j : FK_BLOCK;
        double over[FK_BLOCK], factor[FK_BLOCK];
        for (ptrdiff_t i = 0; i < n; i++) {
            const double t = a * g[j + i] * w[j + i];
            over[i] = t > 0 ? t : 0;
            factor[i] = 1.0 + fk_exp(-fabs(t));
        }
        double s[FK_LANES] = {0}, p[FK_LANES] = {1, 1, 1, 1, 1, 1, 1, 1};
        ptrdiff_t i = 0;
        for (; i + FK_LANES <= n; i += FK_LANES)
            for (int k = 0; k < FK_LANES; k++) s[k] += over[i + k], p[k] *= factor[i + k];
        for (int k = 0; i < n; i++, k++) s[k] += over[i], p[k] *= factor[i];
        total += fk_sum_lanes(s) + log(fk_multiply_lanes(p));
    }
    return total;
}

#endif
