/* Autocovariances of four kinds of series at once, summed over chains, up to a lag B.
 *
 * A chain is cut into blocks of B; with x_b followed by B zeros, and y_b = (x_b, x_(b+1)),
 *
 *     sum_i x_i x_(i+l) = sum_b (inverse transform of conj(F x_b) F y_b)_l,     0 <= l <= B,
 *     (F y_b)_k = (F x_b)_k + (-1)^k (F x_(b+1))_k,
 *
 * one transform of 2 B numbers a block, which stays in the cache. Two halves of a chain are the real
 * and the imaginary part of x: the real part of the result is the sum of both. The result of the
 * forward transform is in bit-reversed order, in which odd k are the second half; the inverse one
 * takes it in this order. */
#ifndef FASTKAM_AUTOCOVARIANCE_H
#define FASTKAM_AUTOCOVARIANCE_H

#include <math.h>

#include "levels.h"

#define FK_KINDS 4 /* bulk, mean, low tail, high tail */

typedef double fk_kinds __attribute__((vector_size(8 * FK_KINDS)));
typedef struct { fk_kinds re, im; } fk_wave;

/* The halves of one chain, n draws each: z and x of 2 n, the limits of x's tails, and the mean of
 * each kind of series in either half. */
typedef struct {
    ptrdiff_t n;
    const double *z, *x;
    double low, high;
    fk_kinds mean[2];
} fk_halves;

/* w: cos and -sin of 2 pi k / n, k < n / 2 */
static void fk_roots(ptrdiff_t n, double *w)
{
    for (ptrdiff_t k = 0; k < n / 2; k++) {
        const double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
        w[2 * k] = cos(angle);
        w[2 * k + 1] = -sin(angle);
    }
}

/* add the spectrum of one chain to s, of 2 B points; `work` has room for twice as many */
FK_DISPATCH(void, fk_add_chain, (ptrdiff_t B, const double *w, const fk_halves *h, fk_wave *work,
                                 fk_wave *s))

/* the inverse, times n; only the real part of the result is correct: the rest is not needed */
FK_DISPATCH(void, fk_backward, (ptrdiff_t n, const double *w, fk_wave *a))

/* 1 / (relative efficiency) of one kind of series by Geyer's initial monotone sequence:
 *
 *     rho_t = 1 - (W - c_t) / V,   W = c_0 n / (n - 1),   V = c_0 + the variance of the means,
 *     P_j = rho_2j + rho_2j+1, to the first J at which P_J <= 0, or beyond which lags end,
 *     tau = -1 + 2 sum_(j<J) min(P_0 .. P_j) + rho_2J,
 *
 * where rho_2J counts if it is positive, or P_J is not negative. c_t = c[t * FK_KINDS], the mean over
 * the chains of autocovariances with divisor n. Return whether `lags` of them were enough.
 *
 * Geyer, C. J. (1992). Practical Markov chain Monte Carlo. Statistical Science 7, 473-483. */
static int fk_geyer(ptrdiff_t n, ptrdiff_t lags, const double *c, double variance_of_means,
                    double *tau)
{
    const double W = c[0] * (double)n / (double)(n - 1), V = c[0] + variance_of_means;
    double even = 1, odd = 1 - (W - c[FK_KINDS]) / V, least = INFINITY, sum = 0;
    for (ptrdiff_t t = 1; t < n - 3 && even + odd > 0; t += 2) {
        if (t + 2 >= lags) return 0;
        least = even + odd < least ? even + odd : least;
        sum += least;
        even = 1 - (W - c[(t + 1) * FK_KINDS]) / V;
        odd = 1 - (W - c[(t + 2) * FK_KINDS]) / V;
    }
    *tau = 2 * sum - 1 + (even > 0 || even + odd >= 0 ? even : 0);
    if (isnan(even + odd)) *tau = NAN;
    return 1;
}

#endif
