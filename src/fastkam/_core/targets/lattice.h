/* A mixture of equally spaced normal components, one coordinate at a time.
 *
 * With the nearest centre mu_i, r = x - mu_i, a = h r / v and b = h^2 / (2 v),
 *
 *     sum_m exp(-(x - mu_m)^2 / (2 v)) = exp(-r^2 / (2 v)) S,
 *     S = 1 + sum_k (exp(k a - k^2 b) [mu_(i+k) exists] + exp(-k a - k^2 b) [mu_(i-k) exists]),
 *     exp(k a - k^2 b) = exp((k-1) a - (k-1)^2 b) exp(a - b) exp(-2 (k-1) b)
 *
 * so that K components cost two exponentials. 1 <= S <= K, since the nearest counts most. */
#ifndef FASTKAM_LATTICE_H
#define FASTKAM_LATTICE_H

#include "vector.h"

#define FK_LATTICE 32 /* coordinates to one logarithm; S <= K <= 2^32 cannot overflow it */

typedef struct {
    ptrdiff_t K;
    double low, h, v, constant; /* the lowest centre, spacing, variance, log of the normalization */
    const double *fall;         /* (K,) exp(-2 k b) */
} fk_lattice;

/* log pi(x) of the product over d coordinates; where grad is given, its gradient */
FK_INLINE double fk_lattice_any(const fk_lattice *f, ptrdiff_t d, const double *restrict x,
                                double *restrict grad)
{
    const double shift = 0x1.8p52, last = (double)(f->K - 1), a1 = f->h / f->v;
    const double b = f->h * a1 / 2;
    double total = d * f->constant;
    for (ptrdiff_t j0 = 0; j0 < d; j0 += FK_LATTICE) {
        const ptrdiff_t n = d - j0 < FK_LATTICE ? d - j0 : FK_LATTICE;
        double i[FK_LATTICE], r[FK_LATTICE], S[FK_LATTICE], T[FK_LATTICE];
        double up[FK_LATTICE], down[FK_LATTICE], p[FK_LATTICE], q[FK_LATTICE];
        #pragma omp simd
        for (ptrdiff_t j = 0; j < n; j++) {
            double nearest = (x[j0 + j] - f->low) / f->h;
            nearest = nearest < 0 ? 0 : nearest; /* beyond the ends the outermost centre is */
            nearest = nearest > last ? last : nearest;
            i[j] = (nearest + shift) - shift;
            r[j] = x[j0 + j] - (f->low + i[j] * f->h);
            up[j] = fk_exp(a1 * r[j] - b);
            down[j] = fk_exp(-a1 * r[j] - b);
            p[j] = q[j] = S[j] = 1;
            T[j] = 0;
        }
        for (ptrdiff_t k = 1; k < f->K; k++) {
            const double fall = f->fall[k - 1], highest = last - k, lowest = k;
            #pragma omp simd
            for (ptrdiff_t j = 0; j < n; j++) {
                p[j] *= up[j] * fall;
                q[j] *= down[j] * fall;
                const double right = i[j] <= highest ? p[j] : 0;
                const double left = i[j] >= lowest ? q[j] : 0;
                S[j] += right + left;
                T[j] += lowest * (right - left);
            }
        }
        double product = 1, square = 0;
        for (ptrdiff_t j = 0; j < n; j++) {
            product *= S[j];
            square += r[j] * r[j];
        }
        total += log(product) - square / (2 * f->v);
        if (grad) {
            #pragma omp simd
            for (ptrdiff_t j = 0; j < n; j++)
                grad[j0 + j] = (f->h * (T[j] / S[j]) - r[j]) / f->v;
        }
    }
    return total;
}

FK_CLONES
static double fk_lattice_value(const fk_lattice *f, ptrdiff_t d, const double *x)
{
    return fk_lattice_any(f, d, x, NULL);
}

FK_CLONES
static double fk_lattice_grad(const fk_lattice *f, ptrdiff_t d, const double *x, double *grad)
{
    return fk_lattice_any(f, d, x, grad);
}

#endif
