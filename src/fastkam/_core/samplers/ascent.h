/* One step of stochastic gradient ascent on a lower-triangular factor, column by column. */
#ifndef FASTKAM_ASCENT_H
#define FASTKAM_ASCENT_H

#include "levels.h"

/* The gradient is lower(sum_k left_k right_k') + beta diag(1 / L_ii), with three such products; the
 * factor has d columns of d elements, or is diagonal and has one column. */
enum { FK_RMSPROP, FK_ADAM, FK_PLAIN };

typedef struct fk_ascent {
    ptrdiff_t d;
    int diagonal;
    double *L, *G, *M;          /* the factor, second and first moments of the gradient */
    const double *left[3], *right[3];
    int rule;                   /* FK_RMSPROP, FK_ADAM, FK_PLAIN */
    double beta, rho, floor;
    double decay, decay1;           /* of G and of M */
    double correction, correction1; /* Adam's 1 - decay^t */
    int first;                      /* whether G is to begin with this gradient */
    double *g;                  /* (d,) work */
} fk_ascent;

FK_DISPATCH(void, fk_ascend, (const fk_ascent *a))

#endif
