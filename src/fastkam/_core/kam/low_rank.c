/* The loops of low_rank.h, compiled once for each instruction set. */
#include "low_rank.h"
#include "kernel_pass.h"
#include "vector.h"

#define SUMS 8                          /* independent sums */

/* r of some blocks, which have `vectors` vectors */
FK_INLINE void few_distances(const int vectors, ptrdiff_t d, const double *restrict z,
                             const double *restrict y, double *restrict r)
{
    fk_vec sum[SUMS];
#pragma GCC unroll 8
    for (int s = 0; s < vectors; s++) sum[s] = fk_splat(0);
    for (ptrdiff_t j = 0; j < d; j++, z += FK_LANES)
#pragma GCC unroll 8
        for (int s = 0; s < vectors; s++) {
            const double *at = z + FK_LANES * d * (s / FK_PARTS) + FK_WIDTH * (s % FK_PARTS);
            const fk_vec D = fk_load(at) - y[j];
            sum[s] = fk_fma_vec(D, D, sum[s]);
        }
#pragma GCC unroll 8
    for (int s = 0; s < vectors; s++) fk_store(r + FK_WIDTH * s, sum[s]);
}

void FK_LEVEL(fk_distances)(ptrdiff_t n, ptrdiff_t d, const double *z, const double *y, double *r)
{
    const ptrdiff_t blocks = (n + 7) / 8;
    ptrdiff_t b = 0;
    for (; b + SUMS / FK_PARTS <= blocks; b += SUMS / FK_PARTS)
        few_distances(SUMS, d, z + FK_LANES * d * b, y, r + FK_LANES * b);
    for (; b < blocks; b++) few_distances(FK_PARTS, d, z + FK_LANES * d * b, y, r + FK_LANES * b);
}

void FK_LEVEL(fk_measure)(ptrdiff_t first, ptrdiff_t n, ptrdiff_t d, ptrdiff_t ld, const double *z,
                          double *point, double *T)
{
    for (ptrdiff_t i = first; i < n; i++) {
        const double *at = z + FK_LANES * d * (i / FK_LANES) + i % FK_LANES;
        for (ptrdiff_t j = 0; j < d; j++) point[j] = at[FK_LANES * j];
        FK_LEVEL(fk_distances)(n, d, z, point, T + ld * i);
        for (ptrdiff_t j = 0; j < i; j++) T[ld * j + i] = T[ld * i + j];
    }
}

/* 2 M_i'M_j / w_j for a vector of i */
FK_INLINE fk_vec product(const double *w, const double *r, const double *t, double r_j)
{
    return fk_load(w) * (fk_load(r) + (r_j - fk_load(t)));
}

void FK_LEVEL(fk_gram)(const fk_kernel *k, ptrdiff_t n, ptrdiff_t ld, const double *T,
                       const double *r, double *mean, double *w, double *K)
{
    const ptrdiff_t padded = (n + 7) & ~(ptrdiff_t)7;
    double total = 0;
    memcpy(w, r, sizeof(double) * (size_t)padded);
    FK_LEVEL(fk_kernel_weights)(k, padded / 8, w);
    for (ptrdiff_t i = n; i < padded; i++) w[i] = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        fk_lanes sum = fk_zero();
        for (ptrdiff_t i = 0; i < padded; i += FK_LANES)
#pragma GCC unroll 4
            for (int p = 0; p < FK_PARTS; p++) {
                const ptrdiff_t at = i + FK_WIDTH * p;
                sum.v[p] += product(w + at, r + at, T + j * ld + at, r[j]);
            }
        total += mean[j] = 0.5 * w[j] * fk_total(sum) / (double)n;
    }
    total /= (double)n;
    for (ptrdiff_t j = 0; j < n; j++) { /* a column spills into the next, which is written later */
        const double half = 0.5 * w[j], rest = total - mean[j];
        for (ptrdiff_t i = j & ~(ptrdiff_t)(FK_WIDTH - 1); i < n; i += FK_WIDTH)
            fk_store(K + j * n + i, (product(w + i, r + i, T + j * ld + i, r[j]) * half
                                     - fk_load(mean + i)) + rest);
    }
}

void FK_LEVEL(fk_shift)(ptrdiff_t n, double a, const double *K, double *B)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        for (ptrdiff_t i = j; i < n; i += FK_WIDTH)
            fk_store(B + j * n + i, fk_load(K + j * n + i) * a);
        B[j * (n + 1)] += 1;
    }
}

/* y += sum_i u_i (z_i - x) in a few dimensions; d is the distance between blocks */
FK_INLINE void few_dimensions(const int rows, ptrdiff_t d, ptrdiff_t blocks,
                              const double *restrict z, const double *restrict x,
                              const double *restrict u, double *restrict y)
{
    double lanes[SUMS][FK_LANES];
    for (int l = 0; l < FK_LANES; l += FK_WIDTH) {
        fk_vec sum[SUMS];
#pragma GCC unroll 8
        for (int s = 0; s < rows; s++) sum[s] = fk_splat(0);
        for (ptrdiff_t b = 0; b < blocks; b++) {
            const fk_vec v = fk_load(u + FK_LANES * b + l);
            const double *at = z + FK_LANES * d * b + l;
#pragma GCC unroll 8
            for (int s = 0; s < rows; s++)
                sum[s] = fk_fma_vec(fk_load(at + FK_LANES * s) - x[s], v, sum[s]);
        }
#pragma GCC unroll 8
        for (int s = 0; s < rows; s++) fk_store(lanes[s] + l, sum[s]);
    }
    for (int s = 0; s < rows; s++) y[s] += fk_sum_lanes(lanes[s]);
}

/* x <- H x */
static void center(ptrdiff_t n, double *x)
{
    double mean = 0;
    for (ptrdiff_t i = 0; i < n; i++) mean += x[i];
    mean /= (double)n;
    for (ptrdiff_t i = 0; i < n; i++) x[i] -= mean;
}

void FK_LEVEL(fk_spread)(ptrdiff_t n, ptrdiff_t d, const double *z, const double *x, double a,
                         const double *w, const double *f, double *u, double *y)
{
    const ptrdiff_t blocks = (n + 7) / 8;
    ptrdiff_t j = 0;
    memcpy(u, f, sizeof(double) * (size_t)n);
    center(n, u);
    for (ptrdiff_t i = 0; i < n; i++) u[i] *= a * w[i];
    for (ptrdiff_t i = n; i < FK_LANES * blocks; i++) u[i] = 0;
    for (; j + SUMS <= d; j += SUMS)
        few_dimensions(SUMS, d, blocks, z + FK_LANES * j, x + j, u, y + j);
    for (; j < d; j++) few_dimensions(1, d, blocks, z + FK_LANES * j, x + j, u, y + j);
}

void FK_LEVEL(fk_project)(ptrdiff_t n, const double *w, const double *r, const double *r_there,
                          double v2, double *b)
{
    for (ptrdiff_t i = 0; i < n; i++) b[i] = 0.5 * w[i] * (r[i] - r_there[i] + v2);
    center(n, b);
}
