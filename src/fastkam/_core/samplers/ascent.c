/* The loops of ascent.h. */
#include "ascent.h"
#include "vector.h"

/* beyond this the square of an element of the gradient would be its G for very many steps */
#define LARGEST 1e100

/* g = 0 where it is too large, or NaN */
static void bounded(ptrdiff_t n, double *restrict g)
{
    for (ptrdiff_t i = 0; i < n; i++) g[i] = fabs(g[i]) < LARGEST ? g[i] : 0.0;
}

/* l += rho g / (1 + sqrt(G)),  G = decay G + (1 - decay) g^2, for n elements */
static void rmsprop(ptrdiff_t n, const double *restrict g, double *restrict G,
                    double *restrict l, double rho, double decay)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double G1 = decay * G[i] + (1 - decay) * (g[i] * g[i]);
        G[i] = G1;
        l[i] += rho * g[i] / (1 + sqrt(G1));
    }
}

/* l += rho M' / (sqrt(G') + 1e-8), with both moments corrected for their start */
static void adam(ptrdiff_t n, const double *restrict g, double *restrict G, double *restrict M,
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
static void combine(ptrdiff_t n, double a, const double *restrict l0, double b,
                    const double *restrict l1, double c, const double *restrict l2,
                    double *restrict g)
{
    for (ptrdiff_t i = 0; i < n; i++) g[i] = a * l0[i] + b * l1[i] + c * l2[i];
}

void FK_LEVEL(fk_ascend)(const fk_ascent *a)
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
            combine(n, a->right[0][j], a->left[0] + j, a->right[1][j], a->left[1] + j,
                    a->right[2][j], a->left[2] + j, g);
            g[0] += a->beta / l[0];
        }
        bounded(n, g);
        if (a->rule == FK_PLAIN)
            for (ptrdiff_t i = 0; i < n; i++) l[i] += a->rho * g[i];
        else if (a->rule == FK_ADAM)
            adam(n, g, G, a->M + at + j, l, a->rho, a->decay, a->decay1, a->correction,
                 a->correction1);
        else
            rmsprop(n, g, G, l, a->rho, a->first ? 0.0 : a->decay);
        for (ptrdiff_t i = 0; i < (a->diagonal ? d : 1); i++)
            if (!(l[i] > a->floor)) l[i] = a->floor;
    }
}
