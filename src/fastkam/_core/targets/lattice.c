/* The loops of lattice.h. */
#include "lattice.h"
#include "vector.h"

#define TOGETHER 32 /* coordinates per logarithm; S <= K <= 2^32 cannot overflow */

double FK_LEVEL(fk_lattice_logp)(const fk_lattice *f, ptrdiff_t d, const double *restrict x,
                                 double *restrict grad)
{
    const double shift = 0x1.8p52, last = (double)(f->K - 1), a1 = f->h / f->v;
    const double b = f->h * a1 / 2;
    double total = d * f->constant;
    for (ptrdiff_t j0 = 0; j0 < d; j0 += TOGETHER) {
        const ptrdiff_t n = d - j0 < TOGETHER ? d - j0 : TOGETHER;
        double i[TOGETHER], r[TOGETHER], S[TOGETHER], T[TOGETHER];
        double up[TOGETHER], down[TOGETHER], p[TOGETHER], q[TOGETHER];
        #pragma omp simd
        for (ptrdiff_t j = 0; j < n; j++) {
            double nearest = (x[j0 + j] - f->low) / f->h;
            nearest = nearest < 0 ? 0 : nearest; /* beyond the ends, the outermost center */
            nearest = nearest > last ? last : nearest;
            i[j] = (nearest + shift) - shift;
            r[j] = x[j0 + j] - (f->low + i[j] * f->h);
            const double log_up = a1 * r[j] - b, log_down = -a1 * r[j] - b;
            up[j] = fk_exp(log_up > 709 ? 709 : log_up); /* beyond the ends, where it is not used */
            down[j] = fk_exp(log_down > 709 ? 709 : log_down);
            p[j] = q[j] = S[j] = 1;
            T[j] = 0;
        }
        for (ptrdiff_t k = 1; k < f->K; k++) {
            const double fall = f->fall[k - 1], highest = last - k, lowest = k;
            #pragma omp simd
            for (ptrdiff_t j = 0; j < n; j++) {
                p[j] *= up[j] * fall;
                q[j] *= down[j] * fall;
                const double right = i[j] <= highest ? p[j] : 0;
                const double left = i[j] >= lowest ? q[j] : 0;
                S[j] += right + left;
                T[j] += lowest * (right - left);
            }
        }
        double product = 1, square = 0;
        for (ptrdiff_t j = 0; j < n; j++) {
            product *= S[j];
            square += r[j] * r[j];
        }
        total += log(product) - square / (2 * f->v);
        if (grad) {
            #pragma omp simd
            for (ptrdiff_t j = 0; j < n; j++)
                grad[j0 + j] = (f->h * (T[j] / S[j]) - r[j]) / f->v;
        }
    }
    return total;
}
