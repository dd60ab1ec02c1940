/* One pass over a subsample z of the chain's history, which computes all that a KAM proposal needs:
 *
 *     D_i = z_i - y,   w_i with M_i = w_i D_i as in kernel.h,
 *     s = sum_i M_i,   Q = sum_i M_i M_i',
 *
 * so that M H M' = Q - s s' / n without building M. */
#ifndef FASTKAM_KERNEL_PASS_H
#define FASTKAM_KERNEL_PASS_H

#include "kernel.h"
#include "levels.h"

/* n >= 1; z: ceil(n / 8) blocks of (d, 8); y (d,); work: fk_kernel_pass_work(d) doubles.
 * Out: Q (d, d) column-major, its lower triangle; s (d,). */
FK_DISPATCH(void, fk_kernel_pass, (const fk_kernel *k, ptrdiff_t n, ptrdiff_t d, const double *z,
                                   const double *y, double *work, double *Q, double *s))

FK_DISPATCH(ptrdiff_t, fk_kernel_pass_work, (ptrdiff_t d))

/* replace r2 = |D|^2 by w at the points of some blocks */
FK_DISPATCH(void, fk_kernel_weights, (const fk_kernel *k, ptrdiff_t blocks, double *w))

#endif
