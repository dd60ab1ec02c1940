"""ScaledTarget: a density in units of given scales, coordinate by coordinate.

    logp(z) = log pi(x),    x_i = s_i z_i,
    d logp / dz_i = s_i d log pi / dx_i,    H_z v = s (H_x (s v))

The log density is that of x, without the constant log Jacobian, so that the values of the user's
function are recorded.
"""
from libc.stdlib cimport free, malloc

from fastkam._core.density.target cimport Target, noisy_batch_fn
from fastkam.target cimport fk_target

import numpy as np

cdef enum:
    ROOM = 512              # coordinates that fit on the stack
    NO_MEMORY = -202        # the code of an evaluation that is out of memory


cdef struct Inner:          # what the C functions receive as `data`
    const fk_target *target
    noisy_batch_fn noisy_batch
    const double *scales


cdef class ScaledTarget(Target):
    """The density of z, x = scales z.

    Parameters
    ----------
    made : Target
        The density of x, of dimension d.
    scales : array (d,)
        Positive.
    """
    cdef Inner inner
    cdef double[::1] scales

    def __init__(self, Target made, scales):
        cdef fk_target *c = &self.c
        self.scales = np.array(scales, dtype=float)
        if self.scales.shape[0] != <Py_ssize_t>made.c.dim:
            raise ValueError(f"scales must have shape ({made.c.dim},), not {np.shape(scales)}")
        self.owner, self.kind, self.refresh = made, made.kind, made.refresh
        self.inner = Inner(&made.c, made.noisy_batch, &self.scales[0])
        c.flags, c.dim, c.n_aux, c.data = made.c.flags, made.c.dim, made.c.n_aux, &self.inner
        if made.c.logp != NULL:
            c.logp = call_logp
        if made.c.logp_grad != NULL:
            c.logp_grad = call_gradient
        if made.c.batch != NULL:
            c.batch = call_batch
        if made.c.hvp != NULL:
            c.hvp = call_hvp
        if made.c.noisy != NULL:
            c.noisy = call_noisy
        if made.noisy_batch != NULL:
            self.noisy_batch = call_noisy_batch
        self.extras = made.extras
        if made.surrogate is not None:
            self.surrogate = ScaledTarget(made.surrogate, scales)

    def __reduce__(self):
        return ScaledTarget, (self.owner, np.asarray(self.scales))

    def bind(self):
        return ScaledTarget(self.owner.bind(), self.scales)

    def extras_at(self, x, u=None):
        return self.owner.extras_at(np.asarray(self.scales) * x, u)

    def fault(self, rc, x):
        if rc == NO_MEMORY:
            return MemoryError("no memory to evaluate the density")
        return self.owner.fault(rc, np.asarray(self.scales) * x)


cdef inline double *scaled(const Inner *inner, size_t k, const double *z,
                           double *room) noexcept nogil:
    """Return k points x = s z, in `room` if they fit, else in new memory; NULL if out of memory."""
    cdef size_t i, j, d = inner.target.dim
    cdef double *x = room
    if k * d > ROOM:
        x = <double *>malloc(k * d * sizeof(double))
        if x == NULL:
            return NULL
    for j in range(k):
        for i in range(d):
            x[j * d + i] = inner.scales[i] * z[j * d + i]
    return x


cdef inline void rescale(const Inner *inner, size_t k, double *gradients) noexcept nogil:
    """Convert k gradients with respect to x to those with respect to z."""
    cdef size_t i, j, d = inner.target.dim
    for j in range(k):
        for i in range(d):
            gradients[j * d + i] *= inner.scales[i]


cdef inline int done(int rc, double *x, const double *room) noexcept nogil:
    """Free the memory that `scaled` has allocated, and return rc."""
    if x != room:
        free(x)
    return rc


cdef int call_logp(size_t n, const double *z, double *logp, void *data) noexcept nogil:
    cdef const Inner *inner = <const Inner *>data
    cdef double[ROOM] room
    cdef double *x = scaled(inner, 1, z, room)
    if x == NULL:
        return NO_MEMORY
    return done(inner.target.logp(n, x, logp, inner.target.data), x, room)


cdef int call_gradient(size_t n, const double *z, double *grad, double *logp,
                       void *data) noexcept nogil:
    cdef const Inner *inner = <const Inner *>data
    cdef double[ROOM] room
    cdef double *x = scaled(inner, 1, z, room)
    cdef int rc
    if x == NULL:
        return NO_MEMORY
    rc = inner.target.logp_grad(n, x, grad, logp, inner.target.data)
    rescale(inner, 1, grad)
    return done(rc, x, room)


cdef int call_batch(size_t k, size_t n, const double *Z, double *grad, double *logp,
                    void *data) noexcept nogil:
    cdef const Inner *inner = <const Inner *>data
    cdef double[ROOM] room
    cdef double *x = scaled(inner, k, Z, room)
    cdef int rc
    if x == NULL:
        return NO_MEMORY
    rc = inner.target.batch(k, n, x, grad, logp, inner.target.data)
    if grad != NULL:
        rescale(inner, k, grad)
    return done(rc, x, room)


cdef int call_hvp(size_t n, const double *z, const double *v, double *Hv,
                  void *data) noexcept nogil:
    cdef const Inner *inner = <const Inner *>data
    cdef double[ROOM] room
    cdef double[ROOM] more
    cdef double *x = scaled(inner, 1, z, room)
    cdef double *w = scaled(inner, 1, v, more)
    cdef int rc = NO_MEMORY
    if x != NULL and w != NULL:
        rc = inner.target.hvp(n, x, w, Hv, inner.target.data)
        rescale(inner, 1, Hv)
    return done(done(rc, x, room), w, more)


cdef int call_noisy(size_t n, const double *z, size_t n_aux, const double *u, double *logp,
                    void *data) noexcept nogil:
    cdef const Inner *inner = <const Inner *>data
    cdef double[ROOM] room
    cdef double *x = scaled(inner, 1, z, room)
    if x == NULL:
        return NO_MEMORY
    return done(inner.target.noisy(n, x, n_aux, u, logp, inner.target.data), x, room)


cdef int call_noisy_batch(size_t k, size_t n, const double *Z, size_t n_aux, const double *U,
                          double *logp, void *data) noexcept nogil:
    cdef const Inner *inner = <const Inner *>data
    cdef double[ROOM] room
    cdef double *x = scaled(inner, k, Z, room)
    if x == NULL:
        return NO_MEMORY
    return done(inner.noisy_batch(k, n, x, n_aux, U, logp, inner.target.data), x, room)
