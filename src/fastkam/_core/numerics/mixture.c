/* The loops of mixture.h. */
#include "mixture.h"
#include "vector.h"

void FK_LEVEL(fk_mixture_squares)(ptrdiff_t blocks, ptrdiff_t d, const double *restrict means,
                                  const double *restrict W, const double *restrict x,
                                  double *restrict q)
{
    for (ptrdiff_t b = 0; b < blocks; b++, means += d * FK_LANES, q += FK_LANES) {
        double squares[FK_LANES] = {0};
        for (ptrdiff_t i = 0; i < d; i++) {
            double s[FK_LANES] = {0};
            for (ptrdiff_t j = 0; j <= i; j++, W += FK_LANES)
                #pragma omp simd
                for (int l = 0; l < FK_LANES; l++)
                    s[l] = fk_fma(W[l], x[j] - means[j * FK_LANES + l], s[l]);
            #pragma omp simd
            for (int l = 0; l < FK_LANES; l++) squares[l] = fk_fma(s[l], s[l], squares[l]);
        }
        memcpy(q, squares, sizeof squares);
    }
}

double FK_LEVEL(fk_mixture_log)(ptrdiff_t K, ptrdiff_t d, const double *restrict c, double s,
                                double log_core, double log_tail, double *restrict q)
{
    const double student = c[0] + s - 0.5 * (double)(FK_DEGREES + d) * log1p(q[0] / FK_DEGREES);
    const double half = 0.5 / (FK_TAIL_SCALE * FK_TAIL_SCALE);
    double high = student, total = 0;
    q[0] = INFINITY;
    for (ptrdiff_t k = 0; k < K; k++) {
        const double core = c[k] - 0.5 * q[k] + log_core, tail = c[k] - half * q[k] + log_tail;
        const double larger = core > tail ? core : tail;
        high = larger > high ? larger : high;
    }
    #pragma omp simd
    for (ptrdiff_t k = 0; k < K; k++)
        q[k] = fk_exp(c[k] - 0.5 * q[k] + log_core - high)
            + fk_exp(c[k] - half * q[k] + log_tail - high);
    for (ptrdiff_t k = 1; k < K; k++) total += q[k];
    return high + log(total + exp(student - high));
}

double FK_LEVEL(fk_mixture_shares)(ptrdiff_t K, const double *restrict c, double *restrict q)
{
    double high = -INFINITY, total = 0;
    for (ptrdiff_t k = 0; k < K; k++) {
        const double log_term = c[k] - 0.5 * q[k];
        high = log_term > high ? log_term : high;
    }
    #pragma omp simd
    for (ptrdiff_t k = 0; k < K; k++) q[k] = fk_exp(c[k] - 0.5 * q[k] - high);
    for (ptrdiff_t k = 0; k < K; k++) total += q[k];
    const double scale = 1 / total;
    #pragma omp simd
    for (ptrdiff_t k = 0; k < K; k++) q[k] *= scale;
    return high + log(total);
}

void FK_LEVEL(fk_mixture_add)(ptrdiff_t d, double share, const double *restrict x,
                              double *restrict sum, double *restrict squares)
{
    for (ptrdiff_t j = 0; j < d; j++, squares += d) {
        const double a = share * x[j];
        sum[j] += a;
        #pragma omp simd
        for (ptrdiff_t l = 0; l < d; l++) squares[l] = fk_fma(a, x[l], squares[l]);
    }
}
