/* Factorizations and products that are compiled for each instruction set. All matrices are
 * column-major; L is lower triangular, and what stands above its diagonal is neither used nor
 * written; R is square. The bits do not depend on the instruction set. */
#ifndef FASTKAM_FACTOR_H
#define FASTKAM_FACTOR_H

#include <stddef.h>

/* A <- L with L L' = A (d, d), from its lower triangle; v <- L^-1 v and log_det <- log det L where
 * these are given. 0, or 1 where A is not positive definite (a NaN pivot counts as not positive):
 * A and v are then void */
typedef int (*fk_cholesky_fn)(ptrdiff_t d, double *A, double *v, double *log_det);

/* L L' <- a L L' + s v v', a > 0; s may be negative (a downdate). v is destroyed. 0, or 1 where the
 * result would not be positive definite: L is then void */
typedef int (*fk_rank_one_fn)(ptrdiff_t d, double *L, double a, double s, double *v);

/* v <- L^-1 v */
typedef void (*fk_solve_fn)(ptrdiff_t d, const double *L, double *v);

/* out (8,) <- |L^-1 v|^2 of the columns v of V (d, 8), which is destroyed */
typedef void (*fk_squares_fn)(ptrdiff_t d, const double *L, double *V, double *out);

/* y += a M z, and u <- a M' g; y and u apart from z and g */
typedef void (*fk_product_fn)(ptrdiff_t d, double a, const double *M, const double *z, double *y);

typedef struct {
    fk_cholesky_fn cholesky;
    fk_rank_one_fn rank_one;
    fk_solve_fn solve_L;
    fk_squares_fn squares;
    fk_product_fn add_Lz, times_Lt, add_Rz, times_Rt;
} fk_factor;

/* the functions for this processor, or for the level named as in kernel_pass.h; NULL where it has
 * not got it */
const fk_factor *fk_factor_for(const char *level);

#endif
