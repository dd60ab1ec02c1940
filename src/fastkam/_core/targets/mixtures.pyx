"""Densities of Gaussian mixtures: any components, and equally spaced ones in every coordinate."""
from libc.math cimport INFINITY, exp
from libc.string cimport memset

from fastkam._core.engine.sums cimport ZERO, LogSum, add_term, log_total
from fastkam._core.density.target cimport Target
from fastkam._core.targets.gaussian cimport Form, Forms, form_grad, form_value

from fastkam._core.numerics import elementary

import numpy as np

cdef extern from "lattice.h" nogil:
    ctypedef struct Lattice "fk_lattice":
        Py_ssize_t K
        double low, h, v, constant
        const double *fall
    double fk_lattice_logp(const Lattice *f, Py_ssize_t d, const double *x, double *grad)


cdef struct Mixture:
    Py_ssize_t K
    const Form *form
    const double *constant      # (K,) log w_k - d/2 log(2 pi) - log det(Sigma_k)/2


cdef class GaussianMixtureDensity(Target):
    """log pi(x) = log sum_k exp(c_k - q_k(x)/2)."""
    cdef Mixture mixture
    cdef Forms forms
    cdef double[::1] constants

    def set_up(self, weights, means, factors):
        """Take weights (K,), means (K, d) and factors (K, d) or (K, d, d) as Forms does."""
        self.forms = Forms(means, factors)
        self.constants = (elementary.log(weights) - 0.5 * means.shape[1] * elementary.log(2 * np.pi)
                          - 0.5 * self.forms.log_det)
        self.mixture.K = self.forms.K
        self.mixture.form = self.forms.form
        self.mixture.constant = &self.constants[0]
        self.kind = "built-in"
        self.c.dim = means.shape[1]
        self.c.logp = mixture_logp
        self.c.logp_grad = mixture_logp_grad
        self.c.data = &self.mixture


cdef int mixture_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    """Compute log sum_k e^t_k in one pass."""
    cdef Mixture *mixture = <Mixture *>data
    cdef const Form *form = mixture.form
    cdef const double *constant = mixture.constant
    cdef LogSum total = LogSum(-INFINITY, 0)
    cdef double t
    cdef Py_ssize_t k
    for k in range(mixture.K):
        t = constant[k] - 0.5 * form_value(&form[k], x)
        if not add_term(&total, t):
            logp[0] = t         # NaN
            return 0
    logp[0] = log_total(&total)
    return 0


cdef int mixture_logp_grad(size_t n, const double *x, double *grad, double *logp,
                           void *data) noexcept nogil:
    """grad = -sum_k r_k P_k (x - m_k), with r_k the share of component k."""
    cdef Mixture *mixture = <Mixture *>data
    cdef double log_share
    cdef Py_ssize_t k
    mixture_logp(n, x, logp, data)
    memset(grad, 0, n * sizeof(double))
    for k in range(mixture.K):
        log_share = mixture.constant[k] - 0.5 * form_value(&mixture.form[k], x) - logp[0]
        if not log_share < ZERO:        # a NaN is passed on
            form_grad(&mixture.form[k], x, exp(log_share), grad)
    return 0


# ---- equally spaced components -----------------------------------------------------------------

cdef class LatticeMixtureDensity(Target):
    """log pi(x) = sum_j log (1/K) sum_m phi(x_j; mu_m, v), mu_m equally spaced about 0."""
    cdef Lattice lattice
    cdef double[::1] falls

    def set_up(self, d, K, spacing, variance):
        k = np.arange(K, dtype=float)
        self.falls = elementary.exp(-k * spacing**2 / variance)
        self.lattice.K = K
        self.lattice.low = -0.5 * (K - 1) * spacing
        self.lattice.h = spacing
        self.lattice.v = variance
        self.lattice.constant = -elementary.log(K) - 0.5 * elementary.log(2 * np.pi * variance)
        self.lattice.fall = &self.falls[0]
        self.kind = "built-in"
        self.c.dim = d
        self.c.logp = lattice_logp
        self.c.logp_grad = lattice_logp_grad
        self.c.data = &self.lattice


cdef int lattice_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    logp[0] = fk_lattice_logp(<Lattice *>data, n, x, NULL)
    return 0


cdef int lattice_logp_grad(size_t n, const double *x, double *grad, double *logp,
                           void *data) noexcept nogil:
    logp[0] = fk_lattice_logp(<Lattice *>data, n, x, grad)
    return 0
