/* The loops of regression.h. */
#include "regression.h"
#include "vector.h"

/* r2 = |u - U_l|^2 of a block of points */
FK_INLINE void squares(ptrdiff_t d, const double *restrict U, const double *restrict u,
                       double *restrict r2)
{
    for (int l = 0; l < FK_LANES; l++) r2[l] = 0;
    for (ptrdiff_t j = 0; j < d; j++)
        #pragma omp simd
        for (int l = 0; l < FK_LANES; l++) {
            const double t = U[j * FK_LANES + l] - u[j];
            r2[l] = fk_fma(t, t, r2[l]);
        }
}

FK_INLINE double least_of(const double *p)
{
    double least = p[0];
    for (int l = 1; l < FK_LANES; l++) least = p[l] < least ? p[l] : least;
    return least;
}

double FK_LEVEL(fk_matern_mean)(ptrdiff_t blocks, ptrdiff_t d, const double *restrict U,
                                const double *restrict a, const double *restrict u,
                                double *restrict nearest)
{
    double total[FK_LANES] = {0}, least[FK_LANES], r2[FK_LANES];
    for (int l = 0; l < FK_LANES; l++) least[l] = INFINITY;
    for (ptrdiff_t b = 0; b < blocks; b++, U += d * FK_LANES, a += FK_LANES) {
        squares(d, U, u, r2);
        #pragma omp simd
        for (int l = 0; l < FK_LANES; l++) {
            const double s = sqrt(5.0 * r2[l]);
            const double k = fk_fma(s, fk_fma(s, 1.0 / 3, 1.0), 1.0) * fk_exp(-s);
            total[l] = fk_fma(a[l], k, total[l]);
            least[l] = r2[l] < least[l] ? r2[l] : least[l];
        }
    }
    *nearest = least_of(least);
    return fk_sum_lanes(total);
}

double FK_LEVEL(fk_nearest_square)(ptrdiff_t blocks, ptrdiff_t d, const double *restrict U,
                                   const double *restrict u)
{
    double least[FK_LANES], r2[FK_LANES];
    for (int l = 0; l < FK_LANES; l++) least[l] = INFINITY;
    for (ptrdiff_t b = 0; b < blocks; b++, U += d * FK_LANES) {
        squares(d, U, u, r2);
        #pragma omp simd
        for (int l = 0; l < FK_LANES; l++) least[l] = r2[l] < least[l] ? r2[l] : least[l];
    }
    return least_of(least);
}
