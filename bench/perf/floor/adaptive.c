/* The floor of adaptive Metropolis on a standard normal: a bare loop for a dimension known to the
 * compiler, with the draws of numpy's generator, the gain and the update of the factor; the draws
 * are stored, nothing is counted or checked. */
#include <Python.h>

#include "draws.h"
#include "vec.h"

typedef int (*rank_one_fn)(ptrdiff_t d, double *L, double a, double s, double *v);
typedef struct { double c, k, offset, cap; } gain; /* min(cap, c (offset + n)^-k) */

/* x (d,), mu (d,) and L (d, d) go on from call to call; `before` steps have been made */
INLINE void walk(const int d, bitgen_t *rng, const fk_tables *tables, rank_one_fn rank_one,
                 int64_t n, int64_t before, double scale, gain g, double *x, double *mu, double *L,
                 double *draws)
{
    enum { MOST = 128 };
    double e[MOST], y[MOST], v[MOST], logp = 0;
    for (int i = 0; i < d; i++) logp -= 0.5 * x[i] * x[i];
    for (int64_t t = 1; t <= n; t++, draws += d) {
        for (int j = 0; j < d; j++) e[j] = scale * fk_normal(tables, rng);
        const double E = fk_exponential(tables, rng);
        double logp_y = 0;
        if (d < 8)
            for (int i = 0; i < d; i++) {
                y[i] = x[i];
                for (int j = 0; j <= i; j++) y[i] += L[j * d + i] * e[j];
                logp_y -= 0.5 * y[i] * y[i];
            }
        else {
            vec total = splat(0);
            for (int i = 0; i < d; i += 8) { /* above its diagonal L is zero */
                vec s = load(x + i), r = splat(0);
                for (int j = 0; j < i + 8; j += 2) {
                    s += load(L + j * d + i) * e[j];
                    r += load(L + (j + 1) * d + i) * e[j + 1];
                }
                s += r;
                total -= 0.5 * s * s;
                store(y + i, s);
            }
            logp_y = sum(total);
        }
        if (E > -(logp_y - logp)) {
            for (int i = 0; i < d; i++) x[i] = y[i];
            logp = logp_y;
        }
        const double step = fmin(g.cap, g.c * pow(g.offset + (double)(before + t), -g.k));
        for (int j = 0; j < d; j++) {
            v[j] = x[j] - mu[j];
            mu[j] += step * v[j];
        }
        rank_one(d, L, 1 - step, step, v);
        for (int i = 0; i < d; i++) draws[i] = x[i];
    }
}

void adaptive_walk(void *bits, rank_one_fn rank_one, ptrdiff_t d, int64_t n, int64_t before,
                   double scale, double c, double k, double offset, double cap, double *x,
                   double *mu, double *L, double *draws)
{
    static fk_tables tables;
    const gain g = {c, k, offset, cap};
    if (!tables.pcg64) fk_make_tables(&tables, bits);
    tables.pcg64 = ((bitgen_t *)bits)->next_uint64; /* a PCG64, whose bits are made in line */
#define CALL(D) case D: walk(D, bits, &tables, rank_one, n, before, scale, g, x, mu, L, draws); break;
    switch (d) { CALL(2) CALL(8) CALL(32) CALL(128) }
}
