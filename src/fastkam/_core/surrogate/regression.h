/* The mean of a Gaussian process with the Matern covariance of order 5/2, eight points at a time.
 *
 *     sum_i a_i k(|u - U_i|),   k(r) = (1 + s + s^2/3) e^-s,   s = sqrt(5) r
 *
 * Points are stored as [block][j][lane]. The last block is padded with a_i = 0 and points far
 * away. */
#ifndef FASTKAM_REGRESSION_H
#define FASTKAM_REGRESSION_H

#include "levels.h"

/* the sum at u (d,); the least |u - U_i|^2 goes to `nearest` */
FK_DISPATCH(double, fk_matern_mean, (ptrdiff_t blocks, ptrdiff_t d, const double *U,
                                     const double *a, const double *u, double *nearest))

/* the least |u - U_i|^2 alone */
FK_DISPATCH(double, fk_nearest_square, (ptrdiff_t blocks, ptrdiff_t d, const double *U,
                                        const double *u))

#endif
