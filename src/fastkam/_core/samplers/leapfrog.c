/* Each part of a leapfrog step in one pass over its vectors, compiled once for each instruction set. */
#include "leapfrog.h"
#include "vector.h"

void FK_LEVEL(fk_kick_and_drift)(ptrdiff_t d, double eps, const double *restrict s,
                                 const double *restrict grad, double *restrict p, const double *x,
                                 double *y)
{
    const double half = 0.5 * eps;
#pragma omp simd
    for (ptrdiff_t i = 0; i < d; i++) {
        p[i] += half * s[i] * grad[i];
        y[i] = x[i] + eps * s[i] * p[i];
    }
}

double FK_LEVEL(fk_last_kick)(ptrdiff_t d, double eps, const double *restrict s,
                              const double *restrict grad, double *restrict p)
{
    const double half = 0.5 * eps;
    fk_lanes squares = fk_zero();
    double total = 0;
    ptrdiff_t i = 0;
    for (; i + FK_LANES <= d; i += FK_LANES)
#pragma GCC unroll 4
        for (int k = 0; k < FK_PARTS; k++) {
            const ptrdiff_t j = i + k * FK_WIDTH;
            const fk_vec kicked = fk_load(p + j) + half * fk_load(s + j) * fk_load(grad + j);
            fk_store(p + j, kicked);
            squares.v[k] += kicked * kicked;
        }
    if (i > 0) total = fk_total(squares);
    for (ptrdiff_t j = i; j < d; j++) p[j] += half * s[j] * grad[j];
    for (ptrdiff_t j = d - 1; j >= i; j--) total += p[j] * p[j]; /* in the order of fk_dot */
    return total;
}
