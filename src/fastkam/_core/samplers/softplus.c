/* The loops of softplus.h. */
#include "softplus.h"
#include "vector.h"

#define BLOCK 64 /* factors, each up to 2: 2^64 is far from overflow */

void FK_LEVEL(fk_logistic)(ptrdiff_t d, const double *restrict g, const double *restrict w,
                           double *restrict p)
{
    for (ptrdiff_t i = 0; i < d; i++) {
        const double t = -(g[i] * w[i]);
        p[i] = 1.0 / (1.0 + fk_exp(t > 709 ? 709 : t));
    }
}

double FK_LEVEL(fk_sum_softplus)(ptrdiff_t d, double a, const double *restrict g,
                                 const double *restrict w)
{
    double total = 0;
    for (ptrdiff_t j = 0; j < d; j += BLOCK) {
        const ptrdiff_t n = d - j < BLOCK ? d - j : BLOCK;
        double over[BLOCK], factor[BLOCK];
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
