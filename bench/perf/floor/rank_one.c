/* The floor of a factor's update, L L' <- a L L' + s v v', in one pass: no size is known, but the
 * diagonal's inverses are made beforehand, so that no division waits for another, and four columns
 * are swept at once. L column-major, ld doubles to a column, all of them free to be written. */
#include "vec.h"

static void update(ptrdiff_t d, ptrdiff_t ld, double *restrict L, double a, double s,
                   double *restrict v)
{
    double inverse[520], w[4], p[4], q[4], t = a;
    for (ptrdiff_t j = 0; j < d; j++) inverse[j] = 1 / L[j * (ld + 1)];
    for (ptrdiff_t j = 0; j < d; j += 4) {
        const ptrdiff_t n = d - j < 4 ? d - j : 4;
        double *l0 = L + j * ld, *l1 = l0 + ld, *l2 = l1 + ld, *l3 = l2 + ld;
        for (ptrdiff_t c = 0; c < n; c++) {
            double *l = l0 + c * ld + j;
            w[c] = v[j + c] * inverse[j + c];
            for (ptrdiff_t i = c + 1; i < n; i++) v[j + i] -= w[c] * l[i];
            const double t1 = t + s * (w[c] * w[c]);
            p[c] = sqrt(a * t1 / t);
            q[c] = sqrt(a / (t * t1)) * s * w[c];
            t = t1;
        }
        /* the triangle: the residual of row i at column c is v_i + sum_{k > c} w_k l_ik */
        for (ptrdiff_t i = 0; i < n; i++) {
            double r = 0;
            for (ptrdiff_t c = i; c >= 0; c--) {
                double *l = l0 + c * ld + j + i;
                const double old = *l;
                *l = p[c] * old + q[c] * r;
                r += w[c] * old;
            }
        }
        if (n < 4) return;
        for (ptrdiff_t i = j + 4; i < d; i += 8) {
            vec r = load(v + i), x = load(l0 + i);
            r -= x * w[0];
            store(l0 + i, x * p[0] + r * q[0]);
            x = load(l1 + i);
            r -= x * w[1];
            store(l1 + i, x * p[1] + r * q[1]);
            x = load(l2 + i);
            r -= x * w[2];
            store(l2 + i, x * p[2] + r * q[2]);
            x = load(l3 + i);
            r -= x * w[3];
            store(l3 + i, x * p[3] + r * q[3]);
            store(v + i, r);
        }
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

/* updates and downdates in turn; v is made anew each time: v = u */
void floor_update(ptrdiff_t times, ptrdiff_t d, ptrdiff_t ld, double *L, double a, double s,
                  const double *u, double *v)
{
    for (ptrdiff_t i = 0; i < times; i++) {
        memcpy(v, u, (size_t)d * sizeof(double));
        if (d == 2)
            update_2(L, a, i & 1 ? -s : s, v);
        else
            update(d, ld, L, a, i & 1 ? -s : s, v);
    }
}
