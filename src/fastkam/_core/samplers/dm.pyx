"""The divergence-minimization (DM) sampler.

    e_0, ..., e_J-1 ~ N(0, I),   y_j = x + C e_j,   y_0 is the proposal, of a random walk
    G = lower( (1/J) sum_j c_j grad log pi(y_j) e_j' ) + b diag(1 / C_ii),
        c_j = b + 1 where pi(y_j) < pi(x), otherwise b
    C <- C + g G

C follows the target's local shape by stochastic gradient descent on a divergence of N(x, C C')
from the target, with b the weight of the proposal's entropy; the diagonal of C may have any sign.
While C adapts, the target is not invariant.

At the end of adaptation a bank of (x, C) from its second half is fixed:

    y = x + C_i e,   alpha = min(1, pi(y) N(x; y, C_k C_k') / (pi(x) N(y; x, C_i C_i')))

with i the entry whose point is nearest to x and k that nearest to y: one look-up in each step.

Dharamshi, A., Ngo, V. and Rosenthal, J. S. (2023). Sampling by divergence minimization.
Communications in Statistics - Simulation and Computation. Algorithms 1 and 2, in log densities;
the masks, and J, which the paper does not state, are those of its authors' code.
"""
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcpy

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.linalg.dense cimport add_Lz, copy, log_det_L, solve_L, square
from fastkam._core.numerics.nearest cimport NearestIndex
from fastkam._core.engine.rng cimport normals

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField
from fastkam._core.engine.state import zeros

import numpy as np

cdef extern from "divergence.h" nogil:
    double fk_divergence_step(Py_ssize_t d, Py_ssize_t J, const double *C, const double *g,
                              const double *e, const double *w, double b, double gain,
                              double most, double *step)
    void fk_divergence_move(Py_ssize_t d, double a, const double *step, double *C)

cdef enum:
    UNKNOWN = -1


cdef class DivergenceMinimization(Kernel):
    GRADIENT = True
    FIELDS = {
        "C": Field("lower-triangular factor, of any sign on its diagonal", ("d", "d"),
                   learned=True),
        "e": Field("the last standard normal draws", ("points", "d")),
        "frozen": Field("whether adaptation has ended", dtype="i8", least=0, most=1),
        "banked": Field("entries of the bank", dtype="i8", least=0, most="bank"),
        "bank_x": Field("their points", ("bank", "d"), finite=True),
        "bank_C": Field("their factors, each transposed", ("bank", "d", "d")),
        "at_x": Field("the entry nearest to x; -1 if not known", dtype="i8",
                      least=UNKNOWN, below="banked"),
        "at_y": Field("the entry of the reverse move", dtype="i8", least=UNKNOWN, below="banked"),
    }
    cdef public double[::1, :] C
    cdef public double[:, ::1] e
    cdef public int64_t frozen
    cdef public int64_t banked
    cdef public double[:, ::1] bank_x
    cdef public double[:, :, ::1] bank_C
    cdef public int64_t at_x
    cdef public int64_t at_y
    cdef NearestIndex index
    cdef double[::1] log_dets
    cdef double[::1] weights
    cdef double[::1] step
    cdef double[::1] v
    cdef double entropy_weight
    cdef double largest_step
    cdef double norm_clip
    cdef double shrink

    def __init__(self, factor, *, points, bank, double entropy_weight, double largest_step,
                 norm_clip, double shrink):
        d = len(factor)
        self.allocate(d=d, points=points, bank=bank)
        np.asarray(self.C)[...] = factor
        self.index = NearestIndex(self.bank_x)
        self.log_dets, self.weights = zeros(bank), zeros(points)
        self.step, self.v = zeros(d * d), zeros(d)
        self.entropy_weight, self.largest_step, self.shrink = entropy_weight, largest_step, shrink
        self.norm_clip = np.inf if norm_clip is None else norm_clip
        self.at_x = self.at_y = UNKNOWN
        self.width = points

    def check_relations(self, state, step):
        if state["frozen"] and not state["banked"]:
            raise BadField("banked", "must be at least 1 where adaptation has ended, not 0")

    def restored(self):
        if self.frozen:
            self.build_index()

    # ---- propose and consider ----

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef Py_ssize_t d = c.d
        cdef int j, points = self.width if c.adapting else 1
        cdef const double *C = &self.C[0, 0]
        if self.frozen:
            if c.accepted:
                self.at_x = self.at_y
            if self.at_x == UNKNOWN:
                self.at_x = self.index.find(c.x)
            C = &self.bank_C[self.at_x, 0, 0]
        normals(c.rng, points * d, &self.e[0, 0])
        for j in range(self.width):
            c.wanted[j] = j < points
            if j < points:
                copy(d, c.x, c.y + j * d)
                add_Lz(d, 1.0, C, &self.e[j, 0], c.y + j * d)
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        if self.frozen and c.logp_y > -INFINITY:
            self.at_y = self.nearest_for_reverse(c)
            c.log_q = self.log_q(c)
        return DECIDE

    cdef int64_t nearest_for_reverse(self, Chain *c) noexcept nogil:
        return self.index.find(c.y)

    cdef double log_q(self, Chain *c) noexcept nogil:
        """log N(x; y, C_k C_k') - log N(y; x, C_i C_i')"""
        cdef Py_ssize_t i
        cdef double *v = &self.v[0]
        if self.at_y == self.at_x:
            return 0.0
        for i in range(c.d):
            v[i] = c.x[i] - c.y[i]
        solve_L(c.d, &self.bank_C[self.at_y, 0, 0], v)
        return (self.log_dets[self.at_x] - self.log_dets[self.at_y]
                + 0.5 * (square(c.d, &self.e[0, 0]) - square(c.d, v)))

    cdef void displaced(self) noexcept nogil:
        self.at_x = self.at_y = UNKNOWN

    # ---- adapt and freeze ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef int j
        cdef double scale = 1.0, length
        for j in range(self.width):
            self.weights[j] = 0
            if c.logps[j] > -INFINITY:
                self.weights[j] = 1.0 / self.width * (
                    self.entropy_weight + (c.logps[j] < c.logp_x))
        if not c.accepted:
            gain *= self.shrink
        length = sqrt(fk_divergence_step(
            c.d, self.width, &self.C[0, 0], c.grad_y, &self.e[0, 0], &self.weights[0],
            self.entropy_weight, gain, self.largest_step, &self.step[0]))
        if length > self.norm_clip:
            scale = self.norm_clip / length
        fk_divergence_move(c.d, scale, &self.step[0], &self.C[0, 0])
        self.learn_bank(c)
        return 0

    cdef void learn_bank(self, Chain *c) noexcept nogil:
        """Store states and factors of the second half of adaptation, equally spaced in time."""
        cdef int64_t start = self.end_of_adaptation // 2, length = self.end_of_adaptation - start
        cdef int64_t entries = min(self.bank_x.shape[0], length), t = self.t - start
        if self.end_of_adaptation == INT64_MAX or t < 0 or self.banked == self.bank_x.shape[0]:
            return
        if (t + 1) * entries // length > t * entries // length:
            self.put_into_bank(c.y if c.accepted else c.x)

    cdef void put_into_bank(self, const double *x) noexcept nogil:
        copy(self.d, x, &self.bank_x[self.banked, 0])
        memcpy(&self.bank_C[self.banked, 0, 0], &self.C[0, 0], self.d * self.d * sizeof(double))
        self.banked += 1

    cdef int freeze(self, Chain *c) except -1 nogil:
        self.frozen = True
        self.at_x = self.at_y = UNKNOWN
        if self.banked == 0:
            self.put_into_bank(c.x)
        self.build_index()
        return 0

    cdef void build_index(self) noexcept nogil:
        cdef int64_t i
        self.index.build(self.banked)
        for i in range(self.banked):
            self.log_dets[i] = log_det_L(self.d, &self.bank_C[i, 0, 0])
