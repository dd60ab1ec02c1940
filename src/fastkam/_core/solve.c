/* v <- L^-1 v, compiled once for each instruction set: four columns at a time, first their own rows in
 * scalars, then the rows below in one sweep. */
#include "factor.h"
#include "simd.h"

/* the rows of n columns on the diagonal, l (ld) */
FK_INLINE void corner(const int n, const double *l, ptrdiff_t ld, double *v)
{
    double inverse[4], r[4];
    for (int c = 0; c < n; c++) inverse[c] = 1 / l[c * (ld + 1)], r[c] = v[c];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        v[c] = r[c] *= inverse[c];
#pragma GCC unroll 4
        for (int i = c + 1; i < n; i++) r[i] -= r[c] * l[c * ld + i];
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
            for (int c = 0; c < 4; c++) v[i] -= w[c] * l[c * d + i];
        for (; i + FK_WIDTH <= d; i += FK_WIDTH) {
            fk_vec r = fk_load(v + i);
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) r -= fk_load(l + c * d + i) * w[c];
            fk_store(v + i, r);
        }
        for (; i < d; i++)
            for (int c = 0; c < 4; c++) v[i] -= w[c] * l[c * d + i];
    }
    switch (d - j) {
    case 1: corner(1, L + j * (d + 1), d, v + j); break;
    case 2: corner(2, L + j * (d + 1), d, v + j); break;
    case 3: corner(3, L + j * (d + 1), d, v + j); break;
    case 4: corner(4, L + j * (d + 1), d, v + j); break;
    }
}
