/* Singular values and right singular vectors of a square matrix, compiled once for each instruction
 * set: Householder's reduction to an upper bidiagonal matrix, and the implicit QR iteration.
 *
 * Golub, G. H. and Van Loan, C. F. (2013). Matrix Computations, 4th edition, sections 5.4.8 and
 * 8.6.3. Demmel, J. and Kahan, W. (1990). Accurate singular values of bidiagonal matrices. SIAM
 * Journal on Scientific and Statistical Computing 11, 873-912: the sweep without a shift. */
#include "tiles.h"

/* For columns j > k and rows from `begin` on: A_j -= y w_j, A_j -= v (v'A_j) / h, row_j = A_kj,
 * z += row_j A_j */
static void update_columns(ptrdiff_t k, ptrdiff_t d, ptrdiff_t begin, ptrdiff_t ld, double *A,
                           const double *y, const double *w, const double *v, double inverse,
                           double *row, double *z)
{
    const ptrdiff_t n = ld - begin;
    for (ptrdiff_t j = k + 1; j < d; j++) {
        double *a = A + j * ld;
        add_to(n, -w[j], y + begin, a + begin);
        const double along = inverse * dot(n, v + begin, a + begin);
        add_to(n, -along, v + begin, a + begin);
        row[j] = a[k];
        add_to(n, row[j], a + begin, z + begin);
    }
}

/* diagonal and off-diagonal (d,) of the bidiagonal matrix; W (d, ld) the vectors of the reflections
 * on the right */
static void reduce(ptrdiff_t d, double *A, double *W, double *diagonal, double *off,
                   double *inverse, double *work)
{
    const ptrdiff_t ld = fk_padded(d);
    double *y = work, *z = work + ld, *none = work + 2 * ld;
    const double *w = none;
    memset(work, 0, (size_t)(3 * ld) * sizeof(double));
    memset(W, 0, (size_t)(d * ld) * sizeof(double));
    for (ptrdiff_t k = 0; k < d; k++) {
        const ptrdiff_t begin = k & ~(ptrdiff_t)7;
        double *v = A + k * ld, *row = W + k * ld;
        add_to(ld - begin, -w[k], y + begin, v + begin);
        const double left = reflector(begin, k, ld, v, v, &diagonal[k]);
        off[k] = 0;
        if (k + 1 == d) return;
        memset(z + begin, 0, (size_t)(ld - begin) * sizeof(double));
        update_columns(k, d, begin, ld, A, y, w, v, left, row, z);
        const ptrdiff_t next = (k + 1) & ~(ptrdiff_t)7;
        inverse[k] = reflector(next, k + 1, ld, row, row, &off[k]);
        /* y = A w / h with w = row - alpha e_k+1: its update of A comes with the next reflection */
        add_to(ld - begin, -off[k], A + (k + 1) * ld + begin, z + begin);
        for (ptrdiff_t i = begin; i < ld; i++) y[i] = inverse[k] * z[i];
        w = row;
    }
}

/* a sweep over the block from lo to hi with a shift */
static void shifted_sweep(ptrdiff_t lo, ptrdiff_t hi, double shift, double *a, double *b,
                          double *rotations)
{
    double f = (a[lo] - shift) * (1 + shift / a[lo]), g = b[lo], c, s;
    for (ptrdiff_t i = lo; i < hi; i++, rotations += 2) {
        double r = rotation(f, g, &c, &s);
        if (i > lo) b[i - 1] = r;
        rotations[0] = c, rotations[1] = s;
        f = c * a[i] + s * b[i];
        b[i] = c * b[i] - s * a[i];
        g = s * a[i + 1];
        a[i + 1] *= c;
        a[i] = rotation(f, g, &c, &s);
        f = c * b[i] + s * a[i + 1];
        a[i + 1] = c * a[i + 1] - s * b[i];
        if (i + 1 < hi) {
            g = s * b[i + 1];
            b[i + 1] *= c;
        }
    }
    b[hi - 1] = f;
}

/* a sweep without a shift: if a diagonal element is 0, b[hi - 1] becomes 0 */
static void plain_sweep(ptrdiff_t lo, ptrdiff_t hi, double *a, double *b, double *rotations)
{
    double c = 1, c2 = 1, s2 = 0, s;
    for (ptrdiff_t i = lo; i < hi; i++, rotations += 2) {
        const double r = rotation(a[i] * c, b[i], &c, &s);
        if (i > lo) b[i - 1] = s2 * r;
        a[i] = rotation(c2 * r, a[i + 1] * s, &c2, &s2);
        rotations[0] = c, rotations[1] = s;
    }
    const double h = a[hi] * c;
    b[hi - 1] = h * s2;
    a[hi] = h * c2;
}

/* the smaller singular value of [[f, g], [0, h]] */
static double smaller(double f, double g, double h)
{
    f = fabs(f), h = fabs(h);
    const double larger = 0.5 * (sqrt((f + h) * (f + h) + g * g) + sqrt((f - h) * (f - h) + g * g));
    return larger > 0 ? f * (h / larger) : 0;
}

int FK_LEVEL(fk_singular)(ptrdiff_t d, double *A, double *values, double *vectors, double *work)
{
    const ptrdiff_t ld = fk_padded(d);
    double *off = work, *inverse = work + d, *W = work + 2 * d;
    turns t = {.d = d, .tiles = vectors, .rotations = W + d * ld};
    reduce(d, A, W, values, off, inverse, t.rotations);
    start_vectors(d, W, ld, inverse, vectors);
    blocks b;
    if (begin_blocks(d, values, off, &b)) return 1;
    int state;
    while ((state = next_block(&b)) > 0) {
        double least = HUGE_VAL;
        for (ptrdiff_t i = b.lo; i <= b.hi; i++)
            least = fabs(values[i]) < least ? fabs(values[i]) : least;
        const double shift = smaller(values[b.hi - 1], off[b.hi - 1], values[b.hi]);
        double *rotations = next_sweep(&t, b.lo, b.hi - b.lo);
        if (least <= b.negligible || !(shift > b.negligible))
            plain_sweep(b.lo, b.hi, values, off, rotations);
        else
            shifted_sweep(b.lo, b.hi, shift, values, off, rotations);
    }
    if (state < 0) return 1;
    turn(&t);
    return 0;
}
