/* The nearest of s points: the index of the least sum_k (x_k - p_k)^2, of equals the lowest.
 *
 * Few dimensions: a tree. Halving along the widest axis, again and again, sorts the points into leaves
 * of 16 that lie together, 16 leaves into a node, 16 nodes into another, up to the root; of each kind
 * only the last may have fewer. At a node the distances to the boxes of its 16 children are found lane
 * by lane; the nearest is entered first, then those that may hold a point as near.
 *
 * Many dimensions: distances in single precision to all points, 16 at a time, and exactly to those
 * that the bound on the rounding errors leaves. With points centred and scaled to [-1, 1], u = 2^-24
 * and |z_k| <= Z of the query, a distance r is found with an error of at most
 *
 *     4 u Z sqrt(d) + (d + 3) u r
 *
 * so no point is the nearest whose distance exceeds the least by more than twice that.
 *
 * Where the least square over- or underflows, the distances to all points are found again, each as a
 * multiple of its largest coordinate. */
#ifndef FASTKAM_NEAREST_H
#define FASTKAM_NEAREST_H

#include <stdint.h>

#include "levels.h"

#define FK_WAYS 16      /* points of a leaf, children of a node */

typedef struct {
    ptrdiff_t d, s;
    const double *points;   /* (s, d) */
    int is_tree;
    /* the tree */
    int levels;             /* of nodes */
    double *leaves;         /* (count of leaves, d, 16): points lane by lane, infinite past the last */
    int64_t *order;         /* (s,): which they are */
    double *boxes;          /* (count of nodes, d, 2, 16): least and largest coordinates of each child,
                             * level by level from the leaves' parents up */
    ptrdiff_t first[12];    /* the place of each level's first node among all */
    ptrdiff_t children[12]; /* of all nodes of each level */
    /* the filter */
    float *filter;          /* (ceil(s / 16), d, 16) */
    double *centre;         /* (d,) */
    double scale;           /* 1 / largest coordinate from the centre; 0 where no filter is possible */
} fk_nearest;

static inline ptrdiff_t fk_sixteenths(ptrdiff_t n) { return (n + FK_WAYS - 1) / FK_WAYS; }

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

/* `work` is of d + 16 ceil(s / 16) numbers; a tree needs none */
FK_DISPATCH(int64_t, fk_nearest_find, (const fk_nearest *n, const double *x, float *work))

#endif
