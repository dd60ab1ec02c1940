"""The surrogate s of a log density: a Gaussian process, and two wider terms.

    u = T (x - c),                                     T (d, d)
    log g(x) = b0 + b'u + u'B u + sum_i a_i k(|u - U_i|) - log(1 + (r_in / r_out)^p)
    log s(x) = log(g(x) + e^v g(x)^q + sum_k e^w_k (1 + |W_k (u - m_k)|^2 / nu)^(-(nu + d)/2))

for low < x < high, and g = 0 elsewhere. k is the Matern covariance of order 5/2; r_in and r_out are
the distances of u from the nearest points of nonzero and of zero density. Two terms bound pi / s
where g is too small: g to a power q below 1, which is wider than g along every bend of g, and
Student components, which are positive everywhere.
"""
from libc.math cimport INFINITY, isnan, log, log1p

from fastkam._core.density.target cimport Target
from fastkam._core.engine.sums cimport log_add, softplus
from fastkam._core.engine.state import zeros

import numpy as np

cdef extern from "regression.h" nogil:
    enum:
        LANES "FK_LANES"
    double fk_matern_mean(Py_ssize_t blocks, Py_ssize_t d, const double *U, const double *a,
                          const double *u, double *nearest)
    double fk_nearest_square(Py_ssize_t blocks, Py_ssize_t d, const double *U, const double *u)

cdef enum:
    MOST_D = 64         # coordinates; those of u are on the stack
    NU = 3              # degrees of freedom of the Student components

MOST_DIMENSIONS, DEGREES = MOST_D, NU
FAR = 1e100             # the coordinates of padding

cdef struct Model:
    Py_ssize_t d
    Py_ssize_t blocks       # of points in the process
    Py_ssize_t out_blocks   # of points without a density
    Py_ssize_t K            # Student components
    double b0
    double power            # p
    double flat             # v; -inf if there is no such term
    double flatter          # q
    const double *low       # (d,)
    const double *high      # (d,)
    const double *c         # (d,)
    const double *T         # (d, d) row by row
    const double *b         # (d,)
    const double *B         # (d, d)
    const double *U         # (blocks, d, LANES)
    const double *a         # (blocks, LANES)
    const double *out       # (out_blocks, d, LANES)
    const double *w         # (K,)
    const double *m         # (K, d)
    const double *W         # (K, d, d) row by row


cdef Py_ssize_t blocks_of(Py_ssize_t n) noexcept nogil:
    """Return the number of blocks for n points."""
    return (n + LANES - 1) // LANES


def packed(points):
    """Return points (n, d) in blocks, (blocks * d * LANES,)."""
    n, d = points.shape
    blocks = blocks_of(n)
    rows = np.full((blocks * LANES, d), FAR)
    rows[:n] = points
    block = zeros(blocks * d * LANES)
    block[:] = rows.reshape(blocks, LANES, d).transpose(0, 2, 1).ravel()
    return block


cdef class LearnedDensity(Target):
    """The target s; `set_up` takes the terms of its formula."""
    cdef Model model
    cdef dict given
    cdef const double[::1] low, high, center, b, U, a, out, w
    cdef const double[:, ::1] T, B, m
    cdef const double[:, :, ::1] W

    def set_up(self, *, low, high, c, T, b0, b, B, U, a, out, power, w, m, W,
               double flat=-INFINITY, double flatter=1):
        """Take the terms of the formula: n must be at least 1; n_out and K may be 0.

        `flat` is v and `flatter` is q.

        low, high, c, b (d,), T, B (d, d), U (n, d), a (n,), out (n_out, d), w (K,), m (K, d),
        W (K, d, d).
        """
        d, n = len(c), len(a)
        if d > MOST_D:
            raise ValueError(f"a learned surrogate has at most {MOST_D} coordinates, not {d}")
        self.given = {"low": low, "high": high, "c": c, "T": T, "b0": b0, "b": b, "B": B, "U": U,
                      "a": a, "out": out, "power": power, "w": w, "m": m, "W": W,
                      "flat": flat, "flatter": flatter}
        self.model.d, self.model.K, self.model.b0, self.model.power = d, len(w), b0, power
        self.model.flat, self.model.flatter = flat, flatter
        self.model.blocks, self.model.out_blocks = blocks_of(n), blocks_of(len(out))
        self.low, self.high, self.center, self.T, self.b, self.B = (
            np.ascontiguousarray(v, float) for v in (low, high, c, T, b, B))
        self.model.low, self.model.high = &self.low[0], &self.high[0]
        self.U, self.a = packed(U), np.pad(a, (0, LANES * blocks_of(n) - n))
        self.model.c, self.model.T = &self.center[0], &self.T[0, 0]
        self.model.b, self.model.B = &self.b[0], &self.B[0, 0]
        self.model.U, self.model.a = &self.U[0], &self.a[0]
        if len(out):
            self.out = packed(out)
            self.model.out = &self.out[0]
        if len(w):
            self.w, self.m, self.W = (np.ascontiguousarray(v, float) for v in (w, m, W))
            self.model.w, self.model.m, self.model.W = (
                &self.w[0], &self.m[0, 0], &self.W[0, 0, 0])
        self.kind = "learned surrogate"
        self.c.dim = d
        self.c.logp = learned_logp
        self.c.data = &self.model

    def __reduce__(self):
        return made, (self.given,)

    def parts(self, x):
        """Return log g and the log of the Student part, (n, 2), at points x (n, d)."""
        cdef const double[:, ::1] X = self.points(x)
        cdef double[:, ::1] both = np.empty((X.shape[0], 2))
        cdef double u[MOST_D]
        for i in range(X.shape[0]):
            transform(&self.model, &X[i, 0], u)
            both[i, 0] = log_process(&self.model, &X[i, 0], u)
            both[i, 1] = log_students(&self.model, u)
        return np.asarray(both)


def made(given):
    """Return a target from the arguments of `set_up`."""
    density = LearnedDensity()
    density.set_up(**given)
    return density


cdef void transform(const Model *f, const double *x, double *u) noexcept nogil:
    """Compute u = T (x - c)."""
    cdef Py_ssize_t i, j
    for i in range(f.d):
        u[i] = 0
        for j in range(f.d):
            u[i] += f.T[i * f.d + j] * (x[j] - f.c[j])


cdef double log_process(const Model *f, const double *x, const double *u) noexcept nogil:
    """Return log g; -inf if u is so far away that it overflows."""
    cdef double value = f.b0, row, r_in, r_out
    cdef Py_ssize_t i, j
    for i in range(f.d):
        if not f.low[i] < x[i] < f.high[i]:
            return -INFINITY
    for i in range(f.d):
        row = f.b[i]
        for j in range(f.d):
            row += f.B[i * f.d + j] * u[j]
        value += row * u[i]
    value += fk_matern_mean(f.blocks, f.d, f.U, f.a, u, &r_in)
    if f.out_blocks > 0:
        r_out = fk_nearest_square(f.out_blocks, f.d, f.out, u)
        value -= softplus(0.5 * f.power * log(r_in / r_out))
    return -INFINITY if isnan(value) else value


cdef double log_students(const Model *f, const double *u) noexcept nogil:
    cdef Py_ssize_t i, j, k, d = f.d
    cdef const double *W
    cdef double total = -INFINITY, square, row
    for k in range(f.K):
        square, W = 0, f.W + k * d * d
        for i in range(d):
            row = 0
            for j in range(d):
                row += W[i * d + j] * (u[j] - f.m[k * d + j])
            square += row * row
        total = log_add(total, f.w[k] - 0.5 * (NU + d) * log1p(square / NU))
    return total


cdef int learned_logp(size_t d, const double *x, double *logp, void *data) noexcept nogil:
    cdef const Model *f = <const Model *>data
    cdef double u[MOST_D]
    cdef double log_g
    transform(f, x, u)
    log_g = log_process(f, x, u)
    logp[0] = log_add(log_g, log_students(f, u))
    if f.flat > -INFINITY and log_g > -INFINITY:
        logp[0] = log_add(logp[0], f.flat + f.flatter * log_g)
    return 0
