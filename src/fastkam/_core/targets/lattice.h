/* A mixture of equally spaced normal components, one coordinate at a time.
 *
 * With the nearest center mu_i, r = x - mu_i, a = h r / v and b = h^2 / (2 v),
 *
 *     sum_m exp(-(x - mu_m)^2 / (2 v)) = exp(-r^2 / (2 v)) S,
 *     S = 1 + sum_k (exp(k a - k^2 b) [mu_(i+k) exists] + exp(-k a - k^2 b) [mu_(i-k) exists]),
 *     exp(k a - k^2 b) = exp((k-1) a - (k-1)^2 b) exp(a - b) exp(-2 (k-1) b)
 *
 * so that K components cost two exponentials. 1 <= S <= K, since the nearest counts most. */
#ifndef FASTKAM_LATTICE_H
#define FASTKAM_LATTICE_H

#include "levels.h"

typedef struct {
    ptrdiff_t K;
    double low, h, v, constant; /* the lowest center, spacing, variance, log of the normalization */
    const double *fall;         /* (K,) exp(-2 k b) */
} fk_lattice;

/* log pi(x) of the product over d coordinates; `grad` takes its gradient, unless it is NULL */
FK_DISPATCH(double, fk_lattice_logp, (const fk_lattice *f, ptrdiff_t d, const double *x,
                                      double *grad))

#endif
