/* Factorizations and products of small dense matrices. All are column-major; L is lower triangular,
 * and elements above its diagonal are neither used nor written; R is square. */
#ifndef FASTKAM_FACTOR_H
#define FASTKAM_FACTOR_H

#include "levels.h"

/* A <- L with L L' = A (d, d), from its lower triangle; v <- L^-1 v and log_det <- log det L unless
 * these are NULL. Return 0, or 1 if A is not positive definite (a NaN pivot counts as not
 * positive): A and v are then undefined */
FK_DISPATCH(int, fk_cholesky, (ptrdiff_t d, double *A, double *v, double *log_det))

/* L L' <- a L L' + s v v', a > 0; s may be negative (a downdate). v is destroyed. Return 0, or 1 if
 * the result would not be positive definite: L is then undefined */
FK_DISPATCH(int, fk_rank_one, (ptrdiff_t d, double *L, double a, double s, double *v))

/* v <- L^-1 v */
FK_DISPATCH(void, fk_solve, (ptrdiff_t d, const double *L, double *v))

/* out (8,) <- |L^-1 v|^2 of the columns v of V (d, 8), which is destroyed */
FK_DISPATCH(void, fk_squares, (ptrdiff_t d, const double *L, double *V, double *out))

/* y += a M z, and u <- a M' g; y and u do not overlap z and g */
FK_DISPATCH(void, fk_add_Lz, (ptrdiff_t d, double a, const double *L, const double *z, double *y))
FK_DISPATCH(void, fk_add_Rz, (ptrdiff_t d, double a, const double *R, const double *z, double *y))
FK_DISPATCH(void, fk_times_Lt, (ptrdiff_t d, double a, const double *L, const double *g, double *u))
FK_DISPATCH(void, fk_times_Rt, (ptrdiff_t d, double a, const double *R, const double *g, double *u))

#endif
