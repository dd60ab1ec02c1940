/* The loops of nearest.h. */
#include "filter.h"
#include "nearest.h"
#include "vector.h"

/* ---- building ---- */

static inline double coordinate(const fk_nearest *n, int64_t i, ptrdiff_t k)
{
    return n->points[i * n->d + k];
}

/* Arrange order[a..b) so that no point before m stands higher on the axis than one from m on. */
static inline void partition(const fk_nearest *n, int64_t *order, ptrdiff_t a, ptrdiff_t b, ptrdiff_t m,
                             ptrdiff_t axis)
{
    while (b - a > 1) {
        const double pivot = coordinate(n, order[a + (b - a) / 2], axis);
        ptrdiff_t i = a, j = b - 1;
        while (i <= j) {
            while (coordinate(n, order[i], axis) < pivot) i++;
            while (coordinate(n, order[j], axis) > pivot) j--;
            if (i <= j) {
                const int64_t t = order[i];
                order[i++] = order[j];
                order[j--] = t;
            }
        }
        if (m <= j)
            b = j + 1;
        else if (m >= i)
            a = i;
        else
            return;
    }
}

/* Write the box of order[a..b) to a lane of `box` (d, 2, 16) or NULL; return its widest axis. */
static inline ptrdiff_t bound(const fk_nearest *n, const int64_t *order, ptrdiff_t a, ptrdiff_t b,
                              double *box)
{
    ptrdiff_t widest = 0;
    double width = -1;
    for (ptrdiff_t k = 0; k < n->d; k++) {
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (ptrdiff_t i = a; i < b; i++) {
            const double v = coordinate(n, order[i], k);
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
        if (box) {
            box[2 * FK_WAYS * k] = least;
            box[2 * FK_WAYS * k + FK_WAYS] = most;
        }
        if (most - least > width) {
            width = most - least;
            widest = k;
        }
    }
    return widest;
}

static inline void fill_leaf(fk_nearest *n, ptrdiff_t a, ptrdiff_t b)
{
    double *block = n->leaves + a * n->d;
    int64_t *order = n->order;
    for (ptrdiff_t i = a + 1; i < b; i++)   /* by index, so that the first of equals is the lowest */
        for (ptrdiff_t j = i; j > a && order[j] < order[j - 1]; j--) {
            const int64_t t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
    for (ptrdiff_t l = 0; l < FK_WAYS; l++)
        for (ptrdiff_t k = 0; k < n->d; k++)
            block[k * FK_WAYS + l] = coordinate(n, order[a + l < b ? a + l : b - 1], k);
}

/* Sort the points of the children i .. j - 1 of a level, each of `size` points, into these. */
static void sort_children(fk_nearest *n, int level, ptrdiff_t size, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t a = i * size, b = j * size < n->s ? j * size : n->s, middle = (i + j) / 2;
    double *box = n->boxes + (n->first[level] + i / FK_WAYS) * 2 * n->d * FK_WAYS + i % FK_WAYS;
    const ptrdiff_t axis = bound(n, n->order, a, b, j - i == 1 ? box : NULL);
    if (j - i == 1) {
        if (level == 0) fill_leaf(n, a, b);
        return;
    }
    partition(n, n->order, a, b, middle * size, axis);
    sort_children(n, level, size, i, middle);
    sort_children(n, level, size, middle, j);
}

/* For the first s points. */
void FK_LEVEL(fk_nearest_build_tree)(fk_nearest *n, ptrdiff_t s)
{
    ptrdiff_t size = FK_WAYS, count = fk_sixteenths(fk_sixteenths(s)), nodes = 0;
    n->s = s;
    for (n->levels = 1, n->first[0] = 0; count > 1; count = fk_sixteenths(count)) {
        n->first[n->levels++] = nodes += count;
        size *= FK_WAYS;
    }
    for (ptrdiff_t i = 0; i < s; i++) n->order[i] = i;
    for (int level = n->levels - 1; level >= 0; level--, size /= FK_WAYS) {
        const ptrdiff_t children = n->children[level] = (s + size - 1) / size;
        for (ptrdiff_t i = 0; i < children; i += FK_WAYS)
            sort_children(n, level, size, i, i + FK_WAYS < children ? i + FK_WAYS : children);
    }
}

/* The grid covers all points, unless a few are far from the others: its half width is at most 16
 * times the geometric mean of the distances from the center. */
void FK_LEVEL(fk_nearest_build_filter)(fk_nearest *n, ptrdiff_t s)
{
    const ptrdiff_t d = n->d, pairs = (d + 1) / 2;
    double largest = 0, logs = 0;
    ptrdiff_t apart = 0;
    n->s = s;
    for (ptrdiff_t k = 0; k < d; k++) {
        double mean = 0;
        for (ptrdiff_t i = 0; i < s; i++) mean += coordinate(n, i, k) / (double)s;
        n->center[k] = mean;
    }
    for (ptrdiff_t i = 0; i < s; i++) {
        double most = 0;
        for (ptrdiff_t k = 0; k < d; k++)
            most = fmax(most, fabs(coordinate(n, i, k) - n->center[k]));
        largest = fmax(largest, most);
        if (most > 0) logs += log(most), apart++;
    }
    const double usual = apart ? 16 * exp(logs / (double)apart) : 1;
    const double width = fmax(usual < largest ? usual : largest, 1e-150);
    n->scale = width < 1e150 ? FK_GRID / width : 0;
    for (ptrdiff_t i = 0; i < fk_in_groups(s); i++) {
        int16_t *out = n->filter + 2 * (i / FK_GROUP * pairs * FK_GROUP + i % FK_GROUP);
        for (ptrdiff_t k = 0; k < d; k++) /* the last point fills the last group */
            out[2 * FK_GROUP * (k / 2) + k % 2] =
                fk_on_grid((coordinate(n, i < s ? i : s - 1, k) - n->center[k]) * n->scale);
        if (d % 2) out[2 * FK_GROUP * (pairs - 1) + 1] = 0;
    }
}

/* ---- looking up in the tree ---- */

typedef int64_t mask __attribute__((vector_size(32)));
typedef struct { fk_quad a, b, c, d; } sixteen;

/* s + (x - p)^2 */
FK_INLINE fk_quad add_square(fk_quad s, const double *p, double x)
{
    const fk_quad v = x - fk_load_quad(p);
    return fk_fma_quad(v, v, s);
}

/* s + max(0, least - x, x - most)^2 */
FK_INLINE fk_quad add_outside(fk_quad s, const double *least, double x)
{
    const fk_quad below = fk_load_quad(least) - x, above = x - fk_load_quad(least + FK_WAYS);
    const fk_quad v = (fk_quad)((mask)below & (below > 0)) + (fk_quad)((mask)above & (above > 0));
    return fk_fma_quad(v, v, s);
}

/* bit l: whether element l is at most `limit` */
FK_INLINE unsigned at_most(sixteen s, double limit)
{
    const mask a = {1, 2, 4, 8};
    const mask m = ((s.a <= limit) & a) | ((s.b <= limit) & a << 4)
        | ((s.c <= limit) & a << 8) | ((s.d <= limit) & a << 12);
    return (unsigned)(m[0] | m[1] | (m[2] | m[3]));
}

FK_INLINE fk_quad lesser(fk_quad a, fk_quad b)
{
    const mask less = a < b;
    return (fk_quad)((less & (mask)a) | (~less & (mask)b));
}

FK_INLINE double least_of(sixteen s)
{
    const fk_quad m = lesser(lesser(s.a, s.b), lesser(s.c, s.d));
    const double a = m[0] < m[1] ? m[0] : m[1], b = m[2] < m[3] ? m[2] : m[3];
    return a < b ? a : b;
}

typedef struct { double distance; int64_t index; } found;

FK_INLINE void search_leaf(const fk_nearest *n, const double *x, ptrdiff_t leaf, found *best)
{
    const double *block = n->leaves + leaf * n->d * FK_WAYS;
    sixteen s = {{0}, {0}, {0}, {0}};
    for (ptrdiff_t k = 0; k < n->d; k++, block += FK_WAYS) {
        s.a = add_square(s.a, block, x[k]);
        s.b = add_square(s.b, block + 4, x[k]);
        s.c = add_square(s.c, block + 8, x[k]);
        s.d = add_square(s.d, block + 12, x[k]);
    }
    const double least = least_of(s);
    if (least <= best->distance) {
        const int64_t index = n->order[leaf * FK_WAYS + __builtin_ctz(at_most(s, least))];
        if (least < best->distance || index < best->index) {
            best->distance = least;
            best->index = index;
        }
    }
}

static void search_node(const fk_nearest *n, const double *x, int level, ptrdiff_t node,
                        found *best)
{
    const ptrdiff_t d = n->d;
    const double *box = n->boxes + (n->first[level] + node) * 2 * d * FK_WAYS;
    sixteen s = {{0}, {0}, {0}, {0}};
    for (ptrdiff_t k = 0; k < d; k++, box += 2 * FK_WAYS) {
        s.a = add_outside(s.a, box, x[k]);
        s.b = add_outside(s.b, box + 4, x[k]);
        s.c = add_outside(s.c, box + 8, x[k]);
        s.d = add_outside(s.d, box + 12, x[k]);
    }
    const ptrdiff_t ways = n->children[level] - node * FK_WAYS;
    unsigned all = ways < FK_WAYS ? (1u << ways) - 1 : 0xffff, left = at_most(s, least_of(s)) & all;
    do {
        const int l = left ? __builtin_ctz(left) : 0;
        if (level == 0)
            search_leaf(n, x, node * FK_WAYS + l, best);
        else
            search_node(n, x, level - 1, node * FK_WAYS + l, best);
        all &= ~(1u << l);
        left = at_most(s, best->distance) & all;
    } while (left);
}

/* ---- looking up by the filter ---- */

/* |x - p|^2 of point i, in the order of the tree's sums */
FK_INLINE double exact_square(const fk_nearest *n, const double *x, ptrdiff_t i)
{
    const double *p = n->points + i * n->d;
    double s = 0;
    for (ptrdiff_t k = 0; k < n->d; k++) s = fk_fma(x[k] - p[k], x[k] - p[k], s);
    return s;
}

/* distances on the grid; return a limit that the distance of the nearest point does not exceed */
static float distances_and_limit(const fk_nearest *n, const double *x, float *distance)
{
    const ptrdiff_t d = n->d, pairs = (d + 1) / 2, size = fk_in_groups(n->s);
    int32_t *z = (int32_t *)(distance + size);
    z[pairs - 1] = 0;
    for (ptrdiff_t k = 0; k < d; k++)
        ((int16_t *)z)[k] = fk_on_grid((x[k] - n->center[k]) * n->scale);
    const float least = fk_grid_distances(pairs, size, n->filter, z, distance);
    const ptrdiff_t first = fk_next_within(0, n->s - 1, distance, least);
    const double there = sqrt(exact_square(n, x, first)) * n->scale;
    const double r = there * (1 + 1e-9) + 1.001 * sqrt((double)d);
    return (float)(r * r * (1 + 0x1p-22 * (double)(pairs / FK_PAIRS + 2)));
}

static found search_filter(const fk_nearest *n, const double *x, float *distance)
{
    found best = {HUGE_VAL, 0};
    float limit = 0;
    int is_finite = n->scale > 0;
    for (ptrdiff_t k = 0; k < n->d; k++) is_finite &= x[k] - x[k] == 0;
    if (is_finite)
        limit = distances_and_limit(n, x, distance);
    else
        memset(distance, 0, sizeof(float) * (size_t)fk_in_groups(n->s));
    for (ptrdiff_t i = 0; (i = fk_next_within(i, n->s, distance, limit)) < n->s; i++) {
        const double *p = n->points + i * n->d;
        if (i && !memcmp(p, p - n->d, sizeof(double) * (size_t)n->d))
            continue; /* the same point, where a chain did not move */
        const double s = exact_square(n, x, i);
        if (s < best.distance) {
            best.distance = s;
            best.index = i;
        }
    }
    return best;
}

/* h |x - p|, without a square that over- or underflows */
static double scaled_distance(ptrdiff_t d, double h, const double *x, const double *p)
{
    double largest = 0, s = 0;
    for (ptrdiff_t k = 0; k < d; k++) largest = fmax(largest, fabs(h * x[k] - h * p[k]));
    if (largest == 0) return 0;
    for (ptrdiff_t k = 0; k < d; k++) {
        const double v = (h * x[k] - h * p[k]) / largest;
        s += v * v;
    }
    return largest * sqrt(s);
}

/* search all points one by one */
static int64_t search_all(const fk_nearest *n, const double *x)
{
    found best = {HUGE_VAL, 0};
    double largest = 0;
    for (ptrdiff_t k = 0; k < n->d; k++) {
        largest = fmax(largest, fabs(x[k]));
        for (ptrdiff_t i = 0; i < n->s; i++) largest = fmax(largest, fabs(coordinate(n, i, k)));
    }
    const double h = largest > 1e290 ? 0x1p-64 : 1;
    for (ptrdiff_t i = 0; i < n->s; i++) {
        const double distance = scaled_distance(n->d, h, x, n->points + i * n->d);
        if (distance < best.distance) {
            best.distance = distance;
            best.index = i;
        }
    }
    return best.index;
}

static int same_point(ptrdiff_t d, const double *x, const double *p)
{
    for (ptrdiff_t k = 0; k < d; k++)
        if (x[k] != p[k]) return 0;
    return 1;
}

int64_t FK_LEVEL(fk_nearest_find)(const fk_nearest *n, const double *x, float *work)
{
    found best = {HUGE_VAL, 0};
    if (n->is_tree)
        search_node(n, x, n->levels - 1, 0, &best);
    else
        best = search_filter(n, x, work);
    if (best.distance > 1e-290 && best.distance < 1e290) return best.index;
    if (same_point(n->d, x, n->points + best.index * n->d)) return best.index;
    return search_all(n, x);
}

