/* Sums and products of vectors, compiled once for each instruction set. */
#include "elementwise.h"
#include "linalg.h"
#include "vector.h"

void FK_LEVEL(fk_add_products)(ptrdiff_t d, double a, const double *restrict s,
                               const double *restrict g, double *restrict v)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < d; i++) v[i] += a * s[i] * g[i];
}

double FK_LEVEL(fk_long_square)(ptrdiff_t d, const double *v)
{
    fk_lanes s = fk_zero();
    double lanes[FK_LANES], total = 0;
    ptrdiff_t i = 0;
    for (; i + FK_LANES <= d; i += FK_LANES)
#pragma GCC unroll 4
        for (int k = 0; k < FK_PARTS; k++) {
            const fk_vec x = fk_load(v + i + k * FK_WIDTH);
            s.v[k] += x * x;
        }
    if (i > 0) {
        fk_store_lanes(lanes, s);
        total = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
    for (ptrdiff_t k = d - 1; k >= i; k--) total += v[k] * v[k]; /* in the order of fk_dot */
    return total;
}

int FK_LEVEL(fk_long_all_finite)(ptrdiff_t d, const double *v)
{
    int64_t found = 0;
#pragma omp simd reduction(| : found)
    for (ptrdiff_t i = 0; i < d; i++) found |= !(v[i] - v[i] == 0); /* 0 or NaN */
    return !found;
}
