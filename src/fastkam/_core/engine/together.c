/* Loops over the chains of a lockstep, without branches, compiled once for each instruction set. */
#include "vector.h"

#include "decide.h"
#include "together.h"

#define BLOCK 64 /* chains at a time */
#define AHEAD 32 /* chains ahead whose places are fetched */

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
    for (ptrdiff_t k = 0; k < n; k++)
        log_ratio[k] = fk_valid(logp_y[k] - logp_x[k] + log_q[k]);
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) accepted[k] = fk_accepts(E[k], log_ratio[k]);
}

void FK_LEVEL(fk_count)(ptrdiff_t n, const signed char *restrict accepted, int64_t *restrict counts)
{
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) counts[k] += accepted[k];
}

/* to = from where the mask has all bits set, and stays where it has none */
FK_INLINE void blend(ptrdiff_t n, const int64_t *restrict mask, const double *restrict from,
                     double *restrict to)
{
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) {
        const double a = from[j], b = to[j];
        to[j] = mask[j] ? a : b;
    }
}

/* for few dimensions: a branch would be mispredicted every third time */
FK_INLINE void select_rows(ptrdiff_t n, const ptrdiff_t d, const signed char *restrict accepted,
                           const double *restrict from, double *restrict to)
{
    int64_t mask[4 * BLOCK];
    for (ptrdiff_t first = 0; first < n; first += BLOCK) {
        const ptrdiff_t m = n - first < BLOCK ? n - first : BLOCK;
#pragma omp simd
        for (ptrdiff_t k = 0; k < m; k++)
            for (ptrdiff_t i = 0; i < d; i++) mask[k * d + i] = -(int64_t)accepted[first + k];
        blend(m * d, mask, from + first * d, to + first * d);
    }
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

/* the places of successive chains are far apart but known beforehand: they are fetched ahead */
FK_INLINE void fetch(const char *place, ptrdiff_t bytes)
{
    for (ptrdiff_t i = 0; i < bytes + 63; i += 64) __builtin_prefetch(place + i, 1);
}

FK_INLINE void deal(ptrdiff_t n, ptrdiff_t rows, const ptrdiff_t d, ptrdiff_t stride,
                    const double *restrict from, double **restrict to)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        double *p = to[k];
        const double *q = from + k * d;
        if (k + AHEAD < n) fetch((const char *)to[k + AHEAD], rows * d * 8);
        for (ptrdiff_t row = 0; row < rows; row++)
            memcpy(p + row * d, q + row * stride, (size_t)d * sizeof(double));
        to[k] = p + rows * d;
    }
}

void FK_LEVEL(fk_deal_rows)(ptrdiff_t n, ptrdiff_t rows, ptrdiff_t d, ptrdiff_t stride,
                            const double *restrict from, double **restrict to)
{
    switch (d) {
    case 1: deal(n, rows, 1, stride, from, to); return;
    case 2: deal(n, rows, 2, stride, from, to); return;
    default: deal(n, rows, d, stride, from, to);
    }
}

void FK_LEVEL(fk_deal_bytes)(ptrdiff_t n, ptrdiff_t rows, ptrdiff_t stride,
                             const signed char *restrict from, signed char **restrict to)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        signed char *p = to[k];
        if (k + AHEAD < n) fetch((const char *)to[k + AHEAD], rows);
        for (ptrdiff_t row = 0; row < rows; row++) p[row] = from[row * stride + k];
        to[k] = p + rows;
    }
}

FK_INLINE void scaled_steps(ptrdiff_t n, const ptrdiff_t d, const double *restrict scale,
                            const double *restrict x, const double *restrict e, double *restrict y)
{
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++)
        for (ptrdiff_t i = 0; i < d; i++) y[k * d + i] = x[k * d + i] + scale[k] * e[k * d + i];
}

void FK_LEVEL(fk_step_by)(ptrdiff_t n, ptrdiff_t d, const double *restrict scale,
                          const double *restrict x, const double *restrict e, double *restrict y)
{
    switch (d) {
    case 1: scaled_steps(n, 1, scale, x, e, y); return;
    case 2: scaled_steps(n, 2, scale, x, e, y); return;
    default:
        for (ptrdiff_t k = 0; k < n; k++)
            scaled_steps(1, d, scale + k, x + k * d, e + k * d, y + k * d);
    }
}
