/* Standard normals and exponentials: the streams of numpy's functions, mostly without calling them.
 *
 * numpy's ziggurats take 64 bits r, which contain a layer i (8 bits) and a number m, and return
 * m w_i if m < k_i (99 %); a normal also has a sign. Half of all branches on the sign are
 * mispredicted; here the sign is set as a bit. The tables w and k are found by calling numpy's own
 * functions with chosen bits, and all other cases are passed to them together with the bits already
 * drawn: so the draws are numpy's by construction. */
#ifndef FASTKAM_DRAWS_H
#define FASTKAM_DRAWS_H

#include <stdint.h>
#include <string.h>

#include "bits.h"
#include "numpy/random/distributions.h"

typedef struct {
    double w[256];
    uint64_t k[256]; /* 0 until the tables are made: all draws take the slow path */
} fk_ziggurat;

typedef struct {
    fk_ziggurat normal, exponential;
    fk_next pcg64; /* numpy's function for PCG64 if it is as in bits.h, else NULL */
} fk_tables;

/* a generator that returns `first`, and then the numbers of another one */
typedef struct {
    bitgen_t *rest;
    uint64_t first;
    int calls;
} fk_replay;

static uint64_t fk_replay_uint64(void *state)
{
    fk_replay *replay = state;
    return replay->calls++ ? replay->rest->next_uint64(replay->rest->state) : replay->first;
}

static double fk_replay_double(void *state)
{
    fk_replay *replay = state;
    replay->calls++;
    return replay->rest->next_double(replay->rest->state);
}

typedef double (*fk_draw_fn)(bitgen_t *rng);

/* numpy's result if its first 64 bits are r; *calls is the number of draws it takes */
static __attribute__((noinline)) double fk_draw_from(fk_draw_fn draw, bitgen_t *rest, uint64_t r,
                                                     int *calls)
{
    fk_replay replay = {rest, r, 0};
    bitgen_t bits = {&replay, fk_replay_uint64, NULL, fk_replay_double, fk_replay_uint64};
    const double x = draw(&bits);
    *calls = replay.calls;
    return x;
}

/* return whether r is the quick case of a normal; *x is then the draw */
static inline int fk_is_normal(const fk_ziggurat *table, uint64_t r, double *x)
{
    const uint64_t i = r & 0xff, m = (r >> 9) & UINT64_C(0xfffffffffffff);
    const double size = (double)(int64_t)m * table->w[i];
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    bits ^= (r & 0x100) << 55;
    memcpy(x, &bits, sizeof bits);
    return m < table->k[i];
}

static inline double fk_normal(const fk_tables *tables, bitgen_t *rng)
{
    const uint64_t r = fk_bits(tables->pcg64, rng);
    double x;
    int calls;
    if (fk_is_normal(&tables->normal, r, &x)) return x;
    return fk_draw_from(random_standard_normal, rng, r, &calls);
}

static inline double fk_exponential(const fk_tables *tables, bitgen_t *rng)
{
    const uint64_t r = fk_bits(tables->pcg64, rng), i = r >> 3 & 0xff, m = r >> 11;
    int calls;
    if (m < tables->exponential.k[i]) return (double)(int64_t)m * tables->exponential.w[i];
    return fk_draw_from(random_standard_exponential, rng, r, &calls);
}

/* out ~ N(0, I_n) */
static inline void fk_normals(const fk_tables *tables, bitgen_t *rng, ptrdiff_t n, double *out)
{
    ptrdiff_t i = 0;
#ifdef FK_HAS_PCG64
    if (rng->next_uint64 == tables->pcg64) {
        fk_pcg64 *state = fk_pcg64_of(rng), g = *state; /* in registers */
        for (; i < n; i++) {
            const uint64_t r = fk_pcg64_next(&g);
            int calls;
            if (fk_is_normal(&tables->normal, r, out + i)) continue;
            *state = g;
            out[i] = fk_draw_from(random_standard_normal, rng, r, &calls);
            g = *state;
        }
        *state = g;
    }
#endif
    for (; i < n; i++) out[i] = fk_normal(tables, rng);
}

/* find w_i, the result at m = 1, and by bisection k_i, the first m that is not quick; i and m begin
 * at the bits i_at and m_at of r, and m has m_bits bits */
static void fk_make_ziggurat(fk_ziggurat *table, fk_draw_fn draw, bitgen_t *some, int i_at,
                             int m_at, int m_bits)
{
    for (uint64_t i = 0; i < 256; i++) {
        uint64_t low = 0, high = UINT64_C(1) << m_bits; /* quick below low, not at high */
        int calls;
        table->w[i] = fk_draw_from(draw, some, i << i_at | UINT64_C(1) << m_at, &calls);
        while (low < high) {
            const uint64_t m = low + (high - low) / 2;
            fk_draw_from(draw, some, i << i_at | m << m_at, &calls);
            if (calls == 1)
                low = m + 1;
            else
                high = m;
        }
        table->k[i] = low;
    }
}

static void fk_make_tables(fk_tables *tables, bitgen_t *some)
{
    fk_make_ziggurat(&tables->normal, random_standard_normal, some, 0, 9, 52);
    fk_make_ziggurat(&tables->exponential, random_standard_exponential, some, 3, 11, 53);
}

#endif
