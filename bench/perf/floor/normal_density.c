/* The floor of a normal log density from its covariance: A = U D^-1 U' = L L' with the residual v as
 * one more row, log pi = -(d log 2 pi + log det D + sum_j u_j^2 / d_j) / 2. L is stored too, since
 * draws are made with it. Sizes are known to the compiler; no pivot is checked. A: its lower
 * triangle, column-major. */
#include "vec.h"

/* in scalars, all loops unrolled */
INLINE double small(const int d, const double *restrict A, const double *restrict v,
                    double *restrict L)
{
    double u[9][8], l[9][8], quad = 0, det = 1;
#pragma GCC unroll 8
    for (int j = 0; j < d; j++) {
        double inverse = 0;
#pragma GCC unroll 9
        for (int i = j; i <= d; i++) {
            double t = i < d ? A[i + d * j] : v[j];
#pragma GCC unroll 8
            for (int k = 0; k < j; k++) t -= u[i][k] * l[j][k];
            u[i][j] = t;
            if (i == j) inverse = 1 / t, det *= t;
            l[i][j] = t * inverse;
        }
        quad += u[d][j] * l[d][j];
        const double root = sqrt(u[j][j]);
        L[j + d * j] = root;
#pragma GCC unroll 8
        for (int i = j + 1; i < d; i++) L[i + d * j] = l[i][j] * root;
    }
    return -0.5 * (log(det) + quad);
}

/* columns of 4, rows in vectors of 8, leading dimension d + 8: the rows d.. d + 7 hold v. d is a
 * multiple of 8; R vectors of rows at once */
INLINE double panels(const int d, const double *restrict A, const double *restrict v,
                     double *restrict L)
{
    const ptrdiff_t ld = d + 8;
    double quad = 0, logs = 0, det = 1;
    for (int j = 0; j < d; j += 4) {
        double l10 = 0, l20 = 0, l21 = 0, l30 = 0, l31 = 0, l32 = 0, r0 = 0, r1 = 0, r2 = 0, r3 = 0;
        double *P = L + j * ld;
        for (ptrdiff_t i = j & ~7; i <= d; i += 32) {
            vec t[4][4];
#define IN(c, k) t[c][k] = i + 8 * k < d ? load(A + i + 8 * k + (j + c) * d) : splat(v[j + c])
#define LOADS(k) if (i + 8 * k <= d) { IN(0, k); IN(1, k); IN(2, k); IN(3, k); }
            LOADS(0) LOADS(1) LOADS(2) LOADS(3)
#define STEP(k)                                                                                   \
    {                                                                                             \
        const vec x = load(p + 8 * k);                                                            \
        t[0][k] -= x * q[0]; t[1][k] -= x * q[1]; t[2][k] -= x * q[2]; t[3][k] -= x * q[3];       \
    }
            const double *p = L + i, *q = L + j;
            const ptrdiff_t vectors = (d - i) / 8 + 1;
            if (vectors >= 4)
                for (int k = 0; k < j; k++, p += ld, q += ld) { STEP(0) STEP(1) STEP(2) STEP(3) }
            else if (vectors == 3)
                for (int k = 0; k < j; k++, p += ld, q += ld) { STEP(0) STEP(1) STEP(2) }
            else if (vectors == 2)
                for (int k = 0; k < j; k++, p += ld, q += ld) { STEP(0) STEP(1) }
            else
                for (int k = 0; k < j; k++, p += ld, q += ld) { STEP(0) }
            if (i == (j & ~7)) {
                double a[4][8];
                memcpy(a[0], &t[0][0], 64); memcpy(a[1], &t[1][0], 64);
                memcpy(a[2], &t[2][0], 64); memcpy(a[3], &t[3][0], 64);
                const int o = j & 7;
                const double d0 = a[0][o], i0 = 1 / d0;
                const double m10 = a[0][o + 1] * i0, m20 = a[0][o + 2] * i0, m30 = a[0][o + 3] * i0;
                const double d1 = a[1][o + 1] - m10 * a[0][o + 1], i1 = 1 / d1;
                const double u21 = a[1][o + 2] - m10 * a[0][o + 2], m21 = u21 * i1;
                const double u31 = a[1][o + 3] - m10 * a[0][o + 3], m31 = u31 * i1;
                const double d2 = a[2][o + 2] - m20 * a[0][o + 2] - m21 * u21, i2 = 1 / d2;
                const double u32 = a[2][o + 3] - m20 * a[0][o + 3] - m21 * u31, m32 = u32 * i2;
                const double d3 = a[3][o + 3] - m30 * a[0][o + 3] - m31 * u31 - m32 * u32;
                const double i3 = 1 / d3;
                det *= (d0 * d1) * (d2 * d3);
                if (j % 32 == 28) logs += log(det), det = 1;
                r0 = sqrt(i0); r1 = sqrt(i1); r2 = sqrt(i2); r3 = sqrt(i3);
                l10 = m10; l20 = m20; l30 = m30; l21 = m21; l31 = m31; l32 = m32;
            }
#define OUT(k)                                                                                    \
    if (i + 8 * k <= d) {                                                                         \
        const vec x0 = t[0][k], x1 = t[1][k] - x0 * l10, x2 = t[2][k] - x0 * l20 - x1 * l21;      \
        const vec x3 = t[3][k] - x0 * l30 - x1 * l31 - x2 * l32;                                  \
        store(P + i + 8 * k, x0 * r0);                                                            \
        store(P + i + 8 * k + ld, x1 * r1);                                                       \
        store(P + i + 8 * k + 2 * ld, x2 * r2);                                                   \
        store(P + i + 8 * k + 3 * ld, x3 * r3);                                                   \
    }
            OUT(0) OUT(1) OUT(2) OUT(3)
        }
        for (int c = 0; c < 4; c++) quad += P[d + c * ld] * P[d + c * ld];
    }
    return -0.5 * (logs + log(det) + quad);
}

#define SIZE(D, how)                                                                              \
    static double __attribute__((noinline)) density_##D(const double *A, const double *v,         \
                                                        double *L)                                \
    {                                                                                             \
        return how(D, A, v, L) - D * 0.9189385332046727;                                             \
    }
SIZE(2, small) SIZE(4, small) SIZE(8, small) SIZE(16, panels) SIZE(32, panels) SIZE(64, panels)
SIZE(128, panels) SIZE(512, panels)

double floor_density(ptrdiff_t times, ptrdiff_t d, const double *A, const double *mean, double *x)
{
    enum { MOST = 512 };
    static _Thread_local double v[MOST], L[(MOST + 8) * MOST + 8] __attribute__((aligned(64)));
    double total = 0;
    volatile double *at = x; /* one by one: a vector load would wait for the change of x[0] */
    for (ptrdiff_t i = 0; i < times; i++) {
        at[0] += 1e-12;
        for (ptrdiff_t j = 0; j < d; j++) v[j] = at[j] - mean[j];
#define CALL(D) case D: total += density_##D(A, v, L); break;
        switch (d) {
            CALL(2) CALL(4) CALL(8) CALL(16) CALL(32) CALL(64) CALL(128) CALL(512)
        }
    }
    return total / times;
}
