/* Steps on a standard normal that do more and more of what a step of fastkam does: what is added
 * from one to the next is what that costs. In a loop of its own each, for a dimension known to the
 * compiler; the draws are those of numpy's generator. */
#include <Python.h>

#include "draws.h"
#include "vec.h"

enum { DRAWS, PROPOSAL, DENSITY, DECISION, GAIN, FACTOR, STORED, STATISTICS, POINTER, ITEMS };
enum { MOST = 8 };

typedef int (*rank_one_fn)(ptrdiff_t d, double *L, double a, double s, double *v);
typedef struct { double c, k, offset, cap; } gain; /* min(cap, c (offset + n)^-k) */

/* of the chain, and where its draws go */
typedef struct {
    double x[MOST], mu[MOST], L[MOST * MOST], logp, scale;
    gain g;
    int64_t made;
    bitgen_t *rng;
    rank_one_fn rank_one;
    double *draws, *logps, *ratios;
    signed char *accepted;
} chain;

/* as if memory were read here, so that the compiler leaves out nothing before it */
#define LOOK(p) __asm__ volatile("" : : "r"(p) : "memory")

INLINE double density(const int d, const double *y)
{
    double s = 0;
    for (int i = 0; i < d; i++) s += y[i] * y[i];
    return -0.5 * s;
}

static double two(const double *y) { return density(2, y); }
static double eight(const double *y) { return density(8, y); }
static double (*volatile const far[])(const double *) = {two, eight};

/* n steps that do `upto`, in which L is a matrix or 1, and learns or not */
INLINE void steps(const int upto, const int matrix, const int learns, const int d, int64_t n,
                  chain *c, const fk_tables *tables)
{
    double e[MOST], y[MOST], v[MOST];
    for (int64_t t = 0; t < n; t++) {
        fk_normals(tables, c->rng, d, e);
        const double E = fk_exponential(tables, c->rng);
        double logp_y = 0, step = 0;
        LOOK(e);
        LOOK(&E);
        if (upto >= PROPOSAL) {
            for (int i = 0; i < d; i++) y[i] = c->x[i];
            if (matrix)
                for (int j = 0; j < d; j++)
                    for (int i = j; i < d; i++) y[i] += c->L[j * d + i] * (c->scale * e[j]);
            else
                for (int i = 0; i < d; i++) y[i] += c->scale * e[i];
            LOOK(y);
        }
        if (upto >= DENSITY) logp_y = upto >= POINTER ? far[d == 8](y) : density(d, y);
        const double ratio = logp_y - c->logp;
        const int accepted = upto >= DECISION && E > -ratio;
        if (accepted) {
            for (int i = 0; i < d; i++) c->x[i] = y[i];
            c->logp = logp_y;
        }
        LOOK(&logp_y);
        c->made++;
        if (learns && upto >= GAIN) {
            step = fmin(c->g.cap, c->g.c * pow(c->g.offset + (double)c->made, -c->g.k));
            LOOK(&step);
        }
        if (learns && upto >= FACTOR) {
            for (int j = 0; j < d; j++) {
                v[j] = c->x[j] - c->mu[j];
                c->mu[j] += step * v[j];
            }
            c->rank_one(d, c->L, 1 - step, step, v);
        }
        if (upto >= STORED)
            for (int i = 0; i < d; i++) c->draws[t * d + i] = c->x[i];
        if (upto >= STATISTICS) {
            c->logps[t] = c->logp;
            c->ratios[t] = ratio;
            c->accepted[t] = (signed char)accepted;
        }
    }
}

/* kind: 0 a random walk, 1 one with a matrix, 2 one that learns it */
void items(int64_t upto, int64_t kind, ptrdiff_t d, int64_t n, chain *c)
{
    static fk_tables tables;
    if (!tables.pcg64) fk_make_tables(&tables, c->rng);
    tables.pcg64 = c->rng->next_uint64; /* a PCG64, whose bits are made in line */
#define UPTO(U)                                                                                   \
    case U:                                                                                       \
        if (d == 2 && kind == 0) steps(U, 0, 0, 2, n, c, &tables);                                \
        if (d == 2 && kind == 1) steps(U, 1, 0, 2, n, c, &tables);                                \
        if (d == 2 && kind == 2) steps(U, 1, 1, 2, n, c, &tables);                                \
        if (d == 8 && kind == 0) steps(U, 0, 0, 8, n, c, &tables);                                \
        if (d == 8 && kind == 1) steps(U, 1, 0, 8, n, c, &tables);                                \
        if (d == 8 && kind == 2) steps(U, 1, 1, 8, n, c, &tables);                                \
        break;
    switch (upto) {
        UPTO(DRAWS) UPTO(PROPOSAL) UPTO(DENSITY) UPTO(DECISION) UPTO(GAIN) UPTO(FACTOR)
        UPTO(STORED) UPTO(STATISTICS) UPTO(POINTER)
    }
}
