/* The bits of a numpy generator, those of PCG64 in line.
 *
 * numpy draws 64 bits by a call through a pointer, which takes as long as the few instructions of
 * its default generator and prevents instructions from overlapping. The generator is repeated here,
 *
 *     s <- a s + c mod 2^128,   (high of s xor low of s), rotated to the right by s / 2^122,
 *
 * on numpy's own state, so that a generator can be used in both ways. The address of that state is
 * not part of numpy's interface: when the library is loaded, fk_find_pcg64 checks that it is at the
 * expected place and gives numpy's bits; otherwise, and for other generators, numpy is called. The
 * state of any generator may change with each call.
 *
 * O'Neill, M. E. (2014). PCG: a family of simple fast space-efficient statistically good algorithms
 * for random number generation. Harvey Mudd College, HMC-CS-2014-0905. */
#ifndef FASTKAM_BITS_H
#define FASTKAM_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "numpy/random/bitgen.h"

typedef uint64_t (*fk_next)(void *state);

#if defined(__SIZEOF_INT128__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FK_HAS_PCG64

typedef unsigned __int128 fk_word;

typedef struct { uint64_t s[2], c[2]; } fk_pcg64; /* low half first */

static inline fk_word fk_whole(const uint64_t *half) { return (fk_word)half[1] << 64 | half[0]; }

static inline uint64_t fk_pcg64_next(fk_pcg64 *g)
{
    const fk_word a = (fk_word)UINT64_C(0x2360ed051fc65da4) << 64 | UINT64_C(0x4385df649fccf645);
    const fk_word s = a * fk_whole(g->s) + fk_whole(g->c);
    g->s[0] = (uint64_t)s;
    g->s[1] = (uint64_t)(s >> 64);
    const uint64_t folded = g->s[1] ^ g->s[0];
    const unsigned turn = (unsigned)(g->s[1] >> 58);
    return folded >> turn | folded << (-turn & 63);
}

/* the state of a numpy generator that is a PCG64 */
static inline fk_pcg64 *fk_pcg64_of(const bitgen_t *rng) { return *(fk_pcg64 **)rng->state; }

/* numpy's function if `rng`, a PCG64 in the `size` bytes at `object`, is as above, else NULL */
static fk_next fk_find_pcg64(bitgen_t *rng, const void *object, size_t size)
{
    const uintptr_t begin = (uintptr_t)object, end = begin + size;
    const uintptr_t state = (uintptr_t)rng->state;
    fk_pcg64 *theirs, ours;
    if (state < begin || end < state + sizeof theirs || state % sizeof theirs) return NULL;
    theirs = fk_pcg64_of(rng);
    if ((uintptr_t)theirs < begin || end < (uintptr_t)theirs + sizeof ours ||
        (uintptr_t)theirs % sizeof(uint64_t))
        return NULL;
    memcpy(&ours, theirs, sizeof ours);
    for (int i = 0; i < 1000; i++)
        if (rng->next_uint64(rng->state) != fk_pcg64_next(&ours) ||
            memcmp(&ours, theirs, sizeof ours))
            return NULL;
    return rng->next_uint64;
}

#else

static fk_next fk_find_pcg64(bitgen_t *rng, const void *object, size_t size)
{
    (void)rng, (void)object, (void)size;
    return NULL;
}

#endif

/* draw 64 bits; pcg64 is the result of fk_find_pcg64 */
static inline uint64_t fk_bits(fk_next pcg64, bitgen_t *rng)
{
#ifdef FK_HAS_PCG64
    if (rng->next_uint64 == pcg64) return fk_pcg64_next(fk_pcg64_of(rng));
#else
    (void)pcg64;
#endif
    return rng->next_uint64(rng->state);
}

#endif
