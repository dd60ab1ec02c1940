/* Matrices in blocks of 8 rows, [row / 8][column][row % 8], the last block padded with zero rows:
 * a block times a vector fills 8 lanes in one pass down the columns, and no sum is reordered.
 *
 * Nothing here keeps scratch beyond a fixed amount of stack: all may run in several threads. */
#ifndef FASTKAM_ROWS_H
#define FASTKAM_ROWS_H

#include "vector.h"

#define FK_GROUP 8 /* blocks between two passes over the columns, 64 rows */

/* z = B w, for the blocks of a group (blocks, columns, 8); two blocks at a time, since one alone
 * would wait for its own additions */
FK_INLINE void fk_group_times(ptrdiff_t blocks, ptrdiff_t columns, const double *restrict B,
                              const double *restrict w, double *restrict z)
{
    const ptrdiff_t size = columns * FK_LANES;
    ptrdiff_t b = 0;
    for (; b + 2 <= blocks; b += 2) {
        const double *P = B + b * size, *Q = P + size;
        fk_lanes s = FK_ZERO, t = FK_ZERO;
        for (ptrdiff_t j = 0; j < columns; j++) {
            s = fk_add_scaled(s, P + j * FK_LANES, w[j]);
            t = fk_add_scaled(t, Q + j * FK_LANES, w[j]);
        }
        memcpy(z + b * FK_LANES, &s, sizeof s);
        memcpy(z + (b + 1) * FK_LANES, &t, sizeof t);
    }
    if (b < blocks) {
        fk_lanes s = FK_ZERO;
        for (ptrdiff_t j = 0; j < columns; j++)
            s = fk_add_scaled(s, B + b * size + j * FK_LANES, w[j]);
        memcpy(z + b * FK_LANES, &s, sizeof s);
    }
}

/* out += B' r, for the blocks of a group (blocks, columns, 8) and r (blocks, 8) */
FK_INLINE void fk_group_add_transposed(ptrdiff_t blocks, ptrdiff_t columns,
                                       const double *restrict B, const double *restrict r,
                                       double *restrict out)
{
    const ptrdiff_t size = columns * FK_LANES;
    for (ptrdiff_t j = 0; j < columns; j++) {
        fk_lanes s = FK_ZERO;
        for (ptrdiff_t b = 0; b < blocks; b++)
            s = fk_add_products(s, B + b * size + j * FK_LANES, r + b * FK_LANES);
        out[j] += fk_total(s);
    }
}

/* sum_i log sigma(z_i), z = X w, over the n rows of X; where grad is given,
 * grad += X' sigma(-z).
 *
 *     log sigma(z) = min(z, 0) - log(1 + e),   e = exp(-|z|),
 *     sigma(-z) = (z < 0 ? 1 : e) / (1 + e)
 *
 * A group's 64 factors 1 + e <= 2 are multiplied before the one logarithm. */
FK_INLINE double fk_log_sigmoid_sum(ptrdiff_t n, ptrdiff_t d, const double *restrict X,
                                    const double *restrict w, double *restrict grad)
{
    const ptrdiff_t blocks = (n + FK_LANES - 1) / FK_LANES;
    double total = 0;
    for (ptrdiff_t b0 = 0; b0 < blocks; b0 += FK_GROUP) {
        const ptrdiff_t nb = blocks - b0 < FK_GROUP ? blocks - b0 : FK_GROUP;
        const ptrdiff_t rows = nb * FK_LANES, left = n - b0 * FK_LANES;
        const double *B = X + b0 * d * FK_LANES;
        double z[FK_GROUP * FK_LANES], e[FK_GROUP * FK_LANES];
        fk_group_times(nb, d, B, w, z);
        #pragma omp simd
        for (ptrdiff_t i = 0; i < rows; i++) e[i] = fk_exp(-fabs(z[i]));
        for (ptrdiff_t i = left; i < rows; i++) e[i] = 0; /* the padding counts for nothing */
        double sum[FK_LANES] = {0}, product[FK_LANES] = {1, 1, 1, 1, 1, 1, 1, 1};
        for (ptrdiff_t b = 0; b < nb; b++)
            for (int i = 0; i < FK_LANES; i++) {
                const double y = z[b * FK_LANES + i];
                sum[i] += y < 0 ? y : 0;
                product[i] *= 1 + e[b * FK_LANES + i];
            }
        total += fk_sum_lanes(sum) - log(fk_multiply_lanes(product));
        if (grad) {
            #pragma omp simd
            for (ptrdiff_t i = 0; i < rows; i++) e[i] = (z[i] < 0 ? 1 : e[i]) / (1 + e[i]);
            fk_group_add_transposed(nb, d, B, e, grad);
        }
    }
    return total;
}

FK_CLONES
static double fk_log_sigmoid(ptrdiff_t n, ptrdiff_t d, const double *X, const double *w)
{
    return fk_log_sigmoid_sum(n, d, X, w, NULL);
}

FK_CLONES
static double fk_log_sigmoid_grad(ptrdiff_t n, ptrdiff_t d, const double *X, const double *w,
                                  double *grad)
{
    return fk_log_sigmoid_sum(n, d, X, w, grad);
}

/* Hv -= X' (sigma(z) sigma(-z) X v), z = X w */
FK_CLONES
static void fk_log_sigmoid_hvp(ptrdiff_t n, ptrdiff_t d, const double *X, const double *w,
                               const double *v, double *Hv)
{
    const ptrdiff_t blocks = (n + FK_LANES - 1) / FK_LANES;
    for (ptrdiff_t b0 = 0; b0 < blocks; b0 += FK_GROUP) {
        const ptrdiff_t nb = blocks - b0 < FK_GROUP ? blocks - b0 : FK_GROUP;
        const double *B = X + b0 * d * FK_LANES;
        double z[FK_GROUP * FK_LANES], u[FK_GROUP * FK_LANES];
        fk_group_times(nb, d, B, w, z);
        fk_group_times(nb, d, B, v, u);
        #pragma omp simd
        for (ptrdiff_t i = 0; i < nb * FK_LANES; i++) {
            const double e = fk_exp(-fabs(z[i]));
            u[i] *= -e / ((1 + e) * (1 + e));
        }
        fk_group_add_transposed(nb, d, B, u, Hv);
    }
}

/* W is lower triangular: its blocks' columns beyond the diagonal are zero and are not visited.
 * Returns |W (x - m)|^2; where grad is given, grad -= a W' W (x - m), from the rows of W (d, d). */
FK_INLINE double fk_lower_square(ptrdiff_t d, const double *restrict blocks,
                                 const double *restrict rows, const double *restrict m,
                                 const double *restrict x, double a, double *restrict grad)
{
    double total = 0;
    for (ptrdiff_t i0 = 0; i0 < d; i0 += FK_LANES) {
        const ptrdiff_t n = d - i0 < FK_LANES ? d - i0 : FK_LANES;
        const double *B = blocks + i0 * d;
        fk_lanes s = FK_ZERO, q = FK_ZERO;
        for (ptrdiff_t j = 0; j < i0 + n; j++)
            s = fk_add_scaled(s, B + j * FK_LANES, x[j] - m[j]);
        double z[FK_LANES];
        memcpy(z, &s, sizeof s);
        total += fk_total(fk_add_products(q, z, z));
        if (grad)
            for (ptrdiff_t r = 0; r < n; r++) {
                const double *restrict w = rows + (i0 + r) * d;
                const double c = a * z[r];
                for (ptrdiff_t j = 0; j <= i0 + r; j++) grad[j] -= c * w[j];
            }
    }
    return total;
}

FK_CLONES
static double fk_lower_value(ptrdiff_t d, const double *blocks, const double *m, const double *x)
{
    return fk_lower_square(d, blocks, NULL, m, x, 0, NULL);
}

FK_CLONES
static double fk_lower_grad(ptrdiff_t d, const double *blocks, const double *rows,
                            const double *m, const double *x, double a, double *grad)
{
    return fk_lower_square(d, blocks, rows, m, x, a, grad);
}

/* q(x) = (x - m)' P (x - m): P diagonal with entries h, or P = W' W where h is NULL */
typedef struct {
    ptrdiff_t d;
    const double *mean, *h, *blocks, *rows;
} fk_form;

static inline double fk_form_value(const fk_form *f, const double *restrict x)
{
    if (f->h) return fk_weighted_square(f->d, f->h, f->mean, x);
    if (f->d >= 5) return fk_lower_value(f->d, f->blocks, f->mean, x);
    double total = 0;
    for (ptrdiff_t i = 0; i < f->d; i++) {
        double s = 0;
        for (ptrdiff_t j = 0; j <= i; j++) s += f->rows[i * f->d + j] * (x[j] - f->mean[j]);
        total += s * s;
    }
    return total;
}

/* grad -= a P (x - m); returns q(x), the same bits as fk_form_value */
static inline double fk_form_grad(const fk_form *f, const double *restrict x, double a,
                                  double *restrict grad)
{
    if (f->h) {
        for (ptrdiff_t j = 0; j < f->d; j++) grad[j] -= a * f->h[j] * (x[j] - f->mean[j]);
        return fk_weighted_square(f->d, f->h, f->mean, x);
    }
    if (f->d >= 5) return fk_lower_grad(f->d, f->blocks, f->rows, f->mean, x, a, grad);
    double total = 0;
    for (ptrdiff_t i = 0; i < f->d; i++) {
        double s = 0;
        for (ptrdiff_t j = 0; j <= i; j++) s += f->rows[i * f->d + j] * (x[j] - f->mean[j]);
        total += s * s;
        for (ptrdiff_t j = 0; j <= i; j++) grad[j] -= a * s * f->rows[i * f->d + j];
    }
    return total;
}

#endif
