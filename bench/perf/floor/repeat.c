/* fastkam's kernels, called in loops from C, as within a chain. Compiled together
 * with them for one instruction set. */
#include <stdlib.h>

#include "factor.h"
#include "kernel_pass.h"
#include "linalg.h"
#include "nearest.h"

void repeat_pass(ptrdiff_t times, ptrdiff_t kind, double length, double order, ptrdiff_t degree,
                 const double *table, double origin, ptrdiff_t n, ptrdiff_t d, const double *z,
                 double *y, double *work, double *Q, double *s)
{
    const fk_kernel k = {(int)kind, length, order, (int)degree, table, origin, 0, 1};
    for (ptrdiff_t i = 0; i < times; i++) {
        y[0] += 1e-12;
        FK_LEVEL(fk_kernel_pass)(&k, n, d, z, y, work, Q, s);
    }
}

/* log N(x; mean, A), up to its constant */
double repeat_density(ptrdiff_t times, ptrdiff_t d, const double *A, const double *mean, double *x,
                      double *L, double *v)
{
    double total = 0;
    volatile double *at = x; /* one by one: a vector load would wait for the change of x[0] */
    for (ptrdiff_t i = 0; i < times; i++) {
        at[0] += 1e-12;
        for (ptrdiff_t j = 0; j < d; j++) v[j] = at[j] - mean[j];
        if (d > 8)
            memcpy(L, A, (size_t)(d * d) * sizeof(double));
        else
            for (ptrdiff_t j = 0; j < d * d; j++) L[j] = A[j];
        double log_det;
        if (FK_LEVEL(fk_cholesky)(d, L, v, &log_det)) return NAN;
        total -= 0.5 * fk_square(d, v) + log_det + d * 0.9189385332046727;
    }
    return total / times;
}

/* updates and downdates in turn */
void repeat_update(ptrdiff_t times, ptrdiff_t d, double *L, double a, double s, const double *u,
                   double *v)
{
    for (ptrdiff_t i = 0; i < times; i++) {
        fk_copy(d, u, v);
        FK_LEVEL(fk_rank_one)(d, L, a, i & 1 ? -s : s, v);
    }
}

/* an index of s points (s, d) in either form */
void *new_index(ptrdiff_t s, ptrdiff_t d, const double *points, ptrdiff_t is_tree)
{
    const size_t n = (size_t)(FK_WAYS * fk_sixteenths(s));
    fk_nearest *index = calloc(1, sizeof *index);
    index->d = d, index->points = points, index->is_tree = (int)is_tree;
    index->leaves = malloc(sizeof(double) * n * (size_t)d);
    index->order = malloc(sizeof(int64_t) * (size_t)s);
    index->boxes = malloc(sizeof(double) * (size_t)(2 * d * FK_WAYS * fk_count_nodes(s)));
    index->filter = aligned_alloc(64, sizeof(float) * (n + 64) * (size_t)(d + 1)); /* at most */
    index->center = malloc(sizeof(double) * (size_t)d);
    if (is_tree)
        FK_LEVEL(fk_nearest_build_tree)(index, s);
    else
        FK_LEVEL(fk_nearest_build_filter)(index, s);
    return index;
}

/* the points that are nearest to each of 64 queries (64, d), in turn */
void repeat_find(ptrdiff_t times, const fk_nearest *index, const double *x, double *found)
{
    void *work = aligned_alloc(64, sizeof(float) * (size_t)(index->s + index->d + 96));
    for (ptrdiff_t i = 0; i < times; i++)
        found[i % 64] = (double)FK_LEVEL(fk_nearest_find)(index, x + i % 64 * index->d, work);
    free(work);
}
