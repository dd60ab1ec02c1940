/* The fused kernel-gradient pass of kernel_pass.h, compiled once for each instruction set. */
#include "kernel_pass.h"
#include "simd.h"

#include <math.h>
#include <string.h>

/* e^u f(u) at one u >= 0; see kernel_pass.h */
static double matern_table(const fk_kernel *k, double u)
{
    union { double u; uint64_t bits; } x = {u};
    const int64_t first = ((int64_t)(1023 + FK_FIRST_OCTAVE)) << 3;
    int64_t cell = (int64_t)(x.bits >> 49) - first; /* exponent and 3 bits: 8 cells an octave */
    if (cell < 0) { /* e^u is 1 + u + u^2 / 2 to the last bit here */
        const double fall = k->a != 0 && u > 0 ? k->a * pow(u, k->b) : 0;
        return k->origin * (1 - fall) * (1 + u + 0.5 * u * u);
    }
    if (cell >= FK_OCTAVES * FK_CELLS) return 0; /* u >= 1024: e^-u is 0 anyway */
    x.bits = (x.bits & ((UINT64_C(1) << 49) - 1)) << 3 | UINT64_C(0x3ff0000000000000);
    const double t = 2 * x.u - 3; /* the place in the cell, -1 to 1 */
    const double *c = k->table + cell * (k->degree + 1);
    double p = c[k->degree];
    for (int i = k->degree - 1; i >= 0; i--) p = p * t + c[i];
    return p;
}

/* r2 -> w for the lanes of each block, in place */
static inline void weights(const fk_kernel *k, ptrdiff_t blocks, double *w)
{
    const ptrdiff_t n = FK_LANES * blocks;
    const double l2 = k->length * k->length;
    if (k->kind == FK_LINEAR) {
        for (ptrdiff_t i = 0; i < n; i++) w[i] = 2;
    } else if (k->kind == FK_GAUSSIAN) {
        const double h = -0.5 / l2, c = 2 / l2;
        for (ptrdiff_t i = 0; i < n; i += FK_WIDTH)
            fk_store(w + i, fk_exp(fk_load(w + i) * h) * c);
    } else {
        const double c = 4 * k->order / l2, scale = sqrt(2 * k->order) / k->length;
        for (ptrdiff_t i = 0; i < n; i += FK_LANES) {
            double f[FK_LANES];
            for (int l = 0; l < FK_LANES; l++) w[i + l] = scale * sqrt(w[i + l]);
            for (int l = 0; l < FK_LANES; l++) f[l] = matern_table(k, w[i + l]);
            for (int l = 0; l < FK_LANES; l += FK_WIDTH)
                fk_store(w + i + l, fk_exp(-fk_load(w + i + l)) * fk_load(f + l) * c);
        }
    }
}

void FK_LEVEL(fk_kernel_weights)(const fk_kernel *k, double *w) { weights(k, 1, w); }

/* add the outer products of rows [i, i + 4) and [j, j + 4) of wd (blocks, dp, 8), a lane each */
static void add_4x4(ptrdiff_t blocks, ptrdiff_t dp, const double *a, const double *b, double *q)
{
    for (int h = 0; h < FK_LANES; h += FK_WIDTH) {
        const double *p = a + h, *r = b + h;
        double *o = q + h;
#define FK_Q(m) fk_vec q##m = fk_load(o + 8 * m)
        FK_Q(0); FK_Q(1); FK_Q(2); FK_Q(3); FK_Q(4); FK_Q(5); FK_Q(6); FK_Q(7);
        FK_Q(8); FK_Q(9); FK_Q(10); FK_Q(11); FK_Q(12); FK_Q(13); FK_Q(14); FK_Q(15);
#undef FK_Q
        for (ptrdiff_t n = 0; n < blocks; n++, p += 8 * dp, r += 8 * dp) {
            const fk_vec r0 = fk_load(r), r1 = fk_load(r + 8), r2 = fk_load(r + 16),
                         r3 = fk_load(r + 24);
            fk_vec x = fk_load(p);
            q0 += x * r0; q1 += x * r1; q2 += x * r2; q3 += x * r3;
            x = fk_load(p + 8);
            q4 += x * r0; q5 += x * r1; q6 += x * r2; q7 += x * r3;
            x = fk_load(p + 16);
            q8 += x * r0; q9 += x * r1; q10 += x * r2; q11 += x * r3;
            x = fk_load(p + 24);
            q12 += x * r0; q13 += x * r1; q14 += x * r2; q15 += x * r3;
        }
#define FK_Q(m) fk_store(o + 8 * m, q##m)
        FK_Q(0); FK_Q(1); FK_Q(2); FK_Q(3); FK_Q(4); FK_Q(5); FK_Q(6); FK_Q(7);
        FK_Q(8); FK_Q(9); FK_Q(10); FK_Q(11); FK_Q(12); FK_Q(13); FK_Q(14); FK_Q(15);
#undef FK_Q
    }
}

/* the same for 2 x 2, for planes */
static void add_2x2(ptrdiff_t blocks, const double *a, double *q)
{
    for (int h = 0; h < FK_LANES; h += FK_WIDTH) {
        const double *p = a + h;
        double *o = q + h;
        fk_vec q0 = fk_load(o), q1 = fk_load(o + 8), q3 = fk_load(o + 24);
        for (ptrdiff_t n = 0; n < blocks; n++, p += 16) {
            const fk_vec x = fk_load(p), y = fk_load(p + 8);
            q0 += x * x;
            q1 += y * x;
            q3 += y * y;
        }
        fk_store(o, q0);
        fk_store(o + 8, q1);
        fk_store(o + 24, q3);
    }
}

static ptrdiff_t padded(ptrdiff_t d) { return d <= 2 ? 2 : (d + 3) & ~(ptrdiff_t)3; }

/* blocks of points between two sweeps over Q: about 16 KB of wd */
static ptrdiff_t chunk_blocks(ptrdiff_t dp) { return 256 / dp > 16 ? 256 / dp : 16; }

static ptrdiff_t tiles(ptrdiff_t dp) { return dp == 2 ? 1 : (dp / 4) * (dp / 4 + 1) / 2; }

ptrdiff_t FK_LEVEL(fk_kernel_pass_work)(ptrdiff_t d)
{
    const ptrdiff_t dp = padded(d);
    return 8 * (chunk_blocks(dp) * (dp + 1) + dp + 16 * tiles(dp));
}

void FK_LEVEL(fk_kernel_pass)(const fk_kernel *k, ptrdiff_t n, ptrdiff_t d, const double *z,
                              const double *y, double *work, double *Q, double *s)
{
    const ptrdiff_t dp = padded(d), chunk = chunk_blocks(dp), blocks = (n + 7) / 8;
    const int edge = dp == 2 ? 2 : 4;
    double *wd = work, *w = wd + 8 * chunk * dp, *sums = w + 8 * chunk, *products = sums + 8 * dp;
    memset(sums, 0, sizeof(double) * (size_t)(8 * (dp + 16 * tiles(dp))));
    if (dp > d) memset(wd, 0, sizeof(double) * (size_t)(8 * chunk * dp));
    for (ptrdiff_t begin = 0; begin < blocks; begin += chunk) {
        const ptrdiff_t size = blocks - begin < chunk ? blocks - begin : chunk;
        /* three sweeps, so that the long chains of the exponentials overlap */
        for (ptrdiff_t b = 0; b < size; b++) {
            const double *zb = z + 8 * d * (begin + b);
            double *row = wd + 8 * dp * b;
            for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
                fk_vec square = fk_splat(0);
                for (ptrdiff_t j = 0; j < d; j++) {
                    const fk_vec D = fk_load(zb + 8 * j + l) - y[j];
                    fk_store(row + 8 * j + l, D);
                    square += D * D;
                }
                fk_store(w + 8 * b + l, square);
            }
        }
        weights(k, size, w);
        for (ptrdiff_t i = n - 8 * begin; i < 8 * size; i++) w[i] = 0; /* padding */
        for (ptrdiff_t b = 0; b < size; b++) {
            double *row = wd + 8 * dp * b;
            for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
                const fk_vec v = fk_load(w + 8 * b + l);
                for (ptrdiff_t j = 0; j < d; j++) {
                    const fk_vec M = fk_load(row + 8 * j + l) * v;
                    fk_store(row + 8 * j + l, M);
                    fk_store(sums + 8 * j + l, fk_load(sums + 8 * j + l) + M);
                }
            }
        }
        double *q = products;
        if (edge == 2)
            add_2x2(size, wd, q);
        else
            for (ptrdiff_t j = 0; j < dp; j += 4)
                for (ptrdiff_t i = j; i < dp; i += 4, q += 128)
                    add_4x4(size, dp, wd + 8 * i, wd + 8 * j, q);
    }
    for (ptrdiff_t j = 0; j < d; j++) s[j] = fk_sum_lanes(sums + 8 * j);
    if (edge == 2) {
        for (ptrdiff_t j = 0; j < d; j++)
            for (ptrdiff_t i = j; i < d; i++)
                Q[i + j * d] = fk_sum_lanes(products + 8 * (j == 1 ? 3 : i));
        return;
    }
    const double *q = products;
    for (ptrdiff_t j = 0; j < dp; j += 4)
        for (ptrdiff_t i = j; i < dp; i += 4, q += 128)
            for (ptrdiff_t a = 0; a < 4; a++)
                for (ptrdiff_t b = 0; b < 4; b++)
                    if (i + a < d && j + b < d && i + a >= j + b)
                        Q[i + a + (j + b) * d] = fk_sum_lanes(q + 8 * (4 * a + b));
}
