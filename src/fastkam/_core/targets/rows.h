/* Matrices in blocks of 8 rows, [row / 8][column][row % 8], the last block padded with zero rows:
 * a block times a vector fills 8 lanes in one pass down the columns, and no sum is reordered.
 *
 * These functions use only a fixed amount of stack: all may run in several threads. */
#ifndef FASTKAM_ROWS_H
#define FASTKAM_ROWS_H

#include "levels.h"
#include "linalg.h"

/* sum_i log sigma(z_i), z = X w, over the n rows of X; grad += X' sigma(-z), unless it is NULL */
FK_DISPATCH(double, fk_log_sigmoid, (ptrdiff_t n, ptrdiff_t d, const double *X, const double *w,
                                     double *grad))

/* Hv -= X' (sigma(z) sigma(-z) X v), z = X w */
FK_DISPATCH(void, fk_log_sigmoid_hvp, (ptrdiff_t n, ptrdiff_t d, const double *X, const double *w,
                                       const double *v, double *Hv))

/* |W (x - m)|^2 for W lower triangular, in blocks of its rows and, row by row, as `rows` (d, d);
 * grad -= a W' W (x - m), unless it is NULL */
FK_DISPATCH(double, fk_lower_square, (ptrdiff_t d, const double *blocks, const double *rows,
                                      const double *m, const double *x, double a, double *grad))

#if !defined(FK_SUFFIX) /* for callers, which choose the instruction set */

/* q(x) = (x - m)' P (x - m): P diagonal with entries h, or P = W' W where h is NULL */
typedef struct {
    ptrdiff_t d;
    const double *mean, *h, *blocks, *rows;
} fk_form;

static inline double fk_form_value(const fk_form *f, const double *restrict x)
{
    if (f->h) return fk_weighted_square(f->d, f->h, f->mean, x);
    if (f->d >= 5) return fk_lower_square(f->d, f->blocks, f->rows, f->mean, x, 0, NULL);
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
    if (f->d >= 5) return fk_lower_square(f->d, f->blocks, f->rows, f->mean, x, a, grad);
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

#endif
