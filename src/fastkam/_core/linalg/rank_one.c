/* The rank-one update of a Cholesky factor in one pass, compiled once for each instruction set.
 *
 * With v_0 = v, t_0 = a and
 *
 *     w_j = v_j,j / L_jj,   v_j+1 = v_j - w_j L_:j,   t_j+1 = t_j + s w_j^2,
 *     L_:j <- p_j L_:j + q_j v_j+1,   p_j = sqrt(a t_j+1 / t_j),   q_j = p_j s w_j / t_j+1
 *
 * Four columns at a time: first their own rows, in scalars, of which only the products with w wait
 * for each other; then the rows below, in one sweep. */
#include "factor.h"
#include "vector.h"

/* w, p, q of 4 columns, and the new values of their own rows (column, row) */
typedef struct { double w[4], p[4], q[4], l[4][4]; } columns;

/* the rows of n columns on the diagonal, l (ld), v; t -> t_j+n; return 1 if not positive */
FK_INLINE int corner(const int n, const double *l, ptrdiff_t ld, double a, double s,
                     const double *v, double *t, columns *k)
{
    double *w = k->w, *p = k->p, *q = k->q;
    double r[4], next[8], ratio[8], inverse[4];
    int bad = 0;
    for (int c = 0; c < n; c++) inverse[c] = 1 / l[c * (ld + 1)];
    for (int c = 0; c < n; c++) r[c] = v[c];
    double residual[4][4], before = *t;
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        w[c] = r[c] * inverse[c];
#pragma GCC unroll 4
        for (int i = c + 1; i < n; i++) residual[c][i] = r[i] = fk_fma(-w[c], l[c * ld + i], r[i]);
        next[c] = fk_fma(s, w[c] * w[c], before);
        bad |= !(next[c] > 0) | !(next[c] < HUGE_VAL);
        ratio[c] = a * next[c] / before;
        before = next[c];
    }
    *t = before;
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        p[c] = sqrt(ratio[c]);
        q[c] = p[c] * (s * w[c] / next[c]);
        k->l[c][c] = p[c] * l[c * (ld + 1)];
#pragma GCC unroll 4
        for (int i = c + 1; i < n; i++)
            k->l[c][i] = fk_fma(p[c], l[c * ld + i], q[c] * residual[c][i]);
    }
    return bad;
}

FK_INLINE void put(const int n, const columns *k, double *l, ptrdiff_t ld)
{
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
#pragma GCC unroll 4
        for (int i = c; i < n; i++) l[c * ld + i] = k->l[c][i];
}

/* rows of 4 columns below them, l (ld): FK_WIDTH of which begin to end are written */
FK_INLINE void sweep(double *l, ptrdiff_t ld, double *v, const columns *k, ptrdiff_t begin,
                     ptrdiff_t end)
{
    const int whole = begin == 0 && end == FK_WIDTH;
    fk_vec r = end == FK_WIDTH ? fk_load(v) : fk_load_n(v, end);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        const fk_vec x = end == FK_WIDTH ? fk_load(l + c * ld) : fk_load_n(l + c * ld, end);
        r = fk_fnma_vec(x, fk_splat(k->w[c]), r);
        const fk_vec y = fk_fma_vec(x, fk_splat(k->p[c]), r * k->q[c]);
        if (whole)
            fk_store(l + c * ld, y);
        else
            fk_store_between(l + c * ld, y, begin, end);
    }
    if (end == FK_WIDTH)
        fk_store(v, r);
    else
        fk_store_between(v, r, begin, end);
}

/* the last n columns */
FK_INLINE int finish(const int n, double *l, ptrdiff_t ld, double a, double s, const double *v,
                     double t)
{
    columns k;
    if (corner(n, l, ld, a, s, v, &t, &k)) return 1;
    put(n, &k, l, ld);
    return 0;
}

int FK_LEVEL(fk_rank_one)(ptrdiff_t d, double *L, double a, double s, double *v)
{
    double t = a;
    columns k;
    ptrdiff_t j = 0;
    for (; j + 4 < d; j += 4) {
        double *l = L + j * d;
        if (corner(4, l + j, d, a, s, v + j, &t, &k)) return 1;
        /* from a multiple of the width on: see factor.c */
        ptrdiff_t i = (j + 4) & ~(ptrdiff_t)(FK_WIDTH - 1);
        if (i < j + 4) {
            sweep(l + i, d, v + i, &k, j + 4 - i, d - i < FK_WIDTH ? d - i : FK_WIDTH);
            i += FK_WIDTH;
        }
        for (; i + FK_WIDTH <= d; i += FK_WIDTH) sweep(l + i, d, v + i, &k, 0, FK_WIDTH);
        if (i < d) sweep(l + i, d, v + i, &k, 0, d - i);
        put(4, &k, l + j, d); /* last: a load of a vector that overlaps it would wait */
    }
    double *l = L + j * (d + 1);
    switch (d - j) {
    case 1: return finish(1, l, d, a, s, v + j, t);
    case 2: return finish(2, l, d, a, s, v + j, t);
    case 3: return finish(3, l, d, a, s, v + j, t);
    case 4: return finish(4, l, d, a, s, v + j, t);
    }
    return 0;
}
