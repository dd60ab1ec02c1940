/* Loops over the chains of a lockstep, without branches, compiled once for each instruction set. */
#include "vector.h"

#include "together.h"

int FK_LEVEL(fk_all_good)(ptrdiff_t n, const int *restrict codes, const double *restrict values)
{
    int found = 0;
    int64_t bad = 0;
#pragma omp simd reduction(| : found)
    for (ptrdiff_t k = 0; k < n; k++) found |= codes[k];
#pragma omp simd reduction(| : bad)
    for (ptrdiff_t k = 0; k < n; k++) bad |= !(values[k] - values[k] == 0); /* 0 or NaN */
    return !found && !bad;
}

void FK_LEVEL(fk_decide)(ptrdiff_t n, const double *restrict logp_x, const double *restrict logp_y,
                         const double *restrict log_q, const double *restrict E,
                         double *restrict log_ratio, signed char *restrict accepted)
{
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) {
        const double ratio = logp_y[k] - logp_x[k] + log_q[k];
        log_ratio[k] = ratio == ratio ? ratio : -INFINITY;
    }
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) accepted[k] = E[k] > -log_ratio[k];
}

void FK_LEVEL(fk_count)(ptrdiff_t n, const signed char *restrict accepted, int64_t *restrict counts)
{
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) counts[k] += accepted[k];
}

/* of few dimensions: a branch would be mispredicted every third time */
FK_INLINE void select_rows(ptrdiff_t n, const ptrdiff_t d, const signed char *restrict accepted,
                           const double *restrict from, double *restrict to)
{
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++)
        for (ptrdiff_t i = 0; i < d; i++)
            to[k * d + i] = accepted[k] ? from[k * d + i] : to[k * d + i];
}

void FK_LEVEL(fk_move)(ptrdiff_t n, ptrdiff_t d, const signed char *restrict accepted,
                       const double *restrict from, double *restrict to)
{
    switch (d) {
    case 1: select_rows(n, 1, accepted, from, to); return;
    case 2: select_rows(n, 2, accepted, from, to); return;
    case 3: select_rows(n, 3, accepted, from, to); return;
    case 4: select_rows(n, 4, accepted, from, to); return;
    }
    for (ptrdiff_t k = 0; k < n; k++)
        if (accepted[k]) memcpy(to + k * d, from + k * d, (size_t)d * sizeof(double));
}

void FK_LEVEL(fk_gather_rows)(ptrdiff_t n, ptrdiff_t d, ptrdiff_t stride,
                              const double *restrict from, double *restrict to)
{
    if (d == 1)
        for (ptrdiff_t k = 0; k < n; k++) to[k] = from[k * stride];
    else if (d == 2)
        for (ptrdiff_t k = 0; k < n; k++) memcpy(to + 2 * k, from + k * stride, 16);
    else
        for (ptrdiff_t k = 0; k < n; k++)
            memcpy(to + k * d, from + k * stride, (size_t)d * sizeof(double));
}
