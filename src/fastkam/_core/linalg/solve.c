/* v <- L^-1 v, compiled once for each instruction set: four columns at a time, first their own
 * rows in scalars, then the rows below in one sweep; and |L^-1 v|^2 of 8 vectors at once, in lanes,
 * with the same bits. */
#include "factor.h"
#include "vector.h"

/* the rows of n columns on the diagonal, l (ld) */
FK_INLINE void corner(const int n, const double *l, ptrdiff_t ld, double *v)
{
    double inverse[4], r[4];
    for (int c = 0; c < n; c++) inverse[c] = 1 / l[c * (ld + 1)], r[c] = v[c];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        v[c] = r[c] *= inverse[c];
#pragma GCC unroll 4
        for (int i = c + 1; i < n; i++) r[i] = fk_fma(-r[c], l[c * ld + i], r[i]);
    }
}

void FK_LEVEL(fk_solve)(ptrdiff_t d, const double *L, double *v)
{
    ptrdiff_t j = 0;
    for (; j + 4 < d; j += 4) {
        const double *l = L + j * d;
        corner(4, l + j, d, v + j);
        const double w[4] = {v[j], v[j + 1], v[j + 2], v[j + 3]};
        ptrdiff_t i = j + 4;
        for (; i < d && i & (FK_WIDTH - 1); i++)
            for (int c = 0; c < 4; c++) v[i] = fk_fma(-w[c], l[c * d + i], v[i]);
        for (; i + FK_WIDTH <= d; i += FK_WIDTH) {
            fk_vec r = fk_load(v + i);
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) r = fk_fnma_vec(fk_load(l + c * d + i), fk_splat(w[c]), r);
            fk_store(v + i, r);
        }
        for (; i < d; i++)
            for (int c = 0; c < 4; c++) v[i] = fk_fma(-w[c], l[c * d + i], v[i]);
    }
    switch (d - j) {
    case 1: corner(1, L + j * (d + 1), d, v + j); break;
    case 2: corner(2, L + j * (d + 1), d, v + j); break;
    case 3: corner(3, L + j * (d + 1), d, v + j); break;
    case 4: corner(4, L + j * (d + 1), d, v + j); break;
    }
}

/* row j of V (d, 8), squared */
FK_INLINE fk_vec squared(const double *V, ptrdiff_t j)
{
    const fk_vec v = fk_load(V + 8 * j);
    return v * v;
}

/* out (8,) <- |L^-1 v|^2 of the columns of V (d, 8), which is destroyed */
void FK_LEVEL(fk_squares)(ptrdiff_t d, const double *L, double *V, double *out)
{
    for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
        double *v = V + l;
        ptrdiff_t j = 0;
        for (; j + 4 <= d; j += 4) {
            const double *a = L + j * d;
            fk_vec w[4];
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) {
                w[c] = fk_load(v + 8 * (j + c));
#pragma GCC unroll 4
                for (int k = 0; k < c; k++)
                    w[c] = fk_fnma_vec(w[k], fk_splat(a[k * d + j + c]), w[c]);
                w[c] *= 1 / a[c * d + j + c];
                fk_store(v + 8 * (j + c), w[c]);
            }
            for (ptrdiff_t i = j + 4; i < d; i++) {
                fk_vec r = fk_load(v + 8 * i);
#pragma GCC unroll 4
                for (int c = 0; c < 4; c++) r = fk_fnma_vec(w[c], fk_splat(a[c * d + i]), r);
                fk_store(v + 8 * i, r);
            }
        }
        for (; j < d; j++) {
            const fk_vec w = fk_load(v + 8 * j) * (1 / L[j * (d + 1)]);
            fk_store(v + 8 * j, w);
            for (ptrdiff_t i = j + 1; i < d; i++)
                fk_store(v + 8 * i, fk_fnma_vec(w, fk_splat(L[j * d + i]), fk_load(v + 8 * i)));
        }
        /* the order of fk_square */
        fk_vec s[8], total = fk_splat(0);
        for (int k = 0; k < 8; k++) s[k] = fk_splat(0);
        for (j = 0; j + 8 <= d; j += 8)
            for (int k = 0; k < 8; k++) s[k] += squared(v, j + k);
        if (d >= 8) total = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        for (ptrdiff_t i = d - 1; i >= j; i--) total += squared(v, i);
        fk_store(out + l, total);
    }
}
