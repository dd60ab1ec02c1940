/* BLAS and LAPACK, and the random numbers of a chain, called in loops from C. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "numpy/random/bitgen.h"
#include "numpy/random/distributions.h"

typedef void (*dpotrf_fn)(char *, int *, double *, int *, int *);
typedef void (*dtrsv_fn)(char *, char *, char *, int *, double *, int *, double *, int *);
typedef void (*dsyr_fn)(char *, int *, double *, double *, int *, double *, int *);
typedef void (*dsyrk_fn)(char *, char *, int *, int *, double *, double *, int *, double *,
                         double *, int *);

double lapack_density(ptrdiff_t times, ptrdiff_t d, const double *A, const double *mean, double *x,
                      double *L, double *v, dpotrf_fn dpotrf, dtrsv_fn dtrsv)
{
    double total = 0;
    int n = (int)d, one = 1, info = 0;
    for (ptrdiff_t i = 0; i < times; i++) {
        x[0] += 1e-12;
        memcpy(L, A, (size_t)(d * d) * sizeof(double));
        for (ptrdiff_t j = 0; j < d; j++) v[j] = x[j] - mean[j];
        dpotrf("L", &n, L, &n, &info);
        if (info) return NAN;
        dtrsv("L", "N", "N", &n, L, &n, v, &one);
        double square = 0, logs = 0;
        for (ptrdiff_t j = 0; j < d; j++) square += v[j] * v[j], logs += log(L[j * (d + 1)]);
        total -= 0.5 * square + logs + d * 0.9189385332046727;
    }
    return total / times;
}

/* the factor of L L' + s u u' from a known A = L L' */
double lapack_update(ptrdiff_t times, ptrdiff_t d, const double *A, double *L, double s, double *u,
                     dpotrf_fn dpotrf, dsyr_fn dsyr)
{
    int n = (int)d, one = 1, info = 0;
    for (ptrdiff_t i = 0; i < times; i++) {
        memcpy(L, A, (size_t)(d * d) * sizeof(double));
        dsyr("L", &n, &s, u, &one, L, &n);
        dpotrf("L", &n, L, &n, &info);
        if (info) return NAN;
    }
    return L[0];
}

/* M (d, n) of the Gaussian kernel from z (n, d), centered, and M M' */
void blas_gaussian(ptrdiff_t times, ptrdiff_t n, ptrdiff_t d, double length, const double *z,
                   double *y, double *M, double *Q, double *s, dsyrk_fn dsyrk)
{
    const double l2 = length * length;
    double one = 1, zero = 0;
    int in = (int)n, id = (int)d;
    for (ptrdiff_t t = 0; t < times; t++) {
        y[0] += 1e-12;
        memset(s, 0, (size_t)d * sizeof(double));
        for (ptrdiff_t i = 0; i < n; i++) {
            double r2 = 0, *m = M + i * d;
            for (ptrdiff_t j = 0; j < d; j++) {
                m[j] = z[i * d + j] - y[j];
                r2 += m[j] * m[j];
            }
            const double w = 2 / l2 * exp(-0.5 / l2 * r2);
            for (ptrdiff_t j = 0; j < d; j++) s[j] += m[j] *= w;
        }
        for (ptrdiff_t i = 0; i < n; i++)
            for (ptrdiff_t j = 0; j < d; j++) M[i * d + j] -= s[j] / n;
        dsyrk("L", "N", &id, &in, &one, M, &id, &zero, Q, &id);
    }
}

typedef void (*normals_fn)(bitgen_t *, ptrdiff_t, double *);

void repeat_random(ptrdiff_t kind, ptrdiff_t times, ptrdiff_t n, bitgen_t *rng, double *out,
                   normals_fn normals)
{
    for (ptrdiff_t i = 0; i < times; i++)
        if (kind == 0)
            normals(rng, n, out);
        else if (kind == 1)
            for (ptrdiff_t j = 0; j < n; j++) out[j] = random_standard_uniform(rng);
        else
            for (ptrdiff_t j = 0; j < n; j++) out[j] = random_standard_exponential(rng);
}
