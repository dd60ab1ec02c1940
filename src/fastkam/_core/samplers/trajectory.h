/* Whether a trajectory turns back: six products in one pass over its momenta. */
#ifndef FASTKAM_TRAJECTORY_H
#define FASTKAM_TRAJECTORY_H

#include <stddef.h>

#define FK_SUMS 4 /* sums that do not wait for each other */

static inline void fk_turn_products(int n, const double *restrict a_first,
                                    const double *restrict a_last, double *restrict a_rho,
                                    const double *restrict b_first, const double *restrict b_last,
                                    const double *restrict b_rho, double s[restrict 6][FK_SUMS])
{
    for (int k = 0; k < n; k++) {
        const double rho = a_rho[k] + b_rho[k];
        const double left = a_rho[k] + b_first[k], right = a_last[k] + b_rho[k];
        s[0][k] += a_first[k] * rho;
        s[1][k] += b_last[k] * rho;
        s[2][k] += a_first[k] * left;
        s[3][k] += b_first[k] * left;
        s[4][k] += a_last[k] * right;
        s[5][k] += b_last[k] * right;
        a_rho[k] = rho;
    }
}

/* With a_rho <- a_rho + b_rho, whether p'rho <= 0 at an end of: a and b joined; a with the first
 * point of b; b with the last point of a. */
static inline int fk_turns(ptrdiff_t d, const double *a_first, const double *a_last, double *a_rho,
                           const double *b_first, const double *b_last, const double *b_rho)
{
    double s[6][FK_SUMS] = {{0}};
    ptrdiff_t i = 0;
    for (; i + FK_SUMS <= d; i += FK_SUMS)
        fk_turn_products(FK_SUMS, a_first + i, a_last + i, a_rho + i, b_first + i, b_last + i,
                         b_rho + i, s);
    fk_turn_products((int)(d - i), a_first + i, a_last + i, a_rho + i, b_first + i, b_last + i,
                     b_rho + i, s);
    for (int j = 0; j < 6; j++)
        if (!((s[j][0] + s[j][2]) + (s[j][1] + s[j][3]) > 0)) return 1;
    return 0;
}

#endif
