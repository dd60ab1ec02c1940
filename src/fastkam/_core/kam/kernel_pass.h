/* One pass over a subsample z of the chain's history, all that a KAM proposal at y needs:
 *
 *     D_i = z_i - y,   w_i with M_i = 2 grad_y k(y, z_i) = w_i D_i,
 *     s = sum_i M_i,   Q = sum_i M_i M_i',
 *
 * so that M H M' = Q - s s' / n without building M. The kernels differ in the weight alone:
 *
 *     linear     k = y'z                      w = 2   (M_i = 2 z_i; H removes the shift by y)
 *     Gaussian   k = exp(-|D|^2 / 2 l^2)      w = 2 k / l^2
 *     Matern     u = sqrt(2 v) |D| / l        w = (4 v / l^2) c_v u^(v-1) K_(v-1)(u),
 *                                             c_v = 2^(1-v) / Gamma(v), v > 1
 */
#ifndef FASTKAM_KERNEL_PASS_H
#define FASTKAM_KERNEL_PASS_H

#include <stddef.h>

enum { FK_LINEAR, FK_GAUSSIAN, FK_MATERN, FK_MATERN_HALF };

/* e^u c_v u^(v-1) K_(v-1)(u) as polynomials, FK_CELLS to an octave of u; below the first octave the
 * limit at 0, with its correction a u^b. For v = 3/2, 5/2, ... (FK_MATERN_HALF) it is one
 * polynomial in u. */
enum { FK_CELLS = 8, FK_FIRST_OCTAVE = -24, FK_OCTAVES = 34 };

typedef struct {
    int kind;
    double length;       /* l */
    double order;        /* v */
    int degree;
    const double *table; /* (FK_OCTAVES FK_CELLS or 1, degree + 1) */
    double origin;       /* the limit at u = 0 */
    double a, b;         /* near 0: origin (1 - a u^b) */
} fk_kernel;

/* n >= 1; z: ceil(n / 8) blocks of (d, 8); y (d,); work: fk_kernel_pass_work(d) doubles.
 * Out: Q (d, d) column-major, its lower triangle; s (d,). */
typedef void (*fk_kernel_pass_fn)(const fk_kernel *k, ptrdiff_t n, ptrdiff_t d, const double *z,
                                  const double *y, double *work, double *Q, double *s);

ptrdiff_t fk_kernel_pass_work(ptrdiff_t d);

/* w at the points of some blocks, in place of r2 = |D|^2 */
void fk_kernel_weights(const fk_kernel *k, ptrdiff_t blocks, double *w);

/* the pass for this processor, or for the level named ("base", "avx2", "avx512"); NULL where the
 * processor has not got it. An empty name: the best. */
fk_kernel_pass_fn fk_kernel_pass_for(const char *level);

#endif
