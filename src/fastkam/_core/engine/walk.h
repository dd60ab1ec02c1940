/* A normal step from a point, computed number by number. */
#ifndef FASTKAM_WALK_H
#define FASTKAM_WALK_H

#include "draws.h"

/* y_i = x_i + s L_i e_i, e ~ N(0, I_n); L_i is 1 where L is NULL.
 *
 * The numbers of e are not stored, and the generator's state stays in registers: loading a vector
 * of numbers just stored one by one takes as long as drawing two of them. */
static inline void fk_walk(const fk_tables *tables, bitgen_t *rng, ptrdiff_t n, double s,
                           const double *L, const double *x, double *y)
{
    ptrdiff_t i = 0;
#ifdef FK_HAS_PCG64
    if (rng->next_uint64 == tables->pcg64) {
        fk_pcg64 *state = fk_pcg64_of(rng), g = *state;
        for (; i < n; i++) {
            const uint64_t r = fk_pcg64_next(&g);
            double e;
            int calls;
            if (!fk_is_normal(&tables->normal, r, &e)) {
                *state = g;
                e = fk_draw_from(random_standard_normal, rng, r, &calls);
                g = *state;
            }
            y[i] = x[i] + (L ? s * L[i] : s) * e;
        }
        *state = g;
    }
#endif
    for (; i < n; i++) y[i] = x[i] + (L ? s * L[i] : s) * fk_normal(tables, rng);
}

#endif
