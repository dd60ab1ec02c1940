/* Mixtures of normal components with heavier tails, eight components at a time.
 *
 *     log q(x) = log(e^(c_0 + s) (1 + q_0/3)^(-(3 + d)/2)
 *                    + sum_k>0 e^c_k [(1 - t) e^(-q_k/2) + t 2^-d e^(-q_k/8)]),
 *     q_k = |W_k (x - m_k)|^2,   W_k lower triangular
 *
 * Component 0 is Student's with 3 degrees of freedom, s the log of its constant relative to a
 * normal component's; of each other component a share t has twice its scale.
 * Means stand as [block][j][lane], W as [block][row by row of the triangle][lane]; the last block
 * is padded with c_k = -infinity. */
#ifndef FASTKAM_MIXTURE_H
#define FASTKAM_MIXTURE_H

#include "vector.h"

/* q_k of every component */
FK_CLONES
static void fk_mixture_squares(ptrdiff_t blocks, ptrdiff_t d, const double *restrict means,
                               const double *restrict W, const double *restrict x,
                               double *restrict q)
{
    for (ptrdiff_t b = 0; b < blocks; b++, means += d * FK_LANES, q += FK_LANES) {
        double squares[FK_LANES] = {0};
        for (ptrdiff_t i = 0; i < d; i++) {
            double s[FK_LANES] = {0};
            for (ptrdiff_t j = 0; j <= i; j++, W += FK_LANES)
                #pragma omp simd
                for (int l = 0; l < FK_LANES; l++) s[l] += W[l] * (x[j] - means[j * FK_LANES + l]);
            #pragma omp simd
            for (int l = 0; l < FK_LANES; l++) squares[l] += s[l] * s[l];
        }
        memcpy(q, squares, sizeof squares);
    }
}

/* log q(x) from the squares, which are lost; with log (1 - t) and log t 2^-d */
FK_CLONES
static double fk_mixture_log(ptrdiff_t K, ptrdiff_t d, const double *restrict c, double s,
                             double log_core, double log_tail, double *restrict q)
{
    const double student = c[0] + s - 0.5 * (3.0 + (double)d) * log1p(q[0] / 3);
    double high = student, total = 0;
    q[0] = INFINITY;
    for (ptrdiff_t k = 0; k < K; k++) {
        const double core = c[k] - 0.5 * q[k] + log_core, tail = c[k] - 0.125 * q[k] + log_tail;
        const double larger = core > tail ? core : tail;
        high = larger > high ? larger : high;
    }
    #pragma omp simd
    for (ptrdiff_t k = 0; k < K; k++)
        q[k] = fk_exp(c[k] - 0.5 * q[k] + log_core - high)
            + fk_exp(c[k] - 0.125 * q[k] + log_tail - high);
    for (ptrdiff_t k = 1; k < K; k++) total += q[k];
    return high + log(total + exp(student - high));
}

/* q_k becomes e^c_k e^(-q_k/2) / s, the sum over all; returns log s */
FK_CLONES
static double fk_mixture_shares(ptrdiff_t K, const double *restrict c, double *restrict q)
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

/* sum += share x, squares += share x x' */
FK_CLONES
static void fk_mixture_add(ptrdiff_t d, double share, const double *restrict x,
                           double *restrict sum, double *restrict squares)
{
    for (ptrdiff_t j = 0; j < d; j++, squares += d) {
        const double a = share * x[j];
        sum[j] += a;
        #pragma omp simd
        for (ptrdiff_t l = 0; l < d; l++) squares[l] += a * x[l];
    }
}

#endif
