/* The nearest of s points: the lowest index with the least sum_k (x_k - p_k)^2.
 *
 * Few dimensions: a tree. Repeated halving along the widest axis sorts neighboring points into
 * leaves of 16, 16 leaves into a node, 16 nodes into another, up to the root; only the last of each
 * kind may have fewer. At a node the distances to the boxes of its 16 children are computed lane by
 * lane; the nearest child is entered first, then those that may contain a point as near.
 *
 * Many dimensions: integer distances to all points, 64 at a time, and exact ones to those that may
 * be the nearest. Points and query x are rounded to a grid of 8191 numbers along each axis; points
 * outside are moved to its edge. Distances do not grow except by the rounding, 1/2 in each
 * coordinate of both: with distances |.| in units of the grid, and q the nearest point on the grid,
 *
 *     |x - p| on the grid <= |x - p| + sqrt(d) <= |x - q| + sqrt(d)
 *
 * for the point p that is exactly nearest.
 *
 * If the smallest square over- or underflows, all distances are computed again, each as a multiple
 * of its largest coordinate. */
#ifndef FASTKAM_NEAREST_H
#define FASTKAM_NEAREST_H

#include <stdint.h>

#include "levels.h"

#define FK_WAYS 16      /* points of a leaf, children of a node */
#define FK_GROUP 64     /* points of the filter in a group */

typedef struct {
    ptrdiff_t d, s;
    const double *points;   /* (s, d) */
    int is_tree;
    /* the tree */
    int levels;             /* of nodes */
    double *leaves;         /* (count of leaves, d, 16): points lane by lane, padded with the last
                             * one */
    int64_t *order;         /* (s,): their indices */
    double *boxes;          /* (count of nodes, d, 2, 16): least and largest coordinates of each child,
                             * level by level from the leaves' parents up */
    ptrdiff_t first[12];    /* the place of each level's first node among all */
    ptrdiff_t children[12]; /* of all nodes of each level */
    /* the filter */
    int16_t *filter;        /* (ceil(s / 64), ceil(d / 2), 64, 2) */
    double *center;         /* (d,) */
    double scale;           /* units of the grid in 1; 0 if no filter is possible */
} fk_nearest;

static inline ptrdiff_t fk_sixteenths(ptrdiff_t n) { return (n + FK_WAYS - 1) / FK_WAYS; }

/* s points in whole groups of the filter */
static inline ptrdiff_t fk_in_groups(ptrdiff_t s)
{
    return (s + FK_GROUP - 1) / FK_GROUP * FK_GROUP;
}

/* The number of nodes of a tree of s points. */
static inline ptrdiff_t fk_count_nodes(ptrdiff_t s)
{
    ptrdiff_t nodes = 0, count = fk_sixteenths(s);
    do nodes += count = fk_sixteenths(count); while (count > 1);
    return nodes;
}

/* for the first s points */
FK_DISPATCH(void, fk_nearest_build_tree, (fk_nearest *n, ptrdiff_t s))
FK_DISPATCH(void, fk_nearest_build_filter, (fk_nearest *n, ptrdiff_t s))

/* `work` is of fk_in_groups(s) + ceil(d / 2) numbers; a tree needs none */
FK_DISPATCH(int64_t, fk_nearest_find, (const fk_nearest *n, const double *x, float *work))

#endif
