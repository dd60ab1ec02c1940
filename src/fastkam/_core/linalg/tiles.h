/* The vectors of a decomposition, in tiles of rows, and the rotations that turn their columns. Rows
 * are turned independently, one in each lane. */
#ifndef FASTKAM_TILES_H
#define FASTKAM_TILES_H

#include <float.h>

#include "decomposition.h"
#include "reflectors.h"

enum {
    FK_GROUP = 4 * FK_WIDTH,   /* rows that are processed at once */
    FK_SWEEPS = 256,           /* kept sweeps, which are runs of rotations of neighboring columns */
    FK_MOST_SWEEPS = 60        /* per eigenvalue or singular value */
};

typedef struct {
    ptrdiff_t d, n_sweeps, n;
    double *tiles, *rotations;             /* (fk_rotations(d), 2): cosine, sine */
    ptrdiff_t first[FK_SWEEPS], length[FK_SWEEPS];
} turns;

/* V <- I H_0 H_1 ..: reflection k has the vector W[k * ld + column] of columns k + 1 to d */
static void start_vectors(ptrdiff_t d, const double *W, ptrdiff_t ld, const double *inverse,
                          double *tiles)
{
    memset(tiles, 0, (size_t)fk_tiled(d) * sizeof(double));
    for (ptrdiff_t begin = 0; begin < d; begin += FK_TILE) {
        double *tile = tiles + begin * d;
        for (ptrdiff_t i = 0; i < FK_TILE && begin + i < d; i++)
            tile[(begin + i) * FK_TILE + i] = 1;
        for (ptrdiff_t k = 0; k + 2 < d; k++) {
            if (inverse[k] == 0) continue;
            const double *w = W + k * ld;
            for (ptrdiff_t r = 0; r < FK_TILE; r += FK_GROUP) {
                fk_vec t[4];
                for (int p = 0; p < 4; p++) t[p] = fk_splat(0);
                for (ptrdiff_t j = k + 1; j < d; j++)
#pragma GCC unroll 4
                    for (int p = 0; p < 4; p++)
                        t[p] = fk_fma_vec(fk_load(tile + j * FK_TILE + r + p * FK_WIDTH),
                                          fk_splat(w[j]), t[p]);
#pragma GCC unroll 4
                for (int p = 0; p < 4; p++) t[p] *= inverse[k];
                for (ptrdiff_t j = k + 1; j < d; j++)
#pragma GCC unroll 4
                    for (int p = 0; p < 4; p++) {
                        double *at = tile + j * FK_TILE + r + p * FK_WIDTH;
                        fk_store(at, fk_fnma_vec(t[p], fk_splat(w[j]), fk_load(at)));
                    }
            }
        }
    }
}

/* apply the kept rotations */
static void turn(turns *t)
{
    for (ptrdiff_t begin = 0; begin < t->d; begin += FK_TILE)
        for (ptrdiff_t r = 0; r < FK_TILE && begin + r < t->d; r += FK_GROUP) {
            const double *rotation = t->rotations;
            for (ptrdiff_t s = 0; s < t->n_sweeps; s++) {
                double *at = t->tiles + begin * t->d + t->first[s] * FK_TILE + r;
                fk_vec left[4];
                for (int p = 0; p < 4; p++) left[p] = fk_load(at + p * FK_WIDTH);
                for (ptrdiff_t i = 0; i < t->length[s]; i++, rotation += 2, at += FK_TILE) {
                    const double cosine = rotation[0], sine = rotation[1];
#pragma GCC unroll 4
                    for (int p = 0; p < 4; p++) {
                        const fk_vec right = fk_load(at + FK_TILE + p * FK_WIDTH);
                        const fk_vec c = fk_splat(cosine), s = fk_splat(sine);
                        fk_store(at + p * FK_WIDTH, fk_fma_vec(left[p], c, right * s));
                        left[p] = fk_fma_vec(right, c, -(left[p] * s));
                    }
                }
                for (int p = 0; p < 4; p++) fk_store(at + p * FK_WIDTH, left[p]);
            }
        }
    t->n_sweeps = t->n = 0;
}

/* a place for the rotations of a sweep over columns first to first + length */
static double *next_sweep(turns *t, ptrdiff_t first, ptrdiff_t length)
{
    if (t->n_sweeps == FK_SWEEPS || t->n + length > fk_rotations(t->d)) turn(t);
    t->first[t->n_sweeps] = first;
    t->length[t->n_sweeps++] = length;
    double *rotations = t->rotations + 2 * t->n;
    t->n += length;
    return rotations;
}

/* c f + s g = r, c g - s f = 0; what is too small to be squared counts as 0 */
FK_INLINE double rotation(double f, double g, double *c, double *s)
{
    const double square = f * f + g * g;
    if (!(square > 1e-290)) {
        *c = 1, *s = 0;
        return f;
    }
    const double r = sqrt(square), inverse = 1 / r;
    *c = f * inverse, *s = g * inverse;
    return r;
}

/* The QR iteration: blocks of a matrix with a diagonal and one beside it, the last block first.
 * A block ends where an element beside the diagonal is negligible. */
typedef struct {
    const double *diagonal, *off;
    double negligible;
    ptrdiff_t lo, hi, left; /* the block, and the number of sweeps left */
} blocks;

/* return 1 if an element is not finite */
static int begin_blocks(ptrdiff_t d, const double *diagonal, const double *off, blocks *b)
{
    double norm = 0;
    for (ptrdiff_t i = 0; i < d; i++) {
        const double size = fabs(diagonal[i]) + fabs(off[i]);
        if (!(size < HUGE_VAL)) return 1;
        norm = size > norm ? size : norm;
    }
    *b = (blocks){diagonal, off, 0.5 * DBL_EPSILON * norm, 0, d - 1, FK_MOST_SWEEPS * d};
    return 0;
}

/* return 1 if a block from lo to hi is to be swept, 0 if none is, -1 if no sweeps are left */
static int next_block(blocks *b)
{
    while (b->hi > 0 && fabs(b->off[b->hi - 1]) <= b->negligible) b->hi--;
    if (b->hi <= 0) return 0;
    b->lo = b->hi - 1;
    while (b->lo > 0 && fabs(b->off[b->lo - 1]) > b->negligible) b->lo--;
    return b->left-- == 0 ? -1 : 1;
}

#endif
