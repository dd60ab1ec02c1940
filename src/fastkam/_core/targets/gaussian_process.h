/* The loops of a Gaussian process that are not BLAS: matrices are n x n, column-major, and only
 * their lower triangle is read or written. */
#ifndef FASTKAM_GAUSSIAN_PROCESS_H
#define FASTKAM_GAUSSIAN_PROCESS_H

#include "levels.h"

/* K_ij = exp(-sum_k (Z_ki - Z_kj)^2), Z (d, n); from differences, which do not cancel */
FK_DISPATCH(void, fk_squared_exponential, (ptrdiff_t n, ptrdiff_t d, const double *Z, double *K))

/* g = y sigma(-y f), the gradient of sum_i log sigma(y_i f_i), and s = sqrt(sigma(f) sigma(-f)),
 * the root of minus its second derivative */
FK_DISPATCH(void, fk_logistic_curvature, (ptrdiff_t n, const double *y, const double *f, double *g,
                                          double *s))

/* B = I + s K s */
FK_DISPATCH(void, fk_scale_and_add_one, (ptrdiff_t n, const double *s, const double *K, double *B))

/* A <- (I - A) / (s s') + r I */
FK_DISPATCH(void, fk_posterior_covariance, (ptrdiff_t n, double r, const double *s, double *A))

#endif
