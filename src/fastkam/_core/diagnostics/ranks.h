/* Ranks of draws, their normal scores, and quantiles: all from one sort.
 *
 * A radix sort of the bits of the draws, a byte a pass: first by the 32 highest bits in which they
 * differ, which puts nearly all in order; then the others are inserted where they belong. The order
 * of |x - median| needs no second sort: it is a merge of the draws below the median, read backward,
 * with those above. */
#ifndef FASTKAM_RANKS_H
#define FASTKAM_RANKS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FK_NO_PLACE UINT64_MAX

/* a draw: bits that are ordered as its value is, and its place among the halves of the chains, or
 * FK_NO_PLACE for the middle draw of an odd number */
typedef struct { uint64_t key, place; } fk_ranked;

static inline uint64_t fk_key(double x)
{
    uint64_t bits;
    x += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof x);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline double fk_value(uint64_t key)
{
    const uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* sort n draws stably by the bits of key - least from `first` to `end`; as fk_sort */
static fk_ranked *fk_sort_by_bits(ptrdiff_t n, fk_ranked *a, fk_ranked *other, uint64_t least,
                                  int first, int end)
{
    size_t count[8][256];
    memset(count, 0, sizeof count);
    for (ptrdiff_t i = 0; i < n; i++)
        for (int b = first, k = 0; b < end; b += 8, k++) count[k][(a[i].key - least) >> b & 255]++;
    for (int b = first, k = 0; b < end; b += 8, k++) {
        if (count[k][(a[0].key - least) >> b & 255] == (size_t)n) continue;
        size_t start = 0;
        for (int v = 0; v < 256; v++) {
            const size_t some = count[k][v];
            count[k][v] = start;
            start += some;
        }
        for (ptrdiff_t i = 0; i < n; i++) other[count[k][(a[i].key - least) >> b & 255]++] = a[i];
        fk_ranked *const swapped = a;
        a = other;
        other = swapped;
    }
    return a;
}

/* sort draws that are nearly in order, stably; return whether that took at most `most` moves */
static int fk_insert(ptrdiff_t n, fk_ranked *a, ptrdiff_t most)
{
    for (ptrdiff_t i = 1; i < n; i++) {
        const fk_ranked one = a[i];
        ptrdiff_t j = i;
        for (; j > 0 && a[j - 1].key > one.key; j--) a[j] = a[j - 1];
        if (j < i) a[j] = one;
        most -= i - j;
        if (most < 0) return 0;
    }
    return 1;
}

/* sort n draws by key, stably; the result is in a or in `other`, whichever is returned */
static fk_ranked *fk_sort(ptrdiff_t n, fk_ranked *a, fk_ranked *other)
{
    uint64_t least = a[0].key, most = a[0].key;
    for (ptrdiff_t i = 1; i < n; i++) {
        least = a[i].key < least ? a[i].key : least;
        most = a[i].key > most ? a[i].key : most;
    }
    int bits = 0;
    while (bits < 64 && (most - least) >> bits) bits++;
    fk_ranked *sorted = fk_sort_by_bits(n, a, other, least, bits > 32 ? bits - 32 : 0, bits);
    if (bits > 32 && !fk_insert(n, sorted, 2 * n)) /* many draws have these bits in common */
        sorted = fk_sort_by_bits(n, sorted, sorted == a ? other : a, least, 0, bits);
    return sorted;
}

/* The quantile of sorted draws that interpolates linearly between two of them, as numpy.quantile */
static double fk_quantile(ptrdiff_t n, const fk_ranked *sorted, double p)
{
    const double at = (double)(n - 1) * p, below = floor(at), t = at - below;
    const ptrdiff_t i = (ptrdiff_t)below;
    const double a = fk_value(sorted[i].key), b = fk_value(sorted[i + 1 < n ? i + 1 : i].key);
    return t >= 0.5 ? b - (b - a) * (1 - t) : a + (b - a) * t;
}

/* keep the draws that have a place among the halves; return their number */
static ptrdiff_t fk_keep_placed(ptrdiff_t n, fk_ranked *a)
{
    ptrdiff_t m = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        a[m] = a[i];
        m += a[i].place != FK_NO_PLACE;
    }
    return m;
}

/* `folded`: the m sorted draws, m even, in the order of their distance from their median */
static void fk_fold(ptrdiff_t m, const fk_ranked *sorted, fk_ranked *folded)
{
    ptrdiff_t low = m / 2 - 1, high = m / 2;
    const double median = (fk_value(sorted[low].key) + fk_value(sorted[high].key)) / 2;
    for (ptrdiff_t i = 0; i < m; i++) {
        const double left = low >= 0 ? fabs(fk_value(sorted[low].key) - median) : INFINITY;
        const double right = high < m ? fabs(fk_value(sorted[high].key) - median) : INFINITY;
        const int is_left = left < right;
        folded[i].key = fk_key(is_left ? left : right);
        folded[i].place = sorted[is_left ? low-- : high++].place;
    }
}

/* The quantile of N(0, 1) at p in (0, 1), to 1e-16: Wichura, M. J. (1988). Algorithm AS 241: the
 * percentage points of the normal distribution. Applied Statistics 37, 477-484. PPND16. First for
 * |p - 0.5| <= 0.425, written out so that a loop over it is vectorized. */
static inline double fk_central_quantile(double p)
{
    const double q = p - 0.5, r = 0.180625 - q * q;
    const double top = ((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r
        + 6.7265770927008700853e4) * r + 4.5921953931549871457e4) * r
        + 1.3731693765509461125e4) * r + 1.9715909503065514427e3) * r
        + 1.3314166789178437745e2) * r + 3.3871328727963666080e0;
    const double bottom = ((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r
        + 3.9307895800092710610e4) * r + 2.1213794301586595867e4) * r
        + 5.3941960214247511077e3) * r + 6.8718700749205790830e2) * r
        + 4.2313330701600911252e1) * r + 1.0;
    return q * top / bottom;
}

static double fk_normal_quantile(double p)
{
    static const double c[] = {
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4}, d[] = {
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
        1.05075007164441684324e-9}, e[] = {
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7}, f[] = {
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15};
    if (fabs(p - 0.5) <= 0.425) return fk_central_quantile(p);
    double r = sqrt(-log(p < 0.5 ? p : 1 - p));
    const double *above = r <= 5 ? c : e, *below = r <= 5 ? d : f;
    r -= r <= 5 ? 1.6 : 5;
    double top = above[7], bottom = below[7];
    for (int i = 6; i >= 0; i--) {
        top = top * r + above[i];
        bottom = bottom * r + below[i];
    }
    return p < 0.5 ? -top / bottom : top / bottom;
}

/* The normal score of a rank among m; that of a group of ties is the mean of its ranks.
 * Blom, G. (1958). Statistical estimates and transformed beta-variables. */
static inline double fk_probability(double rank, ptrdiff_t m)
{
    return (rank - 0.375) / ((double)m + 0.25);
}

static inline double fk_score(double rank, ptrdiff_t m)
{
    return fk_normal_quantile(fk_probability(rank, m));
}

/* scores of the ranks 1 .. m/2; the others are their negatives */
static void fk_score_table(ptrdiff_t m, double *table)
{
    ptrdiff_t i = 0;
    for (; i < m / 2 && fk_probability((double)(i + 1), m) < 0.076; i++)
        table[i] = fk_score((double)(i + 1), m);
    for (; i < m / 2; i++) table[i] = fk_central_quantile(fk_probability((double)(i + 1), m));
}

/* z: the normal score of each of m sorted draws, at its place */
static void fk_scores(ptrdiff_t m, const fk_ranked *sorted, const double *table, double *z)
{
    for (ptrdiff_t i = 0, j; i < m; i = j) {
        for (j = i + 1; j < m && sorted[j].key == sorted[i].key; j++) {}
        const double score = j > i + 1 ? fk_score(0.5 * (double)(i + 1 + j), m)
            : i < m / 2 ? table[i] : -table[m - 1 - i];
        for (ptrdiff_t k = i; k < j; k++) z[sorted[k].place] = score;
    }
}

#endif
