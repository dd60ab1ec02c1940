/* Cholesky factors, compiled once for each instruction set.
 *
 * Panels of 4 columns, left-looking: a group of rows of the panel stays in registers while the
 * products with all previous columns are subtracted from it, and is then divided by the panel's
 * block on the diagonal. That block is factored as L D L', so that a column waits for a division
 * but not for a root. Each element has the same operations in the same order for any grouping. */
#include "factor.h"
#include "linalg.h"
#include "vector.h"

#define BLOCK 64                              /* columns of a block, whose factor is in S */
#define LD (BLOCK + 8)                        /* off the multiples of 64, which share cache lines */
#define TILE 32                               /* rows of a tile below a block */
#define HEIGHT (FK_WIDTH == 8 ? 4 : 2)        /* vectors of a group: 4 columns fill the registers */
#define ROWS (HEIGHT * FK_WIDTH)

/* c - a b, rounded once */
FK_INLINE double less(double c, double a, double b) { return fk_fma(-a, b, c); }
FK_INLINE fk_vec less_vec(fk_vec c, fk_vec a, double b) { return fk_fnma_vec(a, fk_splat(b), c); }

/* the 4 x 4 block of a panel: M unit lower triangular, M D M', and r = D^-1/2 */
typedef struct { double m10, m20, m30, m21, m31, m32, D[4], r[4]; } pivots;

/* r = D^-1/2; return 1 if not positive and finite. The root need not wait for the inverse. */
FK_INLINE int roots(const int n, const double *D, const double *inverse, double *r)
{
    int bad = 0;
#pragma GCC unroll 8
    for (int c = 0; c < n; c++) r[c] = sqrt(D[c]) * inverse[c];
#pragma GCC unroll 8
    for (int c = 0; c < n; c++) bad |= !(r[c] > 0) | !(r[c] < HUGE_VAL);
    return bad;
}

/* D, M and r from the lower triangle of a (column, row), from row `top` on; return 1 if D is not
 * positive */
FK_INLINE int factor_block(const double a[4][8], ptrdiff_t top, pivots *p)
{
    const double *a0 = a[0] + top, *a1 = a[1] + top, *a2 = a[2] + top, *a3 = a[3] + top;
    const double d0 = a0[0], i0 = 1 / d0;
    p->m10 = a0[1] * i0, p->m20 = a0[2] * i0, p->m30 = a0[3] * i0;
    const double d1 = less(a1[1], a0[1], p->m10), i1 = 1 / d1;
    const double u21 = less(a1[2], a0[2], p->m10), u31 = less(a1[3], a0[3], p->m10);
    p->m21 = u21 * i1, p->m31 = u31 * i1;
    const double d2 = less(less(a2[2], a0[2], p->m20), u21, p->m21), i2 = 1 / d2;
    const double u32 = less(less(a2[3], a0[3], p->m20), u31, p->m21);
    p->m32 = u32 * i2;
    const double d3 = less(less(less(a3[3], a0[3], p->m30), u31, p->m31), u32, p->m32);
    const double i3 = 1 / d3;
    const double inverse[4] = {i0, i1, i2, i3};
    p->D[0] = d0, p->D[1] = d1, p->D[2] = d2, p->D[3] = d3;
    return roots(4, p->D, inverse, p->r);
}

/* t -= P q' over k columns; for each, P has R vectors and q the 4 elements of a row */
FK_INLINE void take_products(const int R, ptrdiff_t k, const double *P, ptrdiff_t ldp,
                             const double *q, ptrdiff_t ldq, fk_vec t[4][4])
{
    for (; k > 0; k--, P += ldp, q += ldq)
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            const fk_vec x = fk_load(P + FK_WIDTH * r);
            t[0][r] = less_vec(t[0][r], x, q[0]);
            t[1][r] = less_vec(t[1][r], x, q[1]);
            t[2][r] = less_vec(t[2][r], x, q[2]);
            t[3][r] = less_vec(t[3][r], x, q[3]);
        }
}

/* Take rows 0 to `last` of a panel, R vectors of A (ld): subtract the products, divide, write them
 * to A and to P (ldp), and subtract from the residuals v. If the panel's own block is among them,
 * at row `top`, it is factored first. */
FK_INLINE int group(const int R, ptrdiff_t top, ptrdiff_t last, ptrdiff_t k, double *A,
                    ptrdiff_t ld, double *P, ptrdiff_t ldp, const double *q, pivots *p, double *v,
                    double *w)
{
    const ptrdiff_t whole = last / FK_WIDTH, left = last - whole * FK_WIDTH;
    fk_vec t[4][4];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            const double *a = A + c * ld + r * FK_WIDTH;
            t[c][r] = r < whole ? fk_load(a) : fk_load_n(a, left);
        }
    take_products(R, k, P - k * ldp, ldp, q - k * LD, LD, t);
    if (top >= 0) {
        double a[4][8] = {{0}};
        for (int c = 0; c < 4; c++)
            for (int r = 0; r < (FK_WIDTH == 2 && R > 1 ? 2 : 1); r++)
                fk_store(a[c] + r * FK_WIDTH, t[c][r]);
        if (factor_block((const double(*)[8])a, top, p)) return 1;
        const double y0 = w[0], y1 = less(w[1], y0, p->m10);
        const double y2 = less(less(w[2], y0, p->m20), y1, p->m21);
        const double y3 = less(less(less(w[3], y0, p->m30), y1, p->m31), y2, p->m32);
        w[0] = y0 * p->r[0], w[1] = y1 * p->r[1], w[2] = y2 * p->r[2], w[3] = y3 * p->r[3];
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        const fk_vec x0 = t[0][r], x1 = less_vec(t[1][r], x0, p->m10);
        const fk_vec x2 = less_vec(less_vec(t[2][r], x0, p->m20), x1, p->m21);
        const fk_vec x3 = less_vec(less_vec(less_vec(t[3][r], x0, p->m30), x1, p->m31), x2, p->m32);
        const fk_vec x[4] = {x0 * p->r[0], x1 * p->r[1], x2 * p->r[2], x3 * p->r[3]};
        fk_vec residual = fk_load(v + r * FK_WIDTH);
        const ptrdiff_t begin = r * FK_WIDTH, end = r < whole ? FK_WIDTH : left;
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            fk_store(P + c * ldp + begin, x[c]);
            residual = less_vec(residual, x[c], w[c]);
            if (top + c > begin)
                fk_store_between(A + c * ld + begin, x[c], top + c - begin, end);
            else if (r < whole)
                fk_store(A + c * ld + begin, x[c]);
            else
                fk_store_between(A + c * ld + begin, x[c], 0, left);
        }
        fk_store(v + begin, residual);
    }
    return 0;
}

/* a group of as many rows as there are, up to ROWS */
static int any_group(ptrdiff_t top, ptrdiff_t rows, ptrdiff_t k, double *A, ptrdiff_t ld, double *P,
                     ptrdiff_t ldp, const double *q, pivots *p, double *v, double *w)
{
    switch ((rows + FK_WIDTH - 1) / FK_WIDTH) {
    case 1: return group(1, top, rows, k, A, ld, P, ldp, q, p, v, w);
#if FK_WIDTH == 8
    case 2: return group(2, top, rows, k, A, ld, P, ldp, q, p, v, w);
    case 3: return group(3, top, rows, k, A, ld, P, ldp, q, p, v, w);
#endif
    default: return group(HEIGHT, top, rows < ROWS ? rows : ROWS, k, A, ld, P, ldp, q, p, v, w);
    }
}

/* the last columns, fewer than 4, one by one; S has those before */
static int factor_rest(ptrdiff_t d, ptrdiff_t j, double *A, ptrdiff_t ld, double *S, double *v,
                       double *w, fk_log_product *det)
{
    for (; j < d; j++) {
        double inverse = 0;
        for (ptrdiff_t i = j; i < d; i++) {
            double t = A[i + j * ld];
            for (ptrdiff_t k = 0; k < j; k++) t = less(t, S[i + k * LD], S[j + k * LD]);
            if (i == j) {
                const double one = 1 / t;
                if (roots(1, &t, &one, &inverse)) return 1;
                fk_multiply(det, t);
            }
            A[i + j * ld] = S[i + j * LD] = t * inverse;
        }
        w[j] = v[j] * inverse;
        for (ptrdiff_t i = j + 1; i < d; i++) v[i] = less(v[i], S[i + j * LD], w[j]);
    }
    return 0;
}

/* a block on the diagonal, d <= BLOCK; S <- its factor, (LD, d); v its residuals, w <- L^-1 v;
 * det is multiplied by the pivots */
static int factor_square(ptrdiff_t d, double *A, ptrdiff_t ld, double *S, pivots *p, double *v,
                         double *w, fk_log_product *det)
{
    ptrdiff_t j = 0;
    for (; j + 4 <= d; j += 4, p++) {
        /* groups begin at multiples of the vector's width: what one panel has stored as a vector,
         * the next one loads as a vector, and need not wait until it is in the cache */
        const ptrdiff_t begin = j & ~(ptrdiff_t)(FK_WIDTH - 1);
        memcpy(w + j, v + j, 4 * sizeof(double));
        for (ptrdiff_t i = begin; i < d; i += ROWS)
            if (any_group(i == begin ? j - i : -8, d - i, j, A + i + j * ld, ld, S + i + j * LD, LD,
                          S + j + j * LD, p, v + i, w + j))
                return 1;
        for (int c = 0; c < 4; c++) fk_multiply(det, p->D[c]);
    }
    return factor_rest(d, j, A, ld, S, v, w, det);
}

/* P (TILE, BLOCK) <- rows of A (ld) */
static void pack(const double *A, ptrdiff_t ld, double *P)
{
    for (ptrdiff_t k = 0; k < BLOCK; k++)
        for (ptrdiff_t i = 0; i < TILE; i += FK_WIDTH)
            fk_store(P + k * TILE + i, fk_load(A + k * ld + i));
}

/* C (rows, columns) -= P Q' over a block's columns; on the diagonal, its lower triangle only */
static void take_tile(ptrdiff_t rows, ptrdiff_t columns, int diagonal, const double *P,
                      const double *Q, double *C, ptrdiff_t ld)
{
    double edge[4 * ROWS];
    for (ptrdiff_t j = 0; j < columns; j += 4)
        for (ptrdiff_t i = diagonal ? j & ~(ptrdiff_t)(ROWS - 1) : 0; i < rows; i += ROWS) {
            const int inside = i + ROWS <= rows && j + 4 <= columns && !(diagonal && i < j + 4);
            double *c = inside ? C + i + j * ld : edge;
            const ptrdiff_t ldc = inside ? ld : ROWS;
            const ptrdiff_t last = rows - i < ROWS ? rows - i : ROWS;
            if (!inside)
                for (ptrdiff_t a = 0; a < 4 && a < columns - j; a++)
                    for (ptrdiff_t b = diagonal && i < j + a ? j + a - i : 0; b < last; b++)
                        edge[b + a * ROWS] = C[i + b + (j + a) * ld];
            fk_vec t[4][4];
            for (int a = 0; a < 4; a++)
                for (int r = 0; r < HEIGHT; r++) t[a][r] = fk_load(c + a * ldc + r * FK_WIDTH);
            take_products(HEIGHT, BLOCK, P + i, TILE, Q + j, TILE, t);
            for (int a = 0; a < 4; a++)
                for (int r = 0; r < HEIGHT; r++) fk_store(c + a * ldc + r * FK_WIDTH, t[a][r]);
            if (!inside)
                for (ptrdiff_t a = 0; a < 4 && a < columns - j; a++)
                    for (ptrdiff_t b = diagonal && i < j + a ? j + a - i : 0; b < last; b++)
                        C[i + b + (j + a) * ld] = edge[b + a * ROWS];
        }
}

/* update the part below and right of a block of BLOCK columns, whose factor is S */
static void reduce(ptrdiff_t d, double *A, ptrdiff_t ld, const double *S, pivots *p, double *v,
                   double *w)
{
    double P[TILE * BLOCK], Q[TILE * BLOCK], residual[TILE];
    for (ptrdiff_t i = BLOCK; i < d; i += TILE) {
        const ptrdiff_t rows = d - i < TILE ? d - i : TILE;
        memset(residual, 0, sizeof residual);
        if (v) memcpy(residual, v + i, (size_t)rows * sizeof(double));
        for (ptrdiff_t j = 0; j < BLOCK; j += 4)
            for (ptrdiff_t h = 0; h < rows; h += ROWS)
                any_group(-8, rows - h, j, A + i + h + j * ld, ld, P + h + j * TILE, TILE,
                          S + j + j * LD, p + j / 4, residual + h, w + j);
        if (v) memcpy(v + i, residual, (size_t)rows * sizeof(double));
        for (ptrdiff_t j = BLOCK; j <= i; j += TILE) {
            if (j < i) pack(A + j, ld, Q);
            take_tile(rows, j < i ? TILE : rows, j == i, P, j < i ? Q : P, A + i + j * ld, ld);
        }
    }
}

/* 1 / e', where e' = e - u^2 / d is the pivot after d: the determinant d e' need not wait for
 * 1 / d, unless it might over- or underflow. */
FK_INLINE double inverse_after(double d, double e, double u, double pivot)
{
    const double det = fk_fma(d, e, -(u * u));
    if (det > 1e-290 && det < 1e290) return d / det;
    return 1 / pivot;
}

/* few dimensions, in scalars */
FK_INLINE int small(const int d, double *restrict A, double *restrict v, double *log_det)
{
    double u[8][8], m[8][8], y[8], pivot[8], inverse[8], r[8];
#pragma GCC unroll 8
    for (int j = 0; j < d; j++) {
#pragma GCC unroll 8
        for (int i = j; i < d; i++) {
            double t = A[i + d * j], e = t;
#pragma GCC unroll 8
            for (int k = 0; k < j; k++) e = t, t = less(t, u[i][k], m[j][k]);
            u[i][j] = t;
            if (i == j) {
                pivot[j] = t;
                inverse[j] = j & 1 ? inverse_after(pivot[j - 1], e, u[j][j - 1], t) : 1 / t;
            }
            m[i][j] = t * inverse[j];
        }
    }
    if (v) {
#pragma GCC unroll 8
        for (int j = 0; j < d; j++) {
            y[j] = v[j];
#pragma GCC unroll 8
            for (int k = 0; k < j; k++) y[j] = less(y[j], y[k], m[j][k]);
        }
    }
    if (roots(d, pivot, inverse, r)) return 1;
#pragma GCC unroll 8
    for (int j = 0; j < d; j++)
#pragma GCC unroll 8
        for (int i = j; i < d; i++) A[i + d * j] = u[i][j] * r[j];
    if (v)
#pragma GCC unroll 8
        for (int j = 0; j < d; j++) v[j] = y[j] * r[j];
    if (log_det) {
        fk_log_product det = {1, 0};
#pragma GCC unroll 8
        for (int j = 0; j < d; j++) fk_multiply(&det, pivot[j]);
        *log_det = 0.5 * fk_log(&det);
    }
    return 0;
}

static __attribute__((noinline)) int large(ptrdiff_t d, double *A, double *v, double *log_det)
{
    fk_log_product det = {1, 0};
    double S[LD * BLOCK] __attribute__((aligned(64))), residual[LD];
    pivots p[BLOCK / 4];
    double w[BLOCK];
    for (ptrdiff_t j = 0; j < d; j += BLOCK) {
        const ptrdiff_t n = d - j < BLOCK ? d - j : BLOCK;
        double *at = A + j * (d + 1);
        for (ptrdiff_t i = 0; i < LD; i += FK_WIDTH) fk_store(residual + i, fk_splat(0));
        if (v) memcpy(residual, v + j, (size_t)n * sizeof(double));
        if (factor_square(n, at, d, S, p, residual, w, &det)) return 1;
        if (v) memcpy(v + j, w, (size_t)n * sizeof(double));
        if (j + n < d) reduce(d - j, at, d, S, p, v ? v + j : NULL, w);
    }
    if (log_det) *log_det = 0.5 * fk_log(&det);
    return 0;
}

int FK_LEVEL(fk_cholesky)(ptrdiff_t d, double *A, double *v, double *log_det)
{
    switch (d) {
    case 1: return small(1, A, v, log_det);
    case 2: return small(2, A, v, log_det);
    case 3: return small(3, A, v, log_det);
    case 4: return small(4, A, v, log_det);
    case 5: return small(5, A, v, log_det);
    case 6: return small(6, A, v, log_det);
    case 7: return small(7, A, v, log_det);
    case 8: return small(8, A, v, log_det);
    default: return large(d, A, v, log_det);
    }
}
