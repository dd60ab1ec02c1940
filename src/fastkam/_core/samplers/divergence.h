/* One step of a factor that decreases the divergence of a local proposal from the target. */
#ifndef FASTKAM_DIVERGENCE_H
#define FASTKAM_DIVERGENCE_H

#include "levels.h"

/* step <- gain lower(sum_j w_j g_j e_j' + b diag(1 / C_ii)), elements clipped to +-most, for the J
 * rows of g and e, (J, d); rows of weight 0 are not read. Returns the sum of squares. */
FK_DISPATCH(double, fk_divergence_step, (ptrdiff_t d, ptrdiff_t J, const double *C, const double *g,
                                         const double *e, const double *w, double b, double gain,
                                         double most, double *step))

/* C += a step, unless an element of the sum is not finite or one of its diagonal is 0 */
static inline void fk_divergence_move(ptrdiff_t d, double a, const double *step, double *C)
{
    for (ptrdiff_t k = 0; k < d; k++) {
        const double diagonal = C[k * d + k] + a * step[k * d + k];
        if (!(diagonal != 0)) return;
        for (ptrdiff_t i = k; i < d; i++) {
            const double v = C[k * d + i] + a * step[k * d + i];
            if (!(v - v == 0)) return;
        }
    }
    for (ptrdiff_t k = 0; k < d; k++)
        for (ptrdiff_t i = k; i < d; i++) C[k * d + i] += a * step[k * d + i];
}

#endif
