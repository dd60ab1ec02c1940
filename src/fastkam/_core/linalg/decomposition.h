/* Decompositions and products of small dense matrices. The order of every operation is fixed: the
 * bits depend neither on the instruction set nor on a BLAS. */
#ifndef FASTKAM_DECOMPOSITION_H
#define FASTKAM_DECOMPOSITION_H

#include "levels.h"

/* elements between the columns of a padded matrix with d rows */
static inline ptrdiff_t fk_padded(ptrdiff_t d) { return (d + 7) & ~(ptrdiff_t)7; }

enum { FK_TILE = 32 }; /* rows of a tile of vectors */

/* elements of the tiles of a square matrix, [tile][column][row], the last one padded */
static inline ptrdiff_t fk_tiled(ptrdiff_t d) { return (d + FK_TILE - 1) / FK_TILE * FK_TILE * d; }

/* rotations that are kept before they are applied */
static inline ptrdiff_t fk_rotations(ptrdiff_t d) { return d > 2048 ? 2 * d : 4096; }

/* elements of workspace for the two decompositions below */
static inline ptrdiff_t fk_decomposition_work(ptrdiff_t d)
{
    return (d + 2) * fk_padded(d) + 2 * fk_rotations(d);
}

/* A is padded: column-major, `fk_padded(d)` elements from column to column, zeros below row d; it is
 * destroyed. values (d,); vectors in tiles, one column per value, in no order. Return 0, or 1 if
 * the iteration does not converge, as with a NaN. */

/* A = V diag(values) V' of a symmetric A (both triangles given) */
FK_DISPATCH(int, fk_eigen, (ptrdiff_t d, double *A, double *values, double *vectors, double *work))

/* A = U diag(|values|) V' of a square A; only V is computed */
FK_DISPATCH(int, fk_singular, (ptrdiff_t d, double *A, double *values, double *vectors,
                               double *work))

/* A (m, n) <- Q with orthonormal columns, which span those of A; m >= n, padded; work (n,) */
FK_DISPATCH(void, fk_orthonormal, (ptrdiff_t m, ptrdiff_t n, double *A, double *work))

/* C <- A B, (m, k) and (k, n), with strides of rows and columns in elements; C is row-major; work
 * of FK_TILE * k elements */
FK_DISPATCH(void, fk_product, (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const double *A,
                               ptrdiff_t a_row, ptrdiff_t a_column, const double *B,
                               ptrdiff_t b_row, ptrdiff_t b_column, double *C, double *work))

#endif
