/* One step of stochastic gradient ascent on a lower-triangular factor, column by column. */
#ifndef FASTKAM_ASCENT_H
#define FASTKAM_ASCENT_H

#include <math.h>
#include <stddef.h>

#include "clones.h"

/* The gradient is lower(sum_k left_k right_k') + beta diag(1 / L_ii), of three such products; the
 * factor has d columns of d elements, or one column, the diagonal of a diagonal one. */
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

/* l += rho g / (1 + sqrt(G)),  G = decay G + (1 - decay) g^2, for n elements */
FK_CLONES
static void fk_rmsprop(ptrdiff_t n, const double *restrict g, double *restrict G,
                       double *restrict l, double rho, double decay)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double G1 = decay * G[i] + (1 - decay) * (g[i] * g[i]);
        G[i] = G1;
        l[i] += rho * g[i] / (1 + sqrt(G1));
    }
}

/* l += rho M' / (sqrt(G') + 1e-8), with both moments corrected for their start */
FK_CLONES
static void fk_adam(ptrdiff_t n, const double *restrict g, double *restrict G, double *restrict M,
                    double *restrict l, double rho, double decay, double decay1,
                    double correction, double correction1)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double G1 = decay * G[i] + (1 - decay) * (g[i] * g[i]);
        const double M1 = decay1 * M[i] + (1 - decay1) * g[i];
        G[i] = G1;
        M[i] = M1;
        l[i] += rho * (M1 / correction1) / (sqrt(G1 / correction) + 1e-8);
    }
}

/* g = a l0 + b l1 + c l2 */
FK_CLONES
static void fk_combine(ptrdiff_t n, double a, const double *restrict l0, double b,
                       const double *restrict l1, double c, const double *restrict l2,
                       double *restrict g)
{
    for (ptrdiff_t i = 0; i < n; i++) g[i] = a * l0[i] + b * l1[i] + c * l2[i];
}

static inline void fk_ascend(const fk_ascent *a)
{
    const ptrdiff_t d = a->d, columns = a->diagonal ? 1 : d;
    for (ptrdiff_t j = 0; j < columns; j++) {
        const ptrdiff_t at = j * d, n = d - j;
        double *g = a->g, *l = a->L + at + j, *G = a->G + at + j;
        if (a->diagonal) {
            for (ptrdiff_t i = 0; i < d; i++)
                g[i] = a->left[0][i] * a->right[0][i] + a->left[1][i] * a->right[1][i]
                       + a->left[2][i] * a->right[2][i] + a->beta / l[i];
        } else {
            fk_combine(n, a->right[0][j], a->left[0] + j, a->right[1][j], a->left[1] + j,
                       a->right[2][j], a->left[2] + j, g);
            g[0] += a->beta / l[0];
        }
        if (a->rule == FK_PLAIN)
            for (ptrdiff_t i = 0; i < n; i++) l[i] += a->rho * g[i];
        else if (a->rule == FK_ADAM)
            fk_adam(n, g, G, a->M + at + j, l, a->rho, a->decay, a->decay1, a->correction,
                    a->correction1);
        else
            fk_rmsprop(n, g, G, l, a->rho, a->first ? 0.0 : a->decay);
        for (ptrdiff_t i = 0; i < (a->diagonal ? d : 1); i++)
            if (!(l[i] > a->floor)) l[i] = a->floor;
    }
}

#endif
