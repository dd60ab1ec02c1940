/* An orthonormal basis of the columns of a matrix by Householder reflections, and the product of two
 * matrices, compiled once for each instruction set. */
#include "decomposition.h"
#include "reflectors.h"

/* A <- Q of A = Q R (m, n), column by column; reflection k stays in column k until Q replaces it */
void FK_LEVEL(fk_orthonormal)(ptrdiff_t m, ptrdiff_t n, double *A, double *inverse)
{
    const ptrdiff_t ld = fk_padded(m);
    double alpha;
    for (ptrdiff_t k = 0; k < n; k++) {
        const ptrdiff_t begin = k & ~(ptrdiff_t)7;
        double *v = A + k * ld;
        inverse[k] = reflector(begin, k, ld, v, v, &alpha);
        for (ptrdiff_t i = 0; i < begin; i++) v[i] = 0;
        for (ptrdiff_t j = k + 1; j < n && inverse[k] > 0; j++) {
            double *a = A + j * ld + begin;
            add_to(ld - begin, -inverse[k] * dot(ld - begin, v + begin, a), v + begin, a);
        }
    }
    for (ptrdiff_t k = n - 1; k >= 0; k--) {
        const ptrdiff_t begin = k & ~(ptrdiff_t)7;
        double *v = A + k * ld;
        for (ptrdiff_t j = k + 1; j < n && inverse[k] > 0; j++) {
            double *a = A + j * ld + begin;
            add_to(ld - begin, -inverse[k] * dot(ld - begin, v + begin, a), v + begin, a);
        }
        const double first = -inverse[k] * v[k];    /* of H_k e_k = e_k - v v_k / h */
        for (ptrdiff_t i = 0; i < ld; i++) v[i] *= first;
        v[k] += 1;
    }
}

#define VECTORS (FK_WIDTH == 8 ? 4 : 2)
#define COLUMNS (VECTORS * FK_WIDTH)

/* 4 rows of A (the last one repeated if there are fewer) times a panel of B, (k, COLUMNS) */
FK_INLINE void multiply(ptrdiff_t k, const double *const a[4], ptrdiff_t step, const double *panel,
                        fk_vec c[4][4])
{
    for (int r = 0; r < 4; r++)
        for (int p = 0; p < VECTORS; p++) c[r][p] = fk_splat(0);
    for (ptrdiff_t l = 0; l < k; l++, panel += COLUMNS)
#pragma GCC unroll 4
        for (int p = 0; p < VECTORS; p++) {
            const fk_vec b = fk_load(panel + p * FK_WIDTH);
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++) c[r][p] = fk_fma_vec(b, fk_splat(a[r][l * step]), c[r][p]);
        }
}

void FK_LEVEL(fk_product)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const double *A, ptrdiff_t a_row,
                          ptrdiff_t a_column, const double *B, ptrdiff_t b_row, ptrdiff_t b_column,
                          double *C, double *panel)
{
    for (ptrdiff_t j = 0; j < n; j += COLUMNS) {
        const ptrdiff_t columns = n - j < COLUMNS ? n - j : COLUMNS;
        memset(panel, 0, (size_t)(k * COLUMNS) * sizeof(double));
        for (ptrdiff_t l = 0; l < k; l++)
            for (ptrdiff_t i = 0; i < columns; i++)
                panel[l * COLUMNS + i] = B[l * b_row + (j + i) * b_column];
        for (ptrdiff_t i = 0; i < m; i += 4) {
            const ptrdiff_t rows = m - i < 4 ? m - i : 4;
            const double *a[4];
            fk_vec c[4][4];
            double edge[COLUMNS];
            for (int r = 0; r < 4; r++) a[r] = A + (i + (r < rows ? r : rows - 1)) * a_row;
            multiply(k, a, a_column, panel, c);
            for (ptrdiff_t r = 0; r < rows; r++) {
                double *out = columns == COLUMNS ? C + (i + r) * n + j : edge;
                for (int p = 0; p < VECTORS; p++) fk_store(out + p * FK_WIDTH, c[r][p]);
                if (columns < COLUMNS)
                    memcpy(C + (i + r) * n + j, edge, (size_t)columns * sizeof(double));
            }
        }
    }
}
