/* The fused kernel-gradient pass of kernel_pass.h, compiled once for each instruction set. */
#include "kernel_pass.h"
#include "vector.h"

/* sum_i c_i t^i, degree 8 in pairs */
static inline double polynomial(int degree, const double *c, double t)
{
    if (degree == 8) {
        const double t2 = t * t, t4 = t2 * t2;
        const double low = fk_fma(fk_fma(c[3], t, c[2]), t2, fk_fma(c[1], t, c[0]));
        const double high = fk_fma(fk_fma(c[7], t, c[6]), t2, fk_fma(c[5], t, c[4]));
        return fk_fma(fk_fma(c[8], t4, high), t4, low);
    }
    double p = c[degree];
    for (int i = degree - 1; i >= 0; i--) p = fk_fma(p, t, c[i]);
    return p;
}

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
    /* at the place in the cell, -1 to 1 */
    return polynomial(k->degree, k->table + cell * (k->degree + 1), 2 * x.u - 3);
}

void FK_LEVEL(fk_kernel_weights)(const fk_kernel *k, ptrdiff_t blocks, double *w)
{
    const ptrdiff_t n = FK_LANES * blocks;
    const double l2 = k->length * k->length;
    if (k->kind == FK_LINEAR) {
        for (ptrdiff_t i = 0; i < n; i++) w[i] = 2;
        return;
    }
    if (k->kind == FK_GAUSSIAN) {
        const double h = -0.5 / l2, c = 2 / l2;
        for (ptrdiff_t i = 0; i < n; i += FK_LANES)
            for (int l = 0; l < FK_LANES; l++) w[i + l] = fk_exp(w[i + l] * h) * c;
        return;
    }
    const double c = 4 * k->order / l2, scale = sqrt(2 * k->order) / k->length;
    for (ptrdiff_t i = 0; i < n; i++) w[i] = scale * sqrt(w[i]);
    if (k->kind == FK_MATERN_HALF) {
        for (ptrdiff_t i = 0; i < n; i += FK_LANES) {
            double p[FK_LANES];
            for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
                fk_vec u = fk_load(w + i + l), sum = fk_splat(k->table[k->degree]);
                u = (fk_vec)((fk_ivec)u & ~(fk_ivec)(u > 708)); /* e^-u is 0 from there on */
                for (int m = k->degree - 1; m >= 0; m--)
                    sum = fk_fma_vec(sum, u, fk_splat(k->table[m]));
                fk_store(p + l, sum);
            }
            for (int l = 0; l < FK_LANES; l++) w[i + l] = fk_exp(-w[i + l]) * p[l] * c;
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; i += FK_LANES) {
        double f[FK_LANES];
        for (int l = 0; l < FK_LANES; l++) f[l] = matern_table(k, w[i + l]);
        for (int l = 0; l < FK_LANES; l++) w[i + l] = fk_exp(-w[i + l]) * f[l] * c;
    }
}

/* The rows of M are stored in groups of 4, (group, block, row, lane), so that a tile of Q reads
 * contiguous memory. A tile, q (column, row, lane), accumulates over the chunks of blocks.
 * Accumulators are named and as many as there are registers, so that gcc keeps them there. */
#define FK_COLUMN(c) fk_vec c##0 = fk_splat(0), c##1 = c##0, c##2 = c##0, c##3 = c##0
#define FK_GET(c, q) c##0 = fk_load(q), c##1 = fk_load((q) + 8), c##2 = fk_load((q) + 16),        \
                     c##3 = fk_load((q) + 24)
#define FK_PUT(c, q) fk_store(q, c##0), fk_store((q) + 8, c##1), fk_store((q) + 16, c##2),        \
                     fk_store((q) + 24, c##3)
#define FK_ADD_ONE(s, a, x) s = fk_fma_vec(a, x, s)
#define FK_ADD(c, x) FK_ADD_ONE(c##0, a0, x), FK_ADD_ONE(c##1, a1, x), FK_ADD_ONE(c##2, a2, x),   \
                     FK_ADD_ONE(c##3, a3, x)

/* the products of rows a with rows b, lane by lane */
static void add_tile(ptrdiff_t blocks, int first, const double *a, const double *b, double *q)
{
#if FK_WIDTH == 8
    FK_COLUMN(s); FK_COLUMN(t); FK_COLUMN(u); FK_COLUMN(v);
    if (!first) FK_GET(s, q), FK_GET(t, q + 32), FK_GET(u, q + 64), FK_GET(v, q + 96);
    for (ptrdiff_t n = 0; n < blocks; n++, a += 32, b += 32) {
        const fk_vec b0 = fk_load(b), b1 = fk_load(b + 8), b2 = fk_load(b + 16);
        const fk_vec b3 = fk_load(b + 24), a0 = fk_load(a), a1 = fk_load(a + 8);
        const fk_vec a2 = fk_load(a + 16), a3 = fk_load(a + 24);
        FK_ADD(s, b0); FK_ADD(t, b1); FK_ADD(u, b2); FK_ADD(v, b3);
    }
    FK_PUT(s, q), FK_PUT(t, q + 32), FK_PUT(u, q + 64), FK_PUT(v, q + 96);
#else
    for (int l = 0; l < FK_LANES; l += FK_WIDTH)
        for (int c = 0; c < 4; c += 2) {
            double *o = q + 32 * c + l;
            FK_COLUMN(s); FK_COLUMN(t);
            if (!first) FK_GET(s, o), FK_GET(t, o + 32);
            for (ptrdiff_t n = 0; n < blocks; n++) {
                const double *p = a + 32 * n + l, *r = b + 32 * n + l + 8 * c;
                const fk_vec b0 = fk_load(r), b1 = fk_load(r + 8), a0 = fk_load(p);
                const fk_vec a1 = fk_load(p + 8), a2 = fk_load(p + 16), a3 = fk_load(p + 24);
                FK_ADD(s, b0); FK_ADD(t, b1);
            }
            FK_PUT(s, o), FK_PUT(t, o + 32);
        }
#endif
}

/* the same for rows a with themselves: on and below the diagonal */
static void add_diagonal(ptrdiff_t blocks, int first, const double *a, double *q)
{
    for (int l = 0; l < FK_LANES; l += FK_WIDTH, a += FK_WIDTH, q += FK_WIDTH) {
        FK_COLUMN(s); FK_COLUMN(t);
        fk_vec u2 = fk_splat(0), u3 = u2, v3 = u2;
        if (!first) {
            FK_GET(s, q), FK_GET(t, q + 32);
            u2 = fk_load(q + 80), u3 = fk_load(q + 88), v3 = fk_load(q + 120);
        }
        for (ptrdiff_t n = 0; n < blocks; n++) {
            const double *p = a + 32 * n;
            const fk_vec a0 = fk_load(p), a1 = fk_load(p + 8), a2 = fk_load(p + 16);
            const fk_vec a3 = fk_load(p + 24);
            FK_ADD(s, a0);
            FK_ADD_ONE(t1, a1, a1), FK_ADD_ONE(t2, a2, a1), FK_ADD_ONE(t3, a3, a1);
            FK_ADD_ONE(u2, a2, a2), FK_ADD_ONE(u3, a3, a2), FK_ADD_ONE(v3, a3, a3);
        }
        FK_PUT(s, q), FK_PUT(t, q + 32);
        fk_store(q + 80, u2), fk_store(q + 88, u3), fk_store(q + 120, v3);
    }
}

/* M = w (z - y) of two dimensions, its sums (2, lane) and their products q (3, lane) at once */
static void add_plane(ptrdiff_t blocks, const double *z, const double *y, const double *w,
                      double *sums, double *q)
{
    for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
        fk_vec s0 = fk_load(sums + l), s1 = fk_load(sums + l + 8);
        fk_vec q0 = fk_load(q + l), q1 = fk_load(q + l + 8), q2 = fk_load(q + l + 16);
        for (ptrdiff_t n = 0; n < blocks; n++) {
            const fk_vec v = fk_load(w + 8 * n + l);
            const fk_vec a = (fk_load(z + 16 * n + l) - y[0]) * v;
            const fk_vec b = (fk_load(z + 16 * n + l + 8) - y[1]) * v;
            s0 += a, s1 += b;
            FK_ADD_ONE(q0, a, a), FK_ADD_ONE(q1, b, a), FK_ADD_ONE(q2, b, b);
        }
        fk_store(sums + l, s0), fk_store(sums + l + 8, s1);
        fk_store(q + l, q0), fk_store(q + l + 8, q1), fk_store(q + l + 16, q2);
    }
}

static ptrdiff_t padded(ptrdiff_t d) { return (d + 3) & ~(ptrdiff_t)3; }

/* blocks of points between two sweeps over Q: 16 KB of M, and more in many dimensions */
static ptrdiff_t chunk_blocks(ptrdiff_t dp) { return 256 / dp > 16 ? 256 / dp : 16; }

static ptrdiff_t tiles(ptrdiff_t dp) { return (dp / 4) * (dp / 4 + 1) / 2; }

ptrdiff_t FK_LEVEL(fk_kernel_pass_work)(ptrdiff_t d)
{
    const ptrdiff_t dp = padded(d);
    return 8 * (chunk_blocks(dp) * (dp + 1) + dp + 16 * tiles(dp));
}

/* w = |z - y|^2 for the points of some blocks */
FK_INLINE void squares(const ptrdiff_t d, ptrdiff_t blocks, const double *restrict z,
                       const double *restrict y, double *restrict w)
{
    for (ptrdiff_t b = 0; b < blocks; b++)
        for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
            const double *at = z + 8 * d * b + l;
            fk_vec square = fk_splat(0);
            for (ptrdiff_t j = 0; j < d; j++) {
                const fk_vec D = fk_load(at + 8 * j) - y[j];
                square = fk_fma_vec(D, D, square);
            }
            fk_store(w + 8 * b + l, square);
        }
}

/* `rows` rows of a group, M = w (z - y), and their sums; d is the distance between blocks of z */
FK_INLINE void scale(const int rows, ptrdiff_t d, ptrdiff_t blocks, const double *restrict z,
                     const double *restrict y, const double *restrict w, double *restrict M,
                     double *restrict sums)
{
    for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
        fk_vec s0 = fk_load(sums + l), s1 = s0, s2 = s0, s3 = s0;
        if (rows > 1) s1 = fk_load(sums + 8 + l);
        if (rows > 2) s2 = fk_load(sums + 16 + l);
        if (rows > 3) s3 = fk_load(sums + 24 + l);
        for (ptrdiff_t b = 0; b < blocks; b++) {
            const fk_vec v = fk_load(w + 8 * b + l);
            const double *at = z + 8 * d * b + l;
            double *out = M + 32 * b + l;
#define FK_ROW(r)                                                                                 \
    if (rows > r) {                                                                               \
        const fk_vec m = (fk_load(at + 8 * r) - y[r]) * v;                                        \
        fk_store(out + 8 * r, m);                                                                 \
        s##r += m;                                                                                \
    }
            FK_ROW(0) FK_ROW(1) FK_ROW(2) FK_ROW(3)
#undef FK_ROW
        }
        fk_store(sums + l, s0);
        if (rows > 1) fk_store(sums + 8 + l, s1);
        if (rows > 2) fk_store(sums + 16 + l, s2);
        if (rows > 3) fk_store(sums + 24 + l, s3);
    }
}

static void all_squares(ptrdiff_t d, ptrdiff_t blocks, const double *z, const double *y, double *w)
{
    switch (d) { /* a few dimensions are unrolled */
    case 1: squares(1, blocks, z, y, w); break;
    case 2: squares(2, blocks, z, y, w); break;
    case 3: squares(3, blocks, z, y, w); break;
    case 4: squares(4, blocks, z, y, w); break;
    case 8: squares(8, blocks, z, y, w); break;
    default: squares(d, blocks, z, y, w);
    }
}

static void scale_rows(ptrdiff_t rows, ptrdiff_t d, ptrdiff_t blocks, const double *z,
                       const double *y, const double *w, double *M, double *sums)
{
    switch (rows) {
    case 1: scale(1, d, blocks, z, y, w, M, sums); break;
    case 2: scale(2, d, blocks, z, y, w, M, sums); break;
    case 3: scale(3, d, blocks, z, y, w, M, sums); break;
    default: scale(4, d, blocks, z, y, w, M, sums);
    }
}

/* Q from its tiles, in the order in which they are computed */
static void gather(ptrdiff_t d, const double *q, double *restrict Q)
{
    for (ptrdiff_t j = 0; j < d; j += 4)
        for (ptrdiff_t i = j; i < d; i += 4, q += 128)
            for (ptrdiff_t c = 0; c < 4 && c < d - j; c++) {
                const double *p = q + 32 * c;
                double column[4];
                fk_sum_two(p, p + 8, column);
                fk_sum_two(p + 16, p + 24, column + 2);
                for (ptrdiff_t r = i == j ? c : 0; r < 4 && r < d - i; r++)
                    Q[i + r + (j + c) * d] = column[r];
            }
}

void FK_LEVEL(fk_kernel_pass)(const fk_kernel *k, ptrdiff_t n, ptrdiff_t d, const double *z,
                              const double *y, double *work, double *Q, double *s)
{
    const ptrdiff_t dp = padded(d), chunk = chunk_blocks(dp), blocks = (n + 7) / 8;
    double *M = work, *w = M + 8 * chunk * dp, *sums = w + 8 * chunk, *products = sums + 8 * dp;
    memset(sums, 0, sizeof(double) * (size_t)(8 * dp));
    if (d == 2) memset(products, 0, sizeof(double) * 8 * 3);
    if (dp > d && d != 2) /* the last group has rows of padding */
        memset(M + 8 * chunk * (dp - 4), 0, sizeof(double) * (size_t)(32 * chunk));
    for (ptrdiff_t begin = 0; begin < blocks; begin += chunk) {
        const ptrdiff_t size = blocks - begin < chunk ? blocks - begin : chunk;
        const double *zb = z + 8 * d * begin;
        const int first = begin == 0;
        /* sweep by sweep, so that the long chains of the exponentials overlap */
        if (k->kind != FK_LINEAR) all_squares(d, size, zb, y, w);
        FK_LEVEL(fk_kernel_weights)(k, size, w);
        for (ptrdiff_t i = n - 8 * begin; i < 8 * size; i++) w[i] = 0; /* padding */
        if (d == 2) {
            add_plane(size, zb, y, w, sums, products);
            continue;
        }
        for (ptrdiff_t j = 0; j < d; j += 4)
            scale_rows(d - j, d, size, zb + 8 * j, y + j, w, M + 8 * chunk * j, sums + 8 * j);
        double *q = products;
        for (ptrdiff_t j = 0; j < dp; j += 4, q += 128) {
            const double *b = M + 8 * chunk * j;
            add_diagonal(size, first, b, q);
            for (ptrdiff_t i = j + 4; i < dp; i += 4)
                add_tile(size, first, M + 8 * chunk * i, b, q += 128);
        }
    }
    for (ptrdiff_t j = 0; j < d; j++) s[j] = fk_sum_lanes(sums + 8 * j);
    if (d == 2) {
        Q[0] = fk_sum_lanes(products);
        Q[1] = fk_sum_lanes(products + 8);
        Q[3] = fk_sum_lanes(products + 16);
    } else
        gather(d, products, Q);
}
