/* The loops of a Gaussian process that are not BLAS: matrices are n x n, column-major, and only
 * their lower triangle is read or written. */
#ifndef FASTKAM_GAUSSIAN_PROCESS_H
#define FASTKAM_GAUSSIAN_PROCESS_H

#include "vector.h"

/* K_ij = exp(-sum_k (Z_ki - Z_kj)^2), Z (d, n); from differences, which do not cancel */
FK_CLONES static void fk_squared_exponential(ptrdiff_t n, ptrdiff_t d, const double *restrict Z,
                                             double *restrict K)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double *restrict k = K + j * n;
        for (ptrdiff_t i = j; i < n; i++) k[i] = 0;
        for (ptrdiff_t c = 0; c < d; c++) {
            const double *restrict z = Z + c * n;
            const double at = z[j];
            for (ptrdiff_t i = j; i < n; i++) k[i] -= (z[i] - at) * (z[i] - at);
        }
        for (ptrdiff_t i = j; i < n; i++) k[i] = fk_exp(k[i]);
    }
}

/* g = y sigma(-y f), the gradient of sum_i log sigma(y_i f_i), and s = sqrt(sigma(f) sigma(-f)),
 * the root of minus its second derivative */
FK_CLONES static void fk_logistic_curvature(ptrdiff_t n, const double *restrict y,
                                            const double *restrict f, double *restrict g,
                                            double *restrict s)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double z = y[i] * f[i], e = fk_exp(-fabs(z));
        g[i] = y[i] * (z < 0 ? 1 : e) / (1 + e);
        s[i] = sqrt(e) / (1 + e);
    }
}

/* B = I + s K s */
FK_CLONES static void fk_scale_and_add_one(ptrdiff_t n, const double *restrict s,
                                           const double *restrict K, double *restrict B)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        const double *restrict k = K + j * n;
        double *restrict b = B + j * n;
        for (ptrdiff_t i = j; i < n; i++) b[i] = s[j] * s[i] * k[i];
        b[j] += 1;
    }
}

/* A <- (I - A) / (s s') + r I */
FK_CLONES static void fk_posterior_covariance(ptrdiff_t n, double r, const double *restrict s,
                                              double *restrict A)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double *restrict a = A + j * n;
        a[j] -= 1;
        for (ptrdiff_t i = j; i < n; i++) a[i] = -a[i] / (s[j] * s[i]);
        a[j] += r;
    }
}

#endif
