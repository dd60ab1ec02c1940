/* The floor of KAM's covariance: Q = sum_i M_i M_i', s = sum_i M_i, M_i = w_i (z_i - y), in one
 * fused pass for a dimension known to the compiler; n is a multiple of 8, nothing is padded. */
#include "vec.h"

enum { LINEAR, GAUSSIAN, MATERN32, MATERN };

/* e^u f(u) from a table of 8 cells an octave, degree 8, from 2^-24 on */
static inline double table_at(const double *table, double u)
{
    uint64_t bits;
    memcpy(&bits, &u, 8);
    const double *c = table + 9 * ((int64_t)(bits >> 49) - ((int64_t)(1023 - 24) << 3));
    bits = (bits & ((UINT64_C(1) << 49) - 1)) << 3 | UINT64_C(0x3ff0000000000000);
    memcpy(&u, &bits, 8);
    const double t = 2 * u - 3, t2 = t * t, t4 = t2 * t2;
    return ((c[0] + c[1] * t) + (c[2] + c[3] * t) * t2)
           + ((c[4] + c[5] * t) + (c[6] + c[7] * t) * t2) * t4 + c[8] * (t4 * t4);
}

INLINE vec weight(int kind, double a, double c, const double *table, vec r2)
{
    if (kind == LINEAR) return splat(2);
    if (kind == GAUSSIAN) return expv(r2 * a) * c;
    vec u, f = splat(1);
    for (int l = 0; l < 8; l++) u[l] = sqrt(r2[l]);
    u *= a;
    if (kind == MATERN)
        for (int l = 0; l < 8; l++) f[l] = table_at(table, u[l]);
    return expv(-u) * f * c;
}

#define CHUNK(d) ((d) <= 8 ? 32 : 512 / (d) > 8 ? 512 / (d) : 8)

#define ALL(X)                                                                                    \
    X(0, 0) X(1, 0) X(2, 0) X(3, 0) X(0, 1) X(1, 1) X(2, 1) X(3, 1)                               \
    X(0, 2) X(1, 2) X(2, 2) X(3, 2) X(0, 3) X(1, 3) X(2, 3) X(3, 3)
#define GET(i, j) vec t##i##j = q[4 * i + j];
#define PUT(i, j) q[4 * i + j] = t##i##j;
#define ADD(i, j) if (!diagonal || i >= j) t##i##j += a##i * b##j;

/* a and b: four rows of 8 points each, block after block */
INLINE void tile(ptrdiff_t blocks, const vec *a, const vec *b, int diagonal, vec *q)
{
    ALL(GET)
    for (ptrdiff_t n = 0; n < blocks; n++, a += 4, b += 4) {
        const vec b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
        const vec a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
        ALL(ADD)
    }
    ALL(PUT)
}

/* the sums of two vectors */
INLINE void pair(double *out, vec a, vec b)
{
    typedef double half __attribute__((vector_size(32)));
    typedef double two __attribute__((vector_size(16), aligned(8)));
    const half x = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    const half y = __builtin_shufflevector(b, b, 0, 1, 2, 3) + __builtin_shufflevector(b, b, 4, 5, 6, 7);
    const half z = __builtin_shufflevector(x, y, 0, 4, 2, 6) + __builtin_shufflevector(x, y, 1, 5, 3, 7);
    *(two *)out = __builtin_shufflevector(z, z, 0, 1) + __builtin_shufflevector(z, z, 2, 3);
}

INLINE void pass(const int d, int kind, double a, double c, const double *table, ptrdiff_t n,
                 const double *restrict z, const double *restrict y, double *restrict Q,
                 double *restrict s)
{
    enum { MOST = 128 };
    static _Thread_local vec M[16 * MOST + 1024], sums[MOST], w[64], q[16 * 32 * 33 / 2];
    const ptrdiff_t blocks = n / 8, tiles = d < 4 ? 1 : d / 4 * (d / 4 + 1) / 2;
    for (int j = 0; j < d; j++) sums[j] = splat(0);
    for (ptrdiff_t i = 0; i < 16 * tiles; i++) q[i] = splat(0);
    for (ptrdiff_t begin = 0; begin < blocks; begin += CHUNK(d)) {
        const ptrdiff_t size = blocks - begin < CHUNK(d) ? blocks - begin : CHUNK(d);
        const double *zb = z + 8 * d * begin;
        for (ptrdiff_t b = 0; b < size; b++) {
            vec r2 = splat(0), r3 = splat(0);
            for (int j = 0; j + 1 < d; j += 2) {
                const vec D = load(zb + 8 * (d * b + j)) - y[j];
                const vec E = load(zb + 8 * (d * b + j + 1)) - y[j + 1];
                r2 += D * D;
                r3 += E * E;
            }
            w[b] = r2 + r3;
        }
#pragma GCC unroll 4
        for (ptrdiff_t b = 0; b < size; b++) w[b] = weight(kind, a, c, table, w[b]);
        if (d == 2) {
            vec q0 = q[0], q1 = q[4], q3 = q[5], s0 = sums[0], s1 = sums[1];
            for (ptrdiff_t b = 0; b < size; b++) {
                const vec M0 = (load(zb + 16 * b) - y[0]) * w[b];
                const vec M1 = (load(zb + 16 * b + 8) - y[1]) * w[b];
                s0 += M0; s1 += M1; q0 += M0 * M0; q1 += M0 * M1; q3 += M1 * M1;
            }
            q[0] = q0; q[4] = q1; q[5] = q3; sums[0] = s0; sums[1] = s1;
            continue;
        }
        for (int j = 0; j < d; j += 4) {
            vec s0 = sums[j], s1 = sums[j + 1], s2 = sums[j + 2], s3 = sums[j + 3];
            for (ptrdiff_t b = 0; b < size; b++) {
                const double *p = zb + 8 * (d * b + j);
                vec *m = M + CHUNK(d) * j + 4 * b;
                s0 += m[0] = (load(p) - y[j]) * w[b];
                s1 += m[1] = (load(p + 8) - y[j + 1]) * w[b];
                s2 += m[2] = (load(p + 16) - y[j + 2]) * w[b];
                s3 += m[3] = (load(p + 24) - y[j + 3]) * w[b];
            }
            sums[j] = s0; sums[j + 1] = s1; sums[j + 2] = s2; sums[j + 3] = s3;
        }
        vec *t = q;
        for (int j = 0; j < d; j += 4) {
            tile(size, M + CHUNK(d) * j, M + CHUNK(d) * j, 1, t);
            t += 16;
            for (int i = j + 4; i < d; i += 4, t += 16)
                tile(size, M + CHUNK(d) * i, M + CHUNK(d) * j, 0, t);
        }
    }
    for (int j = 0; j < d; j++) s[j] = sum(sums[j]);
    const vec *t = q;
    for (int j = 0; j < d; j += 4)
        for (int i = j; i < d; i += 4, t += 16)
            for (int l = 0; l < 4 && j + l < d; l++) {
                double column[4];
                pair(column, t[l], t[4 + l]);
                pair(column + 2, t[8 + l], t[12 + l]);
                for (int k = i == j ? l : 0; k < 4 && i + k < d; k++)
                    Q[i + k + d * (j + l)] = column[k];
            }
}

#define EACH(kind) case kind: pass(d, kind, a, c, table, n, z, y, Q, s); break;
#define SIZE(D)                                                                                   \
    static void __attribute__((noinline)) pass_##D(int kind, double a, double c,                  \
        const double *table, ptrdiff_t n, const double *z, const double *y, double *Q, double *s) \
    {                                                                                             \
        enum { d = D };                                                                           \
        switch (kind) { EACH(LINEAR) EACH(GAUSSIAN) EACH(MATERN32) EACH(MATERN) }                 \
    }
SIZE(2) SIZE(4) SIZE(8) SIZE(16) SIZE(32) SIZE(64) SIZE(128)

void floor_pass(ptrdiff_t times, ptrdiff_t d, ptrdiff_t kind, double a, double c, const double *table,
                ptrdiff_t n, const double *z, double *y, double *Q, double *s)
{
    for (ptrdiff_t i = 0; i < times; i++) {
        y[0] += 1e-12;
#define CALL(D) case D: pass_##D(kind, a, c, table, n, z, y, Q, s); break;
        switch (d) { CALL(2) CALL(4) CALL(8) CALL(16) CALL(32) CALL(64) CALL(128) }
    }
}
