/* Eigenvalues and eigenvectors of a symmetric matrix, compiled once for each instruction set:
 * Householder's reduction to a tridiagonal matrix, and the QR iteration with Wilkinson's shift.
 *
 * Golub, G. H. and Van Loan, C. F. (2013). Matrix Computations, 4th edition, sections 8.3.1 and
 * 8.3.5. */
#include "tiles.h"

/* a - b x - c y */
FK_INLINE fk_vec less_two(fk_vec a, fk_vec b, double x, fk_vec c, double y)
{
    return fk_fnma_vec(c, fk_splat(y), fk_fnma_vec(b, fk_splat(x), a));
}

/* A_j -= v q_j + q v_j, then p += A_j u_j, for columns from j on and rows from `begin` on */
static void update_columns(ptrdiff_t j, ptrdiff_t d, ptrdiff_t begin, ptrdiff_t ld, double *A,
                           const double *v, const double *q, const double *u, double *p)
{
    for (; j + 2 <= d; j += 2) {
        double *a = A + j * ld, *b = a + ld;
        for (ptrdiff_t i = begin; i < ld; i += FK_WIDTH) {
            const fk_vec v_i = fk_load(v + i), q_i = fk_load(q + i);
            const fk_vec a_i = less_two(fk_load(a + i), v_i, q[j], q_i, v[j]);
            const fk_vec b_i = less_two(fk_load(b + i), v_i, q[j + 1], q_i, v[j + 1]);
            fk_store(a + i, a_i);
            fk_store(b + i, b_i);
            const fk_vec p_i = fk_fma_vec(a_i, fk_splat(u[j]), fk_load(p + i));
            fk_store(p + i, fk_fma_vec(b_i, fk_splat(u[j + 1]), p_i));
        }
    }
    for (; j < d; j++) {
        double *a = A + j * ld;
        for (ptrdiff_t i = begin; i < ld; i += FK_WIDTH) {
            const fk_vec a_i =
                less_two(fk_load(a + i), fk_load(v + i), q[j], fk_load(q + i), v[j]);
            fk_store(a + i, a_i);
            fk_store(p + i, fk_fma_vec(a_i, fk_splat(u[j]), fk_load(p + i)));
        }
    }
}

/* diagonal and off-diagonal (d,) of H A H' with H = .. H_1 H_0; the vectors of the reflections
 * replace the columns of A */
static void reduce(ptrdiff_t d, double *A, double *diagonal, double *off, double *inverse,
                   double *work)
{
    const ptrdiff_t ld = fk_padded(d);
    double *q = work, *p = work + ld, *none = work + 2 * ld;
    const double *v = none;         /* of the previous reflection, whose update of A is pending */
    memset(work, 0, (size_t)(3 * ld) * sizeof(double));
    for (ptrdiff_t k = 0; k < d; k++) {
        const ptrdiff_t begin = k & ~(ptrdiff_t)7;
        double *x = A + k * ld;
        for (ptrdiff_t i = begin; i < ld; i += FK_WIDTH)
            fk_store(x + i, less_two(fk_load(x + i), fk_load(v + i), q[k], fk_load(q + i), v[k]));
        diagonal[k] = x[k];
        off[k] = 0;
        if (k + 1 == d) return;
        const ptrdiff_t next = (k + 1) & ~(ptrdiff_t)7;
        inverse[k] = reflector(next, k + 1, ld, x, x, &off[k]);
        for (ptrdiff_t i = begin; i < next; i++) x[i] = 0;
        memset(p + next, 0, (size_t)(ld - next) * sizeof(double));
        update_columns(k + 1, d, next, ld, A, v, q, x, p);
        /* p = A v / h,  q = p - v (v'p) / 2 h:  H A H = A - v q' - q v' */
        for (ptrdiff_t i = next; i < ld; i++) p[i] *= inverse[k];
        const double half = 0.5 * inverse[k] * dot(ld - next, x + next, p + next);
        for (ptrdiff_t i = next; i < ld; i++) q[i] = p[i] - half * x[i];
        v = x;
    }
}

/* a sweep over the block from lo to hi with the shift of its last two rows */
static void sweep(ptrdiff_t lo, ptrdiff_t hi, double *a, double *b, double *rotations)
{
    const double half = 0.5 * (a[hi - 1] - a[hi]), e = b[hi - 1];
    const double root = sqrt(half * half + e * e);
    double x = a[lo] - (a[hi] - e * e / (half + (half < 0 ? -root : root))), z = b[lo];
    for (ptrdiff_t i = lo; i < hi; i++, rotations += 2) {
        double c, s;
        const double r = rotation(x, z, &c, &s);
        if (i > lo) b[i - 1] = r;
        const double t1 = c * a[i] + s * b[i], t2 = c * b[i] + s * a[i + 1];
        const double u1 = c * b[i] - s * a[i], u2 = c * a[i + 1] - s * b[i];
        a[i] = c * t1 + s * t2;
        b[i] = c * t2 - s * t1;
        a[i + 1] = c * u2 - s * u1;
        rotations[0] = c, rotations[1] = s;
        if (i + 1 < hi) {
            x = b[i];
            z = s * b[i + 1];
            b[i + 1] *= c;
        }
    }
}

int FK_LEVEL(fk_eigen)(ptrdiff_t d, double *A, double *values, double *vectors, double *work)
{
    double *off = work, *inverse = work + d;
    turns t = {.d = d, .tiles = vectors, .rotations = work + 2 * d};
    reduce(d, A, values, off, inverse, t.rotations);
    start_vectors(d, A, fk_padded(d), inverse, vectors);
    blocks b;
    if (begin_blocks(d, values, off, &b)) return 1;
    int state;
    while ((state = next_block(&b)) > 0) {
        sweep(b.lo, b.hi, values, off, next_sweep(&t, b.lo, b.hi - b.lo));
    }
    if (state < 0) return 1;
    turn(&t);
    return 0;
}
