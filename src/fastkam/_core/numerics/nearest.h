/* The nearest of s points: the index of the least sum_k (x_k - p_k)^2, of equals the lowest.
 *
 * Few dimensions: a tree. Halving along the widest axis, again and again, sorts the points into leaves
 * of 16 that lie together, 16 leaves into a node, 16 nodes into another, up to the root; of each kind
 * only the last may have fewer. At a node the distances to the boxes of its 16 children are found lane
 * by lane; the nearest is entered first, then those that may hold a point as near.
 *
 * Many dimensions: distances in whole numbers to all points, 64 at a time, and exactly to those that
 * may be the nearest. Points and query x are moved to a grid of 8191 numbers along each axis, what is
 * outside of it to its edge. This takes no two further apart, but for the rounding, by 1/2 in each
 * coordinate of both: with distances |.| in units of the grid, and q the point that is nearest there,
 *
 *     |x - p| on the grid <= |x - p| + sqrt(d) <= |x - q| + sqrt(d)
 *
 * for the point p that is nearest in truth.
 *
 * Where the least square over- or underflows, the distances to all points are found again, each as a
 * multiple of its largest coordinate. */
#ifndef FASTKAM_NEAREST_H
#define FASTKAM_NEAREST_H

#include <stdint.h>

#include "levels.h"

#define FK_WAYS 16      /* points of a leaf, children of a node */
#define FK_GROUP 64     /* points of the filter that stand together */

typedef struct {
    ptrdiff_t d, s;
    const double *points;   /* (s, d) */
    int is_tree;
    /* the tree */
    int levels;             /* of nodes */
    double *leaves;         /* (count of leaves, d, 16): points lane by lane; the last one again
                             * where there are fewer */
    int64_t *order;         /* (s,): which they are */
    double *boxes;          /* (count of nodes, d, 2, 16): least and largest coordinates of each child,
                             * level by level from the leaves' parents up */
    ptrdiff_t first[12];    /* the place of each level's first node among all */
    ptrdiff_t children[12]; /* of all nodes of each level */
    /* the filter */
    int16_t *filter;        /* (ceil(s / 64), ceil(d / 2), 64, 2) */
    double *centre;         /* (d,) */
    double scale;           /* units of the grid in 1; 0 where no filter is possible */
} fk_nearest;

static inline ptrdiff_t fk_sixteenths(ptrdiff_t n) { return (n + FK_WAYS - 1) / FK_WAYS; }

/* s points in whole groups of the filter */
static inline ptrdiff_t fk_in_groups(ptrdiff_t s)
{
    return (s + FK_GROUP - 1) / FK_GROUP * FK_GROUP;
}

/* The nodes of a tree of s points. */
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
