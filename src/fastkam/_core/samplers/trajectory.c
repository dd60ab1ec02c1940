/* The products of a turning test in one pass over the momenta of a trajectory, each in four sums;
 * compiled once for each instruction set. */
#include "vector.h"

#include "trajectory.h"

typedef struct { const double *a_first, *a_last, *a_rho, *b_first, *b_last, *b_rho; } momenta;

FK_INLINE void store_quad(double *p, fk_quad v) { memcpy(p, &v, sizeof v); }

/* add the products of coordinates i to i + 3, and write the 4 elements of rho to out */
FK_INLINE void add(const momenta *m, ptrdiff_t i, fk_quad s[6], double *out)
{
    const fk_quad a_first = fk_load_quad(m->a_first + i), a_last = fk_load_quad(m->a_last + i);
    const fk_quad b_first = fk_load_quad(m->b_first + i), b_last = fk_load_quad(m->b_last + i);
    const fk_quad a_rho = fk_load_quad(m->a_rho + i), b_rho = fk_load_quad(m->b_rho + i);
    const fk_quad rho = a_rho + b_rho, left = a_rho + b_first, right = a_last + b_rho;
    s[0] += a_first * rho;
    s[1] += b_last * rho;
    s[2] += a_first * left;
    s[3] += b_first * left;
    s[4] += a_last * right;
    s[5] += b_last * right;
    store_quad(out, rho);
}

int FK_LEVEL(fk_turns)(ptrdiff_t d, const double *a_first, const double *a_last,
                       const double *a_rho, const double *b_first, const double *b_last,
                       const double *b_rho, double *rho)
{
    const momenta all = {a_first, a_last, a_rho, b_first, b_last, b_rho};
    fk_quad quads[6] = {{0}};
    double s[6][4];
    ptrdiff_t i = 0;
    for (; i + 4 <= d; i += 4) add(&all, i, quads, rho + i);
    for (int j = 0; j < 6; j++) store_quad(s[j], quads[j]);
    for (int k = 0; i < d; i++, k++) { /* the last ones, fewer than 4 */
        const double both = a_rho[i] + b_rho[i];
        const double left = a_rho[i] + b_first[i], right = a_last[i] + b_rho[i];
        s[0][k] += a_first[i] * both;
        s[1][k] += b_last[i] * both;
        s[2][k] += a_first[i] * left;
        s[3][k] += b_first[i] * left;
        s[4][k] += a_last[i] * right;
        s[5][k] += b_last[i] * right;
        rho[i] = both;
    }
    for (int j = 0; j < 6; j++)
        if (!((s[j][0] + s[j][2]) + (s[j][1] + s[j][3]) > 0)) return 1;
    return 0;
}

int FK_LEVEL(fk_two_turn)(ptrdiff_t d, const double *a, const double *b, double *rho)
{
    fk_quad quads[2] = {{0}};
    double s[2][4];
    ptrdiff_t i = 0;
    for (; i + 4 <= d; i += 4) {
        const fk_quad p = fk_load_quad(a + i), q = fk_load_quad(b + i), both = p + q;
        quads[0] += p * both;
        quads[1] += q * both;
        store_quad(rho + i, both);
    }
    for (int j = 0; j < 2; j++) store_quad(s[j], quads[j]);
    for (int k = 0; i < d; i++, k++) {
        rho[i] = a[i] + b[i];
        s[0][k] += a[i] * rho[i];
        s[1][k] += b[i] * rho[i];
    }
    for (int j = 0; j < 2; j++)
        if (!((s[j][0] + s[j][2]) + (s[j][1] + s[j][3]) > 0)) return 1;
    return 0;
}
