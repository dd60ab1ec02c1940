/* The target: a log density as C functions over one data pointer. This is the interface that
 * other packages compile against: it is final, and grows only by a new abi number.
 *
 * Every function returns
 *     0   the density was evaluated;
 *    >0   a recoverable failure: the point is rejected and counted;
 *    <0   a fatal failure: the chain stops, the draws made so far are kept.
 * A log density of -inf or NaN is a rejection too. An ability that is absent is NULL.
 */
#ifndef FASTKAM_TARGET_H
#define FASTKAM_TARGET_H

#include <stddef.h>
#include <stdint.h>

#define FK_TARGET_ABI 1
#define FK_TARGET_CAPSULE "fk_target_v1" /* the name of the capsule that __fk_target__() returns */

#define FK_NEEDS_GIL 1u /* the functions run Python code: hold the GIL when you call them */
#define FK_SERIAL 2u    /* the functions are not thread-safe: one thread for all chains */

typedef int (*fk_logp_fn)(size_t n, const double *x, double *logp, void *data);

/* the signature of nuts-rs and nutpie */
typedef int (*fk_logp_grad_fn)(size_t n, const double *x, double *grad, double *logp, void *data);

/* k points at once: X is k rows of n; grad_or_null, where given, is k rows of n too */
typedef int (*fk_batch_fn)(size_t k, size_t n, const double *X, double *grad_or_null,
                           double *logp, void *data);

/* Hv: the Hessian of the log density at x times v */
typedef int (*fk_hvp_fn)(size_t n, const double *x, const double *v, double *Hv, void *data);

/* an unbiased estimate, deterministic in (x, u), with u ~ N(0, I_k) */
typedef int (*fk_noisy_fn)(size_t n, const double *x, size_t k, const double *u, double *logp,
                           void *data);

typedef struct fk_target {
    uint32_t abi;   /* FK_TARGET_ABI; the first member for ever */
    uint32_t flags; /* FK_NEEDS_GIL | FK_SERIAL */
    size_t dim;
    size_t n_aux;   /* how many standard normals a noisy target consumes */
    fk_logp_fn logp;
    fk_logp_grad_fn logp_grad;
    fk_batch_fn batch;
    fk_hvp_fn hvp;
    fk_noisy_fn noisy;
    void *data;
} fk_target;

#endif
