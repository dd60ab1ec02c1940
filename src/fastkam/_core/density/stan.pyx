"""StanTarget: a model with BridgeStan's C interface, called through the addresses of its functions.

The density is zero at a point whose evaluation fails; the error's text is stored until the next.

Roualdes, E. A., Ward, B., Carpenter, B., Seyboldt, A. and Axen, S. D. (2023). BridgeStan: efficient
in-memory access to the methods of a Stan model. Journal of Open Source Software 8(87), 5236.
"""
from libc.stdint cimport uintptr_t

from fastkam._core.density.target cimport Target
from fastkam.target cimport FK_SERIAL

# bool is a byte, as in C: model, propto, jacobian, theta_unc, log density, its gradient, error
ctypedef int (*density_fn)(const void *, unsigned char, unsigned char, const double *, double *,
                           char **) noexcept nogil
ctypedef int (*gradient_fn)(const void *, unsigned char, unsigned char, const double *, double *,
                            double *, char **) noexcept nogil
ctypedef void (*free_fn)(char *) noexcept nogil

cdef extern from *:
    """
    #define fk_exchange(place, text) __atomic_exchange_n(place, text, __ATOMIC_ACQ_REL)
    """
    char *fk_exchange(char **place, char *text) noexcept nogil

cdef enum:
    REJECTED = 1

cdef struct Stan:           # the C functions' argument `data`
    void *model
    density_fn density
    gradient_fn gradient
    free_fn free_error
    char *text              # of the last failure


cdef class StanTarget(Target):
    """The density of a BridgeStan model, with the log Jacobian and all constants.

    Parameters
    ----------
    dim : int
    model, density, gradient, free_error : int
        The model, and the addresses of bs_log_density, bs_log_density_gradient and
        bs_free_error_msg.
    owner : object
        Kept alive with the target.
    serial : bool
        Whether only one thread at a time may evaluate it.
    """
    cdef Stan stan

    def __init__(self, size_t dim, uintptr_t model, uintptr_t density, uintptr_t gradient,
                 uintptr_t free_error, owner, bint serial):
        self.stan.model = <void *>model
        self.stan.density = <density_fn><void *>density
        self.stan.gradient = <gradient_fn><void *>gradient
        self.stan.free_error = <free_fn><void *>free_error
        self.owner, self.kind = owner, "Stan model"
        self.c.dim, self.c.data = dim, &self.stan
        self.c.flags = FK_SERIAL if serial else 0
        self.c.logp, self.c.logp_grad = call_logp, call_logp_grad

    def take_error(self):
        """Return the text of the last failure since the last call, or None."""
        cdef char *text = fk_exchange(&self.stan.text, NULL)
        if text == NULL:
            return None
        found = (<bytes>text).decode(errors="replace").strip()
        self.stan.free_error(text)
        return found

    def fault(self, rc, x):
        return ArithmeticError(self.take_error() or f"the Stan model returned code {rc}")

    def __dealloc__(self):
        if self.stan.text != NULL:
            self.stan.free_error(self.stan.text)


cdef int failed(Stan *self, char *text) noexcept nogil:
    """Store the text of a failure, and free that of the previous one."""
    cdef char *before = fk_exchange(&self.text, text)
    if before != NULL:
        self.free_error(before)
    return REJECTED


cdef int call_logp(size_t n, const double *z, double *logp, void *data) noexcept nogil:
    cdef Stan *self = <Stan *>data
    cdef char *text = NULL
    if self.density(self.model, False, True, z, logp, &text) == 0:
        return 0
    return failed(self, text)


cdef int call_logp_grad(size_t n, const double *z, double *grad, double *logp,
                        void *data) noexcept nogil:
    cdef Stan *self = <Stan *>data
    cdef char *text = NULL
    if self.gradient(self.model, False, True, z, logp, grad, &text) == 0:
        return 0
    return failed(self, text)
