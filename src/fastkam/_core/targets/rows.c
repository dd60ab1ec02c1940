/* The loops of rows.h. */
#include "rows.h"
#include "vector.h"

#define GROUP 8 /* blocks between two passes over the columns, 64 rows */

/* z = B w, for the blocks of a group (blocks, columns, 8); two blocks at a time, since one alone
 * would wait for its own additions */
FK_INLINE void group_times(ptrdiff_t blocks, ptrdiff_t columns, const double *restrict B,
                           const double *restrict w, double *restrict z)
{
    const ptrdiff_t size = columns * FK_LANES;
    ptrdiff_t b = 0;
    for (; b + 2 <= blocks; b += 2) {
        const double *P = B + b * size, *Q = P + size;
        fk_lanes s = fk_zero(), t = fk_zero();
        for (ptrdiff_t j = 0; j < columns; j++) {
            s = fk_add_scaled(s, P + j * FK_LANES, w[j]);
            t = fk_add_scaled(t, Q + j * FK_LANES, w[j]);
        }
        fk_store_lanes(z + b * FK_LANES, s);
        fk_store_lanes(z + (b + 1) * FK_LANES, t);
    }
    if (b < blocks) {
        fk_lanes s = fk_zero();
        for (ptrdiff_t j = 0; j < columns; j++)
            s = fk_add_scaled(s, B + b * size + j * FK_LANES, w[j]);
        fk_store_lanes(z + b * FK_LANES, s);
    }
}

/* out += B' r, for the blocks of a group (blocks, columns, 8) and r (blocks, 8) */
FK_INLINE void group_add_transposed(ptrdiff_t blocks, ptrdiff_t columns, const double *restrict B,
                                    const double *restrict r, double *restrict out)
{
    const ptrdiff_t size = columns * FK_LANES;
    for (ptrdiff_t j = 0; j < columns; j++) {
        fk_lanes s = fk_zero();
        for (ptrdiff_t b = 0; b < blocks; b++)
            s = fk_add_products(s, B + b * size + j * FK_LANES, r + b * FK_LANES);
        out[j] += fk_total(s);
    }
}

/*     log sigma(z) = min(z, 0) - log(1 + e),   e = exp(-|z|),
 *     sigma(-z) = (z < 0 ? 1 : e) / (1 + e)
 *
 * A group's 64 factors 1 + e <= 2 are multiplied before the one logarithm. */
double FK_LEVEL(fk_log_sigmoid)(ptrdiff_t n, ptrdiff_t d, const double *restrict X,
                                const double *restrict w, double *restrict grad)
{
    const ptrdiff_t blocks = (n + FK_LANES - 1) / FK_LANES;
    double total = 0;
    for (ptrdiff_t b0 = 0; b0 < blocks; b0 += GROUP) {
        const ptrdiff_t nb = blocks - b0 < GROUP ? blocks - b0 : GROUP;
        const ptrdiff_t rows = nb * FK_LANES, left = n - b0 * FK_LANES;
        const double *B = X + b0 * d * FK_LANES;
        double z[GROUP * FK_LANES], e[GROUP * FK_LANES];
        group_times(nb, d, B, w, z);
        #pragma omp simd
        for (ptrdiff_t i = 0; i < rows; i++) e[i] = fk_exp(-fabs(z[i]));
        for (ptrdiff_t i = left; i < rows; i++) e[i] = 0; /* the padding adds nothing */
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
            group_add_transposed(nb, d, B, e, grad);
        }
    }
    return total;
}

void FK_LEVEL(fk_log_sigmoid_hvp)(ptrdiff_t n, ptrdiff_t d, const double *X, const double *w,
                                  const double *v, double *Hv)
{
    const ptrdiff_t blocks = (n + FK_LANES - 1) / FK_LANES;
    for (ptrdiff_t b0 = 0; b0 < blocks; b0 += GROUP) {
        const ptrdiff_t nb = blocks - b0 < GROUP ? blocks - b0 : GROUP;
        const double *B = X + b0 * d * FK_LANES;
        double z[GROUP * FK_LANES], u[GROUP * FK_LANES];
        group_times(nb, d, B, w, z);
        group_times(nb, d, B, v, u);
        #pragma omp simd
        for (ptrdiff_t i = 0; i < nb * FK_LANES; i++) {
            const double e = fk_exp(-fabs(z[i]));
            u[i] *= -e / ((1 + e) * (1 + e));
        }
        group_add_transposed(nb, d, B, u, Hv);
    }
}

/* the blocks' columns beyond the diagonal of W are zero, and are not visited */
double FK_LEVEL(fk_lower_square)(ptrdiff_t d, const double *restrict blocks,
                                 const double *restrict rows, const double *restrict m,
                                 const double *restrict x, double a, double *restrict grad)
{
    double total = 0;
    for (ptrdiff_t i0 = 0; i0 < d; i0 += FK_LANES) {
        const ptrdiff_t n = d - i0 < FK_LANES ? d - i0 : FK_LANES;
        const double *B = blocks + i0 * d;
        fk_lanes s = fk_zero(), q = fk_zero();
        for (ptrdiff_t j = 0; j < i0 + n; j++)
            s = fk_add_scaled(s, B + j * FK_LANES, x[j] - m[j]);
        double z[FK_LANES];
        fk_store_lanes(z, s);
        total += fk_total(fk_add_products(q, z, z));
        if (grad)
            for (ptrdiff_t r = 0; r < n; r++) {
                const double *restrict w = rows + (i0 + r) * d;
                const double c = a * z[r];
                for (ptrdiff_t j = 0; j <= i0 + r; j++) grad[j] = fk_fma(-c, w[j], grad[j]);
            }
    }
    return total;
}
