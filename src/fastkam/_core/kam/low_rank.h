/* KAM's proposal from fewer points than dimensions, in n dimensions:
 *
 *     r_i = |z_i - y|^2,   T_ij = |z_i - z_j|^2,   w_i and M_i = w_i (z_i - y) as in kernel.h,
 *     M_i'M_j = w_i w_j (r_i + r_j - T_ij) / 2,
 *     K = H M'M H,   B = I + a K,   a = (nu / gamma)^2
 *
 * T depends on the subsample alone, so that a point y costs one pass over z, for r. T and r come
 * from differences of coordinates, so that a subsample far from the origin loses no digits. If a
 * square overflows, K and B are NaN, and B has no factor.
 *
 * z is stored in m = ceil(n / 8) blocks of (d, 8), padded with finite numbers; vectors over the
 * points have 8 m elements, the last of which are padding; n >= 1. T has n columns with stride ld.
 * The lower triangles of K and B (n, n), column-major, are computed; their buffers have 8 elements
 * more. */
#ifndef FASTKAM_LOW_RANK_H
#define FASTKAM_LOW_RANK_H

#include "kernel.h"
#include "levels.h"

/* r from z and y (d,) */
FK_DISPATCH(void, fk_distances, (ptrdiff_t n, ptrdiff_t d, const double *z, const double *y,
                                 double *r))

/* update T after points from `first` on have changed, with the same bits as if all were computed;
 * work: d elements */
FK_DISPATCH(void, fk_measure, (ptrdiff_t first, ptrdiff_t n, ptrdiff_t d, ptrdiff_t ld,
                               const double *z, double *work, double *T))

/* w, 0 in the padding, and K from r and T; work: 8 m */
FK_DISPATCH(void, fk_gram, (const fk_kernel *k, ptrdiff_t n, ptrdiff_t ld, const double *T,
                            const double *r, double *work, double *w, double *K))

/* B from K */
FK_DISPATCH(void, fk_shift, (ptrdiff_t n, double a, const double *K, double *B))

/* y += a M H f with M at x; work: 8 m */
FK_DISPATCH(void, fk_spread, (ptrdiff_t n, ptrdiff_t d, const double *z, const double *x, double a,
                              const double *w, const double *f, double *work, double *y))

/* b = H M'v with M, r and w at one point, v from it to another, r_there and |v|^2 = v2 */
FK_DISPATCH(void, fk_project, (ptrdiff_t n, const double *w, const double *r,
                               const double *r_there, double v2, double *b))

#endif
