/* The test of whether a trajectory turns back. */
#ifndef FASTKAM_TRAJECTORY_H
#define FASTKAM_TRAJECTORY_H

#include "levels.h"

/* Set rho <- a_rho + b_rho; return whether p'rho <= 0 at an end of a and b joined, of a with the
 * first point of b, or of b with the last point of a. Arguments may coincide, as may rho and a_rho.
 */
FK_DISPATCH(int, fk_turns,
            (ptrdiff_t d, const double *a_first, const double *a_last, const double *a_rho,
             const double *b_first, const double *b_last, const double *b_rho, double *rho))

/* fk_turns for a and b of one point each */
FK_DISPATCH(int, fk_two_turn, (ptrdiff_t d, const double *a, const double *b, double *rho))

#endif
