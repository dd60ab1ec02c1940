"""Gaussian-process classification: the posterior of the kernel's length scales.

    f ~ N(0, K),   K_ij = exp(-sum_k w_k^2 (x_ik - x_jk)^2 / 2),   p(y_i | f_i) = sigma(y_i f_i)

with log w a multiple of theta ~ N(0, v I). Laplace's approximation at the mode m of p(f | y),

    log q(y) = log p(y | m) - m'K^-1 m/2 - log|B|/2,   B = I + s K s,   s^2 = sigma(m) sigma(-m)

makes the proposal N(m, S + r I), S = (K^-1 + s^2)^-1, of an estimate that is unbiased for the prior
N(0, K + r I): from N draws f_i = m + C u_i, C C' = S + r I,

    p_hat(y) = mean_i p(y | f_i) N(f_i; 0, K + r I) / N(f_i; m, S + r I)

Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, 3.4.
Filippone, M. and Girolami, M. (2014). Pseudo-marginal Bayesian inference for Gaussian processes.
IEEE Transactions on Pattern Analysis and Machine Intelligence 36, 2214-2226.
"""
from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, exp
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dsymv, dtrmm, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri, dpotrs

from fastkam._core.linalg.dense cimport dot, log_det_L, square
from fastkam._core.density.target cimport Target
from fastkam._core.engine.sums cimport log_sum_over

from fastkam._core.numerics import elementary

import numpy as np

cdef extern from "gaussian_process.h" nogil:
    void squared_exponential "fk_squared_exponential" (
        Py_ssize_t n, Py_ssize_t d, const double *Z, double *K)
    void logistic_curvature "fk_logistic_curvature" (
        Py_ssize_t n, const double *y, const double *f, double *g, double *s)
    void scale_and_add_one "fk_scale_and_add_one" (
        Py_ssize_t n, const double *s, const double *K, double *B)
    void posterior_covariance "fk_posterior_covariance" (
        Py_ssize_t n, double r, const double *s, double *A)

cdef extern from "softplus.h" nogil:
    double sum_softplus "fk_sum_softplus" (
        Py_ssize_t d, double a, const double *g, const double *w)

cdef extern from "workspace.h" nogil:
    ctypedef struct Workspace "fk_workspace":
        size_t size
    double *enter "fk_enter" (Workspace *w, int *place)
    void leave "fk_leave" (Workspace *w, int place, double *memory)
    void free_workspace "fk_free_workspace" (Workspace *w)

cdef enum:
    SINGULAR = 1                # K + r I or S + r I: the point is rejected
    NO_MEMORY = -1
    MOST_STEPS = 100            # of Newton's method, which makes five to seven

cdef double CONVERGED = 1e-20   # the squared length of a step, in the metric of the Hessian
cdef double LEVEL = 1e-8        # below it, rounding decides whether a step ascends

cdef struct Model:
    int n
    int d
    int N                       # draws of the estimate
    const double *X             # (d, n)
    const double *y             # (n,) of +-1
    double ridge                # r
    double h                    # 1 / prior variance
    double constant             # of the prior
    double slope                # log w = slope theta
    Workspace workspace

cdef struct Work:               # each aligned like the whole
    double *K                   # (n, n) lower, and then its factor
    double *A                   # (n, n) lower: B, its factor, S + r I, its factor
    double *F                   # (N, n) draws of f; before, Z (d, n)
    double *f                   # (n,) latent values, at last m
    double *a                   # (n,) K^-1 f
    double *g                   # (n,) gradient of log p(y | f)
    double *s                   # (n,)
    double *step_f              # (n,)
    double *step_a              # (n,)
    double *log_weights         # (N,)


cdef size_t padded(size_t size) noexcept nogil:
    """Return the next multiple of 8."""
    return (size + 7) // 8 * 8


cdef size_t lay_out(const Model *p, double *memory, Work *w) noexcept nogil:
    """Set the pointers of w into memory; return the number of doubles it takes."""
    cdef size_t matrix = padded(<size_t>p.n * p.n), vector = padded(p.n)
    w.K = memory
    w.A = w.K + matrix
    w.f = w.A + matrix
    w.a = w.f + vector
    w.g = w.a + vector
    w.s = w.g + vector
    w.step_f = w.s + vector
    w.step_a = w.step_f + vector
    w.log_weights = w.step_a + vector
    w.F = w.log_weights + padded(p.N)
    return 2 * matrix + 6 * vector + padded(p.N) + padded(<size_t>p.n * max(p.N, p.d))


cdef class GaussianProcessDensity(Target):
    cdef Model model
    cdef const double[:, ::1] inputs
    cdef const double[::1] signs

    def set_up(self, X, y, variance, slope, draws=0, ridge=0.0):
        """Take inputs (n, d), labels (n,) of +-1, the prior's variance and the slope of log w.

        With `draws` the target is noisy, and otherwise it is Laplace's approximation.
        """
        cdef Work work
        cdef int place
        n, d = X.shape
        self.inputs, self.signs = np.ascontiguousarray(X.T), y
        self.model.n, self.model.d, self.model.N = n, d, draws
        self.model.X, self.model.y = &self.inputs[0, 0], &self.signs[0]
        self.model.ridge, self.model.slope, self.model.h = ridge, slope, 1 / variance
        self.model.constant = -0.5 * d * elementary.log(2 * np.pi * variance)
        self.model.workspace.size = lay_out(&self.model, NULL, &work)
        cdef double *memory = enter(&self.model.workspace, &place)
        leave(&self.model.workspace, place, memory)
        if memory == NULL:
            raise self.fault(NO_MEMORY, None)
        self.kind = "built-in"
        self.c.dim = d
        self.c.data = &self.model
        if draws:
            self.c.noisy = estimated_logp
            self.c.n_aux = n * draws
        else:
            self.c.logp = laplace_logp

    def __dealloc__(self):
        free_workspace(&self.model.workspace)

    def estimate_logp(self, const double[::1] theta, const double[::1] u):
        """Return the noisy log density at theta (d,), from standard normals u (n_aux,)."""
        cdef double logp
        cdef int rc
        with nogil:
            rc = estimated_logp(self.c.dim, &theta[0], self.c.n_aux, &u[0], &logp, &self.model)
        if rc:
            self.complain(rc, theta)
        return logp

    def fault(self, rc, x):
        if rc == NO_MEMORY:
            return MemoryError(f"X has {self.model.n} points, which need "
                               f"{8 * self.model.workspace.size} bytes of work memory")
        return ArithmeticError(f"the covariance of f is numerically singular at theta = {x}: "
                               "a larger ridge helps")


cdef int laplace_logp(size_t d, const double *theta, double *logp, void *data) noexcept nogil:
    return evaluate(<Model *>data, theta, NULL, logp)


cdef int estimated_logp(size_t d, const double *theta, size_t k, const double *u, double *logp,
                        void *data) noexcept nogil:
    return evaluate(<Model *>data, theta, u, logp)


cdef int evaluate(Model *p, const double *theta, const double *u, double *logp) noexcept nogil:
    """Compute log N(theta; 0, v I) plus the estimate from u, or Laplace's without u."""
    cdef Work w
    cdef int place, rc
    cdef double value
    cdef double *memory
    logp[0] = p.constant - 0.5 * p.h * square(p.d, theta)
    if not logp[0] > -INFINITY:     # theta is infinite or NaN
        return 0
    memory = enter(&p.workspace, &place)
    if memory == NULL:
        return NO_MEMORY
    lay_out(p, memory, &w)
    covariance(p, theta, &w)
    rc = fit(p, &w, &value)
    if rc == 0 and u != NULL:
        rc = estimate(p, u, &w, &value)
    leave(&p.workspace, place, memory)
    if rc == 0:
        logp[0] += value
    return rc


cdef void covariance(const Model *p, const double *theta, Work *w) noexcept nogil:
    """Compute K from the inputs times w / sqrt(2)."""
    cdef Py_ssize_t i, k
    cdef double weight
    for k in range(p.d):
        # within the range where no product is 0 times infinity
        weight = exp(min(max(p.slope * theta[k], -300.0), 300.0)) * 0.7071067811865476
        for i in range(p.n):
            w.F[k * p.n + i] = weight * p.X[k * p.n + i]
    squared_exponential(p.n, p.d, w.F, w.K)


cdef int fit(const Model *p, Work *w, double *log_q) noexcept nogil:
    """Find the mode by Newton's method: f, a = K^-1 f, s, and in A the factor of B.

        step of a = r - s B^-1 s K r,   step of f = K (step of a),   r = g - a

    A step is halved until log p(y | f) - a'f/2, which is concave, does not decrease.
    """
    cdef int n = p.n, one = 1, rc
    cdef double length, zero = 0, plus = 1, squared_step, rise, value
    cdef Py_ssize_t i, _
    memset(w.f, 0, n * sizeof(double))
    memset(w.a, 0, n * sizeof(double))
    value = -sum_softplus(n, -1, p.y, w.f)
    for _ in range(MOST_STEPS):
        logistic_curvature(n, p.y, w.f, w.g, w.s)
        scale_and_add_one(n, w.s, w.K, w.A)
        dpotrf(b"L", &n, w.A, &n, &rc)
        if rc:
            return SINGULAR
        for i in range(n):
            w.g[i] -= w.a[i]
        dsymv(b"L", &n, &plus, w.K, &n, w.g, &one, &zero, w.step_f, &one)
        for i in range(n):
            w.step_a[i] = w.s[i] * w.step_f[i]
        dpotrs(b"L", &n, &one, w.A, &n, w.step_a, &n, &rc)
        for i in range(n):
            w.step_a[i] = w.g[i] - w.s[i] * w.step_a[i]
        dsymv(b"L", &n, &plus, w.K, &n, w.step_a, &one, &zero, w.step_f, &one)
        squared_step = dot(n, w.g, w.step_f)
        if not squared_step > CONVERGED:
            break
        length = 1
        for i in range(n):
            w.f[i] += w.step_f[i]
            w.a[i] += w.step_a[i]
        rise = objective(p, w) - value
        while rise < 0 and length * squared_step > LEVEL:
            length /= 2
            for i in range(n):
                w.f[i] -= length * w.step_f[i]
                w.a[i] -= length * w.step_a[i]
            rise = objective(p, w) - value
        value += rise
    log_q[0] = value - log_det_L(n, w.A)
    return 0


cdef inline double objective(const Model *p, const Work *w) noexcept nogil:
    """Return log p(y | f) - a'f/2."""
    return -sum_softplus(p.n, -1, p.y, w.f) - 0.5 * dot(p.n, w.a, w.f)


cdef int estimate(const Model *p, const double *u, Work *w, double *log_p) noexcept nogil:
    """Compute log p_hat(y) from u (N, n), after `fit`.

    S is computed as s^-1 (I - B^-1) s^-1, with a third of the operations of K - K s B^-1 s K and no
    memory. This loses few digits, since at the mode m_i^2 <= m'K^-1 m = sum_i y_i m_i
    sigma(-y_i m_i) <= 0.28 n keeps s away from zero; and the loss causes no bias, because the
    density of the draws is computed from the same factor C.
    """
    cdef int n = p.n, N = p.N, rc
    cdef double plus = 1
    cdef double *f
    cdef Py_ssize_t i, j
    dpotri(b"L", &n, w.A, &n, &rc)
    posterior_covariance(n, p.ridge, w.s, w.A)
    for i in range(n):
        w.K[i * n + i] += p.ridge
    if factor(n, w.A) or factor(n, w.K):
        return SINGULAR
    memcpy(w.F, u, <size_t>n * N * sizeof(double))
    dtrmm(b"L", b"L", b"N", b"N", &n, &N, &plus, w.A, &n, w.F, &n)
    for j in range(N):
        f = w.F + j * n
        for i in range(n):
            f[i] += w.f[i]
        w.log_weights[j] = 0.5 * square(n, u + j * n) - sum_softplus(n, -1, p.y, f)
    dtrsm(b"L", b"L", b"N", b"N", &n, &N, &plus, w.K, &n, w.F, &n)
    for j in range(N):
        w.log_weights[j] -= 0.5 * square(n, w.F + j * n)
    log_p[0] = log_sum_over(N, N, w.log_weights) + log_det_L(n, w.A) - log_det_L(n, w.K)
    return 0


cdef int factor(int n, double *A) noexcept nogil:
    """Replace A by its lower Cholesky factor; return 1 if a pivot is within the rounding error."""
    cdef int rc
    cdef Py_ssize_t i
    cdef double largest = 0
    for i in range(n):
        largest = max(largest, A[i * n + i])
    dpotrf(b"L", &n, A, &n, &rc)
    if rc:
        return 1
    for i in range(n):
        if not A[i * n + i] * A[i * n + i] > n * DBL_EPSILON * largest:
            return 1
    return 0
