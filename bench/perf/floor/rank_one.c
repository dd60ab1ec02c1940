/* The floor of a factor's update, L L' <- a L L' + s v v', in one pass: four columns are swept at
 * once, and the inverses of the diagonal are kept from one update to the next, so that roots and
 * divisions do not wait for each other. L column-major, ld doubles to a column, all of them free to
 * be written; nothing is checked. */
#include "vec.h"

enum { MOST = 512 };
static _Thread_local double inverses[MOST];

/* n columns from j on; returns t after them */
INLINE double columns(const int n, ptrdiff_t d, ptrdiff_t ld, double *restrict L, double a,
                      double s, double *restrict v, double *restrict inverse, double t)
{
    double w[4], p[4], q[4], r[4], after[4], one_over[4], new[4][4], residual;
    const double one_over_t = 1 / t;
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) r[c] = v[c];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        w[c] = r[c] * inverse[c];
#pragma GCC unroll 4
        for (int i = c + 1; i < n; i++) r[i] -= w[c] * L[c * ld + i];
        after[c] = t += s * (w[c] * w[c]);
        one_over[c] = 1 / t;
    }
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        const double before = c ? one_over[c - 1] : one_over_t;
        p[c] = sqrt(a * after[c] * before);
        q[c] = p[c] * s * w[c] * one_over[c];
        inverse[c] *= p[c] * one_over[c] / (a * before);
        new[c][c] = p[c] * L[c * ld + c];
    }
#pragma GCC unroll 4
    for (int i = 1; i < n; i++) {
        residual = v[i];
#pragma GCC unroll 4
        for (int c = 0; c < i; c++) {
            residual -= w[c] * L[c * ld + i];
            new[c][i] = p[c] * L[c * ld + i] + q[c] * residual;
        }
    }
    if (n == 4)
        for (ptrdiff_t i = 4; i < d; i += 8) {
            vec x, u = load(v + i);
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) {
                x = load(L + c * ld + i);
                u -= x * w[c];
                store(L + c * ld + i, x * p[c] + u * q[c]);
            }
            store(v + i, u);
        }
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
#pragma GCC unroll 4
        for (int i = c; i < n; i++) L[c * ld + i] = new[c][i];
    return t;
}

static void update(ptrdiff_t d, ptrdiff_t ld, double *restrict L, double a, double s,
                   double *restrict v, double *restrict inverse)
{
    double t = a;
    ptrdiff_t j = 0;
    for (; j + 4 <= d; j += 4)
        t = columns(4, d - j, ld, L + j * (ld + 1), a, s, v + j, inverse + j, t);
    switch (d - j) {
    case 1: columns(1, 1, ld, L + j * (ld + 1), a, s, v + j, inverse + j, t); break;
    case 2: columns(2, 2, ld, L + j * (ld + 1), a, s, v + j, inverse + j, t); break;
    case 3: columns(3, 3, ld, L + j * (ld + 1), a, s, v + j, inverse + j, t); break;
    }
}

static void update_2(double *restrict L, double a, double s, double *restrict v)
{
    const double w0 = v[0] / L[0], t0 = a + s * (w0 * w0), v1 = v[1] - w0 * L[1];
    const double w1 = v1 / L[3], t1 = t0 + s * (w1 * w1), h = sqrt(t0);
    L[0] *= h;
    L[1] = h * L[1] + s * w0 / h * v1;
    L[3] *= sqrt(a * t1 / t0);
}

/* updates and downdates in turn; v is set again each time: v = u */
void floor_update(ptrdiff_t times, ptrdiff_t d, ptrdiff_t ld, double *L, double a, double s,
                  const double *u, double *v)
{
    for (ptrdiff_t j = 0; j < d; j++) inverses[j] = 1 / L[j * (ld + 1)];
    for (ptrdiff_t i = 0; i < times; i++) {
        memcpy(v, u, (size_t)d * sizeof(double));
        if (d == 2)
            update_2(L, a, i & 1 ? -s : s, v);
        else
            update(d, ld, L, a, i & 1 ? -s : s, v, inverses);
    }
}
