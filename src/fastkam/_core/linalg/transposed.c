/* u <- a M' g, compiled once for each instruction set: the product with each column is summed
 * in 8 lanes. */
#include "factor.h"
#include "vector.h"

/* v'w */
FK_INLINE double dot(ptrdiff_t d, const double *v, const double *w)
{
    fk_lanes s = fk_zero();
    double lanes[FK_LANES];
    ptrdiff_t i = 0;
    for (; i + FK_LANES <= d; i += FK_LANES) s = fk_add_products(s, v + i, w + i);
#if FK_WIDTH == 8
    if (i < d) s.v[0] = fk_fma_vec(fk_load_n(v + i, d - i), fk_load_n(w + i, d - i), s.v[0]);
#endif
    fk_store_lanes(lanes, s);
#if FK_WIDTH < 8
    for (int l = 0; i < d; i++, l++) lanes[l] = fk_fma(v[i], w[i], lanes[l]);
#endif
    return fk_sum_lanes(lanes);
}

/* L lower triangular */
void FK_LEVEL(fk_times_Lt)(ptrdiff_t d, double a, const double *L, const double *g, double *u)
{
    for (ptrdiff_t j = 0; j < d; j++) u[j] = a * dot(d - j, L + j * (d + 1), g + j);
}

/* R square */
void FK_LEVEL(fk_times_Rt)(ptrdiff_t d, double a, const double *R, const double *g, double *u)
{
    for (ptrdiff_t j = 0; j < d; j++) u[j] = a * dot(d, R + j * d, g);
}
