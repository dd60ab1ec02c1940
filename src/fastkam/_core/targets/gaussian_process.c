/* The loops of gaussian_process.h. */
#include "gaussian_process.h"
#include "vector.h"

void FK_LEVEL(fk_squared_exponential)(ptrdiff_t n, ptrdiff_t d, const double *restrict Z,
                                      double *restrict K)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double *restrict k = K + j * n;
        for (ptrdiff_t i = j; i < n; i++) k[i] = 0;
        for (ptrdiff_t c = 0; c < d; c++) {
            const double *restrict z = Z + c * n;
            const double at = z[j];
            for (ptrdiff_t i = j; i < n; i++) k[i] = fk_fma(at - z[i], z[i] - at, k[i]);
        }
        for (ptrdiff_t i = j; i < n; i++) k[i] = fk_exp(k[i]);
    }
}

void FK_LEVEL(fk_logistic_curvature)(ptrdiff_t n, const double *restrict y,
                                     const double *restrict f, double *restrict g,
                                     double *restrict s)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double z = y[i] * f[i], e = fk_exp(-fabs(z));
        g[i] = y[i] * (z < 0 ? 1 : e) / (1 + e);
        s[i] = sqrt(e) / (1 + e);
    }
}

void FK_LEVEL(fk_scale_and_add_one)(ptrdiff_t n, const double *restrict s,
                                    const double *restrict K, double *restrict B)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        const double *restrict k = K + j * n;
        double *restrict b = B + j * n;
        for (ptrdiff_t i = j; i < n; i++) b[i] = s[j] * s[i] * k[i];
        b[j] += 1;
    }
}

void FK_LEVEL(fk_posterior_covariance)(ptrdiff_t n, double r, const double *restrict s,
                                       double *restrict A)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double *restrict a = A + j * n;
        a[j] -= 1;
        for (ptrdiff_t i = j; i < n; i++) a[i] = -a[i] / (s[j] * s[i]);
        a[j] += r;
    }
}
