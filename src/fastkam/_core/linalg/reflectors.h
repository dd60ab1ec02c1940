/* Householder reflections of padded columns: H = I - v v' / h,  h = |v|^2 / 2.
 *
 * Whole vectors of 8 lanes are processed, from the one that contains the first row: v is 0 in the
 * rows before it. */
#ifndef FASTKAM_REFLECTORS_H
#define FASTKAM_REFLECTORS_H

#include "vector.h"

/* v'w over rows of whole vectors; n a multiple of 8 */
FK_INLINE double dot(ptrdiff_t n, const double *v, const double *w)
{
    fk_lanes s = fk_zero();
    for (ptrdiff_t i = 0; i < n; i += FK_LANES) s = fk_add_products(s, v + i, w + i);
    return fk_total(s);
}

/* y += a x */
FK_INLINE void add_to(ptrdiff_t n, double a, const double *x, double *y)
{
    for (ptrdiff_t i = 0; i < n; i += FK_WIDTH)
        fk_store(y + i, fk_fma_vec(fk_load(x + i), fk_splat(a), fk_load(y + i)));
}

/* The reflection that takes x, from row k on, to alpha e_k: v is x from row k on with v_k changed,
 * and 0 in rows `begin` to k. Returns 1 / h, or 0 if x is alpha e_k already, up to elements that
 * are too small to be squared beside elements of about 1; v is then 0. */
FK_INLINE double reflector(ptrdiff_t begin, ptrdiff_t k, ptrdiff_t n, const double *x, double *v,
                           double *alpha)
{
    if (v != x) memcpy(v + begin, x + begin, (size_t)(n - begin) * sizeof(double));
    for (ptrdiff_t i = begin; i < k; i++) v[i] = 0;
    const double first = v[k];
    v[k] = 0;
    const double rest = dot(n - begin, v + begin, v + begin);
    *alpha = first;
    if (rest < 1e-280) {
        memset(v + begin, 0, (size_t)(n - begin) * sizeof(double));
        return 0;
    }
    const double norm = sqrt(first * first + rest);
    *alpha = first > 0 ? -norm : norm;
    v[k] = first - *alpha;
    return 1 / (norm * (norm + fabs(first)));
}

#endif
