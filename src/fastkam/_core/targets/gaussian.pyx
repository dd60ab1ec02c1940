"""Densities of one quadratic form: the Gaussian and Student's t.

    q(x) = (x - m)' Sigma^-1 (x - m) = |W (x - m)|^2,   W = L^-1,   L L' = Sigma
"""
from libc.math cimport log1p
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastkam._core.density.target cimport Target

from math import lgamma

from fastkam._core.linalg.decomposition import inverse
from fastkam._core.linalg.lanes import blocked
from fastkam._core.numerics import elementary

import numpy as np

LOG_2PI = elementary.log(2 * np.pi)


cdef class Forms:
    """K quadratic forms over points of one dimension.

    Parameters
    ----------
    means : ndarray (K, d)
    factors : ndarray (K, d) or (K, d, d)
        Standard deviations, or lower Cholesky factors, of the covariances.
    """

    def __init__(self, means, factors):
        cdef double[:, ::1] m = means.copy()
        cdef double[:, ::1] h
        cdef double[:, :, :, ::1] blocks
        cdef double[:, :, ::1] rows
        cdef Py_ssize_t k
        self.K, self.d = means.shape
        self.form = <Form *>calloc(self.K, sizeof(Form))
        if self.form == NULL:
            raise MemoryError
        for k in range(self.K):
            self.form[k].d = self.d
            self.form[k].mean = &m[k, 0]
        if factors.ndim == 2:
            self.log_det = 2 * elementary.log(factors).sum(axis=1)
            h = 1 / factors**2
            for k in range(self.K):
                self.form[k].h = &h[k, 0]
            self.arrays = (m, h)
        else:
            pivots = np.diagonal(factors, axis1=1, axis2=2)
            self.log_det = 2 * elementary.log(pivots).sum(axis=1)
            inverses = [inverse(L) for L in factors]
            rows = np.array(inverses)
            blocks = np.array([blocked(W) for W in inverses])
            for k in range(self.K):
                self.form[k].rows = &rows[k, 0, 0]
                self.form[k].blocks = &blocks[k, 0, 0, 0]
            self.arrays = (m, rows, blocks)

    def __dealloc__(self):
        free(self.form)


# ---- Gaussian ----------------------------------------------------------------------------------

cdef struct OneForm:
    const Form *form
    const Form *centered         # the same form about 0
    double constant
    double df


cdef class GaussianDensity(Target):
    """log pi(x) = -q(x)/2 - d/2 log(2 pi) - log det(Sigma)/2."""
    cdef OneForm one
    cdef Forms forms
    cdef Forms centered

    def set_up(self, mean, factor):
        """Take the mean (d,) and standard deviations (d,) or the lower factor (d, d)."""
        self.forms = Forms(mean[None], factor[None])
        self.centered = Forms(np.zeros_like(mean)[None], factor[None])
        self.one.form = self.forms.form
        self.one.centered = self.centered.form
        self.one.constant = -0.5 * (len(mean) * LOG_2PI + self.forms.log_det[0])
        self.kind = "built-in"
        self.c.dim = len(mean)
        self.c.logp = gaussian_logp
        self.c.logp_grad = gaussian_logp_grad
        self.c.hvp = gaussian_hvp
        self.c.data = &self.one


cdef int gaussian_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef OneForm *one = <OneForm *>data
    logp[0] = one.constant - 0.5 * form_value(one.form, x)
    return 0


cdef int gaussian_logp_grad(size_t n, const double *x, double *grad, double *logp,
                            void *data) noexcept nogil:
    cdef OneForm *one = <OneForm *>data
    memset(grad, 0, n * sizeof(double))
    logp[0] = one.constant - 0.5 * form_grad(one.form, x, 1, grad)
    return 0


cdef int gaussian_hvp(size_t n, const double *x, const double *v, double *Hv,
                      void *data) noexcept nogil:
    memset(Hv, 0, n * sizeof(double))
    form_grad((<OneForm *>data).centered, v, 1, Hv)
    return 0


# ---- Student's t -------------------------------------------------------------------------------

cdef class StudentTDensity(Target):
    """log pi(x) = c - (nu + d)/2 log(1 + q(x)/nu)."""
    cdef OneForm one
    cdef Forms forms

    def set_up(self, mean, factor, df):
        """Take the location (d,), the factor of the scale matrix as for the Gaussian, and nu."""
        d = len(mean)
        self.forms = Forms(mean[None], factor[None])
        self.one.form = self.forms.form
        self.one.df = df
        self.one.constant = (lgamma((df + d) / 2) - lgamma(df / 2)
                             - 0.5 * (d * elementary.log(df * np.pi) + self.forms.log_det[0]))
        self.kind = "built-in"
        self.c.dim = d
        self.c.logp = student_logp
        self.c.logp_grad = student_logp_grad
        self.c.data = &self.one


cdef int student_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef OneForm *one = <OneForm *>data
    logp[0] = one.constant - 0.5 * (one.df + n) * log1p(form_value(one.form, x) / one.df)
    return 0


cdef int student_logp_grad(size_t n, const double *x, double *grad, double *logp,
                           void *data) noexcept nogil:
    cdef OneForm *one = <OneForm *>data
    cdef double q = form_value(one.form, x)
    memset(grad, 0, n * sizeof(double))
    form_grad(one.form, x, (one.df + n) / (one.df + q), grad)
    logp[0] = one.constant - 0.5 * (one.df + n) * log1p(q / one.df)
    return 0
