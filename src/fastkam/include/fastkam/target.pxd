"""The one public .pxd: the target struct, for Cython packages that bring their own density."""
from libc.stdint cimport uint32_t

cdef extern from "fastkam/target.h" nogil:
    enum:
        FK_TARGET_ABI
        FK_NEEDS_GIL
        FK_SERIAL
    const char *FK_TARGET_CAPSULE

    ctypedef int (*fk_logp_fn)(size_t n, const double *x, double *logp, void *data) noexcept nogil
    ctypedef int (*fk_logp_grad_fn)(
        size_t n, const double *x, double *grad, double *logp, void *data) noexcept nogil
    ctypedef int (*fk_batch_fn)(
        size_t k, size_t n, const double *X, double *grad_or_null, double *logp,
        void *data) noexcept nogil
    ctypedef int (*fk_hvp_fn)(
        size_t n, const double *x, const double *v, double *Hv, void *data) noexcept nogil
    ctypedef int (*fk_noisy_fn)(
        size_t n, const double *x, size_t k, const double *u, double *logp,
        void *data) noexcept nogil

    ctypedef struct fk_target:
        uint32_t abi
        uint32_t flags
        size_t dim
        size_t n_aux
        fk_logp_fn logp
        fk_logp_grad_fn logp_grad
        fk_batch_fn batch
        fk_hvp_fn hvp
        fk_noisy_fn noisy
        void *data
