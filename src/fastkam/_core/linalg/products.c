/* y += a M z, compiled once for each instruction set: column by column, four at a time, so that y
 * is loaded and stored once for them. y, M and z do not overlap. */
#define FK_NARROW /* with vectors of 8 the diagonal and the end cost more than is gained */
#include "factor.h"
#include "vector.h"

#define COLUMNS 4

/* a in the lanes from k on, b in those before */
FK_INLINE fk_vec from(ptrdiff_t k, fk_vec a, fk_vec b)
{
    fk_ivec mask;
    for (int l = 0; l < FK_WIDTH; l++) mask[l] = l < k ? 0 : -1;
    return (fk_vec)((mask & (fk_ivec)a) | (~mask & (fk_ivec)b));
}

/* a vector of rows of y += s_0 m_0 + s_1 m_1 + .., n columns m (ld); if the diagonal is among them,
 * at lane `diagonal` of the first, the elements above it are left out */
FK_INLINE void add(const int n, const int triangular, ptrdiff_t diagonal, ptrdiff_t ld,
                   const double *s, const double *m, double *y)
{
    fk_vec r = fk_load(y);
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        const fk_vec sum = fk_fma_vec(fk_load(m + c * ld), fk_splat(s[c]), r);
        r = triangular ? from(diagonal + c, sum, r) : sum;
    }
    fk_store(y, r);
}

/* y += a M z for columns j to j + n */
FK_INLINE void sweep(const int n, const int triangular, ptrdiff_t j, ptrdiff_t d, double a,
                     const double *M, const double *z, double *y)
{
    const double *m = M + j * d;
    double s[COLUMNS];
    for (int c = 0; c < n; c++) s[c] = a * z[j + c];
    ptrdiff_t i = 0;
    if (triangular)
        for (i = j & ~(ptrdiff_t)(FK_WIDTH - 1); i < j + n && i + FK_WIDTH <= d; i += FK_WIDTH)
            add(n, 1, j - i, d, s, m + i, y + i);
    for (; i + FK_WIDTH <= d; i += FK_WIDTH) add(n, 0, 0, d, s, m + i, y + i);
    for (; i < d; i++)
        for (int c = 0; c < n && (!triangular || j + c <= i); c++)
            y[i] = fk_fma(s[c], m[c * d + i], y[i]);
}

/* few dimensions, in scalars, row by row: the sums are the same */
FK_INLINE void small(const int d, const int triangular, double a, const double *restrict M,
                     const double *restrict z, double *restrict y)
{
#pragma GCC unroll 8
    for (int i = 0; i < d; i++) {
        double t = y[i];
#pragma GCC unroll 8
        for (int j = 0; j < d; j++)
            if (!triangular || j <= i) t = fk_fma(a * z[j], M[i + d * j], t);
        y[i] = t;
    }
}

FK_INLINE void product(const int triangular, ptrdiff_t d, double a, const double *M,
                       const double *z, double *y)
{
    ptrdiff_t j = 0;
    switch (d) {
    case 1: small(1, triangular, a, M, z, y); return;
    case 2: small(2, triangular, a, M, z, y); return;
    case 3: small(3, triangular, a, M, z, y); return;
    case 4: small(4, triangular, a, M, z, y); return;
    case 5: small(5, triangular, a, M, z, y); return;
    case 6: small(6, triangular, a, M, z, y); return;
    case 7: small(7, triangular, a, M, z, y); return;
    case 8: small(8, triangular, a, M, z, y); return;
    }
    for (; j + COLUMNS <= d; j += COLUMNS) sweep(COLUMNS, triangular, j, d, a, M, z, y);
    for (; j < d; j++) sweep(1, triangular, j, d, a, M, z, y);
}

/* L lower triangular */
void FK_LEVEL(fk_add_Lz)(ptrdiff_t d, double a, const double *L, const double *z, double *y)
{
    product(1, d, a, L, z, y);
}

/* R square */
void FK_LEVEL(fk_add_Rz)(ptrdiff_t d, double a, const double *R, const double *z, double *y)
{
    product(0, d, a, R, z, y);
}
