"""A normal proposal whose covariance follows a subsample z of the chain's history, in two forms.

    R(x) = gamma^2 I + nu^2 M H M',     M = [M_1, ..., M_n],   M_i = 2 grad_x k(x, z_i)

With d x d matrices: Q and s of kernel_pass.h, and

    y = x + L e,                        e ~ N(0, I_d),   L L' = R(x)

With n x n matrices, if there are few points for the dimensions (low_rank.h):

    y = x + gamma e + nu M H f,         e ~ N(0, I_d), then f ~ N(0, I_n)
    B = I_n + (nu / gamma)^2 H M'M H = C C',          log det R = 2 d log gamma + 2 log det C
    v'R^-1 v = (|v|^2 - (nu / gamma)^2 |C^-1 H M'v|^2) / gamma^2

All this is in the coordinates u = A^-1 x, in which the points z are also stored. If there is a
metric Sigma = A A', it is I in these coordinates, and

    y = x + A (y_u - x_u),              R(x) in the coordinates x: A R_u A'

otherwise u = x. Factors that are equal in both directions cancel in the ratio: those of gamma and
|v|. M'v follows from known distances:

    (z_i - x)'(y - x) = (|z_i - x|^2 + |y - x|^2 - |z_i - y|^2) / 2

After an acceptance, the pass at y becomes the pass at x. Hence there is one pass in each step, and
a new nu costs one small factorization.
"""
from libc.math cimport INFINITY, exp
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.kam.kernel_gradient cimport KernelFunction, proposal_factor
from fastkam._core.kam.kernel_pass cimport fk_kernel_pass, fk_kernel_pass_work
from fastkam._core.kam.low_rank cimport (
    fk_distances, fk_gram, fk_measure, fk_project, fk_shift, fk_spread,
)
from fastkam._core.linalg.dense cimport add_Lz, cholesky, copy, solve_L, square
from fastkam._core.engine.rng cimport normals

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef class LocalNormal(Kernel):
    """The proposal alone; derived classes set gamma and adapt the other parameters."""
    FIELDS = {
        "z": Field("subsample of the history, in blocks of 8 points", ("blocks", "d", "lanes"),
                   shared=True, finite=True),
        "n": Field("points of the subsample", dtype="i8", shared=True, least=0, most="subsample"),
        "length": Field("length of the kernel", shared=True, learned=True, above=0),
        "log_nu": Field("log of the step size nu", shared=True, learned=True),
        "e": Field("the last standard normal draw", ("d",)),
        "A": Field("factor of the metric, its columns in turn; none where that is I", ("factor",),
                   shared=True),
    }

    def __init__(self, Py_ssize_t d, KernelFunction function, Py_ssize_t subsample, bint few):
        """Initialize buffers; call it after `allocate`."""
        cdef Py_ssize_t m = subsample if few else d, padded = 8 * self.z.shape[0]
        self.function = function
        self.few, self.metric = few, len(self.A) > 0
        if self.metric:
            np.asarray(self.A)[:] = np.eye(d).ravel()
        self.work = zeros(max(d, padded) if few else fk_kernel_pass_work(d))
        self.v, self.f = zeros(d), zeros(padded)
        self.T = zeros((subsample if few else 0, padded))
        self.buffers = zeros((2, 2 * (m * m + 8) + 2 * (d + padded)))
        set_pass(&self.at_x, m, d, padded, &self.buffers[0, 0])
        set_pass(&self.at_y, m, d, padded, &self.buffers[1, 0])

    def restored(self):
        self.forget_points()

    cdef double gamma(self) noexcept nogil:
        return 0

    # ---- propose ----

    cdef void draw(self, Chain *c, const double *center, double scale) noexcept nogil:
        """Draw y ~ N(x, scale^2 R) with R at `center`, whose pass is at_x.

        If R overflows, L is some other matrix: then `reverse_log_q` rejects y, and a proposal that
        does not use it is still symmetric.
        """
        cdef Py_ssize_t i
        cdef double gamma
        cdef double *to = &self.v[0] if self.metric else c.y
        normals(c.rng, c.d, &self.e[0])
        copy(c.d, c.x, c.y)
        if self.metric:
            memset(to, 0, c.d * sizeof(double))
        if not self.few:
            self.factor(center, &self.at_x, NULL)
            add_Lz(c.d, scale, self.at_x.L, &self.e[0], to)
        else:
            normals(c.rng, self.n, &self.f[0])
            gamma = scale * self.gamma()
            for i in range(c.d):
                to[i] += gamma * self.e[i]
            if self.n > 0:
                self.see(center, &self.at_x)
                fk_spread(self.n, c.d, &self.z[0, 0, 0], self.at_x.u, scale * exp(self.log_nu),
                          self.at_x.w, &self.f[0], &self.work[0], to)
        if self.metric:
            add_Lz(c.d, 1.0, &self.A[0], to, c.y)

    cdef void whiten(self, double *v) noexcept nogil:
        """v <- A^-1 v"""
        if self.metric:
            solve_L(self.d, &self.A[0], v)

    cdef void see(self, const double *point, Pass *p) noexcept nogil:
        """Make the kernel pass at a point, unless it has been made."""
        cdef const double *z = &self.z[0, 0, 0]
        if p.seen:
            return
        p.seen, p.factored = True, False
        if self.n == 0:
            return
        copy(self.d, point, p.u)
        self.whiten(p.u)
        self.function.k.length = self.length
        if not self.few:
            fk_kernel_pass(&self.function.k, self.n, self.d, z, p.u, &self.work[0], p.Q, p.s)
            return
        fk_measure(self.measured, self.n, self.d, self.T.shape[1], z, &self.work[0],
                   &self.T[0, 0])
        self.measured = self.n
        fk_distances(self.n, self.d, z, p.u, p.r)
        fk_gram(&self.function.k, self.n, self.T.shape[1], &self.T[0, 0], p.r, &self.work[0], p.w,
                p.Q)

    cdef int factor(self, const double *point, Pass *p, double *v) noexcept nogil:
        """Update a pass, and set v <- L^-1 v unless v is NULL; return 1 if R overflows."""
        cdef double gamma, nu
        self.see(point, p)
        if p.factored:
            if v != NULL:
                solve_L(self.n if self.few else self.d, p.L, v)
            return 0
        gamma, nu = self.gamma(), exp(self.log_nu)
        if self.few:
            fk_shift(self.n, (nu / gamma) ** 2, p.Q, p.L)
            if cholesky(self.n, p.L, v, &p.log_det):
                return 1
        elif proposal_factor(self.d, self.n, gamma, nu, p.Q, p.s, p.L, v, &p.log_det):
            return 1
        p.factored = True
        return 0

    # ---- consider ----

    cdef double reverse_log_q(self, Chain *c) noexcept nogil:
        """Return log N(x; y, R(y)) - log N(y; x, R(x))."""
        cdef Py_ssize_t i
        cdef double a, v2
        cdef double *v = &self.v[0]
        for i in range(c.d):
            v[i] = c.x[i] - c.y[i]
        self.whiten(v)
        if self.factor(c.x, &self.at_x, NULL) or self.factor(
                c.y, &self.at_y, NULL if self.few else v):
            return -INFINITY
        if self.few:
            a, v2 = exp(self.log_nu) / self.gamma() ** 2, square(c.d, v)
            a *= a * (self.along(&self.at_y, &self.at_x, v2)
                      - self.along(&self.at_x, &self.at_y, v2))
        else:
            a = square(c.d, &self.e[0]) - square(c.d, v)
        return self.at_x.log_det - self.at_y.log_det + 0.5 * a

    cdef double along(self, const Pass *p, const Pass *q, double v2) noexcept nogil:
        """Return |C^-1 H M'v|^2 at the point of p, for v from it to that of q, |v|^2 = v2."""
        cdef double *b = &self.work[0]
        fk_project(self.n, p.w, p.r, q.r, v2, b)
        solve_L(self.n, p.L, b)
        return square(self.n, b)

    def log_q(self, double[::1] x, double[::1] y):
        """Return log q(x|y) - log q(y|x) for the current state, for tests."""
        cdef Py_ssize_t i
        cdef Chain c
        c.d, c.x, c.y = self.d, &x[0], &y[0]
        self.forget()
        for i in range(self.d):
            self.e[i] = y[i] - x[i]
        self.whiten(&self.e[0])
        if not self.few:
            self.factor(c.x, &self.at_x, &self.e[0])
        log_q = self.reverse_log_q(&c)
        self.forget()
        return log_q

    # ---- the subsample ----

    cdef void set_point(self, int64_t i, const double *x) noexcept nogil:
        """Set z_i = A^-1 x."""
        cdef Py_ssize_t j
        copy(self.d, x, &self.v[0])
        self.whiten(&self.v[0])
        for j in range(self.d):
            self.z[i // 8, j, i % 8] = self.v[j]
        self.measured = min(self.measured, i)

    cdef void forget(self) noexcept nogil:
        """Mark both passes as invalid, since x or z has changed."""
        self.at_x.seen = self.at_y.seen = False

    cdef void forget_points(self) noexcept nogil:
        """Mark all distances as invalid, since z was replaced other than by `set_point`."""
        self.measured = 0
        self.forget()


cdef void set_pass(
        Pass *p, Py_ssize_t m, Py_ssize_t d, Py_ssize_t padded, double *buffer) noexcept nogil:
    """Divide a buffer; L and Q are (m, m), with 8 more elements for low_rank.h."""
    p.seen = p.factored = False
    p.L, p.Q = buffer, buffer + m * m + 8
    p.s = p.Q + m * m + 8
    p.u = p.s + d
    p.r, p.w = p.u + d, p.u + d + padded
    p.log_det = 0
