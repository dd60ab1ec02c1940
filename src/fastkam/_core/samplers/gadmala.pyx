"""Gradient-based adaptive MALA, fast and exact.

    G_x = grad log pi(x),   h = L' G_x / 2 + e,   y = x + L h,   e ~ N(0, I)
    G_y = grad log pi(y),   h_y = L' G_y / 2
    log ratio = log pi(y) - log pi(x) + (|e|^2 - |h + h_y|^2) / 2
    g = beta diag(1 / L_ii) - [log ratio < 0] lower((G_x - G_y) (h - h_y)') / 2

The exact form differentiates through G_y too; with k = Hy L (h + h_y), Hy the Hessian at y,

    g <- g - lower(G_x (L' k)' / 2 + k h') / 2.

k is one product of the Hessian and a vector: the target's own, or a central difference of gradients
at y +- eps L (h + h_y). If neither is available, the fast form is used. g changes L, and beta
follows the acceptance rate, as in gad.pyx.

Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
Advances in Neural Information Processing Systems 32. Section 3.2 and supplement.
"""
from libc.math cimport INFINITY, isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, FATAL, Chain
from fastkam._core.linalg.dense cimport add_Lz, all_finite, copy, square, times_Lt
from fastkam._core.samplers.gad cimport GradientAdaptive
from fastkam._core.samplers.langevin cimport langevin_log_q, langevin_move
from fastkam._core.engine.step cimport KEPT, keep_point, log_target_ratio, recall_point

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros
from fastkam._core.samplers.gad import GradientAdaptive as Base

cdef double DIFFERENCE = 1e-5       # |eps L v| / (1 + |y|): cube root of the rounding error

cdef enum:                          # stages of a step
    PROPOSED = 0
    ABOVE = 1                       # y + eps L v
    BELOW = 2


cdef class GradientAdaptiveMALA(GradientAdaptive):
    SEVERAL = True
    FIELDS = Base.FIELDS | {
        "h": Field("L^-1 (y - x)", ("d",)),
        "h_y": Field("L' grad log pi(y) / 2", ("d",)),
        "k": Field("the Hessian at y times L (h + h_y)", ("d",)),
        "known": Field("whether k is known", dtype="i8", least=0, most=1),
        "stage": Field("which evaluation of the step comes next", dtype="i8",
                       least=PROPOSED, most=BELOW),
        "eps": Field("step of the central difference"),
        "proposal": Field("y, kept during the central difference", ("point",)),
    }
    cdef public double[::1] h
    cdef public double[::1] h_y
    cdef public double[::1] k
    cdef public int64_t known
    cdef public int64_t stage
    cdef public double eps
    cdef public double[::1] proposal
    cdef double[::1] left
    cdef double[::1] right
    cdef double[::1] right1
    cdef double[::1] right2
    cdef bint exact

    def __init__(self, factor, *, exact, **options):
        super().__init__(factor, **options)
        self.exact = exact
        self.left, self.right = zeros(self.d), zeros(self.d)
        self.right1, self.right2 = zeros(self.d), zeros(self.d)

    cdef int propose(self, Chain *c) except -1 nogil:
        langevin_move(c, 1.0, self.ndim(), &self.L[0, 0], &self.e[0], &self.h[0])
        self.stage, self.known = PROPOSED, False
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        if self.stage != PROPOSED:
            return self.difference(c)
        if c.logp_y > -INFINITY:
            c.log_q = langevin_log_q(c, 1.0, self.ndim(), &self.L[0, 0], &self.e[0], &self.h[0],
                                     &self.h_y[0])
            if self.exact and c.adapting and self.log_ratio(c) < 0:
                return self.curvature(c)
        return DECIDE

    cdef double log_ratio(self, Chain *c) noexcept nogil:
        return log_target_ratio(c) + c.log_q

    # ---- k ----

    cdef int curvature(self, Chain *c) except -1 nogil:
        """Request the Hessian at y times u = L (h + h_y), or begin a central difference."""
        cdef Py_ssize_t i
        cdef double *u = &self.left[0]
        for i in range(c.d):
            self.right[i] = self.h[i] + self.h_y[i]
        memset(u, 0, c.d * sizeof(double))
        if self.diagonal:
            for i in range(c.d):
                u[i] = self.L[i, 0] * self.right[i]
        else:
            add_Lz(c.d, 1.0, &self.L[0, 0], &self.right[0], u)
        if c.target.hvp != NULL:
            c.code = c.target.hvp(c.d, c.y, u, &self.k[0], c.target.data)
            if c.code < 0:
                return FATAL
            self.known = c.code == 0 and all_finite(c.d, &self.k[0])
            return DECIDE
        self.eps = DIFFERENCE * (1 + sqrt(square(c.d, c.y))) / sqrt(square(c.d, u))
        if not isfinite(self.eps):
            return DECIDE
        keep_point(c, 0, &self.proposal[0])
        copy(c.d, u, &self.k[0])
        for i in range(c.d):
            c.y[i] += self.eps * u[i]
        self.stage = ABOVE
        return AGAIN

    cdef int difference(self, Chain *c) except -1 nogil:
        """Take the gradient at y + eps u, then at y - eps u; compute k, which held u; restore y."""
        cdef Py_ssize_t i
        cdef bint good = c.logp_y > -INFINITY
        if self.stage == ABOVE and good:
            self.stage = BELOW
            for i in range(c.d):
                c.y[i] = self.proposal[KEPT + i] - self.eps * self.k[i]
            copy(c.d, c.grad_y, &self.k[0])
            return AGAIN
        if good:
            for i in range(c.d):
                self.k[i] = (self.k[i] - c.grad_y[i]) / (2 * self.eps)
            self.known = all_finite(c.d, &self.k[0])
        recall_point(c, &self.proposal[0])
        self.stage = PROPOSED
        return DECIDE

    # ---- adapt ----

    cdef int adapt(self, Chain *c, double rho) except -1 nogil:
        cdef Py_ssize_t i
        if c.logp_y > -INFINITY:
            if self.log_ratio(c) < 0:
                for i in range(c.d):
                    self.left[i] = -0.5 * (c.grad_x[i] - c.grad_y[i])
                    self.right[i] = self.h[i] - self.h_y[i]
                if self.known:
                    self.through_the_gradient(c)
                    self.ascend(rho, &self.left[0], &self.right[0], c.grad_x,
                                &self.right1[0], &self.k[0], &self.right2[0])
                else:
                    self.ascend(rho, &self.left[0], &self.right[0], NULL, NULL, NULL, NULL)
            else:
                self.ascend(rho, NULL, NULL, NULL, NULL, NULL, NULL)
        self.follow_acceptance(c.accepted)
        return 0

    cdef void through_the_gradient(self, Chain *c) noexcept nogil:
        """Compute the two further products: grad_x (-L' k / 4)' and k (-h / 2)'."""
        cdef Py_ssize_t i
        for i in range(c.d):
            self.right2[i] = -0.5 * self.h[i]
        if self.diagonal:
            for i in range(c.d):
                self.right1[i] = -0.25 * self.L[i, 0] * self.k[i]
        else:
            times_Lt(c.d, -0.25, &self.L[0, 0], &self.k[0], &self.right1[0])
