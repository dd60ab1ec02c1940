"""JoinedTarget, whose value and gradient come from two targets, and ZeroTarget.

Thus samplers without gradients do not pay for them. Without a second target, a JoinedTarget is the
first one with derived quantities of its draws.
"""
from fastkam._core.density.target cimport Target
from fastkam.target cimport fk_target

cdef struct Both:           # what the C functions receive as `data`
    const fk_target *value
    const fk_target *gradient


cdef class JoinedTarget(Target):
    """The density of `value`, with the gradient of `gradient`.

    Parameters
    ----------
    value : Target
    gradient : Target, optional
        A target of the same density.
    derived : callable, optional
        A Python function of the points, evaluated at each recorded draw.
    recipe : callable, optional
        A picklable call without arguments that makes this target in another process.
    """
    cdef Target value
    cdef Target slope
    cdef Both both

    def __init__(self, Target value, Target gradient=None, derived=None, recipe=None):
        cdef fk_target *c = &self.c
        self.value, self.slope, self.derived, self.recipe = value, gradient, derived, recipe
        self.owner, self.kind, self.extras = (value, gradient), value.kind, value.extras
        self.refresh, self.noisy_batch = value.refresh, value.noisy_batch
        self.c = value.c
        if gradient is None:
            return
        if gradient.dim != value.dim or gradient.batched != value.batched:
            raise ValueError(f"{value!r} and {gradient!r} must take the same points")
        self.both.value, self.both.gradient = &value.c, &gradient.c
        c.data, c.flags = &self.both, c.flags | gradient.c.flags
        c.hvp = NULL
        if value.batched:
            c.batch = call_batch
        else:
            c.logp, c.logp_grad = call_logp, call_logp_grad

    @property
    def gradient(self):
        """Whether a Python function was declared to return a gradient."""
        return True if self.slope is not None else getattr(self.value, "gradient", None)

    @property
    def function(self):
        """The user's Python function, preferably that with the gradient, or None."""
        return getattr(self.value if self.slope is None else self.slope, "function", None)

    def bind(self):
        return JoinedTarget(self.value.bind(), None if self.slope is None else self.slope.bind(),
                            self.derived, self.recipe)

    def extras_fields(self):
        return self.value.extras_fields()

    def extras_at(self, x, u=None):
        return self.value.extras_at(x, u)

    def fault(self, rc, x):
        error = self.value.fault(rc, x)
        if error is None and self.slope is not None:
            error = self.slope.fault(rc, x)
        return error

    def made_from(self):
        return JoinedTarget, (self.value, self.slope, self.derived)


cdef int call_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef const fk_target *value = (<Both *>data).value
    return value.logp(n, x, logp, value.data)


cdef int call_logp_grad(size_t n, const double *x, double *grad, double *logp,
                        void *data) noexcept nogil:
    cdef const fk_target *gradient = (<Both *>data).gradient
    return gradient.logp_grad(n, x, grad, logp, gradient.data)


cdef int call_batch(size_t k, size_t n, const double *X, double *grad, double *logp,
                    void *data) noexcept nogil:
    cdef const fk_target *one = (<Both *>data).value if grad == NULL else (<Both *>data).gradient
    return one.batch(k, n, X, grad, logp, one.data)


cdef class ZeroTarget(Target):
    """The log likelihood 0 of a Problem that consists of its prior alone.

    Parameters
    ----------
    dim : int
    """

    def __init__(self, size_t dim):
        self.kind = "zero"
        self.c.dim = dim
        self.c.logp, self.c.logp_grad = zero, zero_grad

    def __reduce__(self):
        return ZeroTarget, (self.dim,)


cdef int zero(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    logp[0] = 0
    return 0


cdef int zero_grad(size_t n, const double *x, double *grad, double *logp,
                   void *data) noexcept nogil:
    cdef size_t i
    logp[0] = 0
    for i in range(n):
        grad[i] = 0
    return 0
