"""ProblemTarget: a likelihood of x, a prior of x and a transform x(z), as a density of z.

    logp(z) = likelihood(x(z)) + log prior(x(z)) + log |dx/dz|

If the prior is 0, or x is beyond hard bounds, the density is 0 and the likelihood is not called. So
it is where the prior is infinite: at a pole, which has probability 0, or at a point that rounding
has moved there.
The density is an estimate if the likelihood is.
"""
from libc.math cimport INFINITY, isnan
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastkam._core.density.prior cimport Prior, Product, evaluate
from fastkam._core.density.coordinate cimport OUTSIDE
from fastkam._core.density.space cimport (
    BROKEN, Space, Transforms, constrain, locate, pull_back,
)
from fastkam._core.density.target cimport Target, noisy_batch_fn
from fastkam.target cimport FK_NEEDS_GIL, fk_target

import numpy as np

cdef extern from "workspace.h" nogil:
    ctypedef struct Workspace "fk_workspace":
        size_t size
    double *enter "fk_enter" (Workspace *w, int *place)
    void leave "fk_leave" (Workspace *w, int place, double *memory)
    void free_workspace "fk_free_workspace" (Workspace *w)

cdef enum:
    NO_MEMORY = -201        # the code of an evaluation that is out of memory
    VECTORS = 7             # vectors of n_x doubles for one point

cdef struct Point:          # a point and its derived vectors, (n_x,) each
    double *x
    double *below           # log distances to the bounds
    double *above
    double *dx              # partial derivatives of the log prior, later plus the likelihood's
    double *dbelow
    double *dabove
    double *gradient        # of the likelihood
    double base             # log prior + log Jacobian


cdef struct Parts:          # what the C functions receive as `data`
    const fk_target *inner
    noisy_batch_fn noisy_batch
    const Transforms *space
    const Product *prior
    Workspace workspace


cdef inline void lay_out(double *memory, Py_ssize_t n, Point *p) noexcept nogil:
    p.x, p.below, p.above = memory, memory + n, memory + 2 * n
    p.dx, p.dbelow, p.dabove = memory + 3 * n, memory + 4 * n, memory + 5 * n
    p.gradient = memory + 6 * n


cdef class ProblemTarget(Target):
    """The density of z.

    Parameters
    ----------
    inner : Target
        The likelihood, of dimension n_x.
    space : list of tuple
        See `Space`.
    prior : list of tuple
        See `Prior`.
    derived : callable, optional
        A Python function of x, evaluated at each recorded draw.
    without_prior : sequence of str, optional
        Names of the parameters whose prior is None.
    """
    cdef readonly Target inner
    cdef readonly tuple without_prior
    cdef Space space
    cdef Prior prior
    cdef Parts parts

    def __init__(self, Target inner, list space, list prior, derived=None, without_prior=()):
        cdef fk_target *c = &self.c
        self.inner, self.space, self.prior = inner, Space(space), Prior(prior)
        self.without_prior = tuple(without_prior)
        if not self.space.n_x == self.prior.n_x == inner.dim:
            raise ValueError(f"the transforms have {self.space.n_x} coordinates, the prior "
                             f"{self.prior.n_x}, and the likelihood {inner.dim}")
        self.owner, self.kind = inner, f"transformed {inner.kind}"
        self.refresh, self.extras, self.derived = inner.refresh, inner.extras, derived
        self.parts.inner, self.parts.noisy_batch = &inner.c, inner.noisy_batch
        self.parts.space, self.parts.prior = &self.space.c, &self.prior.c
        c.dim, c.data, c.flags = self.space.c.n_z, &self.parts, inner.c.flags
        if self.space.needs_gil or self.prior.needs_gil:
            c.flags |= FK_NEEDS_GIL
        if inner.is_estimate:
            c.noisy, c.n_aux = call_noisy, inner.c.n_aux
            if inner.noisy_batch != NULL:
                self.noisy_batch = call_noisy_batch
        else:
            if inner.c.logp != NULL or inner.c.batch == NULL:
                c.logp = call_logp
            if inner.c.logp_grad != NULL:
                c.logp_grad = call_logp_grad
            if inner.c.batch != NULL:
                c.batch = call_batch
        self.parts.workspace.size = (VECTORS * self.space.n_x + 7) // 8 * 8

    def __dealloc__(self):
        free_workspace(&self.parts.workspace)

    @property
    def gradient(self):
        """Whether a likelihood in Python was declared to return a gradient."""
        return getattr(self.inner, "gradient", None)

    @property
    def function(self):
        """The user's function as a function of z, or None if it is not a Python function."""
        f = getattr(self.inner, "function", None)
        if f is None:
            return None
        if self.batched:
            return lambda Z: f(self.points_of(Z))
        return lambda z: f(self.points_of(z.reshape(1, -1))[0])

    def constrain(self, Z):
        """Return the points x (k, n_x) of Z (k, dim), and the log Jacobians (k,)."""
        return self.space.constrain(Z)

    def log_prior_z(self, Z):
        """Return log prior(x(z)) + log |dx/dz| at each row of Z (k, dim), (k,)."""
        cdef const double[:, ::1] z = Z
        cdef Py_ssize_t i, k = z.shape[0]
        cdef double[::1] room = np.empty(VECTORS * self.space.n_x)
        cdef double[::1] out = np.empty(k)
        cdef Point p
        cdef int rc
        lay_out(&room[0], self.space.n_x, &p)
        for i in range(k):
            rc = place(&self.parts, &z[i, 0], &p, False, True)
            if rc < 0:
                self.complain(rc, z[i])
            out[i] = p.base
        values = self.with_python(self.space.constrain(Z)[0] if self.prior.needs_gil else None,
                                  np.asarray(out))
        values[values == INFINITY] = -INFINITY
        return values

    def with_python(self, X, values):
        """Return values (k,), with the log densities of distributions in Python added."""
        inside = values > -INFINITY
        if self.prior.needs_gil and inside.any():
            some = values[inside]
            self.prior.add_python(X[inside], some)
            values[inside] = some
        return values

    def log_prior_x(self, X):
        """Return log prior(x) at each row of X (k, n_x), (k,); -inf beyond the bounds."""
        cdef const double[:, ::1] x = X
        cdef Py_ssize_t i, k = x.shape[0], n = self.space.n_x
        cdef double[:, ::1] near = np.empty((2, n))
        cdef double[::1] out = np.zeros(k)
        cdef int rc
        for i in range(k):
            if locate(&self.space.c, &x[i, 0], &near[0, 0], &near[1, 0]):
                out[i] = -INFINITY
                continue
            rc = evaluate(&self.prior.c, &x[i, 0], &near[0, 0], &near[1, 0], &out[i], NULL, NULL,
                          NULL, True)
            if rc < 0:
                self.complain(rc, x[i])
        return self.with_python(np.asarray(x), np.asarray(out))

    def bind(self):
        return self.around(self.inner.bind())

    def around(self, Target inner):
        """Return the same transforms and prior with another likelihood."""
        return ProblemTarget(inner, self.space.rows, self.prior.rows, self.derived,
                             self.without_prior)

    def extras_fields(self):
        return self.inner.extras_fields()

    def extras_at(self, x, u=None):
        return self.inner.extras_at(self.points_of(x.reshape(1, -1))[0], u)

    def points_of(self, X):
        return self.space.constrain(np.ascontiguousarray(X))[0]

    def fault(self, rc, x):
        if rc == NO_MEMORY:
            return MemoryError()
        error = None
        if rc == BROKEN:
            error = self.space.fault() or self.prior.fault()
        if error is None:
            error = self.inner.fault(rc, self.space.constrain(np.array(x, ndmin=2))[0][0])
        return error

    def made_from(self):
        return ProblemTarget, (self.inner, self.space.rows, self.prior.rows, self.derived,
                               self.without_prior)


cdef int place(Parts *self, const double *z, Point *p, bint gradient,
               bint compiled) noexcept nogil:
    """Compute x and log prior + log Jacobian, -inf where the density is 0; return a code.

    It is NaN where a transform, a Jacobian or a prior is: the likelihood is not called there.
    """
    cdef int rc
    p.base = 0
    rc = constrain(self.space, z, p.x, p.below, p.above, &p.base)
    if rc == OUTSIDE:
        if not isnan(p.base):
            p.base = -INFINITY
        return 0
    if rc == 0:
        rc = evaluate(self.prior, p.x, p.below, p.above, &p.base,
                      p.dx if gradient else NULL, p.dbelow, p.dabove, compiled)
    if p.base == INFINITY:
        p.base = -INFINITY
    return rc


cdef int finish_gradient(Parts *self, const double *z, Point *p, double *dz) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(self.space.n_x):
        p.dx[i] += p.gradient[i]
    return pull_back(self.space, z, p.x, p.dx, p.dbelow, p.dabove, dz)


cdef int call_logp(size_t n, const double *z, double *logp, void *data) noexcept nogil:
    cdef Parts *self = <Parts *>data
    cdef const fk_target *inner = self.inner
    cdef Point p
    cdef int at = 0, rc
    cdef double *memory = enter(&self.workspace, &at)
    if memory == NULL:
        return NO_MEMORY
    lay_out(memory, self.space.n_x, &p)
    rc = place(self, z, &p, False, False)
    logp[0] = p.base
    if rc == 0 and p.base > -INFINITY:
        if inner.logp != NULL:
            rc = inner.logp(inner.dim, p.x, logp, inner.data)
        else:
            rc = inner.logp_grad(inner.dim, p.x, p.gradient, logp, inner.data)
        logp[0] += p.base
    leave(&self.workspace, at, memory)
    return rc


cdef int call_logp_grad(size_t n, const double *z, double *dz, double *logp,
                        void *data) noexcept nogil:
    cdef Parts *self = <Parts *>data
    cdef const fk_target *inner = self.inner
    cdef Point p
    cdef int at = 0, rc
    cdef size_t i
    cdef double *memory = enter(&self.workspace, &at)
    if memory == NULL:
        return NO_MEMORY
    lay_out(memory, self.space.n_x, &p)
    rc = place(self, z, &p, True, False)
    logp[0] = p.base
    if rc == 0 and not p.base > -INFINITY:
        for i in range(n):
            dz[i] = 0
    elif rc == 0:
        rc = inner.logp_grad(inner.dim, p.x, p.gradient, logp, inner.data)
        logp[0] += p.base
        if rc == 0:
            rc = finish_gradient(self, z, &p, dz)
    leave(&self.workspace, at, memory)
    return rc


cdef int call_noisy(size_t n, const double *z, size_t n_aux, const double *u, double *logp,
                    void *data) noexcept nogil:
    cdef Parts *self = <Parts *>data
    cdef const fk_target *inner = self.inner
    cdef Point p
    cdef int at = 0, rc
    cdef double *memory = enter(&self.workspace, &at)
    if memory == NULL:
        return NO_MEMORY
    lay_out(memory, self.space.n_x, &p)
    rc = place(self, z, &p, False, False)
    logp[0] = p.base
    if rc == 0 and p.base > -INFINITY:
        rc = inner.noisy(inner.dim, p.x, n_aux, u, logp, inner.data)
        logp[0] += p.base
    leave(&self.workspace, at, memory)
    return rc


# ---- many points: the likelihood is called where the prior is not 0 ------------------------

cdef int call_batch(size_t k, size_t n, const double *Z, double *gradients, double *logp,
                    void *data) noexcept nogil:
    return call_many(<Parts *>data, k, Z, 0, NULL, gradients, logp)


cdef int call_noisy_batch(size_t k, size_t n, const double *Z, size_t n_aux, const double *U,
                          double *logp, void *data) noexcept nogil:
    return call_many(<Parts *>data, k, Z, n_aux, U, NULL, logp)


cdef int call_many(Parts *self, size_t k, const double *Z, size_t n_aux, const double *U,
                   double *gradients, double *logp) noexcept nogil:
    """Call the likelihood once; U (k, n_aux) is its noise, if it is an estimate."""
    cdef size_t n_x = self.space.n_x
    # per point: its vectors, a second copy of x and the gradient, its value, noise and index
    cdef size_t size = k * (VECTORS * n_x + 2 * n_x + n_aux + 3)
    cdef double *memory = <double *>malloc(size * sizeof(double))
    cdef int rc
    if memory == NULL:
        return NO_MEMORY
    rc = call_likelihood(self, k, Z, n_aux, U, gradients, logp, memory)
    free(memory)
    return rc


cdef int call_likelihood(Parts *self, size_t k, const double *Z, size_t n_aux,
                         const double *U, double *gradients, double *logp,
                         double *memory) noexcept nogil:
    cdef const fk_target *inner = self.inner
    cdef size_t n_x = self.space.n_x, n_z = self.space.n_z, m = 0, i, j
    cdef double *X = memory + k * VECTORS * n_x
    cdef double *slopes = X + k * n_x
    cdef double *values = slopes + k * n_x
    cdef double *noise = values + k
    cdef size_t *rows = <size_t *>(noise + k * n_aux)
    cdef Point p
    cdef int rc
    for i in range(k):
        lay_out(memory + i * VECTORS * n_x, n_x, &p)
        rc = place(self, Z + i * n_z, &p, gradients != NULL, False)
        if rc < 0:
            return rc
        logp[i] = p.base
        if p.base > -INFINITY:
            memcpy(X + m * n_x, p.x, n_x * sizeof(double))
            if n_aux:
                memcpy(noise + m * n_aux, U + i * n_aux, n_aux * sizeof(double))
            rows[m] = i
            m += 1
    if gradients != NULL:
        for i in range(k * n_z):
            gradients[i] = 0
    if m == 0:
        return 0
    if n_aux:
        rc = self.noisy_batch(m, inner.dim, X, n_aux, noise, values, inner.data)
    else:
        rc = inner.batch(m, inner.dim, X, NULL if gradients == NULL else slopes, values,
                         inner.data)
    if rc:
        return rc
    for j in range(m):
        i = rows[j]
        logp[i] += values[j]
        if gradients != NULL:
            lay_out(memory + i * VECTORS * n_x, n_x, &p)
            memcpy(p.gradient, slopes + j * n_x, n_x * sizeof(double))
            rc = finish_gradient(self, Z + i * n_z, &p, gradients + i * n_z)
            if rc:
                return rc
    return 0
