/* The floor of a look-up of the nearest of s points: for few dimensions a k-d tree in an array, whose
 * leaves are 16 points in lanes; for many, distances in single precision to all points, and exactly
 * to those within 1e-5 of the least. Ties, overflow and far points are not handled. */
#include <stdlib.h>

#include "vec.h"

enum { LEAF = 16, MOST = 128 };

typedef float fvec __attribute__((vector_size(64), aligned(4), may_alias));

typedef struct {
    ptrdiff_t s, d, blocks, leaves;
    const double *points;
    double *lanes, *split;
    int *axis;
    int64_t *order;
    float *filter, *distance;
} floor_tree;

static const floor_tree *sorting;
static int sorting_axis;

static int compare(const void *a, const void *b)
{
    const double x = sorting->points[*(const int64_t *)a * sorting->d + sorting_axis];
    const double y = sorting->points[*(const int64_t *)b * sorting->d + sorting_axis];
    return (x > y) - (x < y);
}

/* nodes as in a heap; each child has half of the leaves */
static void build(floor_tree *t, ptrdiff_t node, ptrdiff_t first, ptrdiff_t leaves)
{
    const ptrdiff_t a = first * LEAF, end = a + leaves * LEAF, b = end < t->s ? end : t->s;
    if (leaves == 1) {
        for (ptrdiff_t k = 0; k < t->d; k++)
            for (ptrdiff_t l = 0; l < LEAF; l++)
                t->lanes[(first * t->d + k) * LEAF + l] =
                    a + l < b ? t->points[t->order[a + l] * t->d + k] : HUGE_VAL;
        return;
    }
    double widest = -1;
    for (int k = 0; k < t->d; k++) {
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (ptrdiff_t i = a; i < b; i++) {
            const double x = t->points[t->order[i] * t->d + k];
            least = x < least ? x : least;
            most = x > most ? x : most;
        }
        if (most - least > widest) widest = most - least, t->axis[node] = k;
    }
    sorting = t, sorting_axis = t->axis[node];
    if (b > a) qsort(t->order + a, (size_t)(b - a), sizeof(int64_t), compare);
    const ptrdiff_t middle = (first + leaves / 2) * LEAF;
    t->split[node] = middle < b ? t->points[t->order[middle] * t->d + t->axis[node]] : HUGE_VAL;
    build(t, 2 * node, first, leaves / 2);
    build(t, 2 * node + 1, first + leaves / 2, leaves / 2);
}

floor_tree *floor_index(ptrdiff_t s, ptrdiff_t d, const double *points)
{
    floor_tree *t = calloc(1, sizeof *t);
    t->s = s, t->d = d, t->points = points, t->blocks = (s + LEAF - 1) / LEAF;
    for (t->leaves = 1; t->leaves < t->blocks; t->leaves *= 2) {}
    t->order = malloc(sizeof(int64_t) * (size_t)s);
    t->split = malloc(sizeof(double) * (size_t)t->leaves);
    t->axis = malloc(sizeof(int) * (size_t)t->leaves);
    t->lanes = aligned_alloc(64, sizeof(double) * (size_t)(t->leaves * LEAF * d));
    t->filter = aligned_alloc(64, sizeof(float) * (size_t)(t->blocks * LEAF * d));
    t->distance = aligned_alloc(64, sizeof(float) * (size_t)(t->blocks * LEAF));
    for (ptrdiff_t i = 0; i < s; i++) t->order[i] = i;
    build(t, 1, 0, t->leaves);
    for (ptrdiff_t i = 0; i < t->blocks * LEAF; i++)
        for (ptrdiff_t k = 0; k < d; k++)
            t->filter[(i / LEAF * d + k) * LEAF + i % LEAF] =
                i < s ? (float)points[i * d + k] : HUGE_VALF;
    return t;
}

typedef struct {
    const floor_tree *t;
    const double *x;
    double sides[MOST], least; /* of the box that is searched from x, axis by axis */
    ptrdiff_t found;
} query;

INLINE void search_leaf(const int d, query *q, ptrdiff_t leaf)
{
    const double *p = q->t->lanes + leaf * d * LEAF;
    vec r = splat(0), s = splat(0);
    for (int k = 0; k < d; k++, p += LEAF) {
        const vec a = load(p) - q->x[k], b = load(p + 8) - q->x[k];
        r += a * a, s += b * b;
    }
    const ivec less = (r < q->least) | (s < q->least);
    if (!((less[0] | less[4]) | (less[1] | less[5]) | (less[2] | less[6]) | (less[3] | less[7])))
        return;
    double distance[LEAF];
    store(distance, r), store(distance + 8, s);
    for (int l = 0; l < LEAF; l++)
        if (distance[l] < q->least) q->least = distance[l], q->found = leaf * LEAF + l;
}

/* `below`: the square of the distance from x to the node's box */
#define SEARCH(D)                                                                                 \
    static void search_##D(query *q, ptrdiff_t node, double below)                                \
    {                                                                                             \
        const floor_tree *t = q->t;                                                               \
        if (node >= t->leaves) {                                                                  \
            search_leaf(D, q, node - t->leaves);                                                  \
            return;                                                                               \
        }                                                                                         \
        const int k = t->axis[node];                                                              \
        const double v = q->x[k] - t->split[node], side = q->sides[k];                            \
        const double far = below - side * side + v * v;                                           \
        search_##D(q, 2 * node + (v >= 0), below);                                                \
        if (far >= q->least) return;                                                              \
        q->sides[k] = v;                                                                          \
        search_##D(q, 2 * node + (v < 0), far);                                                   \
        q->sides[k] = side;                                                                       \
    }
SEARCH(2) SEARCH(4) SEARCH(8)

static int64_t in_tree(const floor_tree *t, const double *x)
{
    query q;
    q.t = t, q.x = x, q.least = HUGE_VAL, q.found = 0;
    for (ptrdiff_t k = 0; k < t->d; k++) q.sides[k] = 0;
    switch (t->d) {
    case 2: search_2(&q, 1, 0); break;
    case 4: search_4(&q, 1, 0); break;
    default: search_8(&q, 1, 0);
    }
    return t->order[q.found];
}

typedef int32_t i32vec __attribute__((vector_size(64), may_alias));

INLINE fvec lesser(fvec a, fvec b)
{
    const i32vec m = a < b;
    return (fvec)((m & (i32vec)a) | (~m & (i32vec)b));
}

static int64_t in_scan(const floor_tree *t, const double *x)
{
    const ptrdiff_t d = t->d;
    float z[MOST];
    for (ptrdiff_t k = 0; k < d; k++) z[k] = (float)x[k];
    fvec low = (fvec){0} + HUGE_VALF;
    const float *p = t->filter;
    for (ptrdiff_t b = 0; b < t->blocks; b++) {
        fvec r = {0}, q = {0};
        for (ptrdiff_t k = 0; k < d; k += 2, p += 2 * LEAF) {
            const fvec u = *(const fvec *)p - z[k], v = *(const fvec *)(p + LEAF) - z[k + 1];
            r += u * u, q += v * v;
        }
        r += q;
        *(fvec *)(t->distance + b * LEAF) = r;
        low = lesser(r, low);
    }
    float limit = HUGE_VALF;
    for (int l = 0; l < LEAF; l++) limit = low[l] < limit ? low[l] : limit;
    limit *= 1.00001f;
    double least = HUGE_VAL;
    int64_t found = 0;
    for (ptrdiff_t b = 0; b < t->blocks; b++) {
        const ivec near = (ivec)(*(const fvec *)(t->distance + b * LEAF) <= limit);
        if (!((near[0] | near[1] | near[2] | near[3]) | (near[4] | near[5] | near[6] | near[7])))
            continue;
        for (ptrdiff_t i = b * LEAF; i < (b + 1) * LEAF && i < t->s; i++) {
            if (t->distance[i] > limit) continue;
            double s = 0;
            for (ptrdiff_t k = 0; k < d; k++)
                s += (x[k] - t->points[i * d + k]) * (x[k] - t->points[i * d + k]);
            if (s < least) least = s, found = i;
        }
    }
    return found;
}

/* the points that are nearest to each of 64 queries (64, d), in turn; d is even */
void floor_find(ptrdiff_t times, const floor_tree *t, const double *x, double *found)
{
    const int tree = t->d < 8 || (t->d == 8 && t->s > 500);
    for (ptrdiff_t i = 0; i < times; i++) {
        const double *at = x + i % 64 * t->d;
        found[i % 64] = (double)(tree ? in_tree(t, at) : in_scan(t, at));
    }
}
