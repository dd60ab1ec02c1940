/* Inline functions of points and factors: L is lower triangular, column-major, d x d, leading
 * dimension d; elements above its diagonal are not read. The order of every sum is fixed: the bits
 * do not depend on the instruction set. factor.h has the other functions of factors. */
#ifndef FASTKAM_LINALG_H
#define FASTKAM_LINALG_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* y <- x; a point of few dimensions is copied without a call */
static inline void fk_copy(ptrdiff_t d, const double *restrict x, double *restrict y)
{
    if (d > 4) {
        memcpy(y, x, (size_t)d * sizeof(double));
        return;
    }
    if (d > 0) y[0] = x[0];
    if (d > 1) y[1] = x[1];
    if (d > 2) y[2] = x[2];
    if (d > 3) y[3] = x[3];
}

/* y += a x */
static inline void fk_add(ptrdiff_t d, double a, const double *restrict x, double *restrict y)
{
    for (ptrdiff_t i = 0; i < d; i++) y[i] += a * x[i];
}

/* v'w, in eight independent sums, an order that vectorizes at every level; the last elements, fewer
 * than 8, one by one: if they have just been stored one by one, a vector load would wait for the
 * stores */
static inline double fk_dot(ptrdiff_t d, const double *v, const double *w)
{
    double total = 0;
    if (d >= 8) {
        double s[8] = {0};
        for (; d >= 8; d -= 8, v += 8, w += 8)
            for (int k = 0; k < 8; k++) s[k] += v[k] * w[k];
        total = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
    switch (d) {
    case 7: total += v[6] * w[6]; /* fall through */
    case 6: total += v[5] * w[5]; /* fall through */
    case 5: total += v[4] * w[4]; /* fall through */
    case 4: total += v[3] * w[3]; /* fall through */
    case 3: total += v[2] * w[2]; /* fall through */
    case 2: total += v[1] * w[1]; /* fall through */
    case 1: total += v[0] * w[0];
    }
    return total;
}

/* |v|^2 */
static inline double fk_square(ptrdiff_t d, const double *v) { return fk_dot(d, v, v); }

/* sum_j h_j (x_j - m_j)^2, h and m (d,), in 4 lanes, the last coordinates one by one: if x has just
 * been stored one by one, a vector load would wait for the stores (some 15 ns) */
static inline double fk_weighted_square(ptrdiff_t d, const double *restrict h,
                                        const double *restrict m, const double *restrict x)
{
    double total = 0;
    if (d >= 4) {
        double s[4] = {0};
        for (; d >= 4; d -= 4, h += 4, m += 4, x += 4)
            for (int l = 0; l < 4; l++) s[l] += h[l] * ((x[l] - m[l]) * (x[l] - m[l]));
        total = (s[0] + s[1]) + (s[2] + s[3]);
    }
    switch (d) {
    case 3: total += h[2] * ((x[2] - m[2]) * (x[2] - m[2])); /* fall through */
    case 2: total += h[1] * ((x[1] - m[1]) * (x[1] - m[1])); /* fall through */
    case 1: total += h[0] * ((x[0] - m[0]) * (x[0] - m[0]));
    }
    return total;
}

/* whether no element is infinite or NaN: v - v is 0 or NaN */
static inline int fk_all_finite(ptrdiff_t d, const double *v)
{
    int found = 0;
    for (ptrdiff_t i = 0; i < d; i++) found |= !(v[i] - v[i] == 0);
    return !found;
}

/* the logarithm of a product: log |x_1 x_2 ...| = rest + log product, where the product is kept
 * from overflow. It is initialized as {1, 0}. */
typedef struct { double product, rest; } fk_log_product;

static inline void fk_multiply(fk_log_product *s, double x)
{
    const double product = s->product * fabs(x);
    if (product > 1e-290 && product < 1e290) {
        s->product = product;
        return;
    }
    s->rest += log(s->product);
    s->product = fabs(x);
}

static inline double fk_log(const fk_log_product *s) { return s->rest + log(s->product); }

/* sum_j log |L_jj| */
static inline double fk_log_det_L(ptrdiff_t d, const double *L)
{
    fk_log_product s = {1, 0};
    for (ptrdiff_t j = 0; j < d; j++) fk_multiply(&s, L[j * (d + 1)]);
    return fk_log(&s);
}

#endif
