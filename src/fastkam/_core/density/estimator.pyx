"""Targets of estimated densities, and targets with a surrogate."""
from libc.string cimport memcpy

from fastkam._core.density.python_target cimport RAISED, PythonTarget, copy_vector
from fastkam._core.density.target cimport NO_SURROGATE, Target, noisy_batch_fn
from fastkam.target cimport FK_NEEDS_GIL, FK_SERIAL, fk_noisy_fn

from functools import partial

from fastkam._core.density.python_target import as_float, first_row

import numpy as np

KEY = 2         # normals whose bits are the key of a generator
WITHOUT_SURROGATE = NO_SURROGATE    # for Python
OF_SURROGATE = "raised by the surrogate, not by the target"     # a note of an exception


cdef class PythonEstimator(PythonTarget):
    """A trampoline to ``f(x, u)``, vectorized ``f(X, U)``, or ``f(x, rng)`` if n_aux is None.

    rng runs on Philox with 128 bits of noise as its key. So this is also a known function of its
    noise, two normals, which are kept, written to files and replayed like any others.
    """
    cdef object n
    cdef object rng
    cdef object bits
    cdef dict start             # the initial state of the generator

    def __init__(self, f, size_t dim, n_aux, *, bint vectorized=False, double correlation,
                 Py_ssize_t blocks):
        self.f, self.n, self.vectorized = f, n_aux, vectorized
        self.kind = "Python estimator" if not vectorized else "vectorized Python estimator"
        self.c.dim = dim
        self.c.n_aux = KEY if n_aux is None else n_aux
        self.c.flags = FK_NEEDS_GIL
        self.c.data = <void *>self
        if vectorized:
            self.c.noisy = <fk_noisy_fn><void *>call_one_of_many
            self.noisy_batch = <noisy_batch_fn><void *>call_many
        else:
            self.c.noisy = <fk_noisy_fn><void *>call_estimator
        self.refresh.correlation, self.refresh.blocks = correlation, blocks
        if n_aux is None:
            self.bits = np.random.Philox(0)
            self.rng = np.random.Generator(self.bits)
            self.start = self.bits.state

    def made_from(self):
        return partial(PythonEstimator, **self.options()), (self.f, self.c.dim, self.n)

    def options(self):
        return {"vectorized": self.vectorized, "correlation": self.refresh.correlation,
                "blocks": self.refresh.blocks}

    def bind(self):
        return PythonEstimator(self.f, self.c.dim, self.n, **self.options())

    def call(self, x, u):
        cdef const double[::1] noise = u
        if self.vectorized:
            return first_row(self.f(x.reshape(1, -1), np.array(u).reshape(1, -1)))
        return self.f(x, self.randomness(noise.shape[0], &noise[0]))

    cdef object randomness(self, size_t k, const double *u):
        """Return a copy of u, or the generator with u as its key."""
        cdef double[::1] copy
        values = np.empty(k)
        copy = values
        memcpy(&copy[0], u, k * sizeof(double))
        if self.n is not None:
            return values
        self.start["state"]["key"] = values.view(np.uint64)
        self.bits.state = self.start
        return self.rng


cdef int call_estimator(size_t n, const double *x, size_t k, const double *u, double *logp,
                        void *data) noexcept:
    cdef PythonEstimator self = <PythonEstimator>data
    try:
        value = self.f(self.argument(1, x), self.randomness(k, u))
        if type(value) is tuple:
            value = self.without_extras(value, n, x, k, u)
        logp[0] = value if isinstance(value, float) else as_float(value)
        return 0
    except BaseException as error:
        self.error = error
        return RAISED


cdef int call_many(size_t k, size_t n, const double *X, size_t n_aux, const double *U,
                   double *logp, void *data) noexcept:
    cdef PythonEstimator self = <PythonEstimator>data
    try:
        noise = self.randomness(k * n_aux, U).reshape(k, n_aux)
        value = self.f(self.argument(k, X), noise)
        if type(value) is tuple and len(value) > 0 and np.ndim(value[0]) == 1:
            value = self.without_extras_rows(value, k, n, X, n_aux, U)
        copy_vector(value, k, "log density", logp)
        return 0
    except BaseException as error:
        self.error = error
        return RAISED


cdef int call_one_of_many(size_t n, const double *x, size_t n_aux, const double *u, double *logp,
                          void *data) noexcept:
    return call_many(1, n, x, n_aux, u, logp, data)


cdef class ForeignEstimator(Target):
    """Another target's estimates, with its own way of refreshing their noise."""

    def __init__(self, Target made, *, double correlation, Py_ssize_t blocks):
        self.c, self.owner, self.kind = made.c, made, made.kind
        self.noisy_batch = made.noisy_batch
        self.c.logp, self.c.logp_grad, self.c.batch, self.c.hvp = NULL, NULL, NULL, NULL
        self.refresh.correlation, self.refresh.blocks = correlation, blocks

    def made_from(self):
        refresh = {"correlation": self.refresh.correlation, "blocks": self.refresh.blocks}
        return partial(ForeignEstimator, **refresh), (self.owner,)

    def fault(self, rc, x):
        return self.owner.fault(rc, x)


cdef class SurrogateTarget(Target):
    """A target with a cheap surrogate of its density, for delayed acceptance."""

    def __init__(self, Target made, Target surrogate):
        self.c, self.refresh, self.kind = made.c, made.refresh, made.kind
        self.noisy_batch = made.noisy_batch
        self.owner, self.surrogate = made, surrogate
        self.extras, self.derived = made.extras, made.derived
        self.c.flags |= surrogate.c.flags & FK_SERIAL

    def made_from(self):
        return SurrogateTarget, (self.owner, self.surrogate)

    def bind(self):
        return SurrogateTarget(self.owner.bind(), self.surrogate.bind())

    def extras_fields(self):
        return self.owner.extras_fields()

    def extras_at(self, x, u=None):
        return self.owner.extras_at(x, u)

    def points_of(self, X):
        return self.owner.points_of(X)

    def fault(self, rc, x):
        if rc == NO_SURROGATE:
            return ValueError("the log density of the surrogate is +inf, or not finite where the "
                              "chain begins")
        if 2 * NO_SURROGATE < rc < NO_SURROGATE:
            own = rc - NO_SURROGATE
            error = self.surrogate.fault(own, x)
            if error is None:
                return ValueError(f"the surrogate returned the fatal code {own}")
            error.add_note(OF_SURROGATE)
            return error
        return self.owner.fault(rc, x)
