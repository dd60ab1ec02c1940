/* Autocovariances of four kinds of series at once, summed over chains, up to a lag B.
 *
 * A chain is cut into blocks of B; with x_b followed by B zeros, and y_b = (x_b, x_(b+1)),
 *
 *     sum_i x_i x_(i+l) = sum_b (inverse transform of conj(F x_b) F y_b)_l,     0 <= l <= B,
 *     (F y_b)_k = (F x_b)_k + (-1)^k (F x_(b+1))_k,
 *
 * one transform of 2 B numbers a block, which stays in the cache. Two halves of a chain are the real
 * and the imaginary part of x: the real part of the result is the sum of both. The forward transform
 * leaves its result in bit-reversed order, in which the inverse one takes it, and in which odd k are
 * the second half. */
#ifndef FASTKAM_AUTOCOVARIANCE_H
#define FASTKAM_AUTOCOVARIANCE_H

#include <math.h>
#include <stddef.h>

#include "clones.h"

#define FK_KINDS 4 /* bulk, mean, low tail, high tail */
#define FK_CACHED 4096 /* points of a transform whose passes stay in the cache */

typedef double fk_quad __attribute__((vector_size(8 * FK_KINDS)));
typedef struct { fk_quad re, im; } fk_wave;

/* one pass of the forward transform: butterflies over n points, w the roots of unity of n */
static inline __attribute__((always_inline)) void fk_pass(ptrdiff_t n, ptrdiff_t stride,
                                                          const double *w, fk_wave *a)
{
    for (ptrdiff_t j = 0; j < n / 2; j++) {
        const double c = w[2 * j * stride], s = w[2 * j * stride + 1];
        const fk_wave u = a[j], v = a[j + n / 2];
        const fk_quad re = u.re - v.re, im = u.im - v.im;
        a[j].re = u.re + v.re;
        a[j].im = u.im + v.im;
        a[j + n / 2].re = re * c - im * s;
        a[j + n / 2].im = re * s + im * c;
    }
}

/* w: cos and -sin of 2 pi k / (n stride), k < n stride / 2 */
FK_CLONES static void fk_forward(ptrdiff_t n, ptrdiff_t stride, const double *w, fk_wave *a)
{
    if (n > FK_CACHED) {
        fk_pass(n, stride, w, a);
        fk_forward(n / 2, 2 * stride, w, a);
        fk_forward(n / 2, 2 * stride, w, a + n / 2);
        return;
    }
    for (ptrdiff_t m = n; m > 1; m /= 2, stride *= 2)
        for (ptrdiff_t i = 0; i < n; i += m) fk_pass(m, stride, w, a + i);
}

/* the inverse, times n; only the real part of the result is right, and the rest is not needed */
FK_CLONES static void fk_backward(ptrdiff_t n, const double *w, fk_wave *a)
{
    for (ptrdiff_t m = 2, stride = n / 2; m <= n; m *= 2, stride /= 2)
        for (ptrdiff_t i = 0; i < n; i += m)
            for (ptrdiff_t j = i; j < i + m / 2; j++) {
                const double c = w[2 * (j - i) * stride], s = -w[2 * (j - i) * stride + 1];
                const fk_wave u = a[j], v = a[j + m / 2];
                const fk_quad re = v.re * c - v.im * s, im = v.re * s + v.im * c;
                a[j].re = u.re + re;
                a[j].im = u.im + im;
                a[j + m / 2].re = u.re - re;
                a[j + m / 2].im = u.im - im;
            }
}

static void fk_roots(ptrdiff_t n, double *w)
{
    for (ptrdiff_t k = 0; k < n / 2; k++) {
        const double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
        w[2 * k] = cos(angle);
        w[2 * k + 1] = -sin(angle);
    }
}

/* The halves of one chain, n draws each: z and x of 2 n, the limits of x's tails, and the mean of
 * each kind of series in either half. */
typedef struct {
    ptrdiff_t n;
    const double *z, *x;
    double low, high;
    fk_quad mean[2];
} fk_halves;

/* draw i of a half, as each kind of series has it, less the mean */
static inline void fk_four(const fk_halves *h, int half, ptrdiff_t i, fk_quad *four)
{
    const double z = h->z[half * h->n + i], x = h->x[half * h->n + i];
    *four = (fk_quad){z, x, x <= h->low, x <= h->high} - h->mean[half];
}

/* s += |F x_b|^2 + (+-) conj(F x_(b-1)) F x_b, with `before` = F x_(b-1) */
FK_CLONES static void fk_add_spectrum(ptrdiff_t n, const fk_wave *before, const fk_wave *a,
                                      fk_wave *s)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        const fk_wave u = a[k];
        s[k].re += u.re * u.re + u.im * u.im;
        if (!before) continue;
        const fk_wave v = before[k];
        const fk_quad re = v.re * u.re + v.im * u.im, im = v.re * u.im - v.im * u.re;
        s[k].re += k < n / 2 ? re : -re;
        s[k].im += k < n / 2 ? im : -im;
    }
}

/* add the spectrum of one chain to s, of 2 B points; `work` has room for twice as many */
static void fk_add_chain(ptrdiff_t B, const double *w, const fk_halves *h, fk_wave *work, fk_wave *s)
{
    fk_wave *a = work, *before = work + 2 * B;
    const fk_wave none = {{0}, {0}};
    for (ptrdiff_t start = 0; start < h->n; start += B) {
        for (ptrdiff_t i = 0; i < 2 * B; i++) {
            a[i] = none;
            if (i < B && start + i < h->n) {
                fk_four(h, 0, start + i, &a[i].re);
                fk_four(h, 1, start + i, &a[i].im);
            }
        }
        fk_forward(2 * B, 1, w, a);
        fk_add_spectrum(2 * B, start ? before : NULL, a, s);
        fk_wave *const swapped = a;
        a = before;
        before = swapped;
    }
}

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
