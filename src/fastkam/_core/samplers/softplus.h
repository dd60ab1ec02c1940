/* The logistic function and the sum of softplus, for many coordinates at once. */
#ifndef FASTKAM_SOFTPLUS_H
#define FASTKAM_SOFTPLUS_H

#include "levels.h"

/* p_i = 1 / (1 + exp(-g_i w_i)) */
FK_DISPATCH(void, fk_logistic, (ptrdiff_t d, const double *g, const double *w, double *p))

/* sum_i log(1 + exp(a g_i w_i)); the part above max(0, a g_i w_i) is computed as one logarithm of
 * each product of up to 64 numbers between 1 and 2 */
FK_DISPATCH(double, fk_sum_softplus, (ptrdiff_t d, double a, const double *g, const double *w))

#endif
