/* What is done with points and factors in line: L is lower triangular, column-major, d x d, leading
 * dimension d; what stands above its diagonal is not read. The order of every sum is fixed: the
 * bits do not depend on the instruction set. Factors are made and used in factor.h. */
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

/* v'w, in eight sums that do not wait for each other: an order that vectorises at every level */
static inline double fk_dot(ptrdiff_t d, const double *v, const double *w)
{
    double s[8] = {0};
    ptrdiff_t i = 0;
    for (; i + 8 <= d; i += 8)
        for (int k = 0; k < 8; k++) s[k] += v[i + k] * w[i + k];
    for (int k = 0; i < d; i++, k++) s[k] += v[i] * w[i];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* |v|^2 */
static inline double fk_square(ptrdiff_t d, const double *v) { return fk_dot(d, v, v); }

/* whether no element is infinite or NaN: v - v is 0 or NaN */
static inline int fk_all_finite(ptrdiff_t d, const double *v)
{
    int found = 0;
    for (ptrdiff_t i = 0; i < d; i++) found |= !(v[i] - v[i] == 0);
    return !found;
}

/* the mantissa of |x| in 1..2, and its exponent added; of a number that is 0, subnormal,
 * infinite or NaN, 1, and its logarithm added */
static inline double fk_mantissa(double x, int64_t *exponent, double *rest)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t e = (int64_t)(bits >> 52 & 0x7ff);
    if (e == 0 || e == 0x7ff) {
        *rest += log(fabs(x));
        return 1;
    }
    *exponent += e - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* sum_j log |L_jj|: one logarithm for 512 pivots, the product of whose mantissas is finite */
static inline double fk_log_det_L(ptrdiff_t d, const double *L)
{
    double s = 0;
    int64_t e = 0;
    for (ptrdiff_t j = 0; j < d;) {
        const ptrdiff_t stop = d - j < 512 ? d : j + 512;
        double p = 1, q = 1;
        for (; j + 2 <= stop; j += 2) {
            p *= fk_mantissa(L[j * (d + 1)], &e, &s);
            q *= fk_mantissa(L[(j + 1) * (d + 1)], &e, &s);
        }
        if (j < stop) p *= fk_mantissa(L[j * (d + 1)], &e, &s), j++;
        s += log(p * q);
    }
    return s + (double)e * 0.6931471805599453;
}

#endif
