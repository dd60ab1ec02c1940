/* The two parts of a leapfrog step with a diagonal metric, before and after the evaluation. */
#ifndef FASTKAM_LEAPFROG_H
#define FASTKAM_LEAPFROG_H

#include "levels.h"

/* p_i += eps / 2 s_i grad_i, then y_i = x_i + eps s_i p_i; y may be x */
FK_DISPATCH(void, fk_kick_and_drift,
            (ptrdiff_t d, double eps, const double *s, const double *grad, double *p,
             const double *x, double *y))

/* p_i += eps / 2 s_i grad_i; return |p|^2 */
FK_DISPATCH(double, fk_last_kick,
            (ptrdiff_t d, double eps, const double *s, const double *grad, double *p))

#endif
