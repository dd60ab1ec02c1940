/* The generators of many chains side by side, each a PCG64 (bits.h). */
#ifndef FASTKAM_STREAMS_H
#define FASTKAM_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "bits.h"

typedef struct fk_streams fk_streams;
typedef struct { fk_streams *all; ptrdiff_t k; } fk_lane;

/* the states of n generators, with their halves in separate arrays */
struct fk_streams {
    ptrdiff_t n;
    uint64_t *low, *high;     /* (n,) of s */
    uint64_t *c_low, *c_high; /* (n,) of c */
    bitgen_t *each;           /* (n,) each as a generator of its own */
    fk_lane *lanes;           /* (n,) the states of these */
};

#ifdef FK_HAS_PCG64

static uint64_t fk_lane_uint64(void *state)
{
    const fk_lane *lane = state;
    const fk_streams *g = lane->all;
    const ptrdiff_t k = lane->k;
    fk_pcg64 one = {{g->low[k], g->high[k]}, {g->c_low[k], g->c_high[k]}};
    const uint64_t r = fk_pcg64_next(&one);
    g->low[k] = one.s[0];
    g->high[k] = one.s[1];
    return r;
}

static double fk_lane_double(void *state)
{
    return (double)(fk_lane_uint64(state) >> 11) * 0x1p-53;
}

/* the k-th as a generator of its own, for 64 bits and doubles; *lane must live as long as it */
static inline bitgen_t fk_one_stream(fk_streams *g, ptrdiff_t k, fk_lane *lane)
{
    *lane = (fk_lane){g, k};
    return (bitgen_t){lane, fk_lane_uint64, NULL, fk_lane_double, fk_lane_uint64};
}

static inline void fk_make_stream(fk_streams *g, ptrdiff_t k)
{
    g->each[k] = fk_one_stream(g, k, g->lanes + k);
}

/* copy the state of a numpy PCG64 to its place, and back */
static inline void fk_load_stream(fk_streams *g, ptrdiff_t k, const bitgen_t *rng)
{
    const fk_pcg64 *one = fk_pcg64_of(rng);
    g->low[k] = one->s[0];
    g->high[k] = one->s[1];
    g->c_low[k] = one->c[0];
    g->c_high[k] = one->c[1];
}

static inline void fk_store_stream(const fk_streams *g, ptrdiff_t k, bitgen_t *rng)
{
    fk_pcg64 *one = fk_pcg64_of(rng);
    one->s[0] = g->low[k];
    one->s[1] = g->high[k];
}

#else /* never called: no generator is in line */

static inline void fk_make_stream(fk_streams *g, ptrdiff_t k) { (void)g, (void)k; }

static inline void fk_load_stream(fk_streams *g, ptrdiff_t k, const bitgen_t *rng)
{
    (void)g, (void)k, (void)rng;
}

static inline void fk_store_stream(const fk_streams *g, ptrdiff_t k, bitgen_t *rng)
{
    (void)g, (void)k, (void)rng;
}

#endif

#endif
