"""Random-walk Metropolis.

    y      = x + s L e,                          e ~ N(0, I),   L L' = Sigma
    log s <- log s + g (alpha - alpha*)          if alpha* is given; otherwise s = 1

Metropolis, N., Rosenbluth, A. W., Rosenbluth, M. N., Teller, A. H. and Teller, E. (1953). Equation
of state calculations by fast computing machines. Journal of Chemical Physics 21, 1087-1092.
"""
from libc.math cimport exp

from fastkam._core.engine.fetch cimport fetch_lines
from fastkam._core.engine.kernel cimport Chain, Kernel, Lanes, blank, enter, proposed
from fastkam._core.engine.rng cimport Tables, bitgen_t, jittered, tables
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np

cdef extern from "walk.h" nogil:
    void step_from "fk_walk" (const Tables *tables, bitgen_t *rng, Py_ssize_t n, double s,
                              const double *L, const double *x, double *y)

cdef extern from "together.h" nogil:
    void step_by "fk_step_by" (Py_ssize_t n, Py_ssize_t d, const double *scale, const double *x,
                               const double *e, double *y)


cdef class RandomWalk(Kernel):
    """A walk of fixed shape.

    Parameters
    ----------
    d : int
    factor : ndarray
        L: a scalar array for an isotropic walk, (d,) for a diagonal, (d, d) for a full factor.
    target_acceptance : float
        alpha*; 0 for none.
    jitter : float
    """
    LANES = True
    FIELDS = {"s": Field("scale of the walk", shared=True, learned=True)}
    cdef public double s                # data that every proposal needs are contiguous
    cdef double length                  # of an isotropic walk
    cdef double jitter
    cdef int ndim
    cdef bint in_own                    # whether Lanes.own has the scales of all chains
    cdef double target_acceptance
    cdef double[::1] L
    cdef double[::1] e

    def __init__(self, d, factor, *, double target_acceptance, double jitter):
        self.allocate(d=d)
        self.ndim = factor.ndim
        self.L = np.array(factor, dtype=float).ravel(order="F")
        self.length = self.L[0]
        self.e = zeros(d)
        self.s = 1.0
        self.target_acceptance, self.jitter = target_acceptance, jitter
        self.normals_first = jitter == 0

    cdef int propose(self, Chain *c) except -1 nogil:
        walk(self, c)
        return 0

    cdef void lay_out(self, Lanes *g) noexcept nogil:
        """Copy the scales of isotropic walks to g.own."""
        cdef Py_ssize_t k
        self.in_own = True
        for k in range(g.K):
            g.own[k] = (<RandomWalk>g.kernels[k]).s * (<RandomWalk>g.kernels[k]).length
            self.in_own = self.in_own and (<RandomWalk>g.kernels[k]).ndim == 0

    cdef int propose_lanes(self, Lanes *g) except -1 nogil:
        cdef Py_ssize_t k
        cdef Chain c
        if self.in_own and g.drawn != NULL:
            step_by(g.K, g.d, g.own, g.x, g.drawn, g.y)
            return 0
        blank(g, &c)
        for k in range(g.K):
            if k + 8 < g.K:
                fetch_lines(&(<RandomWalk>g.kernels[k + 8]).s, 1)
            enter(g, k, &c)
            walk(<RandomWalk>g.kernels[k], &c)
            proposed(g, k, &c)
        return 0

    cdef int consider_lanes(self, Lanes *g) except -1 nogil:
        return 0        # all decide

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        if self.target_acceptance > 0:
            self.s *= exp(gain * (c.alpha - self.target_acceptance))
        return 0


cdef inline void walk(RandomWalk self, Chain *c) noexcept nogil:
    """Propose y."""
    cdef Py_ssize_t i
    cdef double s = self.s * jittered(c.rng, self.jitter)
    if self.ndim == 2:
        normal_step(c, s, &self.L[0], &self.e[0])
        return
    if self.ndim == 0:          # with thousands of chains, L is not in the cache
        s *= self.length
    if c.drawn == NULL:
        step_from(&tables, c.rng, c.d, s, &self.L[0] if self.ndim else NULL, c.x, c.y)
        return
    for i in range(c.d):
        c.y[i] = c.x[i] + (s * self.L[i] if self.ndim else s) * c.drawn[i]
