/* Normals and exponentials from many generators at once, compiled once for each instruction set.
 *
 * Eight 64-bit products at a time are computed from their 32-bit halves. One draw in a hundred is
 * not the quick case of its ziggurat (draws.h) and is made by numpy's function, one at a time. */
#include "stream_draws.h"

#include <string.h>

#include "vector.h"

#define BLOCK 64 /* chains at a time: one bit of a word for each */

#ifdef FK_HAS_PCG64

static const uint64_t A_LOW = UINT64_C(0x4385df649fccf645), A_HIGH = UINT64_C(0x2360ed051fc65da4);

#if FK_WIDTH == 8
/* the upper half of s A_LOW */
FK_INLINE uint64_t upper(uint64_t s)
{
    const uint64_t mask = UINT64_C(0xffffffff), a0 = A_LOW & mask, a1 = A_LOW >> 32;
    const uint64_t s0 = s & mask, s1 = s >> 32;
    const uint64_t t = s1 * a0 + (s0 * a0 >> 32), u = s0 * a1 + (t & mask);
    return s1 * a1 + (t >> 32) + (u >> 32);
}
#else /* shorter vectors have no 64-bit product: the scalar one is faster */
FK_INLINE uint64_t upper(uint64_t s) { return (uint64_t)((unsigned __int128)s * A_LOW >> 64); }
#endif

/* r (n,): 64 bits of each of the n generators from `first` on */
FK_INLINE void bits(fk_streams *g, ptrdiff_t first, ptrdiff_t n, uint64_t *restrict r)
{
    uint64_t *restrict low = g->low + first, *restrict high = g->high + first;
    const uint64_t *restrict c_low = g->c_low + first, *restrict c_high = g->c_high + first;
#if FK_WIDTH == 8
#pragma omp simd
#endif
    for (ptrdiff_t k = 0; k < n; k++) {
        const uint64_t product = low[k] * A_LOW;
        const uint64_t rest = upper(low[k]) + low[k] * A_HIGH + high[k] * A_LOW;
        const uint64_t s = product + c_low[k];
        const uint64_t h = rest + c_high[k] + (s < product);
        const uint64_t folded = h ^ s, turn = h >> 58;
        low[k] = s;
        high[k] = h;
        r[k] = folded >> turn | folded << (-turn & 63);
    }
}

/* convert m < 2^53 */
FK_INLINE double exact(uint64_t m)
{
#if FK_WIDTH == 8
    return (double)(int64_t)m;
#else /* shorter vectors cannot convert 64-bit integers */
    const uint64_t low = (m & UINT64_C(0xffffffff)) | UINT64_C(0x4330000000000000);
    const uint64_t high = m >> 32 | UINT64_C(0x4330000000000000);
    double a, b;
    memcpy(&a, &low, 8);
    memcpy(&b, &high, 8);
    return (b - 0x1p52) * 0x1p32 + (a - 0x1p52);
#endif
}

/* x (n,) from the bits r in the quick case; return a word with the bits of the other draws set */
FK_INLINE uint64_t quick_normals(const fk_ziggurat *table, ptrdiff_t n, const uint64_t *restrict r,
                                 double *restrict x)
{
    uint64_t slow = 0;
#pragma omp simd reduction(| : slow)
    for (ptrdiff_t k = 0; k < n; k++) {
        const uint64_t i = r[k] & 0xff, m = r[k] >> 9 & UINT64_C(0xfffffffffffff);
        const double size = exact(m) * table->w[i];
        uint64_t word;
        memcpy(&word, &size, 8);
        word ^= (r[k] & 0x100) << 55;
        memcpy(x + k, &word, 8);
        slow |= (uint64_t)((int64_t)m >= (int64_t)table->k[i]) << k;
    }
    return slow;
}

FK_INLINE uint64_t quick_exponentials(const fk_ziggurat *table, ptrdiff_t n,
                                      const uint64_t *restrict r, double *restrict x)
{
    uint64_t slow = 0;
#pragma omp simd reduction(| : slow)
    for (ptrdiff_t k = 0; k < n; k++) {
        const uint64_t i = r[k] >> 3 & 0xff, m = r[k] >> 11;
        x[k] = exact(m) * table->w[i];
        slow |= (uint64_t)((int64_t)m >= (int64_t)table->k[i]) << k;
    }
    return slow;
}

/* a generator whose first 64 bits are given: fk_replay of draws.h, with fewer calls */
typedef struct {
    fk_pcg64 rest;
    uint64_t first;
    int calls;
} begun;

static uint64_t begun_uint64(void *state)
{
    begun *g = state;
    return g->calls++ ? fk_pcg64_next(&g->rest) : g->first;
}

static double begun_double(void *state)
{
    return (double)(fk_pcg64_next(&((begun *)state)->rest) >> 11) * 0x1p-53;
}

/* make the slow draws of the generators from `first` on */
FK_INLINE void finish(fk_draw_fn draw, fk_streams *g, ptrdiff_t first, uint64_t slow,
                      const uint64_t *r, double *x)
{
    for (; slow; slow &= slow - 1) {
        const ptrdiff_t i = __builtin_ctzll(slow), k = first + i;
        begun one = {{{g->low[k], g->high[k]}, {g->c_low[k], g->c_high[k]}}, r[i], 0};
        bitgen_t bits = {&one, begun_uint64, NULL, begun_double, begun_uint64};
        x[i] = draw(&bits);
        g->low[k] = one.rest.s[0];
        g->high[k] = one.rest.s[1];
    }
}

/* copy the rows of x (d, BLOCK) to d columns, whose rows are `stride` apart */
FK_INLINE void put(ptrdiff_t n, const ptrdiff_t d, const ptrdiff_t stride, const double *restrict x,
                   double *restrict out)
{
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++)
        for (ptrdiff_t i = 0; i < d; i++) out[k * stride + i] = x[i * BLOCK + k];
}

void FK_LEVEL(fk_stream_normals)(fk_streams *g, const fk_tables *tables, ptrdiff_t m, double *out)
{
    uint64_t r[BLOCK];
    double x[2 * BLOCK];
    for (ptrdiff_t first = 0; first < g->n; first += BLOCK) {
        const ptrdiff_t n = g->n - first < BLOCK ? g->n - first : BLOCK;
        for (ptrdiff_t i = 0; i < m; i++) {
            double *place = x + i % 2 * BLOCK, *begin = out + first * m + i;
            bits(g, first, n, r);
            const uint64_t slow = quick_normals(&tables->normal, n, r, place);
            finish(random_standard_normal, g, first, slow, r, place);
            if (m == 2 && i == 1)
                put(n, 2, 2, x, begin - 1);
            else if (i % 2 == 1)
                put(n, 2, m, x, begin - 1);
            else if (i == m - 1)
                put(n, 1, m, x, begin);
        }
    }
}

void FK_LEVEL(fk_stream_exponentials)(fk_streams *g, const fk_tables *tables, double *out)
{
    uint64_t r[BLOCK];
    for (ptrdiff_t first = 0; first < g->n; first += BLOCK) {
        const ptrdiff_t n = g->n - first < BLOCK ? g->n - first : BLOCK;
        bits(g, first, n, r);
        const uint64_t slow = quick_exponentials(&tables->exponential, n, r, out + first);
        finish(random_standard_exponential, g, first, slow, r, out + first);
    }
}

#else /* never called: no generator is in line */

void FK_LEVEL(fk_stream_normals)(fk_streams *g, const fk_tables *tables, ptrdiff_t m, double *out)
{
    (void)g, (void)tables, (void)m, (void)out;
}

void FK_LEVEL(fk_stream_exponentials)(fk_streams *g, const fk_tables *tables, double *out)
{
    (void)g, (void)tables, (void)out;
}

#endif
