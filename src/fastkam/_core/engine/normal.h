/* Standard normals: the stream of numpy's random_standard_normal, without its unpredictable branch.
 *
 * numpy's ziggurat takes 64 bits r: a layer i = r mod 256, a sign, and 52 bits m, and returns
 * +-m w_i where m < k_i (99.3 %). Half of all branches on the sign are mispredicted; here the sign
 * is set as a bit. The tables w and k are read off numpy's own function, by feeding it bits of our
 * choice, and what is not the quick case is handed to it together with the bits already drawn: so
 * the draws are numpy's by construction. */
#ifndef FASTKAM_NORMAL_H
#define FASTKAM_NORMAL_H

#include <stdint.h>
#include <string.h>

#include "numpy/random/bitgen.h"
#include "numpy/random/distributions.h"

typedef struct {
    double w[256];
    uint64_t k[256]; /* 0 until the tables are made: all draws go the slow way */
} fk_ziggurat;

/* a generator that returns `first`, and then what another one does */
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

/* numpy's result where its first 64 bits are r */
static double fk_normal_from(bitgen_t *rest, uint64_t r, int *calls)
{
    fk_replay replay = {rest, r, 0};
    bitgen_t bits = {&replay, fk_replay_uint64, NULL, fk_replay_double, fk_replay_uint64};
    const double x = random_standard_normal(&bits);
    *calls = replay.calls;
    return x;
}

static inline double fk_normal(const fk_ziggurat *table, bitgen_t *rng)
{
    const uint64_t r = rng->next_uint64(rng->state);
    const uint64_t i = r & 0xff, m = (r >> 9) & UINT64_C(0xfffffffffffff);
    if (m < table->k[i]) {
        double x = (double)(int64_t)m * table->w[i];
        uint64_t bits;
        memcpy(&bits, &x, sizeof x);
        bits ^= (r & 0x100) << 55;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    int calls;
    return fk_normal_from(rng, r, &calls);
}

/* w_i = the result at m = 1, k_i = the first m that is not quick, by bisection */
static void fk_make_ziggurat(fk_ziggurat *table, bitgen_t *some)
{
    for (uint64_t i = 0; i < 256; i++) {
        uint64_t low = 0, high = UINT64_C(1) << 52; /* quick below low, not at high */
        int calls;
        table->w[i] = fk_normal_from(some, i | 1 << 9, &calls);
        while (low < high) {
            const uint64_t m = low + (high - low) / 2;
            fk_normal_from(some, i | m << 9, &calls);
            if (calls == 1)
                low = m + 1;
            else
                high = m;
        }
        table->k[i] = low;
    }
}

#endif
