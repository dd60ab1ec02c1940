/* Mixtures of normal components with heavier tails, eight components at a time.
 *
 *     log q(x) = log(e^(c_0 + s) (1 + q_0/3)^(-(3 + d)/2)
 *                    + sum_k>0 e^c_k [(1 - t) e^(-q_k/2) + t 2^-d e^(-q_k/8)]),
 *     q_k = |W_k (x - m_k)|^2,   W_k lower triangular
 *
 * Component 0 is a Student distribution with 3 degrees of freedom, and s the log of its constant
 * relative to that of a normal component; a share t of each other component has twice its scale.
 * Means are stored as [block][j][lane], W as [block][row by row of the triangle][lane]; the last
 * block is padded with c_k = -infinity. */
#ifndef FASTKAM_MIXTURE_H
#define FASTKAM_MIXTURE_H

#include "levels.h"
#include "tails.h"

/* q_k of every component */
FK_DISPATCH(void, fk_mixture_squares, (ptrdiff_t blocks, ptrdiff_t d, const double *means,
                                       const double *W, const double *x, double *q))

/* return log q(x) from the squares, which are overwritten; with log (1 - t) and log t 2^-d */
FK_DISPATCH(double, fk_mixture_log, (ptrdiff_t K, ptrdiff_t d, const double *c, double s,
                                     double log_core, double log_tail, double *q))

/* replace q_k by e^c_k e^(-q_k/2) / s, with s the sum over all; return log s */
FK_DISPATCH(double, fk_mixture_shares, (ptrdiff_t K, const double *c, double *q))

/* sum += share x, squares += share x x' */
FK_DISPATCH(void, fk_mixture_add, (ptrdiff_t d, double share, const double *x, double *sum,
                                   double *squares))

#endif
