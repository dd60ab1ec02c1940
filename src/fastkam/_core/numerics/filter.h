/* The filter of nearest.h: points rounded to a grid, whose distances are sums of integers.
 *
 * Points are stored in groups of 64, as (pair of coordinates, point, 2). */
#ifndef FASTKAM_FILTER_H
#define FASTKAM_FILTER_H

#include "nearest.h"
#include "vector.h"

#if defined(__SSE2__) && !defined(__AVX__)
#include <emmintrin.h>
#endif

#if defined(__AVX512BW__)
#define FK_BYTES 64
#elif defined(__AVX2__)
#define FK_BYTES 32
#else
#define FK_BYTES 16
#endif

enum {
    FK_POINTS = FK_BYTES / 4,               /* points of a vector */
    FK_VECTORS = FK_BYTES == 64 ? 4 : 8,    /* vectors processed at once */
    FK_GRID = 4095,                         /* half the width of the grid */
    FK_PAIRS = 16                           /* pairs whose squares add up to less than 2^31 */
};

typedef int16_t fk_shorts __attribute__((vector_size(FK_BYTES), aligned(4), may_alias));
typedef int32_t fk_ints __attribute__((vector_size(FK_BYTES), aligned(4), may_alias));
typedef float fk_floats __attribute__((vector_size(FK_BYTES), aligned(4), may_alias));

/* u^2 + v^2 of pairs (u, v) */
FK_INLINE fk_ints fk_square_pairs(fk_shorts v)
{
#if defined(__AVX512BW__)
    return (fk_ints)_mm512_madd_epi16((__m512i)v, (__m512i)v);
#elif defined(__AVX2__)
    return (fk_ints)_mm256_madd_epi16((__m256i)v, (__m256i)v);
#elif defined(__SSE2__)
    return (fk_ints)_mm_madd_epi16((__m128i)v, (__m128i)v);
#else
    const fk_ints first = (fk_ints)v << 16 >> 16, second = (fk_ints)v >> 16;
    return first * first + second * second;
#endif
}

FK_INLINE fk_floats fk_lesser(fk_floats a, fk_floats b)
{
    const fk_ints less = a < b;
    return (fk_floats)((less & (fk_ints)a) | (~less & (fk_ints)b));
}

FK_INLINE int fk_any(fk_ints m)
{
    typedef int64_t longs __attribute__((vector_size(FK_BYTES)));
    const longs pairs = (longs)m;
    int64_t found = 0;
    for (int l = 0; l < FK_BYTES / 8; l++) found |= pairs[l];
    return found != 0;
}

static inline int16_t fk_on_grid(double x)
{
    return (int16_t)floor((x < -FK_GRID ? -FK_GRID : x > FK_GRID ? FK_GRID : x) + 0.5);
}

/* the squared distances of some points of a group from z, pairs of coordinates; return the least */
FK_INLINE fk_floats fk_some_distances(ptrdiff_t pairs, const int16_t *p, const int32_t *z,
                                      float *distance)
{
    fk_floats total[FK_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < FK_VECTORS; v++) total[v] = (fk_floats){0};
    for (ptrdiff_t begin = 0; begin < pairs; begin += FK_PAIRS) {
        const ptrdiff_t end = pairs - begin < FK_PAIRS ? pairs : begin + FK_PAIRS;
        fk_ints s[FK_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < FK_VECTORS; v++) s[v] = (fk_ints){0};
        for (ptrdiff_t k = begin; k < end; k++, p += 2 * FK_GROUP) {
            const fk_shorts x = (fk_shorts)(z[k] - (fk_ints){0});
#pragma GCC unroll 8
            for (int v = 0; v < FK_VECTORS; v++)
                s[v] += fk_square_pairs(*(const fk_shorts *)(p + 2 * FK_POINTS * v) - x);
        }
#pragma GCC unroll 8
        for (int v = 0; v < FK_VECTORS; v++)
            total[v] += __builtin_convertvector(s[v], fk_floats);
    }
    fk_floats low = total[0];
#pragma GCC unroll 8
    for (int v = 0; v < FK_VECTORS; v++) {
        *(fk_floats *)(distance + FK_POINTS * v) = total[v];
        low = fk_lesser(low, total[v]);
    }
    return low;
}

/* the squared distances of n points, whole groups; return the least of them */
static float fk_grid_distances(ptrdiff_t pairs, ptrdiff_t n, const int16_t *filter,
                               const int32_t *z, float *distance)
{
    const ptrdiff_t step = FK_VECTORS * FK_POINTS;
    fk_floats low = HUGE_VALF - (fk_floats){0};
    for (ptrdiff_t i = 0; i < n; i += step) {
        const int16_t *p = filter + 2 * (i / FK_GROUP * FK_GROUP * pairs + i % FK_GROUP);
        low = fk_lesser(low, fk_some_distances(pairs, p, z, distance + i));
    }
    float least = HUGE_VALF;
    for (int l = 0; l < FK_POINTS; l++) least = low[l] < least ? low[l] : least;
    return least;
}

/* return the next point from i on within the limit, or s; `distance` has whole groups */
FK_INLINE ptrdiff_t fk_next_within(ptrdiff_t i, ptrdiff_t s, const float *distance, float limit)
{
    enum { STEP = FK_VECTORS * FK_POINTS };
    for (; i < s && i % STEP; i++)
        if (distance[i] <= limit) return i;
    for (; i < s; i += STEP) {
        fk_ints near = {0};
        for (int v = 0; v < FK_VECTORS; v++)
            near |= *(const fk_floats *)(distance + i + FK_POINTS * v) <= limit;
        if (!fk_any(near)) continue;
        for (ptrdiff_t j = i; j < s && j < i + STEP; j++)
            if (distance[j] <= limit) return j;
    }
    return s;
}

#endif
